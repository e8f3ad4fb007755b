import type { HostAnswer, HostCall } from '../cel/types.ts'
import type { AdmissionError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import { MAX_HOST_CALLS } from '../limits.ts'
import type { FactSet } from '../outcome/facts.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { Verification } from '../signature/types.ts'

/**
 * What is known of one (image, attestor) pair in this request. `uncovered`: the seal does not say, and only the seal may be asked.
 */
export type Settled = Verification | { status: 'sealed' } | { status: 'uncovered' }

/** One thing to find out: a signature by one attestor, or the data of an image. */
export type Question =
  | { kind: 'signature'; policy: CompiledPolicy; image: string; attestor: string }
  | { kind: 'data'; policy: CompiledPolicy; image: string }

/** Whether signatures that could not be checked are left out of a count, or counted as if they were good. */
export type Bound = 'low' | 'high'

/** How a ledger answers what is not known yet. */
export interface LedgerOptions {
  /** True when only the seal may answer (`onMissing: deny`). */
  sealedOnly: boolean
}

/** Everything the host calls of one request have asked and learned. Lives as long as the request. */
export class CallLedger {
  readonly #signatures = new Map<string, Settled>()
  readonly #data = new Map<string, JsonValue | AdmissionError>()
  readonly #pending = new Map<string, Question>()
  readonly #attempted = new Set<string>()
  readonly #verified = new Set<string>()
  readonly #facts: FactSet
  readonly #options: LedgerOptions
  #asked = 0

  constructor(facts: FactSet, options: LedgerOptions) {
    this.#facts = facts
    this.#options = options
  }

  /** Questions asked since the last call of this method. */
  takePending(): Question[] {
    const questions = [...this.#pending.values()]
    this.#pending.clear()
    return questions
  }

  settleSignature(question: Question & { kind: 'signature' }, result: Settled): void {
    this.#signatures.set(signatureKey(question.policy, question.image, question.attestor), result)
  }

  settleData(question: Question & { kind: 'data' }, result: JsonValue | AdmissionError): void {
    this.#data.set(dataKey(question.policy, question.image), result)
  }

  /** What was learned of one (image, attestor) pair, or undefined when nobody asked. */
  signature(policy: CompiledPolicy, image: string, attestor: string): Settled | undefined {
    return this.#signatures.get(signatureKey(policy, image, attestor))
  }

  /** Whether any policy of this request tried to verify this exact image string, and whether one succeeded. */
  evidence(image: string): 'verified' | 'attempted' | 'none' {
    if (this.#verified.has(image)) return 'verified'
    return this.#attempted.has(image) ? 'attempted' : 'none'
  }

  /**
   * Answers one host call of a policy from what is known, or notes what must be found out and answers `pending`. What could not
   * be found out is an error, except that a policy with `moreNeverHurts` gets the count without it, or with it under `high`, where
   * another signature verified; `seen` collects what such an answer rests on.
   */
  answer(policy: CompiledPolicy, call: HostCall, bound: Bound, seen: Inconclusive[]): HostAnswer {
    const [image, attestors] = call.args
    if (typeof image !== 'string') return failure(`${call.name}: the image is not a string`)
    switch (call.name) {
      case 'verifyImageSignatures':
        return this.#signatureCount(policy, image, attestors, bound, seen)
      case 'getImageData':
        return this.#imageData(policy, image)
      default:
        return failure(`${call.name}: no such host function`)
    }
  }

  #signatureCount(
    policy: CompiledPolicy,
    image: string,
    attestors: JsonValue | undefined,
    bound: Bound,
    seen: Inconclusive[],
  ): HostAnswer {
    const names = attestorsOf(policy, attestors)
    if (names === undefined) {
      return failure('verifyImageSignatures: the attestors are not a list of attestors')
    }
    const found = names.map((attestor) => this.#lookUp(policy, image, attestor))
    if (found.includes('too many')) return TOO_MANY
    if (found.includes('pending')) return { kind: 'pending' }
    this.#record(policy, image, names)
    const count = found.filter(isGood).length
    const isLenient = policy.moreNeverHurts
    if (found.some(isUncovered) && !isLenient) return failure(uncovered(image))
    const unknown = unknownOf(image, names, found)
    if (unknown.length === 0) return { kind: 'value', value: count }
    if (count === 0 || !isLenient) return failure(`could not verify ${describe(unknown)}`)
    seen.push(...unknown)
    return { kind: 'value', value: bound === 'low' ? count : count + unknown.length }
  }

  #lookUp(policy: CompiledPolicy, image: string, attestor: string): Found {
    const key = signatureKey(policy, image, attestor)
    const known = this.#signatures.get(key)
    if (known !== undefined) return known
    if (this.#facts.has(policy.hash, 'verifyImageSignatures', image, attestor)) {
      this.#signatures.set(key, { status: 'sealed' })
      return { status: 'sealed' }
    }
    if (this.#options.sealedOnly) {
      this.#signatures.set(key, { status: 'uncovered' })
      return { status: 'uncovered' }
    }
    return this.#ask(key, { kind: 'signature', policy, image, attestor })
  }

  #imageData(policy: CompiledPolicy, image: string): HostAnswer {
    const key = dataKey(policy, image)
    const known = this.#data.get(key)
    if (known instanceof Error) return failure(`failed to get image data: ${known.message}`)
    if (known !== undefined) return { kind: 'value', value: known }
    if (this.#options.sealedOnly) return failure(uncovered(image))
    const asked = this.#ask(key, { kind: 'data', policy, image })
    return asked === 'pending' ? { kind: 'pending' } : TOO_MANY
  }

  /** Beyond the bound nothing is asked any more: the same call gets the same answer in every round. */
  #ask(key: string, question: Question): 'pending' | 'too many' {
    if (this.#pending.has(key)) return 'pending'
    if (this.#asked >= MAX_HOST_CALLS) return 'too many'
    this.#asked++
    this.#pending.set(key, question)
    return 'pending'
  }

  /** Evidence counts real successes only, whichever bound is tried; it never goes back (specs 3.9). */
  #record(policy: CompiledPolicy, image: string, attestors: readonly string[]): void {
    if (attestors.length === 0) return
    this.#attempted.add(image)
    const isProven = attestors.some((attestor) => {
      const settled = this.signature(policy, image, attestor)
      return settled !== undefined && isGood(settled)
    })
    if (isProven) this.#verified.add(image)
  }
}

/** A signature check that could not be finished, and why. */
export interface Inconclusive {
  image: string
  attestor: string
  error: AdmissionError
}

/** Inconclusive checks for a message: the first few, each once, with their faults. */
export function describe(unknown: readonly Inconclusive[]): string {
  const told = new Set(
    unknown.map(
      ({ image, attestor, error }) => `image ${image}, attestor ${attestor}: ${error.message}`,
    ),
  )
  const shown = [...told].slice(0, MAX_DESCRIBED)
  return [...shown, ...(told.size > shown.length ? [`${told.size - shown.length} more`] : [])].join(
    '; ',
  )
}

/** Checks that one message describes. The cause is mostly the same for all of them. */
const MAX_DESCRIBED = 3

type Found = Settled | 'pending' | 'too many'

const TOO_MANY = failure(`more than ${MAX_HOST_CALLS} checks of images for one request`)

/** Why the strict hand-over has no answer about an image. */
export function uncovered(image: string): string {
  return `image ${image} is not covered by the sealed outcomes of the mutate phase`
}

function isGood(found: Found): boolean {
  return typeof found === 'object' && (found.status === 'verified' || found.status === 'sealed')
}

function isUncovered(found: Found): boolean {
  return typeof found === 'object' && found.status === 'uncovered'
}

function unknownOf(
  image: string,
  names: readonly string[],
  found: readonly Found[],
): Inconclusive[] {
  return found.flatMap((settled, index) =>
    typeof settled === 'object' && settled.status === 'inconclusive'
      ? [{ image, attestor: names[index] ?? '', error: settled.error }]
      : [],
  )
}

function attestorsOf(policy: CompiledPolicy, list: JsonValue | undefined): string[] | undefined {
  if (!Array.isArray(list)) return undefined
  const names = list.filter(
    (name): name is string =>
      typeof name === 'string' && policy.attestors.some((attestor) => attestor.name === name),
  )
  return names.length === list.length ? names : undefined
}

function signatureKey(policy: CompiledPolicy, image: string, attestor: string): string {
  return JSON.stringify([policy.hash, image, attestor])
}

/** What one policy reads with its login is not for a policy with another. */
function dataKey({ credentials }: CompiledPolicy, image: string): string {
  return JSON.stringify(['data', credentials ?? null, image])
}

function failure(message: string): HostAnswer {
  return { kind: 'error', message }
}
