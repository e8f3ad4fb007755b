import {
  constants,
  createHash,
  type KeyObject,
  privateEncrypt,
  publicDecrypt,
  randomBytes,
} from 'node:crypto'
import { ecdsaSign, ecdsaVerify } from './kms-ecdsa.ts'

/**
 * Signing and verifying a digest that was made elsewhere, which node:crypto has no call for. For the local KMS only:
 * the arithmetic here is not constant-time.
 */

export type DigestScheme = 'ECDSA' | 'RSASSA_PKCS1_V1_5' | 'RSASSA_PSS'

/** Node's name, the length in bytes and the DER prefix of a DigestInfo for each hash KMS signs with. */
const HASHES: Readonly<Record<number, { name: string; digestInfo: string }>> = {
  32: { name: 'sha256', digestInfo: '3031300d060960864801650304020105000420' },
  48: { name: 'sha384', digestInfo: '3041300d060960864801650304020205000430' },
  64: { name: 'sha512', digestInfo: '3051300d060960864801650304020305000440' },
}

/** A signature over a digest: DER for ECDSA, of the modulus' length for RSA. */
export function signDigest(key: KeyObject, scheme: DigestScheme, digest: Uint8Array): Buffer {
  switch (scheme) {
    case 'ECDSA':
      return ecdsaSign(key, digest)
    case 'RSASSA_PKCS1_V1_5':
      return privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, digestInfo(digest))
    case 'RSASSA_PSS':
      return privateEncrypt({ key, padding: constants.RSA_NO_PADDING }, pssEncode(key, digest))
  }
}

/** Whether the signature over a digest is right; false for anything malformed. */
export function verifyDigest(
  key: KeyObject,
  scheme: DigestScheme,
  digest: Uint8Array,
  signature: Uint8Array,
): boolean {
  try {
    switch (scheme) {
      case 'ECDSA':
        return ecdsaVerify(key, digest, signature)
      case 'RSASSA_PKCS1_V1_5': {
        const padding = constants.RSA_PKCS1_PADDING
        return publicDecrypt({ key, padding }, signature).equals(digestInfo(digest))
      }
      case 'RSASSA_PSS': {
        const padding = constants.RSA_NO_PADDING
        return pssMatches(key, digest, publicDecrypt({ key, padding }, signature))
      }
    }
  } catch {
    // OpenSSL throws on a signature of the wrong length or padding: it is wrong, which is all that was asked.
    return false
  }
}

function digestInfo(digest: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(hashOf(digest).digestInfo, 'hex'), digest])
}

function hashOf(digest: Uint8Array): { name: string; digestInfo: string } {
  const hash = HASHES[digest.length]
  if (hash === undefined) throw new TypeError(`no hash has ${digest.length} bytes`)
  return hash
}

// RSASSA-PSS (RFC 8017, 9.1) with MGF1 over the same hash and a salt of the hash's length, as KMS does it.

function pssEncode(key: KeyObject, digest: Uint8Array): Buffer {
  const salt = randomBytes(digest.length)
  const { length, spareBits } = modulusOf(key)
  const hash = pssHash(digest, salt)
  const db = Buffer.alloc(length - hash.length - 1)
  db[db.length - salt.length - 1] = 1
  salt.copy(db, db.length - salt.length)
  const masked = xor(db, mgf1(hash, db.length, hashOf(digest).name))
  masked[0] = (masked[0] ?? 0) & (0xff >> spareBits)
  return Buffer.concat([masked, hash, Buffer.from([0xbc])])
}

function pssMatches(key: KeyObject, digest: Uint8Array, encoded: Buffer): boolean {
  const { length, spareBits } = modulusOf(key)
  if (encoded.length !== length || encoded.at(-1) !== 0xbc) return false
  const masked = encoded.subarray(0, length - digest.length - 1)
  const hash = encoded.subarray(length - digest.length - 1, -1)
  if (((masked[0] ?? 0) & ~(0xff >> spareBits)) !== 0) return false
  const db = xor(masked, mgf1(hash, masked.length, hashOf(digest).name))
  db[0] = (db[0] ?? 0) & (0xff >> spareBits)
  const padding = db.subarray(0, db.length - digest.length)
  if (padding.at(-1) !== 1 || padding.subarray(0, -1).some((byte) => byte !== 0)) return false
  return pssHash(digest, db.subarray(db.length - digest.length)).equals(hash)
}

function pssHash(digest: Uint8Array, salt: Uint8Array): Buffer {
  return createHash(hashOf(digest).name)
    .update(Buffer.alloc(8))
    .update(digest)
    .update(salt)
    .digest()
}

function mgf1(seed: Uint8Array, length: number, hash: string): Buffer {
  const blocks: Buffer[] = []
  for (let counter = 0; 32 * blocks.length < length; counter++) {
    const suffix = Buffer.alloc(4)
    suffix.writeUInt32BE(counter)
    blocks.push(createHash(hash).update(seed).update(suffix).digest())
  }
  return Buffer.concat(blocks).subarray(0, length)
}

function xor(a: Uint8Array, b: Uint8Array): Buffer {
  return Buffer.from(a.map((byte, index) => byte ^ (b[index] ?? 0)))
}

/** Length of the modulus in bytes, and the bits of the encoded message's first byte that stay zero. */
function modulusOf(key: KeyObject): { length: number; spareBits: number } {
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  return { length: Math.ceil(bits / 8), spareBits: 8 * Math.ceil(bits / 8) - (bits - 1) }
}
