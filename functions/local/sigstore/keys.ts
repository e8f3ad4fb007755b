import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** Keys and the few operations everybody in a local Sigstore does with them. */
export interface Pair {
  publicKey: KeyObject
  privateKey: KeyObject
}

/** A new key pair on a NIST curve. */
export const newPair = (namedCurve = 'P-256'): Pair => generateKeyPairSync('ec', { namedCurve })

/** A new key pair of a kind that signers use. */
export const pairOf = (kind: 'P-256' | 'P-384' | 'P-521' | 'Ed25519' | 'RSA'): Pair =>
  kind === 'Ed25519'
    ? generateKeyPairSync('ed25519')
    : kind === 'RSA'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : newPair(kind)

/** The digest of the bytes, SHA-256 unless another hash is named. */
export const digestOf = (bytes: Uint8Array, hash = 'sha256') =>
  new Uint8Array(createHash(hash).update(bytes).digest())

/** The public key as a SubjectPublicKeyInfo. */
export const spkiOf = ({ publicKey }: Pick<Pair, 'publicKey'>) =>
  new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }))

/** The signature of the bytes: ECDSA in DER, RSA PKCS#1 v1.5, or Ed25519, which hashes for itself. */
export const signWith = (bytes: Uint8Array, { privateKey }: Pair, hash = 'sha256') =>
  new Uint8Array(sign(privateKey.asymmetricKeyType === 'ed25519' ? null : hash, bytes, privateKey))

/** A big-endian unsigned integer of that many bytes. */
export function uint(value: number, bytes: number): Uint8Array {
  const out = new Uint8Array(bytes)
  let rest = value
  for (let i = bytes - 1; i >= 0; i--) {
    out[i] = rest % 256
    rest = Math.floor(rest / 256)
  }
  return out
}
