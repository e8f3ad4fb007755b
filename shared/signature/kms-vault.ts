import { type Bytes, concat, fromBase64, fromHex, sha256 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import type { VaultKey, VaultPort, VaultPublicKey, VaultVerification } from '../ports.ts'
import { digestOf, importVerifyingKey, type VerifyingKey } from './key.ts'
import type { ConfirmCall, FetchedKey } from './kms-service.ts'
import { publicKeyFromPem } from './pem.ts'

/** Types of transit keys that sign, and the key each must turn out to be. */
const TYPES: Readonly<Record<string, string>> = {
  'ecdsa-p256': 'ECDSA P-256',
  'ecdsa-p384': 'ECDSA P-384',
  'ecdsa-p521': 'ECDSA P-521',
  ed25519: 'Ed25519',
  'rsa-2048': 'RSA 2048',
  'rsa-3072': 'RSA 3072',
  'rsa-4096': 'RSA 4096',
}

/** What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410). */
const ED25519_PREFIX = '302a300506032b6570032100'

/**
 * The latest version of a transit key, the only one that cosign verifies with: after a rotation what an older one signed does
 * not count. Throws as `ServiceKey.fetch` does.
 */
export async function fetchVaultKey(
  target: VaultKey,
  port: VaultPort,
  signal: AbortSignal,
): Promise<FetchedKey> {
  const answer = await port.getPublicKey(target, signal)
  return {
    key: await toVerifyingKey(answer, target),
    verify: async (call, until) =>
      port.verify(target, await toVerification(call, answer.version), until),
  }
}

async function toVerification(
  { message, signature, algorithm: { hash } }: ConfirmCall,
  version: number,
): Promise<VaultVerification> {
  if (hash === undefined) return { input: message, signature, version }
  const input = await digestOf(hash, message)
  const names = { sha256: 'sha2-256', sha384: 'sha2-384', sha512: 'sha2-512' } as const
  return { input, hash: names[hash], signature, version }
}

async function toVerifyingKey(answer: VaultPublicKey, target: VaultKey): Promise<VerifyingKey> {
  const { type, version, publicKey } = answer
  const expected = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined
  if (expected === undefined) {
    throw unfit(
      target,
      `type ${JSON.stringify(type.slice(0, 40))} is not supported, only ${Object.keys(TYPES).join(', ')}`,
    )
  }
  if (publicKey === '') throw unfit(target, 'Vault shows no public key of it, as of derived keys')
  const key = await importVerifyingKey(
    type === 'ed25519' ? ed25519Spki(publicKey, target) : publicKeyFromPem(publicKey),
  )
  if (key.name !== expected) {
    throw unfit(target, `version ${version} is ${key.name} although its type is ${type}`)
  }
  return type === 'ed25519' ? notOfDigest(key, target) : key
}

function ed25519Spki(publicKey: string, target: VaultKey): Bytes {
  const [prefix, raw] = [fromHex(ED25519_PREFIX), fromBase64(publicKey)]
  if (prefix !== undefined && raw?.length === 32) return concat(prefix, raw)
  throw unfit(target, 'its public key is not the base64 of 32 bytes')
}

/**
 * The key, but unable to tell about one kind of signature: cosign has Vault sign the SHA-256 digest with Ed25519, as if that were the
 * message. It is the holder's, so it is no "no"; but whoever gets 32 bytes of his own signed would have such a signature too.
 */
function notOfDigest(key: VerifyingKey, { name }: VaultKey): VerifyingKey {
  return {
    ...key,
    async verify(message, signature) {
      const verified = await key.verify(message, signature)
      if (verified !== undefined) return verified
      if ((await key.verify(await sha256(message), signature)) === undefined) return undefined
      const found = 'the signature is of the SHA-256 digest, as cosign makes it with an Ed25519 key'
      const advice = 'which other tools cannot verify; sign with an ecdsa-p256 key'
      throw new AdmissionError('POLICY_UNSUPPORTED', `Vault key ${name}: ${found}, ${advice}`)
    },
  }
}

function unfit({ name, mount }: VaultKey, reason: string): AdmissionError {
  return new AdmissionError('KEY_INVALID', `Vault key ${name} in ${mount}: ${reason}`)
}
