import { AdmissionError } from './errors.ts'

/** Bytes whose buffer is an ArrayBuffer, as WebCrypto wants them. */
export type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The UTF-8 bytes of a string. */
export function utf8(text: string): Bytes {
  return encoder.encode(text) as Bytes
}

/** The text of UTF-8 bytes; throws `TypeError` on an invalid sequence (a BOM is kept as a character). */
export function fromUtf8(bytes: Uint8Array): string {
  return strictDecoder.decode(bytes)
}

/** Lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  let out = ''
  for (const byte of bytes) out += byte.toString(16).padStart(2, '0')
  return out
}

/** The bytes of a hexadecimal string, or undefined when it is not one. */
export function fromHex(text: string): Bytes | undefined {
  if (text.length % 2 !== 0) return undefined
  const out = new Uint8Array(text.length / 2)
  for (let i = 0; i < out.length; i++) {
    const high = nibble(text.charCodeAt(2 * i))
    const low = nibble(text.charCodeAt(2 * i + 1))
    if (high < 0 || low < 0) return undefined
    out[i] = high * 16 + low
  }
  return out
}

/** The value of a hexadecimal digit, or a negative number. */
function nibble(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

/** Standard base64 with padding (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += 0x2000) {
    binary += String.fromCharCode(...bytes.subarray(i, i + 0x2000))
  }
  return btoa(binary)
}

/**
 * The bytes of strict standard base64, or undefined. Strict: padding required, no white space, no other alphabet,
 * and the unused bits of the last character are zero, so that one byte string has one spelling.
 */
export function fromBase64(text: string): Bytes | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const end = text.length - padding
  // Looking for one wrong character keeps the regex engine from recursing over the whole text.
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(text.slice(0, end))) return undefined
  const binary = atob(text)
  const out = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) out[i] = binary.charCodeAt(i)
  const isCanonical =
    padding === 0 || toBase64(out.subarray(out.length - (3 - padding))) === text.slice(-4)
  return isCanonical ? out : undefined
}

/** base64url without padding (RFC 4648 section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** The bytes of strict unpadded base64url, or undefined. */
export function fromBase64Url(text: string): Bytes | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return undefined
  const padded = text.replaceAll('-', '+').replaceAll('_', '/')
  return fromBase64(padded + '='.repeat((4 - (padded.length % 4)) % 4))
}

/** All parts one after the other in a new array. */
export function concat(...parts: readonly Uint8Array[]): Bytes {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}

/** True when both hold the same bytes; takes the same time wherever they differ. */
export function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number)
  return difference === 0
}

/** SHA-256 of the bytes. */
export async function sha256(bytes: Uint8Array): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Bytes))
}

/** SHA-256 of the bytes as `sha256:<hex>`, the form of OCI digests. */
export async function sha256Digest(bytes: Uint8Array): Promise<string> {
  return `sha256:${toHex(await sha256(bytes))}`
}

/** True for exactly `sha256:<64 lower-case hex>`. */
export function isDigest(text: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(text)
}

/** The 32 bytes of a `sha256:<64 lower-case hex>` digest, or undefined when it is not exactly that. */
export function digestBytes(digest: string): Bytes | undefined {
  return isDigest(digest) ? fromHex(digest.slice(7)) : undefined
}

/** Throws `REGISTRY_DIGEST_MISMATCH` unless the bytes hash to the digest. */
export async function assertDigest(bytes: Uint8Array, digest: string, what: string): Promise<void> {
  const expected = digestBytes(digest)
  if (expected === undefined) {
    throw new AdmissionError(
      'REGISTRY_RESPONSE_INVALID',
      `${what}: digest ${JSON.stringify(digest.slice(0, 80))} is not sha256:<64 hex>`,
    )
  }
  const actual = await sha256(bytes)
  if (!equal(actual, expected)) {
    throw new AdmissionError(
      'REGISTRY_DIGEST_MISMATCH',
      `${what}: content hashes to sha256:${toHex(actual)}, expected ${digest}`,
    )
  }
}
