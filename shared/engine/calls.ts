import type { HostAnswer, HostCall } from '../cel/types.ts'
import type { AdmissionError } from '../errors.ts'
import { type JsonValue, stringifyJson } from '../json.ts'
import { MAX_HOST_CALLS } from '../limits.ts'
import type { FactSet } from '../outcome/facts.ts'
import { TAG_CALL } from '../policy/images.ts'
import { type CompiledPolicy, draftOf, type PolicyAttestor } from '../policy/types.ts'
import type { Attestation, AttestedBlob } from '../signature/types.ts'
import { describe, type Inconclusive, unread } from './inconclusive.ts'
import { readPayload } from './payload.ts'
import { type Asked, type Learned, type Material, type Settled, SettledCalls } from './settled.ts'

export type { Asked, Learned, Material, Settled } from './settled.ts'

/** Whom a call is about: an attestor by its name, and what it is in this request where expressions say so. */
type Who = Pick<Asked, 'attestor' | 'material'>
type About = Omit<Asked, keyof Who>

/** One thing to find out: what an attestor signed or attested, what is in a sealed blob, the data of an image, whether its tag is its digest, what surrounds the request, or what texts are known by. */
export type Question =
  | ({ kind: 'signature' } & Asked)
  | ({ kind: 'attestation'; attestation: string } & Asked)
  | ({ kind: 'payload'; attestation: string; blob: AttestedBlob } & Asked)
  | { kind: 'data'; policy: CompiledPolicy; image: string }
  | { kind: 'tag'; policy: CompiledPolicy; image: string }
  | { kind: 'context'; policy: CompiledPolicy; call: HostCall }
  | { kind: 'material'; texts: readonly string[] }

type ContextQuestion = Question & { kind: 'context' }

export type TaggedImage = Pick<Question & { kind: 'tag' }, 'policy' | 'image'>

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
  readonly #payloads = new Map<string, JsonValue | AdmissionError>()
  readonly #data = new Map<string, JsonValue | AdmissionError>()
  readonly #tags = new Map<string, boolean | AdmissionError>()
  /** By the texts in JSON. */
  readonly #materials = new Map<string, Material>()
  readonly #pending = new Map<string, Question>()
  readonly #attempted = new Set<string>()
  readonly #verified = new Set<string>()
  readonly #facts: FactSet
  readonly #options: LedgerOptions
  #count = 0

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

  settleMaterial(texts: readonly string[], hash: string): void {
    this.#materials.set(JSON.stringify(texts), { texts, hash })
  }

  settle(asked: Asked, result: Exclude<Settled, { status: 'sealed' | 'uncovered' }>): void {
    this.#settled.set(asked, result)
  }

  settlePayload(asked: Asked, result: JsonValue | AdmissionError): void {
    this.#payloads.set(keyOf(asked), result)
  }

  settleData(question: Question & { kind: 'data' }, result: JsonValue | AdmissionError): void {
    this.#data.set(dataKey(question.policy, question.image), result)
  }

  settleContext({ policy, call }: ContextQuestion, result: JsonValue | AdmissionError): void {
    this.#data.set(contextKey(policy, call), result)
  }

  settleTag({ policy, image }: TaggedImage, result: boolean | AdmissionError): void {
    this.#tags.set(tagKey(policy, image), result)
  }

  /** Where it is known from that the tag of an image means its digest; undefined where it is not known, or not so. */
  tag({ policy, image }: TaggedImage): 'sealed' | 'live' | undefined {
    if (this.#facts.has(policy.hash, TAG_CALL, image, '')) return 'sealed'
    return this.#tags.get(tagKey(policy, image)) === true ? 'live' : undefined
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
    if (!ABOUT_IMAGES.has(call.name)) return this.#context({ kind: 'context', policy, call })
    const [image, second, third] = call.args
    if (typeof image !== 'string') return failure(`${call.name}: the image is not a string`)
    switch (call.name) {
      case 'verifyImageSignatures':
        return this.#countFor(call.name, { policy, image }, second, pass)
      case 'verifyAttestationSignatures':
        return this.#attestations(policy, image, second, third, pass)
      case 'extractPayload':
        return this.#payload(policy, image, second, pass)
      case 'getImageData':
        return this.#imageData(policy, image)
      case TAG_CALL:
        return this.#tag({ kind: 'tag', policy, image })
      default:
        return failure(`${call.name}: no such host function`)
    }
  }

  #attestations(
    policy: CompiledPolicy,
    image: string,
    name: JsonValue | undefined,
    attestors: JsonValue | undefined,
    pass: Pass,
  ): HostAnswer {
    const attestation = attestationOf(policy, name)
    if (attestation === undefined) return failure(`attestation not found in policy: ${name}`)
    const isNotary = (each: JsonValue) => {
      const found = attestorOf(policy, each)
      return found !== undefined && draftOf(found.known).kind === 'notary'
    }
    if ('intoto' in attestation && Array.isArray(attestors) && attestors.some(isNotary)) {
      return failure('notary verifier only supports oci 1.1 referrers as attestations')
    }
    const about = { policy, image, attestation: attestation.name }
    return this.#countFor('verifyAttestationSignatures', about, attestors, pass)
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
    const name = attestation === undefined ? 'verifyImageSignatures' : 'verifyAttestationSignatures'
    const { hash } = material ?? {}
    const fact = this.#facts.find(policy.hash, name, image, attestor, attestation, hash)
    if (fact === undefined) return this.#options.sealedOnly ? { status: 'uncovered' } : undefined
    return { status: 'sealed', ...(fact.payload === undefined ? {} : { blob: fact.payload }) }
  }

  /**
   * What the first attestor attests, in the order this pass asked, that is good. Where one of them is not known, or anything before was
   * counted without being known, this might be another payload or none; then there is none, whichever bound is tried.
   */
  #payload(
    policy: CompiledPolicy,
    image: string,
    name: JsonValue | undefined,
    pass: Pass,
  ): HostAnswer {
    const attestation = attestationOf(policy, name)
    if (attestation === undefined) return failure(`attestation not found in policy: ${name}`)
    const about = { policy, image, attestation: attestation.name }
    const asked = [...(pass.asked.get(passKey(image, attestation.name))?.values() ?? [])]
    const found = asked.map((who) => this.#lookUp({ ...about, ...who }))
    if (found.includes('too many')) return TOO_MANY
    if (found.includes('pending')) return { kind: 'pending' }
    const unusable = unusableOf(asked, found)
    if (unusable !== undefined) return unusable
    const unknown = [...unknownOf(about, asked, found), ...pass.seen]
    if (unknown.length > 0) return failure(`could not verify ${describe(unknown)}`)
    const first = found.findIndex(isGood)
    const [who, good] = [asked[first], found[first]]
    if (who === undefined || typeof good !== 'object') return unverified(attestation)
    return this.#payloadOf({ ...about, ...who }, good, attestation)
  }

  #payloadOf(
    asked: Asked & { attestation: string },
    good: Settled,
    attestation: Attestation,
  ): HostAnswer {
    const key = keyOf(asked)
    if ('unread' in good && good.unread !== undefined) {
      return failure(`could not verify ${describe([unread(asked, good.unread)])}`)
    }
    if ('payload' in good && !this.#payloads.has(key)) {
      this.#payloads.set(key, readPayload(good.payload.bytes, attestation.name))
    }
    const known = this.#payloads.get(key)
    if (known instanceof Error) return failure(known.message)
    if (known !== undefined) return { kind: 'value', value: known }
    const blob = 'blob' in good ? good.blob : undefined
    if (blob === undefined) return unverified(attestation)
    const answer = this.#ask(`payload|${key}`, { kind: 'payload', ...asked, blob })
    return answer === 'pending' ? { kind: 'pending' } : TOO_MANY
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

  /** Once for one policy's namespace, so that time, chance and the cluster are the same for all that is evaluated. Never sealed. */
  #context(question: ContextQuestion): HostAnswer {
    const { policy, call } = question
    const key = contextKey(policy, call)
    const known = this.#data.get(key)
    if (known instanceof Error) return failure(`${call.name}: ${known.message}`)
    if (known !== undefined) return { kind: 'value', value: known }
    return this.#ask(key, question) === 'pending' ? { kind: 'pending' } : TOO_MANY
  }

  /** Whether an image is still exempt by its tag (`policy/exemption.ts`). Not to know it is an error, which is neither. */
  #tag(question: Question & { kind: 'tag' }): HostAnswer {
    const { policy, image } = question
    const key = tagKey(policy, image)
    const known = this.tag(question) !== undefined || this.#tags.get(key)
    if (typeof known === 'boolean') return { kind: 'value', value: known }
    if (known !== undefined) {
      return failure(
        `could not tell whether image ${image} is what its tag means: ${known.message}`,
      )
    }
    if (this.#options.sealedOnly) return failure(uncovered(image))
    return this.#ask(key, question) === 'pending' ? { kind: 'pending' } : TOO_MANY
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

/** Why the strict hand-over has no answer about an image. */
export function uncovered(image: string): string {
  return `image ${image} is not covered by the sealed outcomes of the mutate phase`
}

/** Host calls whose first argument is an image. All others are about what surrounds the request. */
const ABOUT_IMAGES: ReadonlySet<string> = new Set([
  'verifyImageSignatures',
  'verifyAttestationSignatures',
  'extractPayload',
  'getImageData',
  TAG_CALL,
])

type Found = Settled | 'pending' | 'too many'

const TOO_MANY = failure(`more than ${MAX_HOST_CALLS} checks of images for one request`)

function noteAsked(pass: Pass, image: string, attestation: string, who: readonly Who[]) {
  const key = passKey(image, attestation)
  const all = pass.asked.get(key) ?? new Map<string, Who>()
  for (const each of who) {
    all.set(JSON.stringify([each.attestor, each.material?.hash ?? null]), each)
  }
  pass.asked.set(key, all)
}

/** Upstream's words; of a referrer it would give one that nobody verified instead. */
function unverified(attestation: Attestation): HostAnswer {
  return failure(
    'intoto' in attestation
      ? 'failed to get payload: intoto attestation payload cannot be fetch before verifying intoto attestation'
      : 'failed to get payload: referrer attestation payload cannot be fetch before verifying referrer attestation',
  )
}

function isGood(found: Found): boolean {
  return typeof found === 'object' && (found.status === 'verified' || found.status === 'sealed')
}

function isUncovered(found: Found): boolean {
  return typeof found === 'object' && found.status === 'uncovered'
}

/** A policy whose attestor is none cannot say anything: that is no signature too few. */
function unusableOf(who: readonly Who[], found: readonly Found[]): HostAnswer | undefined {
  for (const [index, settled] of found.entries()) {
    if (typeof settled !== 'object' || settled.status !== 'unusable') continue
    return failure(`attestor ${who[index]?.attestor} cannot be used: ${settled.error.message}`)
  }
  return undefined
}

function unknownOf(
  { image, attestation }: About,
  who: readonly Who[],
  found: readonly Found[],
): Inconclusive[] {
  return found.flatMap((settled, index) => {
    if (typeof settled !== 'object' || settled.status !== 'inconclusive') return []
    const attestor = who[index]?.attestor ?? ''
    return [unread({ image, attestor, ...(attestation && { attestation }) }, settled.error)]
  })
}

/** An attestor as a call names it: by its name, with its texts where it has expressions. */
interface Named {
  attestor: string
  texts?: readonly string[]
}

function attestorsOf(policy: CompiledPolicy, list: JsonValue | undefined): Named[] | undefined {
  if (!Array.isArray(list)) return undefined
  const named = list.flatMap((each) => attestorOf(policy, each)?.named ?? [])
  return named.length === list.length ? named : undefined
}

/** `name`, or `[name, text, …]` exactly for one with expressions. */
function attestorOf(
  { attestors }: CompiledPolicy,
  each: JsonValue,
): { known: PolicyAttestor; named: Named } | undefined {
  const [attestor, ...texts] = Array.isArray(each) ? each : [each]
  const known = attestors.find(({ name }) => name === attestor)
  const strings = texts.filter((text) => typeof text === 'string')
  const wanted = known?.kind === 'unresolved' ? known.expressions.length : undefined
  if (known === undefined || Array.isArray(each) !== (wanted !== undefined)) return undefined
  const named = { attestor: known.name }
  if (wanted === undefined) return { known, named }
  return strings.length === wanted ? { known, named: { ...named, texts: strings } } : undefined
}

function attestationOf(
  { attestations }: CompiledPolicy,
  name: JsonValue | undefined,
): Attestation | undefined {
  return attestations.find((attestation) => attestation.name === name)
}

function keyOf({ policy, image, attestor, attestation, material }: Asked): string {
  const whose = material === undefined ? attestor : [attestor, material.hash]
  return JSON.stringify([policy.hash, image, whose, attestation ?? null])
}

function passKey(image: string, attestation: string): string {
  return JSON.stringify([image, attestation])
}

/** What one policy reads with its login is not for a policy with another. */
function dataKey({ credentials }: CompiledPolicy, image: string): string {
  return JSON.stringify(['data', credentials ?? null, image])
}

function contextKey({ namespace }: CompiledPolicy, { name, args }: HostCall): string {
  return stringifyJson(['context', namespace ?? null, name, [...args]])
}

function tagKey({ credentials }: CompiledPolicy, image: string): string {
  return JSON.stringify(['tag', credentials ?? null, image])
}

function failure(message: string): HostAnswer {
  return { kind: 'error', message }
}
