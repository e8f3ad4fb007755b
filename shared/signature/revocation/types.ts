import type { Certificate } from '../x509/certificate.ts'

/** Whether certificates are looked up as revoked, and what follows when nobody could tell: it passes, or it does not. */
export type RevocationMode = 'skip' | 'softfail' | 'strict'

/** What an issuer says about one of its certificates. Nothing that is not signed ever becomes one. */
export type Finding =
  | { status: 'good'; until: number }
  | {
      status: 'revoked'
      /** Of RFC 5280 section 5.3.1, such as `keyCompromise`. */
      reason: string
      /** When the certificate became invalid, as the issuer says; epoch milliseconds. */
      invalidFrom?: number
      /** The end of what was read, epoch milliseconds: after it somebody has to be asked again. */
      until: number
    }
  | { status: 'unknown'; detail: string }

/** What is known about a whole chain. A verdict is a value: who does not answer makes it `unknown`. */
export type RevocationStatus =
  | { status: 'good'; detail: string }
  | { status: 'revoked'; detail: string }
  | { status: 'unknown'; detail: string }

/** Asks OCSP responders, and CRLs where those cannot tell, about the certificates of a chain. */
export interface RevocationSource {
  /**
   * What is known about the chain, leaf first and root last; a root is revoked by nobody. `signedAt` is when a trusted timestamp says that
   * the signature was there, epoch milliseconds: a certificate that became invalid later was good then. Rejects with AdmissionError only.
   */
  status(chain: readonly Certificate[], signedAt?: number): Promise<RevocationStatus>
}
