import { AdmissionError, toAdmissionError } from '../errors.ts'
import { MAX_SIGNATURE_ATTEMPTS, SIGNATURE_BATCH } from '../limits.ts'
import { type FoundSignature, type FoundSignatures, isContentFault } from './content.ts'
import type { Candidate } from './types.ts'

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
export type Checked =
  | { kind: 'yes'; signer: string; detail: string }
  | { kind: 'no'; detail: string }
  /** Nobody can be asked; trying further signatures would only wait again. */
  | { kind: 'no-key'; error: AdmissionError }

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
    note(result, where, toAdmissionError(thrown, `looking for signatures at ${where}`))
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
  const examineOne = async (found: FoundSignature<Content>): Promise<Outcome> => {
    try {
      const content = await found.read()
      if (content === undefined) return undefined
      return ++attempts > maxAttempts ? 'omitted' : await check(content)
    } catch (thrown) {
      return toAdmissionError(thrown, found.location)
    }
  }
  for (let at = 0; at < signatures.length; at += SIGNATURE_BATCH) {
    const batch = signatures.slice(at, at + SIGNATURE_BATCH)
    const outcomes = await Promise.all(batch.map(examineOne))
    for (const [index, outcome] of outcomes.entries()) {
      record(result, batch[index]?.location ?? '', outcome)
    }
    if (result.signer !== undefined && !thorough) return
    if (outcomes.some((outcome) => isChecked(outcome) && outcome.kind === 'no-key')) return
  }
}

/** What came of one signature: checked, unreadable, beyond the bound, or undefined when it was none. */
type Outcome = Checked | AdmissionError | 'omitted' | undefined

function isChecked(outcome: Outcome): outcome is Checked {
  return typeof outcome === 'object' && !(outcome instanceof AdmissionError)
}

function record(result: LayoutResult, location: string, outcome: Outcome): void {
  if (outcome === undefined) return
  if (outcome === 'omitted') result.omitted++
  else if (!isChecked(outcome)) note(result, location, outcome)
  else if (outcome.kind === 'no-key') noteFault(result, location, outcome.error)
  else {
    const verified = outcome.kind === 'yes'
    result.candidates.push({ source: result.source, location, verified, detail: outcome.detail })
    if (outcome.kind === 'yes') result.signer ??= outcome.signer
  }
}

function note(result: LayoutResult, location: string, error: AdmissionError): void {
  if (!isContentFault(error)) {
    noteFault(result, location, error)
    return
  }
  result.candidates.push({
    source: result.source,
    location,
    verified: false,
    detail: error.message,
  })
}

function noteFault(result: LayoutResult, location: string, error: AdmissionError): void {
  const detail = `${error.code}: ${error.message}`
  result.candidates.push({ source: result.source, location, verified: false, detail })
  result.fault ??= error
}
