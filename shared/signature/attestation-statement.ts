import { AdmissionError } from '../errors.ts'
import type { RegistrySession } from '../registry/types.ts'
import { conclude, type Examined } from './attestation-verdict.ts'
import { findBundles } from './bundle.ts'
import type { Check } from './check.ts'
import type { FoundSignature, FoundSignatures, SignedContent, Subject } from './content.ts'
import { attestationTag, findTagAttestations } from './cosign.ts'
import { examineLayout, type Layout } from './examine.ts'
import { UnwantedPredicate } from './statement.ts'
import type { AttestationVerification, Candidate, VerifiedPayload } from './types.ts'

/** What looking for statements takes. */
export interface StatementSources {
  registry: RegistrySession
  check: Check
}

/** A statement and its place among those of its layout, the one that counts most first. */
interface Ranked {
  rank: number
  content: SignedContent
}

/**
 * Whether one of the image's in-toto statements of this predicate type is by the attestor: bundles among its referrers and layers of its
 * `.att` tag (specs/signatures.md 1.2 and 1.3). Of several the one that was published last counts, as far as the layouts tell, so each is
 * read from its end; a statement of another type is passed over.
 */
export async function examineStatements(
  subject: Subject,
  predicateType: string,
  { registry, check }: StatementSources,
): Promise<AttestationVerification> {
  const { digest, tagPrefix } = subject
  const wanted = [predicateType]
  const others = new Set<string>()
  const tag = attestationTag(digest, tagPrefix)
  const examineOne = (
    source: Candidate['source'],
    where: string,
    find: () => Promise<FoundSignatures>,
  ) => examineNewestFirst({ source, where, find, others }, check)
  const examined = await Promise.all([
    examineOne('bundle', `referrers of ${digest}`, () => findBundles(subject, registry, wanted)),
    examineOne('tag', tag, () => findTagAttestations(subject, registry, wanted)),
  ])
  return conclude(examined, { subject, type: `predicate type ${predicateType}`, others })
}

async function examineNewestFirst(
  place: Pick<Layout<Ranked>, 'source' | 'where'> & {
    find: () => Promise<FoundSignatures>
    others: Set<string>
  },
  check: Check,
): Promise<Examined> {
  const payloads = new Map<number, VerifiedPayload>()
  const layout: Layout<Ranked> = {
    source: place.source,
    where: place.where,
    async find() {
      const { signatures, omitted } = await place.find()
      return {
        omitted,
        signatures: signatures.toReversed().map((found, rank) => ranked(found, rank, place.others)),
      }
    },
    async check({ rank, content }) {
      const checked = await check(content)
      if (checked.kind === 'yes') payloads.set(rank, payloadOf(content))
      return checked
    },
  }
  const result = await examineLayout(layout, false)
  const payload = payloads.get(Math.min(...payloads.keys()))
  // A listing may go on after its bound; of layers the first are left out.
  return { result, payload, isOpenEnded: place.source === 'bundle' }
}

function ranked(found: FoundSignature, rank: number, others: Set<string>): FoundSignature<Ranked> {
  return {
    location: found.location,
    async read() {
      try {
        const content = await found.read()
        // A signature of the manifest itself may be of a wanted type, but states nothing.
        return content?.statement && { rank, content }
      } catch (thrown) {
        if (!(thrown instanceof UnwantedPredicate)) throw thrown
        others.add(thrown.predicateType)
        return undefined
      }
    },
  }
}

function payloadOf({ statement, blob }: SignedContent): VerifiedPayload {
  if (statement !== undefined && blob !== undefined) {
    return { bytes: statement, blob: { digest: blob.digest, size: blob.size } }
  }
  throw new AdmissionError('INTERNAL', 'a verified attestation without its statement')
}
