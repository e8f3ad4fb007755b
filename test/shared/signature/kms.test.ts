import { constants, sign } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAwsKms } from '#functions/kms.ts'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import type { LocalKey } from '#functions/local/kms-store.ts'
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
import type { KmsKey, KmsPort, KmsPublicKey } from '#shared/ports.ts'
import { createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import type { SignatureAlgorithm } from '#shared/signature/key.ts'
import { createKmsKeys, type KmsKeysOptions } from '#shared/signature/kms.ts'
import type { HashAlgorithm } from '#shared/signature/types.ts'
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
      change: { keySpec: 'ECC_NIST_P384', signingAlgorithms: ['ECDSA_SHA_384'] },
      message: 'it is ECDSA P-256 although its spec is ECC_NIST_P384',
    },
    {
      name: 'signs with what its spec does not have',
      change: { signingAlgorithms: ['ECDSA_SHA_384', 'SM2DSA'] },
      message: 'it signs with ECDSA_SHA_384, SM2DSA, expected one of ECDSA_SHA_256',
    },
    {
      name: 'says of no algorithm that it signs with it',
      change: { signingAlgorithms: [] },
      message: 'it signs with no algorithm, expected one of ECDSA_SHA_256',
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

  describe('of an RSA key', () => {
    const { publicKey, privateKey } = keyPair('RSA 2048')
    const message = utf8('message')
    const signed = (scheme: string, hash: string) => {
      const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: HASH_BYTES[hash]! }
      const options = scheme === 'RSASSA_PSS' ? pss : {}
      return new Uint8Array(sign(hash, message, { key: privateKey, ...options }))
    }
    const HASH_BYTES: Record<string, number> = { sha256: 32, sha384: 48, sha512: 64 }
    const schemes = ['RSASSA_PKCS1_V1_5', 'RSASSA_PSS'] as const
    const hashes = ['sha256', 'sha384', 'sha512'] as const
    const named = (scheme: string, hash: string) => `${scheme}_${hash.replace('sha', 'SHA_')}`
    const all = schemes.flatMap((scheme) => hashes.map((hash) => named(scheme, hash)))
    const keyWith = async (signingAlgorithms: readonly string[]) => {
      answer = { ...p256, spki: derOf(publicKey), keySpec: 'RSA_2048', signingAlgorithms }
      return keysOf().publicKey(REFERENCE, never())
    }
    /** The schemes and hashes whose signatures verify. */
    const accepted = async (signingAlgorithms: readonly string[], wanted?: HashAlgorithm) => {
      const key = await keyWith(signingAlgorithms)
      const found: string[] = []
      for (const scheme of schemes) {
        for (const hash of hashes) {
          const algorithm = await key.verify(message, signed(scheme, hash), wanted)
          if (algorithm === undefined) continue
          expect(algorithm).toEqual({ scheme, hash })
          found.push(named(scheme, hash))
        }
      }
      return found
    }

    test('verifies SHA-256 under both schemes when the policy names no hash', async () => {
      expect(await accepted(all)).toEqual(['RSASSA_PKCS1_V1_5_SHA_256', 'RSASSA_PSS_SHA_256'])
    })

    test.each(hashes)('verifies %s, and nothing else, when the policy names it', async (hash) => {
      expect(await accepted(all, hash)).toEqual(schemes.map((scheme) => named(scheme, hash)))
    })

    test.each([
      { name: 'PSS only', allowed: ['RSASSA_PSS_SHA_256', 'RSASSA_PSS_SHA_512'] },
      { name: 'PKCS#1 only', allowed: ['RSASSA_PKCS1_V1_5_SHA_256'] },
      { name: 'SHA-512 only', allowed: ['RSASSA_PSS_SHA_512'] },
    ])('verifies what the key allows and nothing else: $name', async ({ allowed }) => {
      for (const hash of hashes) {
        const expected = allowed.filter((algorithm) => algorithm.endsWith(hash.slice(3)))
        expect(await accepted(allowed, hash)).toEqual(expected)
      }
      expect(await accepted(allowed)).toEqual(allowed.slice(0, 1))
    })
  })

  test('asks nobody when the reference has no region or an endpoint that is not listed', async () => {
    const keys = createKmsKeys({ port, now: () => clock })
    expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('KMS_REFERENCE_INVALID')
    const foreign = 'awskms://evil.test/arn:aws:kms:eu-central-1:111122223333:alias/a'
    expect(await outcome(keys.publicKey(foreign, never()))).toBe('KMS_REFERENCE_INVALID')
    expect(asked).toBe(0)
  })

  test('refuses at once a key in Vault where no Vault is configured', async () => {
    expect(await outcome(keysOf().publicKey('hashivault://release', never()))).toBe(
      'KMS_REFERENCE_INVALID',
    )
    expect(asked).toBe(0)
  })

  describe('with remote verification', () => {
    /** What KMS says of a signature. */
    let verdict: boolean | ErrorCode
    const calls: { key: KmsKey; algorithm: string; input: string; bytes: number }[] = []
    const remote: KmsPort = {
      ...port,
      async verify(key, call) {
        const [input, bytes] = 'digest' in call ? ['digest', call.digest] : ['raw', call.message]
        calls.push({ key, algorithm: call.algorithm, input: String(input), bytes: bytes.length })
        if (typeof verdict === 'string') throw new AdmissionError(verdict, 'said KMS')
        return verdict
      },
    }
    beforeEach(() => {
      verdict = true
      calls.length = 0
    })
    const open = () => keysOf({ port: remote, verifyRemotely: true })
    const call = (algorithm: SignatureAlgorithm, bytes = 5) => ({
      message: new Uint8Array(bytes),
      signature: new Uint8Array(64),
      algorithm,
    })

    test.each<{ algorithm: SignatureAlgorithm; name: string; input: string; bytes: number }>([
      ...(['RSASSA_PKCS1_V1_5', 'RSASSA_PSS', 'ECDSA'] as const).flatMap((scheme) => [
        {
          algorithm: { scheme, hash: 'sha256' as const },
          name: `${scheme}_SHA_256`,
          input: 'digest',
          bytes: 32,
        },
        {
          algorithm: { scheme, hash: 'sha384' as const },
          name: `${scheme}_SHA_384`,
          input: 'digest',
          bytes: 48,
        },
        {
          algorithm: { scheme, hash: 'sha512' as const },
          name: `${scheme}_SHA_512`,
          input: 'digest',
          bytes: 64,
        },
      ]),
      {
        algorithm: { scheme: 'ED25519' },
        name: 'ED25519_SHA_512',
        input: 'raw',
        bytes: 5,
      },
    ])('asks KMS with $name', async ({ algorithm, name, input, bytes }) => {
      expect(await open().confirm(REFERENCE, call(algorithm), never())).toBe(true)
      const key = { keyId: 'alias/release', region: 'eu-central-1' }
      expect(calls).toEqual([{ key, algorithm: name, input, bytes }])
    })

    test('passes on that the signature is wrong', async () => {
      verdict = false
      const wrong = call({ scheme: 'ECDSA', hash: 'sha256' })
      expect(await open().confirm(REFERENCE, wrong, never())).toBe(false)
    })

    test('sends Ed25519 messages up to what KMS takes, and cannot tell about longer ones', async () => {
      const keys = open()
      const ed25519 = { scheme: 'ED25519' } as const
      expect(await keys.confirm(REFERENCE, call(ed25519, 4096), never())).toBe(true)
      await expect(keys.confirm(REFERENCE, call(ed25519, 4097), never())).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        message:
          'KMS key alias/release: kms.verifyRemotely is set, but 4097 bytes were signed and KMS takes at most 4096 bytes under an Ed25519 key',
      })
      expect(calls).toHaveLength(1)
    })

    test('forgets the public key once KMS refuses, and serves no stale one in an outage after that', async () => {
      const keys = open()
      const signed = call({ scheme: 'ECDSA', hash: 'sha256' })
      await keys.publicKey(REFERENCE, never())
      verdict = 'KMS_REFUSED'
      await expect(keys.confirm(REFERENCE, signed, never())).rejects.toMatchObject({
        code: 'KMS_REFUSED',
      })
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('KMS_REFUSED')
      expect(asked).toBe(1)
      clock += KMS_REFUSAL_TTL_MS
      answer = 'KMS_UNAVAILABLE'
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('KMS_UNAVAILABLE')
    })

    test('keeps the public key while KMS only throttles', async () => {
      const keys = open()
      const signed = call({ scheme: 'ECDSA', hash: 'sha256' })
      verdict = 'KMS_UNAVAILABLE'
      await expect(keys.confirm(REFERENCE, signed, never())).rejects.toMatchObject({
        code: 'KMS_UNAVAILABLE',
      })
      expect(await outcome(keys.publicKey(REFERENCE, never()))).toBe('ECDSA P-256')
      expect(asked).toBe(1)
    })
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
  const attestorOf = (keyId: string, hashAlgorithm?: HashAlgorithm) =>
    createCosignKeyAttestor({
      name: 'release',
      kms: reference(keyId),
      ...(hashAlgorithm === undefined ? {} : { hashAlgorithm }),
    })
  const signerOf = (keyId: string, algorithm?: string) =>
    kmsSigner({
      keyId,
      region: kms.region,
      endpoint: kms.url,
      credentials: CREDENTIALS,
      ...(algorithm === undefined ? {} : { algorithm }),
    })

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

  // IMG-10: a curve has one hash in KMS, and the policy may only name that.
  test.each([
    { spec: 'ECC_NIST_P256', verified: ['sha256'] },
    { spec: 'ECC_NIST_P384', verified: ['sha384'] },
    { spec: 'ECC_NIST_P521', verified: ['sha512'] },
    { spec: 'ECC_NIST_EDWARDS25519', verified: ['sha256', 'sha384', 'sha512'] },
  ])('of spec $spec is verified with hashAlgorithm $verified only', async ({ spec, verified }) => {
    const { arn } = await kms.createKey({ spec, usage: 'SIGN_VERIFY' })
    const image = await stage.image()
    await signImage(stage.target, image, [await signerOf(arn)], 'tag')
    const keys = keysOf()
    for (const hash of ['sha256', 'sha384', 'sha512'] as const) {
      const { status } = await stage.verify(image, await attestorOf(arn, hash), { kms: keys })
      expect([hash, status]).toEqual([hash, verified.includes(hash) ? 'verified' : 'rejected'])
    }
  })

  test.each(['RSA_2048', 'RSA_3072', 'RSA_4096'])(
    'of spec %s is verified under every algorithm of the key, here and by KMS',
    async (spec) => {
      const { arn, algorithms } = await kms.createKey({ spec, usage: 'SIGN_VERIFY' })
      const keys = keysOf({ verifyRemotely: true })
      expect(algorithms).toHaveLength(6)
      for (const algorithm of algorithms) {
        const image = await stage.image()
        await signImage(stage.target, image, [await signerOf(arn, algorithm)], 'tag')
        const hash = `sha${algorithm.slice(-3)}` as HashAlgorithm
        const before = kms.calls.Verify ?? 0
        const { status } = await stage.verify(image, await attestorOf(arn, hash), { kms: keys })
        expect([algorithm, status]).toEqual([algorithm, 'verified'])
        expect(kms.calls.Verify).toBe(before + 1)
      }
    },
  )

  // IMG-11: every spelling of the sigstore client but the malformed one.
  test.each([
    { form: 'key ARN', of: (arn: string) => arn },
    { form: 'alias ARN', of: (arn: string) => arn.replace(/key\/.*/, 'alias/team/img-11') },
    { form: 'alias', of: () => 'alias/team/img-11' },
    { form: 'key id', of: (arn: string) => arn.replace(/.*key\//, '') },
  ])('by its $form, with and without an endpoint in the reference, is verified', async ({ of }) => {
    const { arn } = await img11()
    const image = await stage.image()
    await signImage(stage.target, image, [await signerOf(arn)], 'tag')
    const port = createAwsKms({ credentials: CREDENTIALS, endpointFor: () => kms.url })
    for (const text of [reference(of(arn)), `awskms:///${of(arn)}`]) {
      const attestor = await createCosignKeyAttestor({ name: 'release', kms: text })
      const verification = await stage.verify(image, attestor, { kms: keysOf({ port }) })
      expect(verification).toMatchObject({
        status: 'verified',
        signer: expect.stringContaining(text),
      })
    }
  })

  let madeImg11: Promise<LocalKey> | undefined
  function img11(): Promise<LocalKey> {
    const spec = { spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' }
    madeImg11 ??= kms.createKey({ ...spec, alias: 'alias/team/img-11' })
    return madeImg11
  }

  test('of another account is verified by ARN where it is shared, and cannot be told where it is not', async () => {
    const spec = { spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', account: '444455556666' }
    const shared = await kms.createKey({ ...spec, shared: true, alias: 'alias/shared' })
    const closed = await kms.createKey({ ...spec, alias: 'alias/closed' })
    const image = await stage.image()
    await signImage(stage.target, image, [await signerOf(shared.arn)], 'tag')
    const aliasArn = (name: string) => shared.arn.replace(/key\/.*/, `alias/${name}`)
    for (const keyId of [shared.arn, aliasArn('shared')]) {
      const verification = await stage.verify(image, await attestorOf(keyId), { kms: keysOf() })
      expect(verification.status).toBe('verified')
    }
    for (const keyId of [closed.arn, aliasArn('closed'), aliasArn('none')]) {
      expect(await stage.verify(image, await attestorOf(keyId), { kms: keysOf() })).toMatchObject({
        status: 'inconclusive',
        error: { code: 'KMS_REFUSED' },
      })
    }
  })

  describe('of several regions', () => {
    const far = 'us-west-2'
    let elsewhere: KmsEmulator
    beforeAll(async () => {
      elsewhere = await startKms({ region: far })
    })
    afterAll(() => elsewhere.close())
    const port = createAwsKms({
      credentials: CREDENTIALS,
      endpointFor: (region) => (region === far ? elsewhere.url : kms.url),
    })
    const farKey = () =>
      elsewhere.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', multiRegion: true })
    const signedBy = async (keyId: string) => {
      const image = await stage.image()
      const { url: endpoint } = elsewhere
      const signer = await kmsSigner({ keyId, region: far, endpoint, credentials: CREDENTIALS })
      await signImage(stage.target, image, [signer], 'tag')
      return image
    }
    const verifyFar = async (arn: string, options: Partial<KmsKeysOptions>) => {
      const image = await signedBy(arn)
      const attestor = await createCosignKeyAttestor({ name: 'release', kms: `awskms:///${arn}` })
      return stage.verify(image, attestor, { kms: keysOf({ port, ...options }) })
    }

    test('is verified with the replica here when the operator prefers it, also while the other region is down', async () => {
      const key = await farKey()
      kms.replicate(key)
      const image = await signedBy(key.arn)
      const kmsText = `awskms:///${key.arn}`
      const attestor = await createCosignKeyAttestor({ name: 'release', kms: kmsText })
      elsewhere.fail({ kind: 'down' })
      const keys = keysOf({ port, preferRegion: kms.region })
      expect((await stage.verify(image, attestor, { kms: keys })).status).toBe('verified')
      const without = await stage.verify(image, attestor, { kms: keysOf({ port }) })
      elsewhere.fail(undefined)
      expect(without).toMatchObject({ status: 'inconclusive', error: { code: 'KMS_UNAVAILABLE' } })
    })

    test('is verified where its ARN says when the operator prefers no region', async () => {
      const key = await farKey()
      const before = kms.calls.GetPublicKey
      expect((await verifyFar(key.arn, {})).status).toBe('verified')
      expect(kms.calls.GetPublicKey).toBe(before)
    })

    test('cannot be told when there is no replica in the preferred region', async () => {
      const key = await farKey()
      expect(await verifyFar(key.arn, { preferRegion: kms.region })).toMatchObject({
        status: 'inconclusive',
        error: { code: 'KMS_REFUSED' },
      })
    })
  })

  test.each([
    { name: 'disabled', operation: 'DisableKey' },
    { name: 'pending deletion', operation: 'ScheduleKeyDeletion' },
  ] as const)(
    'with a key that becomes $name is verified from memory no longer than five minutes, and never after a refusal',
    async ({ operation }) => {
      const { id } = await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      await signImage(stage.target, image, [await signerOf(id)], 'tag')
      const keys = keysOf()
      const attestor = await attestorOf(id)
      const statusNow = async () => (await stage.verify(image, attestor, { kms: keys })).status
      expect(await statusNow()).toBe('verified')
      await kmsAdmin(operation, id)
      clock += KMS_KEY_TTL_MS
      const before = kms.calls.GetPublicKey ?? 0
      expect(await statusNow()).toBe('inconclusive')
      // One try: a refusal is not tried again.
      expect(kms.calls.GetPublicKey).toBe(before + 1)
      clock += KMS_REFUSAL_TTL_MS
      kms.fail({ kind: 'down' })
      expect(await statusNow()).toBe('inconclusive')
    },
  )

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
    test.each([
      'ECC_NIST_P256',
      'ECC_NIST_P384',
      'ECC_NIST_P521',
      'RSA_2048',
      'ECC_NIST_EDWARDS25519',
    ])('is verified by KMS too, for %s', async (spec) => {
      const { id } = await kms.createKey({ spec, usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      await signImage(stage.target, image, [await signerOf(id)], 'dsse')
      const before = kms.calls.Verify ?? 0
      const keys = keysOf({ verifyRemotely: true })
      const verification = await stage.verify(image, await attestorOf(id), { kms: keys })
      expect(verification.status).toBe('verified')
      expect([kms.calls.Verify ?? 0, keys.calls]).toEqual([before + 1, 2])
    })

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

    test('cannot be told while KMS throttles, and is verified once it does not', async () => {
      const { id } = await kms.createKey({ spec: 'RSA_2048', usage: 'SIGN_VERIFY' })
      const image = await stage.image()
      await signImage(stage.target, image, [await signerOf(id)], 'tag')
      const keys = keysOf({ verifyRemotely: true })
      const attestor = await attestorOf(id)
      kms.fail({ kind: 'throttle', times: 2, operation: 'Verify' })
      expect(await stage.verify(image, attestor, { kms: keys })).toMatchObject({
        status: 'inconclusive',
        error: { code: 'KMS_UNAVAILABLE' },
      })
      expect((await stage.verify(image, attestor, { kms: keys })).status).toBe('verified')
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
