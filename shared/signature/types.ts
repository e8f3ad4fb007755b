import type { AdmissionError } from '../errors.ts'
import type { ImageReference } from '../image/types.ts'
import type { RegistrySession, ResolvedImage } from '../registry/types.ts'
import type { Identity } from './sigstore/types.ts'

export type HashAlgorithm = 'sha256' | 'sha384' | 'sha512'

/** An attestor of a policy, resolved and serialisable. Later kinds (certificate) join this union. */
export type Attestor = CosignKeyAttestor | CosignKeylessAttestor | NotaryAttestor

/** `attestors[].cosign.key` with the transparency log switched off (`ctlog.insecureIgnoreTlog: true`). */
export interface CosignKeyAttestor {
  kind: 'cosign-key'
  name: string
  /** PEM public key, or an `awskms://` reference. */
  key: { data: string } | { kms: string }
  hashAlgorithm?: HashAlgorithm
  /** SHA-256 hex of everything above but the name: part of cache keys. */
  hash: string
}

/** `attestors[].cosign.keyless` with the trusted root in the policy: bundles by one of these identities. */
export interface CosignKeylessAttestor {
  kind: 'cosign-keyless'
  name: string
  identities: readonly Identity[]
  /** JSON of the trusted root. */
  trustedRoot: string
  /** SHA-256 hex of everything above but the name: part of cache keys. */
  hash: string
}

/**
 * `attestors[].notary`: whoever holds a certificate that chains to one of these, verified strictly but for revocation, which is not looked
 * up.
 */
export interface NotaryAttestor {
  kind: 'notary'
  name: string
  /** Trusted certificates, a PEM bundle. */
  certs: string
  /** Roots of timestamp authorities, a PEM bundle: with them every signature needs a timestamp. */
  tsaCerts?: string
  /** SHA-256 hex of everything above but the name: part of cache keys. */
  hash: string
}

/** One signature that was looked at, for people: `countersign verify` prints these. */
export interface Candidate {
  /** `tag` for the `.sig` scheme; found by referrers, `bundle` for a Sigstore bundle and `notary` for a Notary Project envelope. */
  source: 'tag' | 'bundle' | 'notary'
  /** Where it is: `sha256:… layer 2`. */
  location: string
  verified: boolean
  /** Which check failed, or which passed last. */
  detail: string
}

/** A verdict is a value. `rejected`: we know, no. `inconclusive`: we could not tell. */
export type Verification =
  | { status: 'verified'; signer: string; candidates: readonly Candidate[] }
  | { status: 'rejected'; reason: string; candidates: readonly Candidate[] }
  | { status: 'inconclusive'; error: AdmissionError; candidates: readonly Candidate[] }

/** The only door into this folder. Never throws: what goes wrong is `inconclusive`. */
export interface Verifier {
  verifyImage(
    image: ResolvedImage,
    attestor: Attestor,
    context: { cluster: string; registry: RegistrySession; signal: AbortSignal },
  ): Promise<Verification>
  /**
   * What an earlier call found out about this digest in this repository, or undefined: also for a reference without a digest, whose
   * tag may have moved. Asks nobody.
   */
  recall(reference: ImageReference, attestor: Attestor, cluster: string): Verification | undefined
  /** KMS requests made so far by this isolate. */
  readonly kmsCalls: number
}
