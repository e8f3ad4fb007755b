import { describe, expect, test } from 'vitest'
import { loadPolicies } from '#shared/policy/load.ts'
import type { CredentialNames } from '#shared/registry/types.ts'
import { policyDocument } from './documents.ts'

const KNOWN = {
  secrets: ['regcred', 'kyverno/ghcr'],
  providers: ['default', 'google'] as const,
  plainHttp: ['localhost:5000'],
}

/** The policy with these credentials, loaded beside a config that has `registries`. */
async function load(credentials: unknown, registries?: typeof KNOWN | { plainHttp: string[] }) {
  const text = JSON.stringify(policyDocument({ credentials }))
  const known = registries === undefined ? {} : { registries: { ...KNOWN, ...registries } }
  const { policies, faults } = await loadPolicies([{ name: 'a.json', text }], known)
  return {
    policy: policies[0],
    faults: faults.map(({ code, path, message }) => `${code} ${path}: ${message}`),
  }
}

describe('the credentials of a policy', () => {
  test.each<{ name: string; credentials: unknown; names: CredentialNames | undefined }>([
    {
      name: 'are names of Secrets and providers, in their order and each once',
      credentials: {
        secrets: ['kyverno/ghcr', 'regcred', 'regcred'],
        providers: ['google', 'default', 'google'],
      },
      names: { secrets: ['kyverno/ghcr', 'regcred'], providers: ['google', 'default'] },
    },
    {
      name: 'leave out the default with Secrets only',
      credentials: { secrets: ['regcred'] },
      names: { secrets: ['regcred'], providers: [] },
    },
    {
      name: 'are the default when none is named',
      credentials: { allowInsecureRegistry: true },
      names: { secrets: [], providers: ['default'] },
    },
    {
      name: 'are the default when empty',
      credentials: {},
      names: { secrets: [], providers: ['default'] },
    },
    { name: 'are those of the registries when null', credentials: null, names: undefined },
    { name: 'are those of the registries when absent', credentials: undefined, names: undefined },
  ])('$name', async ({ credentials, names }) => {
    const { policy, faults } = await load(credentials, KNOWN)
    expect(faults).toEqual([])
    expect(policy?.credentials).toEqual(names)
  })

  test('are part of the hash of the policy', async () => {
    const all = [undefined, {}, { secrets: ['regcred'] }, { secrets: ['kyverno/ghcr'] }]
    const hashes = await Promise.all(
      all.map(async (credentials) => (await load(credentials, KNOWN)).policy?.hash),
    )
    expect(new Set(hashes).size).toBe(all.length)
  })

  test.each([
    {
      name: 'a Secret that the config does not have',
      credentials: { secrets: ['regcred', 'kyverno/regcred', 'ghcr'] },
      faults: ['kyverno/regcred', 'ghcr'].map(
        (name, at) =>
          `POLICY_INVALID spec.credentials.secrets[${at + 1}]: Not found: "${name}": Secrets are not read from a cluster; registries.secrets of the config needs an entry of this name`,
      ),
    },
    {
      name: 'a provider that the config does not have',
      credentials: { providers: ['amazon', 'google'] },
      faults: [
        'POLICY_INVALID spec.credentials.providers[0]: Not found: "amazon": registries.credentials of the config needs an entry with provider: amazon',
      ],
    },
    {
      name: 'a provider that nobody has',
      credentials: { providers: ['alibaba'] },
      faults: [
        'POLICY_INVALID spec.credentials.providers[0]: Unsupported value: "alibaba": supported values: "default", "amazon", "azure", "google", "github"',
      ],
    },
    {
      name: 'a blank Secret and unknown fields',
      credentials: { secrets: [' '], helpers: ['google'] },
      faults: [
        'POLICY_INVALID spec.credentials.helpers: unknown field "helpers"',
        'POLICY_INVALID spec.credentials.secrets[0]: Required value',
      ],
    },
    {
      name: 'anything but an object',
      credentials: ['regcred'],
      faults: ['POLICY_INVALID spec.credentials: Invalid value: "array": must be of type object'],
    },
  ])('are refused with $name', async ({ credentials, faults }) => {
    const loaded = await load(credentials, KNOWN)
    expect(loaded.policy).toBeUndefined()
    expect(loaded.faults.toSorted()).toEqual(faults.toSorted())
  })

  test('allow registries without TLS only where the config names some', async () => {
    const { faults } = await load({ allowInsecureRegistry: true }, { plainHttp: [] })
    expect(faults).toEqual([
      'POLICY_INVALID spec.credentials.allowInsecureRegistry: Forbidden: registries without TLS are allowed by name only, in registries.plainHttp of the config',
    ])
    expect((await load({ allowInsecureRegistry: false }, { plainHttp: [] })).faults).toEqual([])
  })

  test('say to whom that applies', async () => {
    const text = JSON.stringify(policyDocument({ credentials: { allowInsecureRegistry: true } }))
    const { warnings } = await loadPolicies([{ name: 'a.json', text }], { registries: KNOWN })
    expect(warnings.map(({ path }) => path)).toContain('spec.credentials.allowInsecureRegistry')
  })

  test('are taken as they are where there is no config', async () => {
    const { policy, faults } = await load({ secrets: ['anything'], allowInsecureRegistry: true })
    expect(faults).toEqual([])
    expect(policy?.credentials).toEqual({ secrets: ['anything'], providers: [] })
  })
})
