import { createHash, createPublicKey, createVerify, verify } from 'node:crypto'
import { KMS } from '@aws-sdk/client-kms'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'

const MESSAGE = Buffer.from('a message')

let emulator: KmsEmulator
let client: KMS
beforeAll(async () => {
  emulator = await startKms()
  client = new KMS({
    region: emulator.region,
    endpoint: emulator.url,
    credentials: { accessKeyId: 'LOCAL', secretAccessKey: 'local' },
    maxAttempts: 1,
  })
})
afterAll(async () => {
  client.destroy()
  await emulator.close()
})

/** The exception's name. */
async function errorOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error: Error) => error.name,
  )
}

async function newKey(KeySpec: string, KeyUsage: string): Promise<string> {
  // The SDK's types are closed unions; a test may ask for anything.
  const answer = await client.createKey({ KeySpec, KeyUsage } as Parameters<KMS['createKey']>[0])
  return answer.KeyMetadata?.KeyId ?? ''
}

describe('the local KMS', () => {
  test.each([
    { spec: 'ECC_NIST_P256', algorithms: ['ECDSA_SHA_256'] },
    { spec: 'ECC_NIST_P384', algorithms: ['ECDSA_SHA_384'] },
    { spec: 'ECC_NIST_P521', algorithms: ['ECDSA_SHA_512'] },
    { spec: 'ECC_SECG_P256K1', algorithms: ['ECDSA_SHA_256'] },
    {
      spec: 'RSA_2048',
      algorithms: [
        'RSASSA_PKCS1_V1_5_SHA_256',
        'RSASSA_PKCS1_V1_5_SHA_384',
        'RSASSA_PKCS1_V1_5_SHA_512',
        'RSASSA_PSS_SHA_256',
        'RSASSA_PSS_SHA_384',
        'RSASSA_PSS_SHA_512',
      ],
    },
  ] as const)('signs and verifies $spec, of a message and of its digest alike', async (row) => {
    const KeyId = await newKey(row.spec, 'SIGN_VERIFY')
    const described = await client.describeKey({ KeyId })
    expect(described.KeyMetadata?.SigningAlgorithms).toEqual(row.algorithms)
    const { PublicKey } = await client.getPublicKey({ KeyId })
    const publicKey = createPublicKey({
      key: Buffer.from(PublicKey ?? []),
      type: 'spki',
      format: 'der',
    })
    for (const SigningAlgorithm of row.algorithms) {
      const hash = `sha${SigningAlgorithm.slice(-3)}`
      const digest = createHash(hash).update(MESSAGE).digest()
      const raw = { KeyId, SigningAlgorithm, Message: MESSAGE, MessageType: 'RAW' } as const
      const digested = { KeyId, SigningAlgorithm, Message: digest, MessageType: 'DIGEST' } as const
      for (const call of [raw, digested]) {
        const { Signature } = await client.sign(call)
        const padding = SigningAlgorithm.includes('PSS') ? { padding: 6, saltLength: -1 } : {}
        const key = { key: publicKey, ...padding }
        expect(
          createVerify(hash)
            .update(MESSAGE)
            .verify(key, Buffer.from(Signature ?? [])),
        ).toBe(true)
        for (const check of [raw, digested]) {
          expect((await client.verify({ ...check, Signature })).SignatureValid).toBe(true)
        }
        const wrong = Buffer.from(Signature ?? [])
        wrong[wrong.length - 1] = wrong[wrong.length - 1]! ^ 1
        expect(await errorOf(client.verify({ ...digested, Signature: wrong }))).toBe(
          'KMSInvalidSignatureException',
        )
        expect(await errorOf(client.verify({ ...raw, Message: Buffer.from('b'), Signature }))).toBe(
          'KMSInvalidSignatureException',
        )
      }
    }
  })

  test('signs Ed25519 over the message only', async () => {
    const KeyId = await newKey('ECC_NIST_EDWARDS25519', 'SIGN_VERIFY')
    const call = { KeyId, SigningAlgorithm: 'ED25519_SHA_512', Message: MESSAGE } as const
    const { Signature } = await client.sign(call)
    const { PublicKey } = await client.getPublicKey({ KeyId })
    const publicKey = createPublicKey({
      key: Buffer.from(PublicKey ?? []),
      type: 'spki',
      format: 'der',
    })
    expect(verify(null, MESSAGE, publicKey, Buffer.from(Signature ?? []))).toBe(true)
    expect((await client.verify({ ...call, Signature })).SignatureValid).toBe(true)
    expect(
      await errorOf(client.sign({ ...call, Message: Buffer.alloc(64), MessageType: 'DIGEST' })),
    ).toBe('ValidationException')
    const other = { ...call, Message: Buffer.from('b'), Signature }
    expect(await errorOf(client.verify(other))).toBe('KMSInvalidSignatureException')
  })

  test('lets the keys of other accounts be used by ARN where they are shared, and tells nothing of others', async () => {
    const account = '444455556666'
    const spec = { spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', account } as const
    const shared = await emulator.createKey({ ...spec, shared: true, alias: 'alias/theirs' })
    const secret = await emulator.createKey({ ...spec, alias: 'alias/secret' })
    const answers = async (KeyId: string) => errorOf(client.getPublicKey({ KeyId }))
    const aliasArn = (name: string) => shared.arn.replace(/key\/.*/, `alias/${name}`)
    expect(shared.arn).toBe(`arn:aws:kms:${emulator.region}:${account}:key/${shared.id}`)
    expect(await answers(shared.arn)).toBe('no error')
    expect(await answers(aliasArn('theirs'))).toBe('no error')
    expect(await answers(shared.id)).toBe('NotFoundException')
    expect(await answers('alias/theirs')).toBe('NotFoundException')
    for (const arn of [secret.arn, aliasArn('secret'), aliasArn('none')]) {
      expect(await answers(arn)).toBe('AccessDeniedException')
    }
  })

  test('has replicas of multi-region keys with the same material and a state of their own', async () => {
    const elsewhere = await startKms({ region: 'us-east-1' })
    try {
      const spec = { spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' } as const
      const primary = await elsewhere.createKey({ ...spec, multiRegion: true })
      const replica = emulator.replicate(primary)
      expect(replica.arn).toBe(primary.arn.replace('us-east-1', emulator.region))
      await client.disableKey({ KeyId: replica.arn })
      expect([primary.state, replica.state]).toEqual(['Enabled', 'Disabled'])
      expect(replica.material).toBe(primary.material)
      const single = await elsewhere.createKey(spec)
      expect(() => emulator.replicate(single)).toThrow()
    } finally {
      await elsewhere.close()
    }
  })

  test('makes and verifies MACs', async () => {
    const KeyId = await newKey('HMAC_256', 'GENERATE_VERIFY_MAC')
    const call = { KeyId, MacAlgorithm: 'HMAC_SHA_256', Message: MESSAGE } as const
    const { Mac } = await client.generateMac(call)
    expect(Mac).toHaveLength(32)
    expect((await client.verifyMac({ ...call, Mac })).MacValid).toBe(true)
    expect(await errorOf(client.verifyMac({ ...call, Mac: Buffer.alloc(32) }))).toBe(
      'KMSInvalidMacException',
    )
    expect(await errorOf(client.verifyMac({ ...call, Mac: Buffer.alloc(31) }))).toBe(
      'KMSInvalidMacException',
    )
  })

  test('keeps aliases that can be moved and removed', async () => {
    const first = await newKey('HMAC_256', 'GENERATE_VERIFY_MAC')
    const second = await newKey('HMAC_256', 'GENERATE_VERIFY_MAC')
    const AliasName = 'alias/moving'
    await client.createAlias({ AliasName, TargetKeyId: first })
    const targetOf = async () => (await client.describeKey({ KeyId: AliasName })).KeyMetadata?.KeyId
    expect(await targetOf()).toBe(first)
    expect(await errorOf(client.createAlias({ AliasName, TargetKeyId: second }))).toBe(
      'AlreadyExistsException',
    )
    await client.updateAlias({ AliasName, TargetKeyId: second })
    expect(await targetOf()).toBe(second)
    const { Aliases } = await client.listAliases({ KeyId: second })
    expect(Aliases?.map(({ AliasName: name, TargetKeyId }) => [name, TargetKeyId])).toEqual([
      [AliasName, second],
    ])
    await client.deleteAlias({ AliasName })
    expect(await errorOf(targetOf())).toBe('NotFoundException')
    expect(
      await errorOf(client.createAlias({ AliasName: 'alias/aws/x', TargetKeyId: first })),
    ).toBe('InvalidAliasNameException')
  })

  test('lets nobody use a key that is disabled or pending deletion', async () => {
    const KeyId = await newKey('ECC_NIST_P256', 'SIGN_VERIFY')
    await client.disableKey({ KeyId })
    expect(await errorOf(client.getPublicKey({ KeyId }))).toBe('DisabledException')
    await client.enableKey({ KeyId })
    expect(await errorOf(client.getPublicKey({ KeyId }))).toBe('no error')
    const { KeyState } = await client.scheduleKeyDeletion({ KeyId, PendingWindowInDays: 7 })
    expect(KeyState).toBe('PendingDeletion')
    expect(await errorOf(client.getPublicKey({ KeyId }))).toBe('KMSInvalidStateException')
    expect(await errorOf(client.enableKey({ KeyId }))).toBe('KMSInvalidStateException')
    expect((await client.describeKey({ KeyId })).KeyMetadata?.KeyState).toBe('PendingDeletion')
  })

  test.each<{ name: string; call: () => Promise<unknown>; error: string }>([
    {
      name: 'a key that does not exist',
      call: () => client.getPublicKey({ KeyId: '00000000-0000-0000-0000-000000000000' }),
      error: 'NotFoundException',
    },
    {
      name: 'an ARN of another region',
      call: () => client.getPublicKey({ KeyId: 'arn:aws:kms:us-east-1:111122223333:alias/a' }),
      error: 'NotFoundException',
    },
    {
      name: 'an ARN of another service',
      call: () => client.getPublicKey({ KeyId: 'arn:aws:s3:eu-central-1:111122223333:alias/a' }),
      error: 'InvalidArnException',
    },
    {
      name: 'the public key of a MAC key',
      call: async () =>
        client.getPublicKey({ KeyId: await newKey('HMAC_256', 'GENERATE_VERIFY_MAC') }),
      error: 'UnsupportedOperationException',
    },
    {
      name: 'a signature by a key for encryption',
      call: async () =>
        client.sign({
          KeyId: await newKey('RSA_2048', 'ENCRYPT_DECRYPT'),
          Message: MESSAGE,
          SigningAlgorithm: 'RSASSA_PSS_SHA_256',
        }),
      error: 'InvalidKeyUsageException',
    },
    {
      name: 'a signature with an algorithm the key does not have',
      call: async () =>
        client.sign({
          KeyId: await newKey('ECC_NIST_P384', 'SIGN_VERIFY'),
          Message: MESSAGE,
          SigningAlgorithm: 'ECDSA_SHA_256',
        }),
      error: 'InvalidKeyUsageException',
    },
    {
      name: 'a digest of the wrong length',
      call: async () =>
        client.sign({
          KeyId: await newKey('ECC_NIST_P256', 'SIGN_VERIFY'),
          Message: MESSAGE,
          MessageType: 'DIGEST',
          SigningAlgorithm: 'ECDSA_SHA_256',
        }),
      error: 'ValidationException',
    },
    {
      name: 'a message that is too long',
      call: async () =>
        client.generateMac({
          KeyId: await newKey('HMAC_256', 'GENERATE_VERIFY_MAC'),
          Message: Buffer.alloc(4097),
          MacAlgorithm: 'HMAC_SHA_256',
        }),
      error: 'ValidationException',
    },
    {
      name: 'a symmetric encryption key',
      call: () => client.createKey({}),
      error: 'UnsupportedOperationException',
    },
    {
      name: 'an operation it does not have',
      call: () => client.listKeys({}),
      error: 'UnknownOperationException',
    },
  ])('refuses $name as AWS does', async ({ call, error }) => {
    expect(await errorOf(call())).toBe(error)
  })

  test.each([
    { name: 'no Authorization header', headers: {}, type: 'MissingAuthenticationTokenException' },
    {
      name: 'an Authorization header of another kind',
      headers: { authorization: 'Bearer abc', 'x-amz-date': '20260101T000000Z' },
      type: 'IncompleteSignatureException',
    },
    {
      name: 'a signature for another region',
      headers: {
        authorization: `AWS4-HMAC-SHA256 Credential=LOCAL/20260101/us-east-1/kms/aws4_request, SignedHeaders=host, Signature=${'a'.repeat(64)}`,
        'x-amz-date': '20260101T000000Z',
      },
      type: 'InvalidSignatureException',
    },
  ])('answers $name with $type', async ({ headers, type }) => {
    const response = await fetch(emulator.url, {
      method: 'POST',
      headers: { ...headers, 'x-amz-target': 'TrentService.ListAliases' },
      body: '{}',
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ __type: type })
  })

  test('counts calls by operation', async () => {
    const before = emulator.calls.ListAliases ?? 0
    await client.listAliases({})
    await client.listAliases({})
    expect(emulator.calls.ListAliases).toBe(before + 2)
  })

  test('misbehaves for one operation and as often as it was told', async () => {
    emulator.fail({ kind: 'throttle', times: 1, operation: 'ListAliases' })
    expect(await errorOf(newKey('HMAC_256', 'GENERATE_VERIFY_MAC'))).toBe('no error')
    expect(await errorOf(client.listAliases({}))).toBe('ThrottlingException')
    expect(await errorOf(client.listAliases({}))).toBe('no error')
    emulator.fail(undefined)
  })
})
