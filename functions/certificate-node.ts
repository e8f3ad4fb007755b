import { X509Certificate } from 'node:crypto'
import type { ClientCertificate } from './auth.ts'

/** The client certificate of a PEM text or of DER bytes, or undefined where that is none. It has to have been checked already. */
export function readCertificate(certificate: string | Uint8Array): ClientCertificate | undefined {
  try {
    const { fingerprint256, subject } = new X509Certificate(certificate)
    return {
      fingerprint: fingerprint256.replaceAll(':', '').toLowerCase(),
      subject: rfc2253(subject),
    }
  } catch {
    // Whoever sends no certificate has none: the caller is refused where one is wanted.
    return undefined
  }
}

/** Node writes one part a line, the most general first, each escaped as RFC 2253 has it. */
function rfc2253(subject: string): string {
  return subject
    .split('\n')
    .map((part) => part.replaceAll(' + ', '+'))
    .reverse()
    .join(',')
}
