import { constants, sign } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAwsKms } from '#functions/kms.ts'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { type SignatureLayout, signImage } from '#functions/local/sign.ts'
import { kmsSigner, localSigner } from '#functions/local/signer.ts'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError, type ErrorCode } from '#shared/errors.ts'
import {
  KMS_KEY_TTL_MS,
  KMS_REFUSAL_TTL_MS,
  KMS_STALE_MS,
  KMS_STALE_RETRY_MS,
} from '#shared/limits.ts'
import type { KmsPort, KmsPublicKey } from '#shared/ports.ts'
import { createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import { createKmsKeys, type KmsKeysOptions } from '#shared/signature/kms.ts'
import { derOf, detailsOf, keyPair, NO_KMS, NOW, never, openStage, type Stage } from './setup.ts'

const CREDENTIALS = { accessKeyId: 'LOCAL', secretAccessKey: 'local' }

describe('createKmsKeys', () => {
  const REFERENCE = 'awskms:///alias/release'
  const p256: KmsPublicKey = {
    spki: derOf(keyPair('P-256').publicKey),
    keySpec: 'ECC_NIST_P256',
    keyUsage: 'SIGN_VERIFY',
    signingAlgorithms: ['ECDSA_SHA_256'],
  }

  let clock: number
  let asked: number
  /** What KMS does next. */
  let answer: KmsPublicKey | ErrorCode
  const port: KmsPort = {
    ...NO_KMS,
    async getPublicKey() {
      asked++
      if (typeof answer === 'string') throw new AdmissionError(answer, 'said KMS')
      return answer
    },
  }
  beforeEach(() => {
    clock = NOW
    asked = 0
    answer = p256
  })
  const keysOf = (options: Partial<KmsKeysOptions> = {}) =>
    createKmsKeys({ port, now: () => clock, region: 'eu-central-1', ...options })
  const outcome = (promise: Promise<{ name: string }>) =>
    promise.then(
      ({ name }) => name,
      (error: AdmissionError) => error.code,
    )

  test('asks for a key once and keeps it for five minutes', async () => {
    const keys = keysOf()
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('ECDSA P-256')
    clock += KMS_KEY_TTL_MS - 1
    await keys.publicKey(REFERENCE, never())
    expect(asked).toBe(1)
    clock += 1
    await keys.publicKey(REFERENCE, never())
    expect(asked).toBe(2)
    expect(keys.calls).toBe(2)
  })

  test('asks once for calls of one request, and once more for another request', async () => {
    const keys = keysOf()
    const [one, other] = [never(), never()]
    await Promise.all([one, one, one, other].map((signal) => keys.publicKey(REFERENCE, signal)))
    expect(asked).toBe(2)
  })

  test.each<{ code: ErrorCode }>([{ code: 'KMS_REFUSED' }])(
    'keeps $code for half a minute, so that a grant takes effect soon',
    async ({ code }) => {
      const keys = keysOf()
      answer = code
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe(code)
      answer = p256
      clock += KMS_REFUSAL_TTL_MS - 1
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe(code)
      expect(asked).toBe(1)
      clock += 1
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('ECDSA P-256')
    },
  )

  test.each<{ code: ErrorCode }>([{ code: 'KMS_UNAVAILABLE' }, { code: 'DEADLINE_EXCEEDED' }])(
    'keeps no $code',
    async ({ code }) => {
      const keys = keysOf()
      answer = code
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe(code)
      answer = p256
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('ECDSA P-256')
    },
  )

  test('serves a stale key for ten minutes while KMS is unavailable, asking every few seconds', async () => {
    const keys = keysOf()
    await keys.publicKey(REFERENCE, never())
    answer = 'KMS_UNAVAILABLE'
    clock += KMS_KEY_TTL_MS
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('ECDSA P-256')
    clock += KMS_STALE_RETRY_MS - 1
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('ECDSA P-256')
    expect(asked).toBe(2)
    clock += 1
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('ECDSA P-256')
    expect(asked).toBe(3)
    clock = NOW + KMS_KEY_TTL_MS + KMS_STALE_MS
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('KMS_UNAVAILABLE')
  })

  test('serves no stale key once KMS refuses it, also when KMS becomes unavailable after that', async () => {
    const keys = keysOf()
    await keys.publicKey(REFERENCE, never())
    clock += KMS_KEY_TTL_MS
    answer = 'KMS_REFUSED'
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('KMS_REFUSED')
    clock += KMS_REFUSAL_TTL_MS
    answer = 'KMS_UNAVAILABLE'
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('KMS_UNAVAILABLE')
  })

  test.each<{ name: string; change: Partial<KmsPublicKey>; message: string }>([
    {
      name: 'is for encryption',
      change: { keyUsage: 'ENCRYPT_DECRYPT' },
      message: 'its usage is ENCRYPT_DECRYPT, expected SIGN_VERIFY',
    },
    {
      name: 'is of an unsupported spec',
      change: { keySpec: 'ECC_SECG_P256K1' },
      message:
        'key spec ECC_SECG_P256K1 is not supported, only ECC_NIST_P256, ECC_NIST_P384, ECC_NIST_P521, ECC_NIST_EDWARDS25519, RSA_2048, RSA_3072, RSA_4096',
    },
    {
      name: 'is another key than its spec says',
      change: { keySpec: 'ECC_NIST_P384' },
      message: 'it is ECDSA P-256 although its spec is ECC_NIST_P384',
    },
    {
      name: 'has a spec from the prototype',
      change: { keySpec: 'constructor' },
      message:
        'key spec constructor is not supported, only ECC_NIST_P256, ECC_NIST_P384, ECC_NIST_P521, ECC_NIST_EDWARDS25519, RSA_2048, RSA_3072, RSA_4096',
    },
  ])('refuses a key that $name', async ({ change, message }) => {
    answer = { ...p256, ...change }
    await expect(keysOf().publicKey(REFERENCE, never())).rejects.toMatchObject({
      code: 'KEY_INVALID',
      message: `KMS key alias/release in eu-central-1: ${message}`,
    })
  })

  test('verifies PSS for a key that signs nothing else, and PKCS#1 v1.5 for every other RSA key', async () => {
    const { publicKey, privateKey } = keyPair('RSA 2048')
    const message = utf8('message')
    const padding = constants.RSA_PKCS1_PSS_PADDING
    const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
    const pss = new Uint8Array(sign('sha256', message, { key: privateKey, padding, saltLength }))
    const pkcs1 = new Uint8Array(sign('sha256', message, privateKey))
    answer = {
      ...p256,
      spki: derOf(publicKey),
      keySpec: 'RSA_2048',
      signingAlgorithms: ['RSASSA_PSS_SHA_256'],
    }
    const pssKey = await keysOf().publicKey(REFERENCE, never())
    answer = { ...answer, signingAlgorithms: ['RSASSA_PKCS1_V1_5_SHA_256', 'RSASSA_PSS_SHA_256'] }
    const plainKey = await keysOf().publicKey(REFERENCE, never())
    expect([await pssKey.verify(message, pss), await pssKey.verify(message, pkcs1)]).toEqual([
      { scheme: 'RSASSA_PSS', hash: 'sha256' },
      undefined,
    ])
    expect([await plainKey.verify(message, pss), await plainKey.verify(message, pkcs1)]).toEqual([
      undefined,
      { scheme: 'RSASSA_PKCS1_V1_5', hash: 'sha256' },
    ])
  })

  test('asks nobody when the reference has no region or an endpoint that is not listed', async () => {
    const keys = createKmsKeys({ port, now: () => clock })
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('KMS_REFERENCE_INVALID')
    const foreign = 'awskms://evil.test/arn:aws:kms:eu-central-1:111122223333:alias/a'
    expect(await outcome(keys.publicKey(foreign, never()))).toBe('KMS_REFERENCE_INVALID')
    expect(asked).toBe(0)
  })

  test('refuses settings that are wrong at once', () => {
    expect(() => keysOf({ endpoints: ['http://kms.test'] })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    )
  })
})

describe('an image signed with a key in KMS', () => {
  let kms: KmsEmulator
  let stage: Stage
  let clock: number
  beforeAll(async () => {
    kms = await startKms()
    stage = await openStage()
  })
  beforeEach(() => {
    clock = NOW
  })
  afterEach(() => kms.fail(undefined))
  afterAll(() => Promise.all([kms.close(), stage.close()]))

  const keysOf = (options: Partial<KmsKeysOptions> = {}) =>
    createKmsKeys({
      port: createAwsKms({ credentials: CREDENTIALS }),
      now: () => clock,
      region: kms.region,
      endpoints: [kms.url],
      ...options,
    })
  const reference = (keyId: string) => `awskms://${new URL(kms.url).host}/${keyId}`
  const attestorOf = (keyId: string) =>
    createCosignKeyAttestor({ name: 'release', kms: reference(keyId) })
  const signerOf = (keyId: string) =>
    kmsSigner({ keyId, region: kms.region, endpoint: kms.url, credentials: CREDENTIALS })

  test.each([
    'ECC_NIST_P256',
    'ECC_NIST_P384',
    'ECC_NIST_P521',
    'RSA_2048',
    'RSA_3072',
    'RSA_4096',
    'ECC_NIST_EDWARDS25519',
  ])('of spec %s is verified in every layout with one call to KMS', async (spec) => {
    const { arn } = await kms.createKey({ spec, usage: 'SIGN_VERIFY' })
    const signer = await signerOf(arn)
    const attestor = await attestorOf(arn)
    const keys = keysOf()
    for (const layout of ['tag', 'dsse', 'message'] satisfies SignatureLayout[]) {
      const image = await stage.image()
      await signImage(stage.target, image, [signer], layout)
      const verification = await stage.verify(image, attestor, { kms: keys })
      expect(verification).toMatchObject({
        status: 'verified',
        signer: expect.stringContaining(`${reference(arn)} (`),
      })
    }
    expect(keys.calls).toBe(1)
  })

  test('by its id, its alias, its ARN and the ARN of its alias is verified', async () => {
    const { id, arn } = await kms.createKey({
      spec: 'ECC_NIST_P256',
      usage: 'SIGN_VERIFY',
      multiRegion: true,
      alias: 'alias/team/forms',
    })
    const image = await stage.image()
    await signImage(stage.target, image, [await signerOf(id)], 'tag')
    const aliasArn = arn.replace(/key\/.*/, 'alias/team/forms')
    for (const keyId of [id, 'alias/team/forms', arn, aliasArn]) {
      const verification = await stage.verify(image, await attestorOf(keyId), { kms: keysOf() })
      expect(verification.status).toBe('verified')
    }
  })

  test('is rejected under another key of KMS', async () => {
    const [one, other] = await Promise.all(
      [1, 2].map(() => kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' })),
    )
    const image = await stage.image()
    await signImage(stage.target, image, [await signerOf(one!.arn)], 'tag')
    const verification = await stage.verify(image, await attestorOf(other!.arn), { kms: keysOf() })
    expect(verification.status).toBe('rejected')
  })

  describe('cannot be told', () => {
    test.each<{ name: string; code: ErrorCode; prepare: (keyId: string) => Promise<string> }>([
      {
        name: 'while KMS throttles',
        code: 'KMS_UNAVAILABLE',
        async prepare(keyId) {
          kms.fail({ kind: 'throttle', times: 99 })
          return keyId
        },
      },
      {
        name: 'while KMS is down',
        code: 'KMS_UNAVAILABLE',
        async prepare(keyId) {
          kms.fail({ kind: 'down' })
          return keyId
        },
      },
      {
        name: 'with a disabled key',
        code: 'KMS_REFUSED',
        async prepare(keyId) {
          await kmsAdmin('DisableKey', keyId)
          return keyId
        },
      },
      {
        name: 'with a key that is pending deletion',
        code: 'KMS_REFUSED',
        async prepare(keyId) {
          await kmsAdmin('ScheduleKeyDeletion', keyId)
          return keyId
        },
      },
      {
        name: 'with a key that is gone',
        code: 'KMS_REFUSED',
        prepare: async (keyId) => keyId.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      },
      {
        name: 'with a key for encryption',
        code: 'KEY_INVALID',
        prepare: async () =>
          (await kms.createKey({ spec: 'RSA_2048', usage: 'ENCRYPT_DECRYPT' })).id,
      },
      {
        name: 'with a MAC key',
        code: 'KMS_REFUSED',
        prepare: async () =>
          (await kms.createKey({ spec: 'HMAC_256', usage: 'GENERATE_VERIFY_MAC' })).id,
      },
      {
        name: 'with a secp256k1 key',
        code: 'KEY_INVALID',
        prepare: async () =>
          (await kms.createKey({ spec: 'ECC_SECG_P256K1', usage: 'SIGN_VERIFY' })).id,
      },
    ])('$name', async ({ code, prepare }) => {
      const { id } = await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      await signImage(stage.target, image, [await signerOf(id)], 'tag')
      const attestor = await attestorOf(await prepare(id))
      const verification = await stage.verify(image, attestor, { kms: keysOf() })
      expect(verification).toMatchObject({ status: 'inconclusive', error: { code } })
      expect(detailsOf(verification)).toEqual([expect.stringMatching(new RegExp(`^${code}: `))])
    })

    test('and KMS is not asked again for every further signature', async () => {
      const { id } = await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      const signer = await signerOf(id)
      await signImage(stage.target, image, Array(9).fill(signer), 'tag')
      kms.fail({ kind: 'down' })
      const keys = keysOf()
      const attestor = await attestorOf(id)
      expect((await stage.verify(image, attestor, { kms: keys })).status).toBe('inconclusive')
      expect(keys.calls).toBe(1)
    })
  })

  describe('with remote verification', () => {
    test.each(['ECC_NIST_P256', 'ECC_NIST_P384', 'ECC_NIST_P521', 'RSA_2048'])(
      'is verified by KMS too, for %s',
      async (spec) => {
        const { id } = await kms.createKey({ spec, usage: 'SIGN_VERIFY' })
        const image = await stage.image()
        await signImage(stage.target, image, [await signerOf(id)], 'dsse')
        const before = kms.calls.Verify ?? 0
        const keys = keysOf({ verifyRemotely: true })
        const verification = await stage.verify(image, await attestorOf(id), { kms: keys })
        expect(verification.status).toBe('verified')
        expect([kms.calls.Verify ?? 0, keys.calls]).toEqual([before + 1, 2])
      },
    )

    test('cannot be told once the key is disabled, although its public key is still known', async () => {
      const { id } = await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      await signImage(stage.target, image, [await signerOf(id)], 'tag')
      const keys = keysOf({ verifyRemotely: true })
      const attestor = await attestorOf(id)
      expect((await stage.verify(image, attestor, { kms: keys })).status).toBe('verified')
      await kmsAdmin('DisableKey', id)
      expect(await stage.verify(image, attestor, { kms: keys })).toMatchObject({
        status: 'inconclusive',
        error: { code: 'KMS_REFUSED' },
      })
    })

    test('is rejected when the alias has moved to another key', async () => {
      const alias = 'alias/moving'
      const { id } = await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', alias })
      const image = await stage.image()
      await signImage(stage.target, image, [await signerOf(id)], 'tag')
      const keys = keysOf({ verifyRemotely: true })
      const attestor = await attestorOf(alias)
      expect((await stage.verify(image, attestor, { kms: keys })).status).toBe('verified')
      const next = await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' })
      await kmsAdmin('UpdateAlias', next.id, alias)
      const verification = await stage.verify(image, attestor, { kms: keys })
      expect(verification.status).toBe('rejected')
      expect(detailsOf(verification)).toEqual(['signature is not by this key, says KMS'])
    })

    test('asks KMS nothing about a signature that does not verify here', async () => {
      const { id } = await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      const foreign = localSigner(keyPair('P-256', 'theirs').privateKey)
      await signImage(stage.target, image, [foreign], 'tag')
      const before = kms.calls.Verify ?? 0
      const keys = keysOf({ verifyRemotely: true })
      expect((await stage.verify(image, await attestorOf(id), { kms: keys })).status).toBe(
        'rejected',
      )
      expect(kms.calls.Verify ?? 0).toBe(before)
    })

    test('cannot be told for Ed25519, whose digest KMS does not take', async () => {
      const { id } = await kms.createKey({ spec: 'ECC_NIST_EDWARDS25519', usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      await signImage(stage.target, image, [await signerOf(id)], 'tag')
      const keys = keysOf({ verifyRemotely: true })
      expect(await stage.verify(image, await attestorOf(id), { kms: keys })).toMatchObject({
        status: 'inconclusive',
        error: { code: 'CONFIG_INVALID' },
      })
    })
  })

  async function kmsAdmin(
    operation: 'DisableKey' | 'ScheduleKeyDeletion' | 'UpdateAlias',
    keyId: string,
    alias?: string,
  ): Promise<void> {
    const { KMS } = await import('@aws-sdk/client-kms')
    const client = new KMS({ region: kms.region, endpoint: kms.url, credentials: CREDENTIALS })
    if (operation === 'DisableKey') await client.disableKey({ KeyId: keyId })
    if (operation === 'ScheduleKeyDeletion') await client.scheduleKeyDeletion({ KeyId: keyId })
    if (operation === 'UpdateAlias') {
      await client.updateAlias({ AliasName: alias, TargetKeyId: keyId })
    }
    client.destroy()
  }
})
