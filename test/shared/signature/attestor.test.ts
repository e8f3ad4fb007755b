import { describe, expect, test } from 'vitest'
import type { AdmissionError } from '#shared/errors.ts'
import { type CosignKeyFields, createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import { keyPair, pemOf } from './setup.ts'

const data = pemOf(keyPair('P-256').publicKey)
const kms = 'awskms:///alias/release'

describe('createCosignKeyAttestor', () => {
  test('keeps the fields of a PEM key', async () => {
    expect(
      await createCosignKeyAttestor({ name: 'release', data, hashAlgorithm: 'sha384' }),
    ).toEqual({
      kind: 'cosign-key',
      name: 'release',
      key: { data },
      hashAlgorithm: 'sha384',
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  test('keeps the fields of a KMS key', async () => {
    expect(await createCosignKeyAttestor({ name: 'release', kms })).toEqual({
      kind: 'cosign-key',
      name: 'release',
      key: { kms },
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  test('gives one hash to one key whatever its name, and another to everything else', async () => {
    const hashes = await Promise.all(
      [
        { name: 'a', data },
        { name: 'b', data },
        { name: 'a', data, hashAlgorithm: 'sha256' as const },
        { name: 'a', data: pemOf(keyPair('P-256', 'theirs').publicKey) },
        { name: 'a', kms },
        { name: 'a', kms: 'awskms:///alias/other' },
        { name: 'a', data, annotations: { stage: 'ci' } },
        { name: 'a', data, annotations: { stage: 'dev' } },
        { name: 'a', data, source: { repository: 'r.test/signatures' } },
        { name: 'a', data, source: { tagPrefix: 'qa-' } },
        { name: 'a', data, source: { pullSecrets: ['team'] } },
        { name: 'a', data, predicateTypes: ['https://slsa.dev/provenance/v1'] },
        { name: 'a', data, trust: { root: '{}' } },
        { name: 'a', data, trust: { root: '{}', ignoreSct: true } },
      ].map(async (fields) => (await createCosignKeyAttestor(fields)).hash),
    )
    expect(hashes[0]).toBe(hashes[1])
    expect(new Set(hashes).size).toBe(13)
  })

  test.each<{ name: string; fields: Omit<CosignKeyFields, 'name'>; code: string }>([
    { name: 'a key that is none', fields: { data: 'junk' }, code: 'KEY_INVALID' },
    {
      name: 'a key of an unsupported kind',
      fields: { data: `-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VxAyEA\n-----END PUBLIC KEY-----` },
      code: 'KEY_INVALID',
    },
    {
      name: 'a malformed reference',
      fields: { kms: 'awskms://alias/x' },
      code: 'KMS_REFERENCE_INVALID',
    },
    {
      name: 'another key service',
      fields: { kms: 'gcpkms://projects/a' },
      code: 'POLICY_UNSUPPORTED',
    },
    { name: 'neither data nor kms', fields: {}, code: 'KEY_INVALID' },
    { name: 'both data and kms', fields: { data, kms }, code: 'KEY_INVALID' },
  ])('refuses $name', async ({ fields, code }) => {
    const outcome = await createCosignKeyAttestor({ name: 'a', ...fields }).then(
      () => 'no error',
      (error: AdmissionError) => error.code,
    )
    expect(outcome).toBe(code)
  })
})
