import { describe, expect, test } from 'vitest'
import {
  type ImagePolicy,
  imagePolicyFaults,
  imagePolicyKubeconfig,
  imagePolicyOf,
} from '#shared/webhook/image-policy.ts'
import { admissionConfiguration, serverKubeconfig } from '#shared/webhook/server.ts'
import type { WebhookTarget } from '#shared/webhook/types.ts'

const URL = 'https://admission.example.com/v1/prod/token/image-review'
const OPTIONS = { url: URL, folder: '/etc/x', credentials: [] }

describe('imagePolicyOf', () => {
  test('says everything, and admits nothing because nobody answered', () => {
    expect(imagePolicyOf(OPTIONS)).toEqual({
      kubeConfigFile: '/etc/x/image-policy-kubeconfig.yaml',
      allowTTL: 300,
      denyTTL: 30,
      retryBackoff: 500,
      defaultAllow: false,
    })
  })

  test('0 s are -1, since 0 is the default of the API server', () => {
    const policy = imagePolicyOf({ ...OPTIONS, allowTTLSeconds: 0, denyTTLSeconds: 0 })
    expect([policy.allowTTL, policy.denyTTL]).toEqual([-1, -1])
    expect(imagePolicyFaults(policy, URL)).toEqual([])
  })
})

describe('imagePolicyFaults', () => {
  const fine = imagePolicyOf(OPTIONS)

  test.each<[string, Partial<ImagePolicy>]>([
    ['the least that is kept', { allowTTL: 2, denyTTL: 2, retryBackoff: 1 }],
    ['the most that is kept', { allowTTL: 1800, denyTTL: 1800, retryBackoff: 300_000 }],
    ['the default of the API server', { allowTTL: 0, denyTTL: 0, retryBackoff: 0 }],
    ['nothing', { allowTTL: -1, denyTTL: -1, retryBackoff: -1 }],
  ])('takes %s', (_, changes) => {
    expect(imagePolicyFaults({ ...fine, ...changes }, URL)).toEqual([])
  })

  test.each<[string, Partial<ImagePolicy>, string, string]>([
    [
      'the lower bound itself',
      { allowTTL: 1 },
      'allowTTL',
      'valid value is between 1s and 30m0s, got 1s',
    ],
    [
      'a second too many',
      { allowTTL: 1801 },
      'allowTTL',
      'valid value is between 1s and 30m0s, got 30m1s',
    ],
    ['hours', { denyTTL: 7384 }, 'denyTTL', 'valid value is between 1s and 30m0s, got 2h3m4s'],
    [
      'less than nothing',
      { denyTTL: -2 },
      'denyTTL',
      'valid value is between 1s and 30m0s, got -2s',
    ],
    ['a fraction', { denyTTL: 2.5 }, 'denyTTL', 'valid value is between 1s and 30m0s, got 2.5s'],
    [
      'a long wait',
      { retryBackoff: 300_001 },
      'retryBackoff',
      'valid value is between 1ns and 5m0s, got 5m0.001s',
    ],
    [
      'less than a millisecond',
      { retryBackoff: 0.5 },
      'retryBackoff',
      'valid value is between 1ns and 5m0s, got 0.5ms',
    ],
    ['no kubeconfig', { kubeConfigFile: '' }, 'kubeConfigFile', 'Required value'],
    [
      'failing open',
      { defaultAllow: true },
      'defaultAllow',
      'Invalid value: true: pods would be admitted whenever nobody answers',
    ],
  ])('refuses %s', (_, changes, name, message) => {
    expect(imagePolicyFaults({ ...fine, ...changes }, URL)).toEqual([
      { path: `imagePolicy.${name}`, message },
    ])
  })

  test('tells everything at once, and no URL', () => {
    const policy = { ...fine, allowTTL: 1, denyTTL: 1, retryBackoff: -9, defaultAllow: true }
    const faults = imagePolicyFaults(policy, 'http://u:secret@a/?token=secret')
    expect(faults.map(({ path }) => path)).toEqual([
      'server',
      'server',
      'server',
      'imagePolicy.allowTTL',
      'imagePolicy.denyTTL',
      'imagePolicy.retryBackoff',
      'imagePolicy.defaultAllow',
    ])
    expect(JSON.stringify(faults)).not.toContain('secret')
  })
})

describe('imagePolicyKubeconfig', () => {
  test('leads to the URL, trusts the given authorities and names files for the rest', () => {
    const credentials = ['certificate', 'bearer'] as const
    expect(imagePolicyKubeconfig({ ...OPTIONS, credentials, caBundle: 'Q0E=' })).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'countersign', cluster: { server: URL, 'certificate-authority-data': 'Q0E=' } },
      ],
      users: [
        {
          name: 'api-server',
          user: {
            'client-certificate': '/etc/x/client.crt',
            'client-key': '/etc/x/client.key',
            tokenFile: '/etc/x/bearer-token',
          },
        },
      ],
      contexts: [{ name: 'countersign', context: { cluster: 'countersign', user: 'api-server' } }],
      'current-context': 'countersign',
    })
  })

  test('trusts system roots where no authority is given', () => {
    expect(imagePolicyKubeconfig(OPTIONS)).toMatchObject({
      clusters: [{ name: 'countersign', cluster: { server: URL } }],
      users: [{ name: 'api-server', user: {} }],
    })
  })
})

describe('serverKubeconfig', () => {
  const namesFor = (target: WebhookTarget) => {
    const made = serverKubeconfig({ target, folder: '/x', credentials: ['bearer'] })
    return (made as { users: { name: string; user: object }[] }).users.map(({ name, user }) => {
      expect(user).toEqual({ tokenFile: '/x/bearer-token' })
      return name
    })
  }

  test.each<[string, WebhookTarget, string[]]>([
    ['one host', { kind: 'url', base: 'https://a.example/v1' }, ['a.example']],
    [
      'a host for each phase, in order',
      { kind: 'url', base: { mutate: 'https://b.example/v1', validate: 'https://a.example:444' } },
      ['a.example:444', 'b.example'],
    ],
    [
      'one host for both phases once',
      { kind: 'url', base: { mutate: 'https://a.example/m', validate: 'https://a.example/v' } },
      ['a.example'],
    ],
    [
      'no port where it is the usual one',
      { kind: 'url', base: 'https://a.example:443' },
      ['a.example'],
    ],
    ['the letters of the URL', { kind: 'url', base: 'HTTPS://A.example/v1' }, ['A.example']],
    ['an address', { kind: 'url', base: 'https://[2001:db8::1]:8443/' }, ['[2001:db8::1]:8443']],
    [
      'an address with the usual port',
      { kind: 'url', base: 'https://[2001:db8::1]:443' },
      ['[2001:db8::1]:443'],
    ],
    // As Go joins what has brackets with a port.
    [
      'an address without a port',
      { kind: 'url', base: 'https://[2001:db8::1]/v1' },
      ['[[2001:db8::1]]:443'],
    ],
    ['a Service by its name', { kind: 'service', namespace: 'n', name: 's' }, ['s.n.svc']],
    [
      'a Service with its port',
      { kind: 'service', namespace: 'n', name: 's', port: 8443 },
      ['s.n.svc:8443'],
    ],
  ])('has a user for %s', (_, target, names) => {
    expect(namesFor(target)).toEqual(names)
  })

  test('is not there for API servers that show nothing', () => {
    const target = { kind: 'url' as const, base: 'https://a.example' }
    expect(serverKubeconfig({ target, folder: '/x', credentials: [] })).toBeUndefined()
    expect(admissionConfiguration({ target, folder: '/x', credentials: [] })).toBeUndefined()
  })
})
