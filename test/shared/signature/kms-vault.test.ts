import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createVault } from '#functions/kms-vault.ts'
import { type SignatureLayout, signImage } from '#functions/local/sign.ts'
import { localSigner } from '#functions/local/signer.ts'
import { startVault, type VaultEmulator, type VaultFault } from '#functions/local/vault.ts'
import { type VaultSigningKey, vaultSigner } from '#functions/local/vault-signer.ts'
import { AdmissionError, type ErrorCode } from '#shared/errors.ts'
import {
  KMS_KEY_TTL_MS,
  KMS_REFUSAL_TTL_MS,
  KMS_STALE_MS,
  KMS_STALE_RETRY_MS,
} from '#shared/limits.ts'
import type { VaultPort, VaultPublicKey, VaultVerification } from '#shared/ports.ts'
import { createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import { createKmsKeys, type KmsKeysOptions } from '#shared/signature/kms.ts'
import type { HashAlgorithm } from '#shared/signature/types.ts'
import {
  derOf,
  detailsOf,
  keyPair,
  NO_KMS,
  NOW,
  never,
  openStage,
  pemOf,
  type Stage,
} from './setup.ts'

describe('keys in Vault', () => {
  const vault = { address: 'https://vault.test:8200', mount: 'transit' }
  const p256: VaultPublicKey = {
    type: 'ecdsa-p256',
    version: 3,
    publicKey: pemOf(keyPair('P-256').publicKey),
  }
  const rawOf = (name: 'ours') =>
    Buffer.from(derOf(keyPair('Ed25519', name).publicKey).slice(-32)).toString('base64')

  let clock: number
  let asked: number
  /** What Vault does next. */
  let answer: VaultPublicKey | ErrorCode
  let verdict: boolean | ErrorCode
  const calls: VaultVerification[] = []
  const vaultPort: VaultPort = {
    async getPublicKey() {
      asked++
      if (typeof answer === 'string') throw new AdmissionError(answer, 'said Vault')
      return answer
    },
    async verify(_, call) {
      calls.push(call)
      if (typeof verdict === 'string') throw new AdmissionError(verdict, 'said Vault')
      return verdict
    },
  }
  beforeEach(() => {
    clock = NOW
    asked = 0
    answer = p256
    verdict = true
    calls.length = 0
  })
  const keysOf = (options: Partial<KmsKeysOptions> = {}) =>
    createKmsKeys({ port: NO_KMS, vaultPort, vault, now: () => clock, ...options })
  const outcome = (promise: Promise<{ name: string }>) =>
    promise.then(
      ({ name }) => name,
      (error: AdmissionError) => error.code,
    )

  test('are asked for once in five minutes, under either scheme', async () => {
    const keys = keysOf()
    for (const scheme of ['hashivault', 'openbao', 'hashivault']) {
      expect(await outcome(keys.publicKey(`${scheme}://release`, never()))).toBe('ECDSA P-256')
    }
    expect([asked, keys.calls]).toEqual([1, 1])
    clock += KMS_KEY_TTL_MS
    await keys.publicKey('hashivault://release', never())
    expect(asked).toBe(2)
  })

  test('are other keys than those of AWS KMS, whatever their names', async () => {
    const keys = keysOf({
      region: 'eu-central-1',
      port: {
        ...NO_KMS,
        getPublicKey: async () => ({
          spki: derOf(keyPair('P-384').publicKey),
          keySpec: 'ECC_NIST_P384',
          keyUsage: 'SIGN_VERIFY',
          signingAlgorithms: ['ECDSA_SHA_384'],
        }),
      },
    })
    expect(await outcome(keys.publicKey('awskms:///alias/release', never()))).toBe('ECDSA P-384')
    expect(await outcome(keys.publicKey('hashivault://release', never()))).toBe('ECDSA P-256')
    expect(await outcome(keys.publicKey('awskms:///alias/release', never()))).toBe('ECDSA P-384')
  })

  test('serve for ten minutes more while Vault is unavailable, asking every few seconds', async () => {
    const keys = keysOf()
    const now = () => outcome(keys.publicKey('hashivault://release', never()))
    await now()
    answer = 'KMS_UNAVAILABLE'
    clock += KMS_KEY_TTL_MS
    expect([await now(), await now(), asked]).toEqual(['ECDSA P-256', 'ECDSA P-256', 2])
    clock += KMS_STALE_RETRY_MS
    expect([await now(), asked]).toEqual(['ECDSA P-256', 3])
    clock = NOW + KMS_KEY_TTL_MS + KMS_STALE_MS
    expect(await now()).toBe('KMS_UNAVAILABLE')
  })

  test('serve no longer once Vault refuses them, and are asked for again after half a minute', async () => {
    const keys = keysOf()
    const now = () => outcome(keys.publicKey('hashivault://release', never()))
    await now()
    clock += KMS_KEY_TTL_MS
    answer = 'KMS_REFUSED'
    expect([await now(), await now(), asked]).toEqual(['KMS_REFUSED', 'KMS_REFUSED', 2])
    clock += KMS_REFUSAL_TTL_MS
    answer = 'KMS_UNAVAILABLE'
    expect(await now()).toBe('KMS_UNAVAILABLE')
    answer = p256
    expect(await now()).toBe('ECDSA P-256')
  })

  test.each<{ name: string; change: Partial<VaultPublicKey>; message: string }>([
    {
      name: 'of a symmetric type',
      change: { type: 'aes256-gcm96', publicKey: '' },
      message:
        'type "aes256-gcm96" is not supported, only ecdsa-p256, ecdsa-p384, ecdsa-p521, ed25519, rsa-2048, rsa-3072, rsa-4096',
    },
    {
      name: 'of a type from the prototype',
      change: { type: 'constructor' },
      message:
        'type "constructor" is not supported, only ecdsa-p256, ecdsa-p384, ecdsa-p521, ed25519, rsa-2048, rsa-3072, rsa-4096',
    },
    {
      name: 'without a public half',
      change: { type: 'ed25519', publicKey: '' },
      message: 'Vault shows no public key of it, as of derived keys',
    },
    {
      name: 'of another kind than its type',
      change: { type: 'ecdsa-p384' },
      message: 'version 3 is ECDSA P-256 although its type is ecdsa-p384',
    },
    {
      name: 'whose Ed25519 bytes are too many',
      change: { type: 'ed25519', publicKey: Buffer.alloc(33).toString('base64') },
      message: 'its public key is not the base64 of 32 bytes',
    },
    {
      name: 'whose Ed25519 bytes are PEM',
      change: { type: 'ed25519', publicKey: pemOf(keyPair('Ed25519').publicKey) },
      message: 'its public key is not the base64 of 32 bytes',
    },
  ])('are refused $name', async ({ change, message }) => {
    answer = { ...p256, ...change }
    await expect(keysOf().publicKey('hashivault://release', never())).rejects.toMatchObject({
      code: 'KEY_INVALID',
      message: `Vault key release in transit: ${message}`,
    })
  })

  test('are refused when the public key is a private one, without repeating it', async () => {
    const secret = keyPair('P-256').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    answer = { ...p256, publicKey: secret }
    const refused = await keysOf()
      .publicKey('hashivault://release', never())
      .catch((error: AdmissionError) => error)
    expect(refused).toMatchObject({ code: 'KEY_INVALID' })
    expect(String(refused)).not.toContain(secret.split('\n')[1])
  })

  describe('with remote verification', () => {
    const message = new Uint8Array(5000)
    const signature = new Uint8Array(64)
    const confirm = (algorithm: Parameters<ReturnType<typeof keysOf>['confirm']>[1]['algorithm']) =>
      keysOf({ verifyRemotely: true }).confirm(
        'hashivault://release',
        { message, signature, algorithm },
        never(),
      )

    test.each([
      { hash: 'sha256', named: 'sha2-256', bytes: 32 },
      { hash: 'sha384', named: 'sha2-384', bytes: 48 },
      { hash: 'sha512', named: 'sha2-512', bytes: 64 },
    ] as const)('send the digest and the version for $hash', async ({ hash, named, bytes }) => {
      expect(await confirm({ scheme: 'ECDSA', hash })).toBe(true)
      expect(calls).toEqual([{ input: expect.any(Uint8Array), hash: named, signature, version: 3 }])
      expect(calls[0]?.input).toHaveLength(bytes)
    })

    test('send the message itself for Ed25519, of any length', async () => {
      answer = { type: 'ed25519', version: 3, publicKey: rawOf('ours') }
      expect(await confirm({ scheme: 'ED25519' })).toBe(true)
      expect(calls).toEqual([{ input: message, signature, version: 3 }])
    })

    test('pass on that the signature is wrong', async () => {
      verdict = false
      expect(await confirm({ scheme: 'ECDSA', hash: 'sha256' })).toBe(false)
    })

    test('are forgotten once Vault refuses', async () => {
      const keys = keysOf({ verifyRemotely: true })
      await keys.publicKey('hashivault://release', never())
      verdict = 'KMS_REFUSED'
      const algorithm = { scheme: 'ECDSA', hash: 'sha256' } as const
      const call = { message, signature, algorithm }
      await expect(keys.confirm('hashivault://release', call, never())).rejects.toMatchObject({
        code: 'KMS_REFUSED',
      })
      expect(await outcome(keys.publicKey('hashivault://release', never()))).toBe('KMS_REFUSED')
    })
  })
})

describe('an image signed with a key in Vault', () => {
  let vault: VaultEmulator
  let stage: Stage
  let clock: number
  beforeAll(async () => {
    vault = await startVault()
    stage = await openStage()
  })
  beforeEach(() => {
    clock = NOW
  })
  afterEach(() => vault.fail(undefined))
  afterAll(() => Promise.all([vault.close(), stage.close()]))

  let names = 0
  const newKey = (type: string) => vault.createKey(`key-${++names}`, type)
  const keysOf = (options: Partial<KmsKeysOptions> = {}) =>
    createKmsKeys({
      port: NO_KMS,
      vaultPort: createVault({ fetch, token: () => vault.token }),
      vault: { address: vault.url },
      now: () => clock,
      ...options,
    })
  const attestorOf = (name: string, hashAlgorithm?: HashAlgorithm) =>
    createCosignKeyAttestor({
      name: 'release',
      kms: `hashivault://${name}`,
      ...(hashAlgorithm === undefined ? {} : { hashAlgorithm }),
    })
  const signerOf = (name: string, options: Partial<VaultSigningKey> = {}) =>
    vaultSigner({ url: vault.url, token: vault.token, name, ...options })
  const signedBy = async (name: string, options: Partial<VaultSigningKey> = {}) => {
    const image = await stage.image()
    await signImage(stage.target, image, [await signerOf(name, options)], 'tag')
    return image
  }
  const verifies = () => vault.requests.filter(({ path }) => path.includes('/verify/')).length

  test.each<{ type: string; hash?: HashAlgorithm; raw?: boolean }>([
    { type: 'ecdsa-p256' },
    { type: 'ecdsa-p384' },
    { type: 'ecdsa-p384', hash: 'sha384' },
    { type: 'ecdsa-p521' },
    { type: 'ecdsa-p521', hash: 'sha512' },
    { type: 'ed25519', raw: true },
    { type: 'rsa-2048' },
    { type: 'rsa-3072' },
    { type: 'rsa-4096' },
  ])(
    'of type $type is verified in every layout with one call, and by Vault itself when asked to (%#)',
    async ({ type, ...options }) => {
      const { name } = await newKey(type)
      const signer = await signerOf(name, options)
      const attestor = await attestorOf(name)
      const [local, remote] = [keysOf(), keysOf({ verifyRemotely: true })]
      for (const layout of ['tag', 'dsse', 'message'] satisfies SignatureLayout[]) {
        const image = await stage.image()
        await signImage(stage.target, image, [signer], layout)
        const before = verifies()
        expect(await stage.verify(image, attestor, { kms: local })).toMatchObject({
          status: 'verified',
          signer: expect.stringContaining(`hashivault://${name} (`),
        })
        expect(verifies()).toBe(before)
        expect((await stage.verify(image, attestor, { kms: remote })).status).toBe('verified')
        expect(verifies()).toBe(before + 1)
      }
      expect(local.calls).toBe(1)
    },
  )

  test.each([
    { type: 'ecdsa-p384', hash: 'sha256' as const },
    { type: 'rsa-2048', hash: 'sha512' as const },
  ])('of type $type is verified with the hash the policy names only', async ({ type, hash }) => {
    const { name } = await newKey(type)
    const image = await signedBy(name, { hash })
    const keys = keysOf({ verifyRemotely: true })
    for (const wanted of ['sha256', 'sha384', 'sha512'] as const) {
      const attestor = await attestorOf(name, wanted)
      const { status } = await stage.verify(image, attestor, { kms: keys })
      expect([wanted, status]).toEqual([wanted, wanted === hash ? 'verified' : 'rejected'])
    }
  })

  test('is rejected under another key of Vault', async () => {
    const [one, other] = [await newKey('ecdsa-p256'), await newKey('ecdsa-p256')]
    const image = await signedBy(one.name)
    const attestor = await attestorOf(other.name)
    const verification = await stage.verify(image, attestor, { kms: keysOf() })
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual(['signature is not by this ECDSA P-256 key'])
  })

  test('counts while its version is the latest, as for cosign', async () => {
    const key = await newKey('ecdsa-p256')
    const old = await signedBy(key.name)
    const attestor = await attestorOf(key.name)
    const statusOf = async (image: typeof old, options: Partial<KmsKeysOptions> = {}) =>
      (await stage.verify(image, attestor, { kms: keysOf(options) })).status
    expect(await statusOf(old)).toBe('verified')
    await key.rotate()
    const recent = await signedBy(key.name)
    expect([await statusOf(old), await statusOf(recent)]).toEqual(['rejected', 'verified'])
    expect(await statusOf(recent, { verifyRemotely: true })).toBe('verified')
    key.minDecryptionVersion = 2
    expect([await statusOf(old), await statusOf(recent)]).toEqual(['rejected', 'verified'])
  })

  test('with Ed25519 over the digest, as cosign makes it, is neither verified nor rejected', async () => {
    const { name } = await newKey('ed25519')
    const image = await signedBy(name)
    const verification = await stage.verify(image, await attestorOf(name), { kms: keysOf() })
    expect(verification).toMatchObject({
      status: 'inconclusive',
      error: {
        code: 'POLICY_UNSUPPORTED',
        message: `Vault key ${name}: the signature is of the SHA-256 digest, as cosign makes it with an Ed25519 key, which other tools cannot verify; sign with an ecdsa-p256 key`,
      },
    })
    const foreign = await stage.image()
    const theirs = localSigner(keyPair('Ed25519', 'theirs').privateKey)
    await signImage(stage.target, foreign, [theirs], 'tag')
    const { status } = await stage.verify(foreign, await attestorOf(name), { kms: keysOf() })
    expect(status).toBe('rejected')
  })

  describe('cannot be told', () => {
    test.each<{
      name: string
      code: ErrorCode
      fault?: VaultFault
      spoil?: (name: string) => unknown
    }>([
      { name: 'while Vault is sealed', code: 'KMS_UNAVAILABLE', fault: { kind: 'sealed' } },
      { name: 'while Vault is down', code: 'KMS_UNAVAILABLE', fault: { kind: 'down' } },
      {
        name: 'while Vault throttles',
        code: 'KMS_UNAVAILABLE',
        fault: { kind: 'status', status: 429, times: 9 },
      },
      {
        name: 'while Vault answers nonsense',
        code: 'KMS_UNAVAILABLE',
        fault: { kind: 'body', body: '<html>' },
      },
      {
        name: 'with a token that has ended',
        code: 'KMS_REFUSED',
        fault: { kind: 'status', status: 403, times: 9 },
      },
      { name: 'with a key that is gone', code: 'KMS_REFUSED', spoil: (n) => vault.deleteKey(n) },
      {
        name: 'with a key that is a symmetric one now',
        code: 'KEY_INVALID',
        spoil: (n) => vault.createKey(n, 'aes256-gcm96'),
      },
      {
        name: 'with a derived key',
        code: 'KEY_INVALID',
        spoil: (n) => vault.createKey(n, 'ed25519', { derived: true }),
      },
    ])('$name', async ({ code, fault, spoil }) => {
      const { name } = await newKey('ecdsa-p256')
      const image = await signedBy(name)
      await spoil?.(name)
      vault.fail(fault)
      const verification = await stage.verify(image, await attestorOf(name), { kms: keysOf() })
      expect(verification).toMatchObject({ status: 'inconclusive', error: { code } })
      expect(detailsOf(verification)).toEqual([expect.stringMatching(new RegExp(`^${code}: `))])
    })

    test('by Vault once the key is deleted, although its public key is still known', async () => {
      const { name } = await newKey('ecdsa-p256')
      const image = await signedBy(name)
      const keys = keysOf({ verifyRemotely: true })
      const attestor = await attestorOf(name)
      expect((await stage.verify(image, attestor, { kms: keys })).status).toBe('verified')
      vault.deleteKey(name)
      expect(await stage.verify(image, attestor, { kms: keys })).toMatchObject({
        status: 'inconclusive',
        error: { code: 'KMS_REFUSED' },
      })
    })
  })

  test('is rejected when Vault says so, because the key was made anew under its name', async () => {
    const { name } = await newKey('ecdsa-p256')
    const image = await signedBy(name)
    const keys = keysOf({ verifyRemotely: true })
    const attestor = await attestorOf(name)
    expect((await stage.verify(image, attestor, { kms: keys })).status).toBe('verified')
    await vault.createKey(name, 'ecdsa-p256')
    const verification = await stage.verify(image, attestor, { kms: keys })
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual(['signature is not by this key, says KMS'])
  })
})
