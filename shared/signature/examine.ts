import { AdmissionError, toAdmissionError } from '../errors.ts'
import {
  MAX_DETAIL_CHARS,
  MAX_SIGNATURE_ATTEMPTS,
  MAX_SIGNATURE_READS,
  SIGNATURE_BATCH,
} from '../limits.ts'
import { type FoundSignature, type FoundSignatures, isContentFault } from './content.ts'
import type { Candidate, CheckStep } from './types.ts'

/** What came of one layout. */
export interface LayoutResult {
  source: Candidate['source']
  signer?: string
  candidates: Candidate[]
  /** The first thing that could not be read although it might have held a good signature. */
  fault?: AdmissionError
  omitted: number
}

/** What a check says about one signature. */
export type Checked = (
  | { kind: 'yes'; signer: string; detail: string }
  | { kind: 'no'; detail: string }
  /** Nobody can be asked; trying further signatures would only wait again. */
  | { kind: 'no-key'; error: AdmissionError }
) & {
  /** What was checked on the way, the deciding check included; that alone when nothing is given. */
  steps?: readonly CheckStep[]
}

/** One place where signatures of a kind may be, and how to look at them. */
export interface Layout<Content> {
  source: Candidate['source']
  /** For people: `referrers of sha256:…`. */
  where: string
  find(): Promise<FoundSignatures<Content>>
  check(content: Content): Promise<Checked>
  /** Signatures checked at most; `MAX_SIGNATURE_ATTEMPTS` by default. */
  maxAttempts?: number
}

/**
 * Reads and checks the signatures of one layout, a few at a time, until one verifies or, with `thorough`, all of them. Never
 * rejects.
 */
export async function examineLayout<Content>(
  layout: Layout<Content>,
  thorough: boolean,
): Promise<LayoutResult> {
  const { source, where } = layout
  const result: LayoutResult = { source, candidates: [], omitted: 0 }
  try {
    const { signatures, omitted } = await layout.find()
    result.omitted = omitted
    await examineAll(signatures, result, layout, thorough)
  } catch (thrown) {
    note(
      result,
      { source, location: where },
      toAdmissionError(thrown, `looking for signatures at ${where}`),
      thorough,
    )
  }
  return result
}

async function examineAll<Content>(
  signatures: readonly FoundSignature<Content>[],
  result: LayoutResult,
  { check, maxAttempts = MAX_SIGNATURE_ATTEMPTS }: Layout<Content>,
  thorough: boolean,
): Promise<void> {
  let attempts = 0
  const examineOne = async (found: FoundSignature<Content>): Promise<Outcome<Content>> => {
    try {
      const nested = await found.nested?.()
      if (nested !== undefined) return nested
      const content = await found.read()
      if (content === undefined) return undefined
      return ++attempts > maxAttempts ? 'omitted' : await check(content)
    } catch (thrown) {
      return toAdmissionError(thrown, found.location)
    }
  }
  const queue = signatures.slice()
  for (let at = 0; at < queue.length; ) {
    const batch = queue.slice(at, Math.min(at + SIGNATURE_BATCH, MAX_SIGNATURE_READS))
    if (batch.length === 0) {
      result.omitted += queue.length - at
      return
    }
    at += batch.length
    const outcomes = await Promise.all(batch.map(examineOne))
    for (const [index, outcome] of outcomes.entries()) {
      const found = batch[index]
      if (found !== undefined) queue.push(...record(result, found, outcome, thorough))
    }
    if (result.signer !== undefined && !thorough) return
    if (outcomes.some((outcome) => isChecked(outcome) && outcome.kind === 'no-key')) return
  }
}

/** What came of one signature: checked, unreadable, several, beyond the bound, or undefined when it was none. */
type Outcome<Content> = Checked | FoundSignatures<Content> | AdmissionError | 'omitted' | undefined

function isChecked<Content>(outcome: Outcome<Content>): outcome is Checked {
  return typeof outcome === 'object' && 'kind' in outcome
}

/** Notes the outcome, and returns what is to be looked at instead. */
function record<Content>(
  result: LayoutResult,
  { location, source = result.source }: FoundSignature<Content>,
  outcome: Outcome<Content>,
  thorough: boolean,
): readonly FoundSignature<Content>[] {
  if (outcome === undefined) return []
  if (outcome === 'omitted') result.omitted++
  else if (outcome instanceof AdmissionError) note(result, { source, location }, outcome, thorough)
  else if (isChecked(outcome)) {
    const verified = outcome.kind === 'yes'
    const detail = cut(outcome.kind === 'no-key' ? spell(outcome.error) : outcome.detail)
    const candidate = { source, location, verified, detail }
    const checks = thorough ? { checks: stepsOf(outcome, detail) } : {}
    result.candidates.push({ ...candidate, ...checks })
    if (outcome.kind === 'yes') result.signer ??= outcome.signer
    if (outcome.kind === 'no-key') result.fault ??= outcome.error
  } else {
    result.omitted += outcome.omitted
    return outcome.signatures
  }
  return []
}

function stepsOf({ kind, steps }: Checked, detail: string): readonly CheckStep[] {
  const decisive = { check: 'signature', passed: kind === 'yes', detail }
  const made = (steps ?? [decisive]).map((step) => ({ ...step, detail: cut(step.detail) }))
  return [{ check: 'content', passed: true, detail: 'about this image' }, ...made]
}

/** Who can push can cause faults of content, so these are a "no"; anything else may have hidden a good signature. */
function note(
  result: LayoutResult,
  where: Pick<Candidate, 'source' | 'location'>,
  error: AdmissionError,
  thorough: boolean,
): void {
  const isContent = isContentFault(error)
  const detail = cut(isContent ? error.message : spell(error))
  const checks = thorough ? { checks: [{ check: 'content', passed: false, detail }] } : {}
  result.candidates.push({ ...where, verified: false, detail, ...checks })
  if (!isContent) result.fault ??= error
}

/** Names in a certificate are as long as somebody likes, and verdicts with their candidates are kept. */
function cut(detail: string): string {
  return detail.length > MAX_DETAIL_CHARS ? `${detail.slice(0, MAX_DETAIL_CHARS)}…` : detail
}

function spell(error: AdmissionError): string {
  return `${error.code}: ${error.message}`
}
