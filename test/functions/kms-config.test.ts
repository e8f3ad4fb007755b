import { describe, expect, test } from 'vitest'
import { parseConfig } from '#functions/config.ts'
import { missingVariables } from '#functions/ports.ts'
import type { AdmissionError } from '#shared/errors.ts'
import { hashOf } from '../contract/review.ts'
import { keyAttestor, load, policyDocument, said } from '../shared/policy/documents.ts'

const vault = { address: 'https://vault.test:8200', tokenEnv: 'VAULT_TOKEN' }

const configWith = (kms: object, key: object = { secrets: [{ id: 'a', env: 'SEAL' }] }) => ({
  policies: 'policies',
  endpoint: 'https://admission.example.com',
  outcomes: { key },
  kms,
  clusters: [{ name: 'prod', tokens: [hashOf('x')] }],
})

function faultsOf(input: unknown) {
  try {
    parseConfig(input)
    return []
  } catch (thrown) {
    return (thrown as AdmissionError).faults.map(({ path }) => path)
  }
}

describe('kms of the config', () => {
  test('has defaults for Vault, and none for the preferred region', () => {
    expect(parseConfig(configWith({ vault })).kms).toEqual({
      endpoints: [],
      verifyRemotely: false,
      vault: { ...vault, mount: 'transit' },
    })
  })

  test('keeps what it says', () => {
    const kms = {
      region: 'eu-central-1',
      preferRegion: 'us-east-1',
      endpoints: [],
      verifyRemotely: true,
      vault: { ...vault, mount: 'team-a/transit', namespace: 'admin/eu' },
    }
    expect(parseConfig(configWith(kms)).kms).toEqual(kms)
  })

  test.each([
    { name: 'Vault without a token', kms: { vault: { address: vault.address } }, at: 'tokenEnv' },
    { name: 'Vault without an address', kms: { vault: { tokenEnv: 'A' } }, at: 'address' },
    {
      name: 'a token where the name of its variable belongs',
      kms: { vault: { ...vault, tokenEnv: 'hvs.abc' } },
      at: 'tokenEnv',
    },
    {
      name: 'plain http to another machine',
      kms: { vault: { ...vault, address: 'http://vault.test:8200' } },
      at: 'address',
    },
    {
      name: 'an address with a path',
      kms: { vault: { ...vault, address: 'https://vault.test/v1' } },
      at: 'address',
    },
    {
      name: 'an address with a login',
      kms: { vault: { ...vault, address: 'https://a:b@vault.test' } },
      at: 'address',
    },
    { name: 'a mount that climbs', kms: { vault: { ...vault, mount: '../sys' } }, at: 'mount' },
    {
      name: 'a mount with slashes around it',
      kms: { vault: { ...vault, mount: '/transit/' } },
      at: 'mount',
    },
    { name: 'an empty mount', kms: { vault: { ...vault, mount: '' } }, at: 'mount' },
    {
      name: 'a namespace with a line break',
      kms: { vault: { ...vault, namespace: 'a\nb' } },
      at: 'namespace',
    },
  ])('names $name', ({ kms, at }) => {
    expect(faultsOf(configWith(kms))).toEqual([`kms.vault.${at}`])
  })

  test('names a preferred region that is none', () => {
    expect(faultsOf(configWith({ preferRegion: 'Frankfurt' }))).toEqual(['kms.preferRegion'])
  })

  test('takes no sealing key in Vault', () => {
    const config = configWith({ vault }, { kms: 'hashivault://seal' })
    expect(faultsOf(config)).toEqual(['outcomes.key.kms'])
  })

  test('says that the variable with the token is missing', () => {
    const config = parseConfig(configWith({ vault }))
    expect(missingVariables(config, { SEAL: 'a' })).toEqual(['VAULT_TOKEN'])
    expect(missingVariables(config, { SEAL: 'a', VAULT_TOKEN: 'b' })).toEqual([])
  })
})

describe('a policy with a key of a key service', () => {
  const policy = (kms: string) => policyDocument({ attestors: [keyAttestor('release', { kms })] })

  test('loads with a key in Vault where the config has one', async () => {
    const { policies, faults } = await load([policy('hashivault://release')], { kmsVault: vault })
    expect([said(faults), policies.length]).toEqual([[], 1])
  })

  test('has another hash for another Vault, mount or namespace, and none for the name of the variable', async () => {
    const hashes = await Promise.all(
      [
        vault,
        { ...vault, tokenEnv: 'OTHER' },
        { ...vault, mount: 'transit' },
        { ...vault, address: 'https://other.test' },
        { ...vault, mount: 'other' },
        { ...vault, namespace: 'other' },
      ].map(async (kmsVault) => {
        const { policies } = await load([policy('hashivault://release')], { kmsVault })
        return policies[0]?.hash
      }),
    )
    expect(new Set(hashes.slice(0, 3)).size).toBe(1)
    expect(new Set(hashes).size).toBe(4)
  })

  test.each([
    {
      kms: 'hashivault://release',
      code: 'POLICY_INVALID',
      says: 'KMS reference "hashivault://release": no Vault is configured: set kms.vault.address and kms.vault.tokenEnv (for verify, --vault-address)',
    },
    {
      kms: 'k8s://cosign-system/key',
      code: 'POLICY_UNSUPPORTED',
      says: 'KMS reference k8s://…: keys in Kubernetes Secrets are not read, functions have no access to the cluster; put the public key into cosign.key.data as PEM',
    },
    {
      kms: 'cosign.pub',
      code: 'POLICY_INVALID',
      says: 'KMS reference "cosign.pub": it is the path of a file, and functions read no files; put the public key into cosign.key.data as PEM',
    },
  ])('is refused when it loads: $kms', async ({ kms, code, says }) => {
    const { faults } = await load([policy(kms)], { kmsRegion: 'eu-west-1' })
    expect(said(faults)).toEqual([
      { code, path: 'spec.attestors[0].cosign.key.kms', message: says },
    ])
  })
})
