import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import type { Bytes } from './bytes.ts'

/**
 * SHA-256 of a short text's bytes, at once. For what every review needs (tokens, seals): WebCrypto hands each call to another thread,
 * which takes longer than hashing a kilobyte does. For manifests and blobs use `sha256` of `bytes.ts`.
 */
export function sha256Short(bytes: Uint8Array): Bytes {
  return sha256(bytes) as Bytes
}

/** HMAC-SHA-256 (RFC 2104) of a short message, 32 bytes, at once. */
export function hmacSha256(key: Uint8Array, message: Uint8Array): Bytes {
  return hmac(sha256, key, message) as Bytes
}
