import type { HostAnswer, HostCall } from '../cel/types.ts'
import type { AdmissionError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import { MAX_HOST_CALLS } from '../limits.ts'
import type { FactSet } from '../outcome/facts.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type {
  Attestation,
  AttestationVerification,
  AttestedBlob,
  Verification,
} from '../signature/types.ts'
import { describe, type Inconclusive, unread } from './inconclusive.ts'
import { readPayload } from './payload.ts'

/**
 * What is known of one (image, attestor) pair in this request, or of one (image, attestation, attestor). `uncovered`: the seal does not
 * say, and only the seal may be asked.
 */
export type Settled =
  | Verification
  | AttestationVerification
  | { status: 'sealed'; blob?: AttestedBlob }
  | { status: 'uncovered' }

/** What an attestor is asked about: the signature of an image, or an attestation of the policy, by its name. */
export interface Asked {
  policy: CompiledPolicy
  image: string
  attestor: string
  attestation?: string
}

/** One thing to find out: what an attestor signed or attested, what is in a sealed blob, or the data of an image. */
export type Question =
  | ({ kind: 'signature' } & Asked)
  | ({ kind: 'attestation'; attestation: string } & Asked)
  | ({ kind: 'payload'; attestation: string; blob: AttestedBlob } & Asked)
  | { kind: 'data'; policy: CompiledPolicy; image: string }

/** Whether signatures that could not be checked are left out of a count, or counted as if they were good. */
export type Bound = 'low' | 'high'

/** One evaluation of a policy from its beginning. */
export interface Pass {
  bound: Bound
  /** Collects what could not be told and was left out of, or counted in, an answer. */
  seen: Inconclusive[]
  /** Attestors asked so far, by image and attestation, in their order: only what they attest may be extracted. */
  asked: Map<string, Set<string>>
}

/** How a ledger answers what is not known yet. */
export interface LedgerOptions {
  /** True when only the seal may answer (`onMissing: deny`). A blob that it names may still be fetched: by its digest it proves itself. */
  sealedOnly: boolean
}

/** Everything the host calls of one request have asked and learned. Lives as long as the request. */
export class CallLedger {
  readonly #settled = new Map<string, Settled>()
  readonly #payloads = new Map<string, JsonValue | AdmissionError>()
  readonly #data = new Map<string, JsonValue | AdmissionError>()
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

  settle(asked: Asked, result: Verification | AttestationVerification): void {
    this.#settled.set(keyOf(asked), result)
  }

  settlePayload(asked: Asked, result: JsonValue | AdmissionError): void {
    this.#payloads.set(keyOf(asked), result)
  }

  settleData(question: Question & { kind: 'data' }, result: JsonValue | AdmissionError): void {
    this.#data.set(dataKey(question.policy, question.image), result)
  }

  /** What was learned of one attestor, or undefined when nobody asked. */
  settled(asked: Asked): Settled | undefined {
    return this.#settled.get(keyOf(asked))
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
    const isNotary = (each: JsonValue) =>
      policy.attestors.some(({ kind, name: known }) => kind === 'notary' && known === each)
    if ('intoto' in attestation && Array.isArray(attestors) && attestors.some(isNotary)) {
      return failure('notary verifier only supports oci 1.1 referrers as attestations')
    }
    const about = { policy, image, attestation: attestation.name }
    return this.#countFor('verifyAttestationSignatures', about, attestors, pass)
  }

  #countFor(
    name: string,
    about: Omit<Asked, 'attestor'>,
    attestors: JsonValue | undefined,
    pass: Pass,
  ): HostAnswer {
    const { policy, image, attestation } = about
    const names = attestorsOf(policy, attestors)
    if (names === undefined) return failure(`${name}: the attestors are not a list of attestors`)
    if (attestation !== undefined) noteAsked(pass, image, attestation, names)
    const found = names.map((attestor) => this.#lookUp({ ...about, attestor }))
    if (found.includes('too many')) return TOO_MANY
    if (found.includes('pending')) return { kind: 'pending' }
    this.#record(image, found)
    const count = found.filter(isGood).length
    const isLenient = policy.moreNeverHurts
    if (found.some(isUncovered) && !isLenient) return failure(uncovered(image))
    const unknown = unknownOf(about, names, found)
    if (unknown.length === 0) return { kind: 'value', value: count }
    if (count === 0 || !isLenient) return failure(`could not verify ${describe(unknown)}`)
    pass.seen.push(...unknown)
    return { kind: 'value', value: pass.bound === 'low' ? count : count + unknown.length }
  }

  #lookUp(asked: Asked): Found {
    const key = keyOf(asked)
    const known = this.#settled.get(key)
    if (known !== undefined) return known
    const sealed = this.#sealed(asked)
    if (sealed !== undefined) {
      this.#settled.set(key, sealed)
      return sealed
    }
    const { attestation } = asked
    return this.#ask(
      key,
      attestation === undefined
        ? { kind: 'signature', ...asked }
        : { kind: 'attestation', ...asked, attestation },
    )
  }

  #sealed({ policy, image, attestor, attestation }: Asked): Settled | undefined {
    const name = attestation === undefined ? 'verifyImageSignatures' : 'verifyAttestationSignatures'
    const fact = this.#facts.find(policy.hash, name, image, attestor, attestation)
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
    const names = [...(pass.asked.get(passKey(image, attestation.name)) ?? [])]
    const found = names.map((attestor) => this.#lookUp({ ...about, attestor }))
    if (found.includes('too many')) return TOO_MANY
    if (found.includes('pending')) return { kind: 'pending' }
    const unknown = [...unknownOf(about, names, found), ...pass.seen]
    if (unknown.length > 0) return failure(`could not verify ${describe(unknown)}`)
    const first = found.findIndex(isGood)
    const [attestor, good] = [names[first], found[first]]
    if (attestor === undefined || typeof good !== 'object') return unverified(attestation)
    return this.#payloadOf({ ...about, attestor }, good, attestation)
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

type Found = Settled | 'pending' | 'too many'

const TOO_MANY = failure(`more than ${MAX_HOST_CALLS} checks of images for one request`)

function noteAsked(pass: Pass, image: string, attestation: string, names: readonly string[]) {
  const key = passKey(image, attestation)
  pass.asked.set(key, new Set([...(pass.asked.get(key) ?? []), ...names]))
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

function unknownOf(
  { image, attestation }: Omit<Asked, 'attestor'>,
  names: readonly string[],
  found: readonly Found[],
): Inconclusive[] {
  return found.flatMap((settled, index) => {
    if (typeof settled !== 'object' || settled.status !== 'inconclusive') return []
    const attestor = names[index] ?? ''
    return [unread({ image, attestor, ...(attestation && { attestation }) }, settled.error)]
  })
}

function attestorsOf(policy: CompiledPolicy, list: JsonValue | undefined): string[] | undefined {
  if (!Array.isArray(list)) return undefined
  const names = list.filter(
    (name): name is string =>
      typeof name === 'string' && policy.attestors.some((attestor) => attestor.name === name),
  )
  return names.length === list.length ? names : undefined
}

function attestationOf(
  { attestations }: CompiledPolicy,
  name: JsonValue | undefined,
): Attestation | undefined {
  return attestations.find((attestation) => attestation.name === name)
}

function keyOf({ policy, image, attestor, attestation }: Asked): string {
  return JSON.stringify([policy.hash, image, attestor, attestation ?? null])
}

function passKey(image: string, attestation: string): string {
  return JSON.stringify([image, attestation])
}

/** What one policy reads with its login is not for a policy with another. */
function dataKey({ credentials }: CompiledPolicy, image: string): string {
  return JSON.stringify(['data', credentials ?? null, image])
}

function failure(message: string): HostAnswer {
  return { kind: 'error', message }
}
