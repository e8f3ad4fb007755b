import { AdmissionError, toAdmissionError } from '../errors.ts'
import { FACT_TTL_MS, MAX_BLOB_BYTES, MAX_CACHED_CANDIDATES, REJECTION_TTL_MS } from '../limits.ts'
import { repositoryOf } from '../registry/session.ts'
import type { Repository, ResolvedImage } from '../registry/types.ts'
import { AttestationCache } from './attestation-cache.ts'
import { createCheck, type KeySources } from './check.ts'
import { storeOf } from './content.ts'
import type { RevocationLoader } from './revocation/load.ts'
import { sourceSession, subjectOf } from './source.ts'
import type {
  Attestation,
  AttestationVerification,
  Attestor,
  VerificationContext,
  Verifier,
} from './types.ts'

/** The part of the door that is about attestations. */
export type AttestationVerifier = Pick<
  Verifier,
  'verifyAttestation' | 'recallAttestation' | 'readPayload'
>

/** Where keys, trust and what is known about revocation come from. */
type Sources = Omit<KeySources, 'signal'> & { revocation: RevocationLoader | undefined }

/** What upstream says of the two pairings it has no verification for (image-validating-policy.md 2.5). */
export const NOTARY_NEEDS_REFERRER =
  'notary verifier only supports oci 1.1 referrers as attestations'
const COSIGN_NEEDS_IN_TOTO = 'cosign verifier only supports intoto referrers as attestations'

/**
 * Who attested what about an image. Verdicts with their payloads are kept as those about signatures are; how to look for attestations is
 * loaded when a policy asks for the first.
 */
export function attestationVerifier(sources: Sources): AttestationVerifier {
  const { now } = sources
  const verdicts = new AttestationCache()
  return {
    recallAttestation(reference, attestation, attestor, cluster) {
      const { digest } = reference
      if (digest === undefined) return undefined
      const id = idOf(repositoryOf(reference), digest, attestation, attestor, cluster)
      return verdicts.get(id, now())
    },
    async verifyAttestation(image, attestation, attestor, context) {
      const { repository, descriptor } = image
      const id = idOf(repository, descriptor.digest, attestation, attestor, context.cluster)
      const known = verdicts.get(id, now())
      if (known !== undefined) return known
      const examined = examine(image, attestation, attestor, context, sources)
      const verification = await examined.catch(couldNotTell)
      keep(verdicts, id, verification, now())
      return verification
    },
    async readPayload(reference, attestation, attestor, blob, registry) {
      const { payloadIn } = await import('./attestation-payload.ts')
      const about = { repository: repositoryOf(reference), digest: reference.digest ?? '' }
      const store = storeOf(subjectOf(about, attestor))
      const descriptor = { ...blob, mediaType: '' }
      const session = sourceSession(registry, attestor)
      return payloadIn(await session.blob(store, descriptor, MAX_BLOB_BYTES), attestation)
    },
  }
}

/** What a verdict is kept under. */
function idOf(
  { host, repository }: Repository,
  digest: string,
  attestation: Attestation,
  attestor: Attestor,
  cluster: string,
): string {
  const wanted = 'intoto' in attestation ? ['i', attestation.intoto] : ['r', attestation.referrer]
  return JSON.stringify([cluster, attestor.hash, host, repository, digest, ...wanted])
}

/**
 * Yes for long, no for a moment because an attestation may be pushed next, "could not tell" not at all; nor a yes whose payload is not
 * surely the right one.
 */
function keep(
  verdicts: AttestationCache,
  id: string,
  verification: AttestationVerification,
  now: number,
): void {
  const { status } = verification
  const isUnsure = status === 'verified' && verification.unread !== undefined
  if (status === 'inconclusive' || isUnsure) return
  const ttl = status === 'verified' ? FACT_TTL_MS : REJECTION_TTL_MS
  const candidates = verification.candidates.slice(0, MAX_CACHED_CANDIDATES)
  verdicts.set(id, { ...verification, candidates }, now + ttl)
}

async function examine(
  image: ResolvedImage,
  attestation: Attestation,
  attestor: Attestor,
  { registry, signal }: VerificationContext,
  sources: Sources,
): Promise<AttestationVerification> {
  // A copy made before the first await.
  const { repository, descriptor } = image
  const { host, repository: name } = repository
  const about = { repository: { host, repository: name }, digest: descriptor.digest }
  const subject = subjectOf(about, attestor)
  if ('referrer' in attestation) {
    if (attestor.kind !== 'notary') {
      return { status: 'rejected', reason: COSIGN_NEEDS_IN_TOTO, candidates: [] }
    }
    const { examineReferrers } = await import('./attestation-referrer.ts')
    return examineReferrers(subject, attestation.referrer, attestor, {
      registry,
      now: sources.now(),
      revocation: sources.revocation,
    })
  }
  if (attestor.kind === 'notary') {
    throw new AdmissionError('POLICY_UNSUPPORTED', NOTARY_NEEDS_REFERRER)
  }
  const { examineStatements } = await import('./attestation-statement.ts')
  const check = createCheck(attestor, { ...sources, signal })
  const session = sourceSession(registry, attestor)
  return examineStatements(subject, attestation.intoto, { registry: session, check })
}

/** The contract is "never throws", so even a fault of our own becomes a verdict. */
function couldNotTell(thrown: unknown): AttestationVerification {
  const error = toAdmissionError(thrown, 'verifying attestations')
  return { status: 'inconclusive', error, candidates: [] }
}
