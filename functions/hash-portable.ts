import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import type { Bytes } from '#shared/bytes.ts'
import type { HashPort } from '#shared/ports.ts'

/** Hashes in JavaScript, for runtimes that have only the asynchronous ones of WebCrypto. */
export const portableHash: HashPort = {
  sha256: (message) => sha256(message) as Bytes,
  hmacSha256: (key, message) => hmac(sha256, key, message) as Bytes,
}
