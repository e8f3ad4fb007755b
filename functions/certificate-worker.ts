import type { ClientCertificate } from './auth.ts'

/** The members we use of `request.cf.tlsClientAuth`, all of them texts. */
export interface TlsClientAuth {
  certPresented?: string
  certVerified?: string
  certRevoked?: string
  certFingerprintSHA256?: string
  certSubjectDNRFC2253?: string
}

/**
 * The client certificate that Cloudflare has verified, or undefined. A revoked one is still `SUCCESS` there, so that it takes both: verified,
 * and known not to be revoked.
 */
export function verifiedCertificate(
  auth: TlsClientAuth | undefined,
): ClientCertificate | undefined {
  if (auth?.certPresented !== '1' || auth.certVerified !== 'SUCCESS' || auth.certRevoked !== '0') {
    return undefined
  }
  const { certFingerprintSHA256: fingerprint = '', certSubjectDNRFC2253: subject = '' } = auth
  return { fingerprint: fingerprint.replaceAll(':', '').toLowerCase(), subject }
}
