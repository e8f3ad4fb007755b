import { sha256, toHex, utf8 } from '#shared/bytes.ts'

const TOKEN_BYTES = 20
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** 160 random bits in lower-case base32, which a URL path, a host name and a Service path all take as it is. */
export function newToken(): string {
  let bits = 0n
  for (const byte of crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)))
    bits = (bits << 8n) | BigInt(byte)
  let token = ''
  for (let digit = 0; digit < (TOKEN_BYTES * 8) / 5; digit++) {
    token = BASE32.charAt(Number(bits & 31n)) + token
    bits >>= 5n
  }
  return token
}

/** What the config holds in place of a token: its SHA-256, hexadecimal. */
export async function hashOf(token: string): Promise<string> {
  return toHex(await sha256(utf8(token)))
}
