import type { Bytes } from '../bytes.ts'
import type { AdmissionError } from '../errors.ts'
import type { ImageReference } from '../image/types.ts'
import type { RegistrySession, ResolvedImage } from '../registry/types.ts'
import type { RevocationMode } from './revocation/types.ts'
import type { Identity } from './sigstore/types.ts'

export type HashAlgorithm = 'sha256' | 'sha384' | 'sha512'

/** An attestor of a policy, resolved and serialisable. */
export type Attestor =
  | CosignKeyAttestor
  | CosignKeylessAttestor
  | CosignCertificateAttestor
  | NotaryAttestor

/** An attestor before it is checked and has its hash. */
export type AttestorDraft = Draft<Attestor>
type Draft<A> = A extends Attestor ? Omit<A, 'hash'> : never

/** The attestors whose signatures cosign makes. */
export type CosignAttestor = CosignKeyAttestor | CosignKeylessAttestor | CosignCertificateAttestor

/** What every `attestors[].cosign` may have beside its signer (specs/image-validating-policy.md 1.3). */
interface CosignFields {
  name: string
  /** Each pair has to be among what was signed: `optional` of a payload, `annotations` of a statement's subject. */
  annotations?: Readonly<Record<string, string>>
  /** Where signatures and attestations are, when not beside the image. */
  source?: SignatureSource
  /** Types of attestations that count as a signature of the image, beside cosign's own. */
  predicateTypes?: readonly string[]
  /** Who has to have witnessed the signature. Undefined: nobody, the signer is enough. */
  trust?: SigstoreTrust
  /** SHA-256 hex of everything but the name: part of cache keys. */
  hash: string
}

/** `cosign.source` of a policy. */
export interface SignatureSource {
  /** `registry.example.com/signatures`; that of the image when absent. */
  repository?: string
  /** Stands before `sha256-<hex>.sig`. */
  tagPrefix?: string
  /** Logins of the operator's config by name, instead of those of the image. */
  pullSecrets?: readonly string[]
}

/**
 * `cosign.trustedRoot`, `tuf` and `ctlog` of a policy, resolved to material: nothing of it is fetched when an image is verified. What is
 * given beside the root takes the place of what the root has of that kind.
 */
export interface SigstoreTrust {
  /** JSON of a trusted root. */
  root?: string
  /** Certificate authorities for signers, a PEM bundle (`keyless.roots`). */
  roots?: string
  /** Key of the transparency log, PEM (`ctlog.rekorPubKey`). */
  rekorPubKey?: string
  /** Key of the certificate transparency log, PEM (`ctlog.ctLogPubKey`). */
  ctLogPubKey?: string
  /** Chain of a timestamp authority, a PEM bundle (`ctlog.tsaCertChain`). */
  tsaCertChain?: string
  /** No log entry is asked for (`ctlog.insecureIgnoreTlog`). */
  ignoreTlog?: boolean
  /** No signed certificate timestamp is asked for (`ctlog.insecureIgnoreSCT`). */
  ignoreSct?: boolean
}

/** `attestors[].cosign.key`: whoever holds the private key. */
export interface CosignKeyAttestor extends CosignFields {
  kind: 'cosign-key'
  /** PEM public key, or a reference of a key service: `awskms://`, `hashivault://`. */
  key: { data: string } | { kms: string }
  hashAlgorithm?: HashAlgorithm
}

/** `attestors[].cosign.keyless`: signatures by one of these identities. */
export interface CosignKeylessAttestor extends CosignFields {
  kind: 'cosign-keyless'
  identities: readonly Identity[]
  trust: SigstoreTrust
}

/** `attestors[].cosign.certificate`: the holder of one certificate, or of any that chains to these roots. */
export interface CosignCertificateAttestor extends CosignFields {
  kind: 'cosign-certificate'
  /** PEM. Its key is what counts; with a chain, the chain has to be right and valid as well. */
  certificate?: string
  /** A PEM bundle. Without a certificate: signatures bring theirs, and it has to chain to this. */
  chain?: string
}

/** `attestors[].notary`: whoever holds a certificate that chains to one of these, verified strictly. */
export interface NotaryAttestor {
  kind: 'notary'
  name: string
  /** Trusted certificates, a PEM bundle. */
  certs: string
  /** Roots of timestamp authorities, a PEM bundle: with them every signature needs a timestamp. */
  tsaCerts?: string
  /** Whether OCSP responders and CRLs are asked. Absent: `skip`. */
  revocation?: RevocationMode
  /** SHA-256 hex of everything above but the name: part of cache keys. */
  hash: string
}

/** One signature that was looked at, for people: `countersign verify` prints these. */
export interface Candidate {
  /**
   * `tag` for the `.sig` scheme; found by referrers, `bundle` for a Sigstore bundle, `referrer` for the `.sig` scheme as a referrer and
   * `notary` for a Notary Project envelope.
   */
  source: 'tag' | 'bundle' | 'referrer' | 'notary'
  /** Where it is: `sha256:… layer 2`. */
  location: string
  verified: boolean
  /** Which check failed, or which passed last. */
  detail: string
  /** Every check in the order they were made, for who looks thoroughly: all but the last one passed. */
  checks?: readonly CheckStep[]
}

/** One check of a signature. */
export interface CheckStep {
  /** `content`: it is about the image; `signature`: the signer made it; `witnesses`, `annotations`, `kms`, … */
  check: string
  passed: boolean
  /** What was found, or what was found wrong. */
  detail: string
}

/** A verdict is a value. `rejected`: we know, no. `inconclusive`: we could not tell. */
export type Verification =
  | { status: 'verified'; signer: string; candidates: readonly Candidate[] }
  | { status: 'rejected'; reason: string; candidates: readonly Candidate[] }
  | { status: 'inconclusive'; error: AdmissionError; candidates: readonly Candidate[] }

/** `attestations[]` of a policy: in-toto statements by their predicate type, or referrers by their artifact type. */
export type Attestation = { name: string } & ({ intoto: string } | { referrer: string })

/** A blob of a registry that held a verified attestation. */
export interface AttestedBlob {
  /** `sha256:…`. */
  digest: string
  /** Bytes. */
  size: number
}

/** What an attestor attested, in full. */
export interface VerifiedPayload {
  /** JSON: the in-toto statement, or the layer of the referrer. */
  bytes: Bytes
  /** What the bytes were read from: with its digest they can be had again, and nothing else can. */
  blob: AttestedBlob
}

/**
 * A verdict is a value. `payload` is what counts where several attestations verify: the last bundle of the listing, else the last layer of
 * the `.att` tag, as upstream has it; of referrers the first.
 */
export type AttestationVerification =
  | {
      status: 'verified'
      signer: string
      payload: VerifiedPayload
      /** Something that might have counted before it could not be read, so that the payload is not surely the right one. */
      unread?: AdmissionError
      candidates: readonly Candidate[]
    }
  | { status: 'rejected'; reason: string; candidates: readonly Candidate[] }
  | { status: 'inconclusive'; error: AdmissionError; candidates: readonly Candidate[] }

/** What a verification runs with. */
export interface VerificationContext {
  cluster: string
  registry: RegistrySession
  signal: AbortSignal
}

/** The only door into this folder. Never throws: what goes wrong is `inconclusive`. */
export interface Verifier {
  verifyImage(
    image: ResolvedImage,
    attestor: Attestor,
    context: VerificationContext,
  ): Promise<Verification>
  /**
   * What an earlier call found out about this digest in this repository, or undefined: also for a reference without a digest, whose
   * tag may have moved. Asks nobody.
   */
  recall(reference: ImageReference, attestor: Attestor, cluster: string): Verification | undefined
  /** Whether the attestor made an attestation of this type about the image. */
  verifyAttestation(
    image: ResolvedImage,
    attestation: Attestation,
    attestor: Attestor,
    context: VerificationContext,
  ): Promise<AttestationVerification>
  /** As `recall`, for attestations. */
  recallAttestation(
    reference: ImageReference,
    attestation: Attestation,
    attestor: Attestor,
    cluster: string,
  ): AttestationVerification | undefined
  /**
   * The payload in a blob that an earlier verification found, had again by its digest. Unlike the others it throws AdmissionError: what the
   * registry throws, and `SIGNATURE_MALFORMED` when there is none in it.
   */
  readPayload(
    reference: ImageReference,
    attestation: Attestation,
    attestor: Attestor,
    blob: AttestedBlob,
    registry: RegistrySession,
  ): Promise<Bytes>
  /** KMS requests made so far by this isolate. */
  readonly kmsCalls: number
}
