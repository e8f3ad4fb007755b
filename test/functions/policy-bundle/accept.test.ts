import { beforeAll, describe, expect, test } from 'vitest'
import { payloadOf } from '#functions/cli/policy-bundle/write.ts'
import type { Config } from '#functions/config.ts'
import type { Deployment } from '#functions/deployment.ts'
import { acceptPayload } from '#functions/policy-bundle/accept.ts'
import type { Bytes } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import type { MatchConstraints } from '#shared/policy/types.ts'
import { keyAttestor, POD_RULE } from '#test/shared/policy/documents.ts'
import { hashOf } from '../../contract/review.ts'
import { configWith, deploymentOf, forbids, ISSUED, NOW, newKey, TOKEN } from './setup.ts'

const KEY = newKey()
const URL_SOURCE = { url: 'https://policies.example.com/prod.json' }
const plain = configWith(URL_SOURCE, KEY)
const clusters = (...list: object[]) => ({
  clusters: list.map((more) => ({ name: 'prod', tokens: [hashOf(TOKEN)], ...more })),
})
const asking = (expression: string) => forbids('', { validations: [{ expression }] })

/** What is signed of documents, by somebody whose config gives them all that they need. */
async function payload(documents: readonly object[], config: Config): Promise<Bytes> {
  return payloadOf(await deploymentOf(documents, config), { sequence: 1, issuedAt: ISSUED })
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(thrown instanceof AdmissionError)) throw new TypeError('it was accepted')
  expect(thrown.code).toBe('POLICY_BUNDLE_REFUSED')
  return thrown.message
}

describe('a bundle is refused when a policy needs', () => {
  const http = { http: { allow: ['api.example.com'] } }
  const api = clusters({ api: { server: 'https://api.example.com', tokenEnv: 'API_TOKEN' } })

  test.each<[string, object, object, object, RegExp]>([
    [
      'hosts that the config lets nobody ask',
      http,
      {},
      asking("http.Get('https://api.example.com/').ok == true"),
      /uses http\.\* in spec\.validations\[0\]\.expression: list the hosts/,
    ],
    [
      'a connection to the cluster that the config does not have',
      api,
      {},
      asking("resource.Get('v1', 'configmaps', 'a', 'b').data.ok == 'yes'"),
      /needs resource\.\* .* give the cluster an api/,
    ],
    [
      'a pull secret that the config does not know',
      { registries: { secrets: [{ name: 'shop', dockerConfigEnv: 'SHOP' }] } },
      {},
      forbids('', { credentials: { secrets: ['shop'] } }),
      /policy tags: the config of this function has no login shop/,
    ],
    [
      'a provider of logins that the config does not name',
      { registries: { credentials: [{ provider: 'amazon' }] } },
      {},
      forbids('', { credentials: { providers: ['amazon'] } }),
      /policy tags: the config of this function has no login amazon/,
    ],
    [
      'a key of Vault, where the config has none',
      { kms: { vault: { address: 'https://vault.example.com', tokenEnv: 'VAULT_TOKEN' } } },
      {},
      forbids('', { attestors: [keyAttestor('release', { kms: 'hashivault://release' })] }),
      /policy tags: KMS reference "hashivault:\/\/release": no Vault is configured/,
    ],
    [
      'an endpoint of KMS that the config does not list',
      { kms: { region: 'eu-west-1', endpoints: ['https://kms.internal'] } },
      { kms: { region: 'eu-west-1' } },
      forbids('', {
        attestors: [keyAttestor('release', { kms: 'awskms://kms.internal/alias/release' })],
      }),
      /endpoint kms\.internal is not on the operator's list/,
    ],
    [
      'a name that clusters of the function list, and does not have it',
      {},
      clusters({ policies: ['tags', 'other'] }),
      forbids('latest'),
      /no policy of the folder is named "other"/,
    ],
  ])('%s', async (_, signer, own, document, message) => {
    const [theirs, ours] = [signer, own].map((each) => configWith(URL_SOURCE, KEY, {}, each))
    const { registries, kms } = theirs as Config
    const { policies, faults } = await loadPolicies(
      [{ name: 'a.json', text: JSON.stringify(document) }],
      {
        registries: {
          secrets: (registries.secrets ?? []).map(({ name }) => name),
          providers: registries.credentials.map(({ kind }) => kind as 'amazon'),
          plainHttp: [],
        },
        ...(kms.region !== undefined && { kmsRegion: kms.region }),
        kmsEndpoints: kms.endpoints,
        ...(kms.vault && { kmsVault: kms.vault }),
      },
    )
    expect(faults).toEqual([])
    const deployment: Deployment = { config: theirs as Config, policies, hash: '' }
    const bytes = payloadOf(deployment, { sequence: 1, issuedAt: ISSUED })
    expect(await refusal(acceptPayload(bytes, ours as Config, undefined, NOW))).toMatch(message)
    expect(await acceptPayload(bytes, theirs as Config, undefined, NOW)).toBeTruthy()
  })
})

describe('a bundle is refused whose policies say otherwise than by this version', () => {
  test.each<[string, object]>([
    [
      'a rule without resources',
      { resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['*'] }] },
    ],
    ['an operation that is no text', { resourceRules: [{ ...POD_RULE, operations: [1] }] }],
    ['a scope that nobody knows', { resourceRules: [{ ...POD_RULE, scope: 'Tenant' }] }],
    ['a rule with one more member', { excludeResourceRules: [{ ...POD_RULE, users: ['me'] }] }],
    [
      'a selector by an unknown operator',
      { objectSelector: { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] } },
    ],
    ['labels that are no text', { namespaceSelector: { matchLabels: { a: 1 } } }],
    ['one more way to select', { fieldSelector: {} }],
    ['no list of rules', { resourceRules: {} }],
  ])('what they are about: %s', async (_, constraints) => {
    const deployment = await deploymentOf([forbids('latest')], plain)
    const policies = deployment.policies.map((policy) => ({
      ...policy,
      // Not what a compiler makes.
      matchConstraints: { ...policy.matchConstraints, ...constraints } as MatchConstraints,
    }))
    const bytes = payloadOf({ ...deployment, policies }, { sequence: 1, issuedAt: ISSUED })
    expect(await refusal(acceptPayload(bytes, plain, undefined, NOW))).toBe(
      'policy bundle refused: policies[0]: its matchConstraints is none that this version knows',
    )
  })
})

describe('a bundle that counts', () => {
  let bytes: Bytes
  beforeAll(async () => {
    bytes = await payload([forbids('latest')], plain)
  })

  test('makes the deployment that its policies and this config are', async () => {
    const accepted = await acceptPayload(bytes, plain, undefined, NOW)
    const built = await deploymentOf([forbids('latest')], plain)
    expect(accepted?.deployment).toEqual(built)
  })

  test('is not taken twice', async () => {
    const accepted = await acceptPayload(bytes, plain, undefined, NOW)
    expect(await acceptPayload(bytes, plain, accepted, NOW)).toBeUndefined()
  })

  test('may be for more clusters than the function has', async () => {
    const more = configWith(URL_SOURCE, KEY, {}, clusters({}, { name: 'later' }))
    expect(
      await acceptPayload(await payload([forbids('a')], more), plain, undefined, NOW),
    ).toBeTruthy()
  })

  test('brings its pinned keys, which are no keys of bundles', async () => {
    const key = {
      keyId: 'alias/release',
      region: 'eu-west-1',
      spki: 'AAAA',
      keySpec: 'ECC_NIST_P256',
      keyUsage: 'SIGN_VERIFY',
      signingAlgorithms: ['ECDSA_SHA_256'],
    }
    const pinned = { fetchedAt: '2026-12-31T00:00:00.000Z', keys: [key] }
    const signer = { ...plain, kms: { ...plain.kms, pinned } }
    const accepted = await acceptPayload(
      await payload([forbids('a')], signer),
      plain,
      undefined,
      NOW,
    )
    expect(accepted?.deployment.config.kms.pinned).toEqual(pinned)
    expect(plain.kms.pinned).toBeUndefined()
  })
})
