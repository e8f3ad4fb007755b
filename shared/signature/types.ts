import type { AdmissionError } from '../errors.ts'
import type { ImageReference } from '../image/types.ts'
import type { RegistrySession, ResolvedImage } from '../registry/types.ts'
import type { Identity } from './sigstore/types.ts'

export type HashAlgorithm = 'sha256' | 'sha384' | 'sha512'

/** An attestor of a policy, resolved and serialisable. Later kinds (certificate, notary) join this union. */
export type Attestor = CosignKeyAttestor | CosignKeylessAttestor

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

/** One signature that was looked at, for people: `countersign verify` prints these. */
export interface Candidate {
  /** `tag` for the `.sig` scheme, `bundle` for a Sigstore bundle found by referrers. */
  source: 'tag' | 'bundle'
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
