import { AdmissionError } from '../errors.ts'
import type { Subject } from './content.ts'
import type { LayoutResult } from './examine.ts'
import type { AttestationVerification, Candidate, VerifiedPayload } from './types.ts'

/** What came of one place where attestations may be; the payload is that of the first which verified. */
export interface Examined {
  result: LayoutResult
  payload: VerifiedPayload | undefined
  /** True where those beyond the bound would have counted before these. */
  isOpenEnded: boolean
}

/** What was looked for, for the reason of a rejection. */
export interface Wanted {
  subject: Subject
  /** `predicate type https://…`. */
  type: string
  /** Types that were found instead. */
  others: ReadonlySet<string>
}

/** Types that a reason names, and candidates. */
const MAX_NAMED = 10
const MAX_SHOWN = 3

/** The verdict over all places, in the order in which their payloads count. */
export function conclude(examined: readonly Examined[], wanted: Wanted): AttestationVerification {
  const candidates = examined.flatMap(({ result }) => result.candidates)
  let unread: AdmissionError | undefined
  for (const { result, payload, isOpenEnded } of examined) {
    const hasOmitted = payload === undefined || isOpenEnded
    unread ??= result.fault ?? (hasOmitted ? beyond(result, wanted) : undefined)
    if (payload === undefined || result.signer === undefined) continue
    const { signer } = result
    return { status: 'verified', signer, payload, candidates, ...(unread && { unread }) }
  }
  return unread === undefined
    ? { status: 'rejected', reason: explain(candidates, wanted), candidates }
    : { status: 'inconclusive', error: unread, candidates }
}

/** One of those that were not looked at may be what is asked for, and anybody who may push can put others before it. */
function beyond({ omitted, candidates }: LayoutResult, wanted: Wanted): AdmissionError | undefined {
  if (omitted === 0) return undefined
  const reason = `${explain(candidates, wanted)}; at least ${omitted} beyond the bound were not looked at`
  return new AdmissionError('REGISTRY_TOO_LARGE', reason)
}

/** Says which digest was looked up: an attestation of an index does not cover its platform manifests. */
function explain(
  candidates: readonly Candidate[],
  { subject: { repository, digest }, type, others }: Wanted,
): string {
  const image = `${repository.host}/${repository.repository}@${digest}`
  if (candidates.length === 0) {
    const found = [...others].slice(0, MAX_NAMED).join(' ')
    return `required ${type} not found, found [${found}] for ${image}`
  }
  const shown = candidates
    .slice(0, MAX_SHOWN)
    .map(({ location, detail }) => `${location}: ${detail}`)
  const hidden = candidates.length - shown.length
  const more = hidden > 0 ? `; ${hidden} more` : ''
  return `none of ${candidates.length} attestations of ${type} of ${image} counts: ${shown.join('; ')}${more}`
}
