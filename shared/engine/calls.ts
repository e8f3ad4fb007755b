import type { HostAnswer, HostCall } from '../cel/types.ts'
import type { AdmissionError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import { MAX_HOST_CALLS } from '../limits.ts'
import type { FactSet } from '../outcome/facts.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { Verification } from '../signature/types.ts'

/** What is known of one (image, attestor) pair in this request. */
export type Settled = Verification | { status: 'sealed' }

/** One thing to find out: a signature by one attestor, or the data of an image. */
export type Question =
  | { kind: 'signature'; policy: CompiledPolicy; image: string; attestor: string }
  | { kind: 'data'; image: string }

/** Everything the host calls of one request have asked and learned. Lives as long as the request. */
export class CallLedger {
  readonly #signatures = new Map<string, Settled>()
  readonly #data = new Map<string, JsonValue | AdmissionError>()
  readonly #pending = new Map<string, Question>()
  readonly #attempted = new Set<string>()
  readonly #verified = new Set<string>()
  readonly #facts: FactSet
  /** True when calls outside the seal are answered at once with "no" instead of being made. */
  readonly #sealedOnly: boolean
  #asked = 0

  constructor(facts: FactSet, options: { sealedOnly: boolean }) {
    this.#facts = facts
    this.#sealedOnly = options.sealedOnly
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

  settleData(image: string, result: JsonValue | AdmissionError): void {
    this.#data.set(image, result)
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
   * Answers one host call of a policy from what is known, or notes what must be found out and answers `pending`.
   * Of signatures that could not be checked beside others that verified, `assumedGood` count as good; `seen` collects them, one
   * entry for each answer that rests on any.
   */
  answer(
    policy: CompiledPolicy,
    call: HostCall,
    assumedGood: number,
    seen: Inconclusive[][],
  ): HostAnswer {
    const [image, attestors] = call.args
    if (typeof image !== 'string') return failure(`${call.name}: the image is not a string`)
    switch (call.name) {
      case 'verifyImageSignatures':
        return this.#signatureCount(policy, image, attestors, assumedGood, seen)
      case 'getImageData':
        return this.#imageData(image)
      default:
        return failure(`${call.name}: no such host function`)
    }
  }

  #signatureCount(
    policy: CompiledPolicy,
    image: string,
    attestors: JsonValue | undefined,
    assumedGood: number,
    seen: Inconclusive[][],
  ): HostAnswer {
    if (!Array.isArray(attestors)) return failure('verifyImageSignatures: attestors is not a list')
    const names: string[] = []
    const unknown: Inconclusive[] = []
    let count = 0
    let pending = false
    for (const attestor of attestors) {
      if (typeof attestor !== 'string' || !policy.attestors.some((a) => a.name === attestor)) {
        return failure('verifyImageSignatures: the list holds something that is not an attestor')
      }
      names.push(attestor)
      const settled = this.#lookUp(policy, image, attestor)
      if (settled === undefined) pending = true
      else if (settled.status === 'inconclusive') {
        unknown.push({ image, attestor, error: settled.error })
      } else if (settled.status !== 'rejected') count++
    }
    if (pending) {
      return this.#asked > MAX_HOST_CALLS
        ? failure(`more than ${MAX_HOST_CALLS} signature checks for one request`)
        : { kind: 'pending' }
    }
    this.#record(policy, image, names)
    if (unknown.length === 0) return { kind: 'value', value: count }
    // With none that verified, "could not tell" is an error of its own, which only `||` and the like can outvote.
    if (count === 0) return failure(`could not verify ${describe(unknown)}`)
    seen.push(unknown)
    return { kind: 'value', value: count + Math.min(assumedGood, unknown.length) }
  }

  #lookUp(policy: CompiledPolicy, image: string, attestor: string): Settled | undefined {
    const key = signatureKey(policy, image, attestor)
    const known = this.#signatures.get(key)
    if (known !== undefined) return known
    if (this.#facts.has(policy.hash, 'verifyImageSignatures', image, attestor)) {
      const sealed: Settled = { status: 'sealed' }
      this.#signatures.set(key, sealed)
      return sealed
    }
    if (this.#sealedOnly) {
      const rejected: Settled = {
        status: 'rejected',
        reason: 'not covered by the sealed outcomes of the mutate phase',
        candidates: [],
      }
      this.#signatures.set(key, rejected)
      return rejected
    }
    this.#asked++
    this.#pending.set(key, { kind: 'signature', policy, image, attestor })
    return undefined
  }

  #imageData(image: string): HostAnswer {
    const known = this.#data.get(image)
    if (known === undefined) {
      if (this.#sealedOnly) return failure(`getImageData: ${image} is not covered by the seal`)
      this.#asked++
      this.#pending.set(`data|${image}`, { kind: 'data', image })
      return { kind: 'pending' }
    }
    return known instanceof Error
      ? failure(`failed to get imagedata: ${known.message}`)
      : { kind: 'value', value: known }
  }

  /** Evidence counts real successes only, whichever bound is being tried; it never goes back (specs 3.9). */
  #record(policy: CompiledPolicy, image: string, attestors: readonly string[]): void {
    if (attestors.length === 0) return
    this.#attempted.add(image)
    const proven = attestors.some((attestor) => {
      const status = this.signature(policy, image, attestor)?.status
      return status === 'verified' || status === 'sealed'
    })
    if (proven) this.#verified.add(image)
  }
}

/** A signature check that could not be finished, and why. */
export interface Inconclusive {
  image: string
  attestor: string
  error: AdmissionError
}

/** Inconclusive checks for a message: each image and attestor once, with its fault. */
export function describe(unknown: readonly Inconclusive[]): string {
  const told = unknown.map(
    ({ image, attestor, error }) => `image ${image}, attestor ${attestor}: ${error.message}`,
  )
  return [...new Set(told)].join('; ')
}

function signatureKey(policy: CompiledPolicy, image: string, attestor: string): string {
  return JSON.stringify([policy.hash, image, attestor])
}

function failure(message: string): HostAnswer {
  return { kind: 'error', message }
}
