import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ecrEndpoint, isHostOf, type LoginProvider } from '#functions/credentials/hosts.ts'

const PROVIDERS: LoginProvider[] = ['amazon', 'azure', 'google', 'github']
const HOSTS = [
  '111122223333.dkr.ecr.eu-central-1.amazonaws.com',
  '111122223333.dkr.ecr-fips.us-east-1.amazonaws.com',
  '111122223333.dkr.ecr.cn-northwest-1.amazonaws.com.cn',
  'public.ecr.aws',
  'europe-docker.pkg.dev',
  'eu.gcr.io',
  'shop.azurecr.io',
  'ghcr.io',
]

const text = fc.string({ unit: fc.constantFrom(...'a0-._:/@#?*%[]\n\0 é'), minLength: 1 })

describe('the host of a registry', () => {
  test.each(HOSTS)('%s is of one provider', (host) => {
    expect(PROVIDERS.filter((provider) => isHostOf(provider, host))).toHaveLength(1)
  })

  test('is of no provider with anything behind it, or before it and a dot', () => {
    fc.assert(
      fc.property(fc.constantFrom(...HOSTS), text, (host, more) => {
        for (const other of [`${host}${more}`, `${more}.${host}`, `${more}@${host}`]) {
          expect(PROVIDERS.filter((provider) => isHostOf(provider, other))).toEqual([])
        }
      }),
      { numRuns: 1000 },
    )
  })

  test('is never taken for another that a URL makes of it', () => {
    const label = fc.stringMatching(/^[a-z0-9.:@/-]{1,12}$/)
    const host = fc.oneof(
      fc.tuple(label, fc.constantFrom('azurecr.io', 'gcr.io', 'docker.pkg.dev', 'ecr.aws')),
      fc.tuple(label, fc.constantFrom('amazonaws.com', 'amazonaws.com.cn')),
    )
    fc.assert(
      fc.property(host, fc.constantFrom('.', '-', ''), ([before, name], between) => {
        const whole = `${before}${between}${name}`
        if (!PROVIDERS.some((provider) => isHostOf(provider, whole))) return
        expect(new URL(`https://${whole}/`).host).toBe(whole)
      }),
      { numRuns: 3000 },
    )
  })

  test('of ECR leads to an endpoint of AWS in the region of the registry', () => {
    const region = fc.stringMatching(/^[a-z]{2}(-[a-z]{2,9}){1,2}-[0-9]$/)
    fc.assert(
      fc.property(
        region,
        fc.constantFrom('', '-fips'),
        fc.constantFrom('', '.cn'),
        (name, fips, cn) => {
          const found = ecrEndpoint(`111122223333.dkr.ecr${fips}.${name}.amazonaws.com${cn}`)
          if ((cn !== '') !== name.startsWith('cn-')) expect(found).toBeUndefined()
          else {
            const start = fips === '' ? 'api.ecr' : 'ecr-fips'
            const host = `${start}.${name}.amazonaws.com${cn}`
            expect(found).toEqual({ host, region: name, service: 'ecr' })
            expect(new URL(`https://${host}/`).host).toBe(host)
          }
        },
      ),
    )
  })
})
