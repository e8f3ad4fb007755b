import type { HostAnswer, HostCall } from '../cel/types.ts'
import type { JsonValue } from '../json.ts'
import { MAX_HOST_CALLS } from '../limits.ts'
import type { FactSet } from '../outcome/facts.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { AttestedBlob } from '../signature/types.ts'
import {
  type About,
  attestorsOf,
  type Found,
  failure,
  isGood,
  isUncovered,
  keyOf,
  type Named,
  passKey,
  TOO_MANY,
  uncovered,
  unknownOf,
  unusableOf,
  type Who,
} from './call-parts.ts'
import { describe, type Inconclusive } from './inconclusive.ts'
import type { RareCalls } from './rare-calls.ts'
import { type Asked, type Learned, type Material, type Settled, SettledCalls } from './settled.ts'

export type { Asked, Learned, Material, Settled } from './settled.ts'

/** One thing to find out: what an attestor signed or attested, what is in a sealed blob, the data of an image, whether its tag is its digest, what surrounds the request, or what texts are known by. */
export type Question =
  | ({ kind: 'signature' } & Asked)
  | ({ kind: 'attestation'; attestation: string } & Asked)
  | ({ kind: 'payload'; attestation: string; blob: AttestedBlob } & Asked)
  | { kind: 'data'; policy: CompiledPolicy; image: string }
  | { kind: 'tag'; policy: CompiledPolicy; image: string }
  | { kind: 'context'; policy: CompiledPolicy; call: HostCall }
  | { kind: 'material'; texts: readonly string[] }

/** Whether signatures that could not be checked are left out of a count, or counted as if they were good. */
export type Bound = 'low' | 'high'

/** One evaluation of a policy from its beginning. */
export interface Pass {
  bound: Bound
  /** Collects what could not be told and was left out of, or counted in, an answer. */
  seen: Inconclusive[]
  /** Attestors asked so far, by image and attestation, in their order: only what they attest may be extracted. */
  asked: Map<string, Map<string, Who>>
}

/** How a ledger answers what is not known yet. */
export interface LedgerOptions {
  /** True when only the seal may answer (`onMissing: deny`). A blob that it names may still be fetched: by its digest it proves itself. */
  sealedOnly: boolean
}

/** Everything the host calls of one request have asked and learned. Lives as long as the request. */
export class CallLedger {
  readonly #settled = new SettledCalls()
  /** By the texts in JSON. */
  readonly #materials = new Map<string, Material>()
  readonly #pending = new Map<string, Question>()
  readonly #attempted = new Set<string>()
  readonly #verified = new Set<string>()
  readonly #facts: FactSet
  readonly #options: LedgerOptions
  #count = 0
  #rare: RareCalls | undefined
  #wantsRare = false

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

  /** The calls that few policies make; loaded where a question of theirs was asked. */
  get rare(): RareCalls | undefined {
    return this.#rare
  }

  /** True when a call was made that had to wait for the code that answers it. Then that is there now. */
  async loadRare(): Promise<boolean> {
    if (!this.#wantsRare || this.#rare !== undefined) return false
    const { RareCalls } = await import('./rare-calls.ts')
    this.#rare = new RareCalls({
      facts: this.#facts,
      sealedOnly: this.#options.sealedOnly,
      countFor: (...call) => this.#countFor(...call),
      lookUp: (asked) => this.#lookUp(asked),
      ask: (key, question) => this.#ask(key, question),
    })
    return true
  }

  settleMaterial(texts: readonly string[], hash: string): void {
    this.#materials.set(JSON.stringify(texts), { texts, hash })
  }

  settle(asked: Asked, result: Exclude<Settled, { status: 'sealed' | 'uncovered' }>): void {
    this.#settled.set(asked, result)
  }

  /** What was learned about an image for a policy: its signatures, then its attestations, by attestor. */
  learned(policy: CompiledPolicy, image: string): readonly Learned[] {
    return this.#settled.about(policy, image)
  }

  /** Whether any policy of this request tried to verify this exact image string, and whether one succeeded. */
  evidence(image: string): 'verified' | 'attempted' | 'none' {
    if (this.#verified.has(image)) return 'verified'
    return this.#attempted.has(image) ? 'attempted' : 'none'
  }

  /**
   * Answers one host call of a policy from what is known, or notes what must be found out and answers `pending`. What could not
   * be found out is an error, except that a policy with `moreNeverHurts` gets the count without it, or with it under `high`, where
   * another attestor's is good; the pass collects what such an answer rests on.
   */
  answer(policy: CompiledPolicy, call: HostCall, pass: Pass): HostAnswer {
    if (call.name !== 'verifyImageSignatures') {
      this.#wantsRare = true
      return this.#rare?.answer(policy, call, pass) ?? { kind: 'pending' }
    }
    const [image, attestors] = call.args
    if (typeof image !== 'string') return failure(`${call.name}: the image is not a string`)
    return this.#countFor(call.name, { policy, image }, attestors, pass)
  }

  #countFor(name: string, about: About, attestors: JsonValue | undefined, pass: Pass): HostAnswer {
    const { policy, image, attestation } = about
    const named = attestorsOf(policy, attestors)
    if (named === undefined) return failure(`${name}: the attestors are not a list of attestors`)
    const known = named.map((each) => this.#identify(each))
    const who = known.filter((each) => typeof each === 'object')
    if (attestation !== undefined) noteAsked(pass, image, attestation, who)
    const found = known.map((each) =>
      typeof each === 'object' ? this.#lookUp({ ...about, ...each }) : each,
    )
    if (found.includes('too many')) return TOO_MANY
    if (found.includes('pending')) return { kind: 'pending' }
    this.#record(image, found)
    if (found.every(isGood)) return { kind: 'value', value: found.length }
    const unusable = unusableOf(who, found)
    if (unusable !== undefined) return unusable
    const count = found.filter(isGood).length
    const isLenient = policy.moreNeverHurts
    if (found.some(isUncovered) && !isLenient) return failure(uncovered(image))
    const unknown = unknownOf(about, who, found)
    if (unknown.length === 0) return { kind: 'value', value: count }
    if (count === 0 || !isLenient) return failure(`could not verify ${describe(unknown)}`)
    pass.seen.push(...unknown)
    return { kind: 'value', value: pass.bound === 'low' ? count : count + unknown.length }
  }

  /** What texts are known by takes a moment to find out. */
  #identify({ attestor, texts }: Named): Who | 'pending' | 'too many' {
    if (texts === undefined) return { attestor }
    const json = JSON.stringify(texts)
    const material = this.#materials.get(json)
    if (material === undefined) return this.#ask(`material|${json}`, { kind: 'material', texts })
    return { attestor, material }
  }

  #lookUp(asked: Asked): Found {
    const known = this.#settled.get(asked)
    if (known !== undefined) return known
    const sealed = this.#sealed(asked)
    if (sealed !== undefined) {
      this.#settled.set(asked, sealed)
      return sealed
    }
    const { attestation } = asked
    return this.#ask(
      keyOf(asked),
      attestation === undefined
        ? { kind: 'signature', ...asked }
        : { kind: 'attestation', ...asked, attestation },
    )
  }

  #sealed({ policy, image, attestor, attestation, material }: Asked): Settled | undefined {
    const fact = this.#facts.find({
      policyHash: policy.hash,
      function: attestation === undefined ? 'verifyImageSignatures' : 'verifyAttestationSignatures',
      image,
      attestor,
      attestation,
      material: material?.hash,
    })
    if (fact === undefined) return this.#options.sealedOnly ? { status: 'uncovered' } : undefined
    return { status: 'sealed', ...(fact.payload === undefined ? {} : { blob: fact.payload }) }
  }

  /** Beyond the bound nothing is asked any more: the same call gets the same answer in every round. */
  #ask(key: string, question: Question): 'pending' | 'too many' {
    if (this.#pending.has(key)) return 'pending'
    if (this.#count >= MAX_HOST_CALLS) return 'too many'
    this.#count++
    this.#pending.set(key, question)
    return 'pending'
  }

  /** Evidence counts real successes only, whichever bound is tried; it never goes back (specs 3.9). */
  #record(image: string, found: readonly Found[]): void {
    if (found.length === 0) return
    this.#attempted.add(image)
    if (found.some(isGood)) this.#verified.add(image)
  }
}

/** A new pass. */
export function newPass(bound: Bound): Pass {
  return { bound, seen: [], asked: new Map() }
}

function noteAsked(pass: Pass, image: string, attestation: string, who: readonly Who[]) {
  const key = passKey(image, attestation)
  const all = pass.asked.get(key) ?? new Map<string, Who>()
  for (const each of who) {
    all.set(JSON.stringify([each.attestor, each.material?.hash ?? null]), each)
  }
  pass.asked.set(key, all)
}
