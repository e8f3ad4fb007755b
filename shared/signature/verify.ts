import { digestBytes } from '../bytes.ts'
import { Cache } from '../cache.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import {
  FACT_TTL_MS,
  MAX_CACHED_CANDIDATES,
  MAX_LOADED_TRUSTS,
  REJECTION_TTL_MS,
} from '../limits.ts'
import { repositoryOf } from '../registry/session.ts'
import type { Descriptor, RegistrySession, ResolvedImage } from '../registry/types.ts'
import { attestationVerifier } from './attestation.ts'
import { type Check, createCheck } from './check.ts'
import { type Subject, storeOf } from './content.ts'
import { signatureTag } from './cosign.ts'
import { examineLayout, type LayoutResult } from './examine.ts'
import { type Finder, FoundOnce } from './found.ts'
import type { VerifyingKey } from './key.ts'
import type { KmsKeys } from './kms.ts'
import { type RevocationLoader, revocationLoader } from './revocation/load.ts'
import type { RevocationOptions } from './revocation/lookup.ts'
import type { SigstoreMaterial } from './sigstore/attestor.ts'
import { sourceSession, subjectOf } from './source.ts'
import { SIGN_PREDICATE } from './statement.ts'
import type {
  Attestor,
  Candidate,
  CosignAttestor,
  NotaryAttestor,
  Verification,
  Verifier,
} from './types.ts'

export interface VerifierOptions {
  /** Epoch milliseconds. */
  now: () => number
  kms: KmsKeys
  /** Settled verdicts of this isolate. */
  cache?: Cache<Verification>
  /** Whom notary attestors ask that look up revocation. Without it they cannot tell. */
  revocation?: Pick<RevocationOptions, 'fetch' | 'allowedHosts'>
  /** Look at every signature even after one verified: for people who want to know which signature said what. */
  thorough?: boolean
}

/**
 * The door of this folder: who signed an image. For keys, both layouts are looked at together, the `.sig` tag and Sigstore
 * bundles, because trusting only one would let anybody who attaches the other hide a good signature.
 */
export function createVerifier(options: VerifierOptions): Verifier {
  const { kms, now, thorough = false } = options
  const verdicts = options.cache ?? new Cache<Verification>()
  const keys = new Cache<VerifyingKey>()
  const trusts = new Cache<SigstoreMaterial>(MAX_LOADED_TRUSTS)
  const found = new FoundOnce()
  const revocation = options.revocation && revocationLoader({ now, ...options.revocation })
  return {
    ...attestationVerifier({ keys, trusts, kms, now, revocation }),
    get kmsCalls() {
      return kms.calls
    },
    recall(reference, attestor, cluster) {
      if (reference.digest === undefined) return undefined
      const subject = { repository: repositoryOf(reference), digest: reference.digest }
      return verdicts.get(idOf(subject, attestor, cluster), now())
    },
    async verifyImage(image, attestor, { cluster, registry, signal }) {
      const subject = toSubject(image)
      const id = idOf(subject, attestor, cluster)
      const known = verdicts.get(id, now())
      if (known !== undefined) return known
      const examined =
        attestor.kind === 'notary'
          ? examineNotary(image.descriptor, subject, registry, {
              attestor,
              now: now(),
              thorough,
              revocation,
            })
          : examineCosign(subject, attestor, {
              found: found.of(sourceSession(registry, attestor)),
              check: createCheck(attestor, { keys, trusts, kms, now, signal }),
              thorough,
            })
      const verification = await examined.catch(couldNotTell)
      keep(verdicts, id, verification, now())
      return verification
    },
  }
}

/** What a verdict is kept under. */
function idOf({ repository, digest }: Subject, attestor: Attestor, cluster: string): string {
  return JSON.stringify([cluster, attestor.hash, repository.host, repository.repository, digest])
}

/** The contract is "never throws", so even a fault of our own becomes a verdict. */
function couldNotTell(thrown: unknown): Verification {
  const error = toAdmissionError(thrown, 'verifying signatures')
  return { status: 'inconclusive', error, candidates: [] }
}

/** A copy made before the first await. */
function toSubject({ repository, descriptor }: ResolvedImage): Subject {
  const { host, repository: name } = repository
  return { repository: { host, repository: name }, digest: descriptor.digest }
}

/**
 * Yes for long, no for a moment because a signature may be pushed next, "could not tell" not at all, unless there is too much to look
 * at: that will be so a moment later, and takes longest to find out.
 */
function keep(
  verdicts: Cache<Verification>,
  id: string,
  verification: Verification,
  now: number,
): void {
  const { status } = verification
  if (status === 'inconclusive' && verification.error.code !== 'REGISTRY_TOO_LARGE') return
  const ttl = status === 'verified' ? FACT_TTL_MS : REJECTION_TTL_MS
  const candidates = verification.candidates.slice(0, MAX_CACHED_CANDIDATES)
  verdicts.set(id, { ...verification, candidates }, now + ttl)
}

async function examineCosign(
  about: Subject,
  attestor: CosignAttestor,
  { found, check, thorough }: { found: Finder; check: Check; thorough: boolean },
): Promise<Verification> {
  const { digest } = about
  demandSha256(digest)
  const subject = subjectOf(about, attestor)
  const tag = signatureTag(digest, subject.tagPrefix)
  const wanted = [SIGN_PREDICATE, ...(attestor.predicateTypes ?? [])]
  const results = await untilVerified(
    [
      examineLayout(
        { source: 'tag', where: tag, find: () => found.underTag(subject), check },
        thorough,
      ),
      examineLayout(
        {
          source: 'bundle',
          where: `referrers of ${digest}`,
          find: () => found.amongReferrers(subject, wanted),
          check,
        },
        thorough,
      ),
    ],
    thorough,
  )
  const { host, repository } = storeOf(subject)
  const place = subject.store === undefined ? '' : ` in ${host}/${repository}`
  const where = `neither tag ${tag} nor a Sigstore bundle among its referrers${place}`
  return conclude(about, results, where)
}

interface NotaryExamination {
  attestor: NotaryAttestor
  now: number
  thorough: boolean
  revocation: RevocationLoader | undefined
}

/** Envelopes, certificates and timestamps are a module of their own that a deployment without such an attestor never loads. */
async function examineNotary(
  descriptor: Descriptor,
  subject: Subject,
  registry: RegistrySession,
  { attestor, now, thorough, revocation }: NotaryExamination,
): Promise<Verification> {
  demandSha256(subject.digest)
  const { mediaType, size } = descriptor
  const artifact = { mediaType, digest: subject.digest, size }
  const { notaryLayout } = await import('./notary/image.ts')
  const layout = notaryLayout(attestor, { artifact, subject, registry, now, revocation })
  const result = await examineLayout(layout, thorough)
  return conclude(subject, [result], 'no Notary Project signature among its referrers')
}

function demandSha256(digest: string): void {
  if (digestBytes(digest) !== undefined) return
  throw new AdmissionError('REGISTRY_RESPONSE_INVALID', 'image digest is not sha256')
}

/**
 * The results so far once one has verified, else all of them: a referrers API that stalls must not hold up an image
 * whose tag signature is good.
 */
function untilVerified(
  layouts: readonly Promise<LayoutResult>[],
  thorough: boolean,
): Promise<readonly LayoutResult[]> {
  if (thorough) return Promise.all(layouts)
  return new Promise((resolve) => {
    const results: LayoutResult[] = []
    for (const layout of layouts) {
      void layout.then((result) => {
        results.push(result)
        if (result.signer !== undefined || results.length === layouts.length) {
          resolve(results.toSorted((a, b) => (a.source < b.source ? 1 : -1)))
        }
      })
    }
  })
}

function conclude(subject: Subject, results: readonly LayoutResult[], where: string): Verification {
  const candidates = results.flatMap((result) => result.candidates)
  const signer = results.find((result) => result.signer !== undefined)?.signer
  if (signer !== undefined) return { status: 'verified', signer, candidates }
  const error = results.find((result) => result.fault !== undefined)?.fault
  if (error !== undefined) return { status: 'inconclusive', error, candidates }
  const omitted = results.reduce((sum, result) => sum + result.omitted, 0)
  const reason = explain(subject, candidates, omitted, where)
  if (omitted === 0) return { status: 'rejected', reason, candidates }
  // One of those that were not looked at may be what is asked for, and anybody who may push can put others before it.
  const beyond = new AdmissionError('REGISTRY_TOO_LARGE', reason)
  return { status: 'inconclusive', error: beyond, candidates }
}

/** Says which digest was looked up: a signature of an index does not cover its platform manifests. */
function explain(
  { repository, digest }: Subject,
  candidates: readonly Candidate[],
  omitted: number,
  where: string,
): string {
  const image = `${repository.host}/${repository.repository}@${digest}`
  const shown = candidates.slice(0, 3).map(({ location, detail }) => `${location}: ${detail}`)
  const hidden = candidates.length - shown.length
  return [
    candidates.length === 0
      ? `no signature found for ${image}: ${where}`
      : `none of ${candidates.length} signatures of ${image} counts: ${shown.join('; ')}`,
    ...(hidden > 0 ? [`${hidden} more`] : []),
    ...(omitted > 0 ? [`at least ${omitted} beyond the bound were not looked at`] : []),
  ].join('; ')
}
