import { toBase64 } from '#shared/bytes.ts'

/** PEM of DER, lines of 64 characters (RFC 7468). */
export function toPem(label: string, bytes: Uint8Array): string {
  const lines = toBase64(bytes).match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
