import type { Bytes } from '../../bytes.ts'
import type { AdmissionError } from '../../errors.ts'
import type { RevocationSource } from '../revocation/types.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { TrustedIdentity } from './identity.ts'

/** Signature algorithms of the Notary Project, by their JOSE names. */
export type NotaryAlgorithm = 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512'

/** Who vouches for the signing time: nobody (a timestamp authority may), or the signing authority itself. */
export type SigningScheme = 'notary.x509' | 'notary.x509.signingAuthority'

/** An opened envelope. Nothing about it is verified yet. */
export interface NotaryEnvelope {
  format: 'JWS' | 'COSE'
  algorithm: NotaryAlgorithm
  payload: Bytes
  /** What the signature is over: the protected bytes as received and the payload. */
  message: Bytes
  /** RSA as it is, ECDSA as `r || s`. What a countersignature is over. */
  signature: Bytes
  scheme: SigningScheme
  /** What the signer says (`notary.x509`) or the authority vouches for, milliseconds since the epoch. */
  signingTime: number
  /** No longer valid after this, milliseconds since the epoch. */
  expiry?: number
  /** Leaf first, as received. */
  certificates: readonly Certificate[]
  /** RFC 3161 TimeStampToken over the signature, DER. */
  timestampToken?: Bytes
}

/**
 * How much a failed check matters. `strict`: everything. `permissive`: integrity and authenticity; time, expiry and revocation are only
 * noted. `audit`: integrity; the rest is only noted. `skip`: nothing is looked at, which is not a verification.
 */
export type VerificationLevel = 'strict' | 'permissive' | 'audit' | 'skip'

/**
 * Whether certificates are looked up as revoked. `skip` is a stated decision, since requests to outside services would be part of
 * admissions. `softfail`: where nobody could tell, it passes. `strict`: it does not, and that is no rejection either.
 */
export type RevocationPolicy =
  | { mode: 'skip' }
  | { mode: 'softfail' | 'strict'; source: RevocationSource }

/** A trust policy of the Notary Project, read. */
export interface NotaryPolicy {
  level: VerificationLevel
  trustStores: {
    /** Trusted for `notary.x509`. */
    ca: readonly Certificate[]
    /** Trusted for `notary.x509.signingAuthority`. */
    signingAuthority: readonly Certificate[]
    /** Roots of timestamp authorities. Undefined: none are configured and certificates must be valid now. */
    tsa?: readonly Certificate[]
  }
  trustedIdentities: readonly TrustedIdentity[]
  /** With a `tsa` store: whether a countersignature is demanded always (the default), or only once a certificate is not valid now. */
  verifyTimestamp?: 'always' | 'afterCertExpiry'
  revocation: RevocationPolicy
}

export type NotaryCheck =
  | 'integrity'
  | 'authenticity'
  | 'authenticTimestamp'
  | 'expiry'
  | 'revocation'

/** What one check found, for people. */
export interface NotaryOutcome {
  check: NotaryCheck
  /** `log`: the level only notes a failure. */
  action: 'enforce' | 'log'
  passed: boolean
  detail: string
}

/** A verdict is a value. `skipped`: the level is `skip`, nothing is known and nothing may be concluded. */
export type NotaryVerification =
  | { status: 'verified'; signer: string; outcomes: readonly NotaryOutcome[] }
  | { status: 'rejected'; reason: string; outcomes: readonly NotaryOutcome[] }
  | { status: 'inconclusive'; error: AdmissionError; outcomes: readonly NotaryOutcome[] }
  | { status: 'skipped' }
