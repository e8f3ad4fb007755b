import type { Bytes } from '../../bytes.ts'
import type { AdmissionError } from '../../errors.ts'
import type { JsonValue } from '../../json.ts'
import type { Envelope } from '../dsse.ts'
import type { VerifyingKey } from '../key.ts'
import type { HashAlgorithm } from '../types.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { IdentityMatcher } from './identity.ts'

/** Whom a policy trusts: an issuer of identity tokens AND a subject, each exact or as a RegExp. */
export interface Identity {
  /** The whole issuer. */
  issuer?: string
  /** RE2. As in Go and cosign it may match anywhere in the issuer: write `^…$` for all of it. */
  issuerRegExp?: string
  /** The whole of one of the certificate's names. */
  subject?: string
  /** RE2. As in Go and cosign it may match anywhere in a name: write `^…$` for all of it. */
  subjectRegExp?: string
  /**
   * Values of Fulcio's certificate extensions, the whole of each, by name (`githubWorkflowRepository`, `sourceRepositoryURI`) or dotted
   * object identifier (`1.3.6.1.4.1.57264.1.12`).
   */
  extensions?: Readonly<Record<string, string>>
}

/** Whose signature counts. */
export type SigstoreSigner =
  /** Holders of certificates of these identities. */
  | { identity: IdentityMatcher }
  /** The holder of one key. Without `hashAlgorithm` its usual ones are tried. */
  | { key: VerifyingKey; spki: Bytes; hashAlgorithm?: HashAlgorithm }
  /** Holders of certificates of one's own authorities. */
  | { certificate: CertificateSigner }

/** `cosign.certificate` of a policy: `createCertificateSigner` reads it. */
export interface CertificateSigner {
  /** The one certificate that counts; without anchors its key is all that counts. */
  leaf?: Certificate
  /** From that certificate to an anchor, verified but for the time. */
  chain?: readonly Certificate[]
  anchors: readonly Certificate[]
  intermediates: readonly Certificate[]
}

/** How many independent witnesses a signature needs. They belong to the trusted root; a bundle never chooses them. */
export interface Thresholds {
  /** Entries of known transparency logs. */
  logs: number
  /** Times from a log's promise or from a timestamp authority. Zero: the current time counts when there is none. */
  times: number
  /** Signed certificate timestamps. */
  certificateLogs: number
}

/** A bundle that was parsed before: a large one takes long, and every attestor that asks verifies it. */
export interface OpenedBundle {
  json: JsonValue
  /** What its DSSE envelope holds; undefined for a message signature. */
  envelope?: Envelope
}

/** What was signed. A digest is enough for a statement about it; a signature over a message needs its bytes or `verifyDigest`. */
export type Artifact =
  | { bytes: Bytes }
  | {
      digest: { algorithm: HashAlgorithm; value: Bytes }
      /** True when the signature is one over a message with this digest. */
      verifyDigest?: (
        publicKey: Bytes,
        algorithm: HashAlgorithm,
        digest: Bytes,
        signature: Bytes,
      ) => boolean
    }

/** A verdict is a value. `rejected`: we know, no. `inconclusive`: we could not tell. */
export type BundleVerdict =
  | {
      status: 'verified'
      /** The name and issuer of the certificate, or the fingerprint of the key. */
      signer: string
      /** The in-toto statement that was signed, for DSSE. */
      statement?: Bytes
      /** Milliseconds: every time the signature was seen at. */
      times: readonly number[]
    }
  | { status: 'rejected'; reason: string }
  | { status: 'inconclusive'; error: AdmissionError }
