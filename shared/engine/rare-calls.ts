import type { HostAnswer, HostCall } from '../cel/types.ts'
import type { AdmissionError } from '../errors.ts'
import { type JsonValue, stringifyJson } from '../json.ts'
import type { FactSet } from '../outcome/facts.ts'
import { TAG_CALL } from '../policy/images.ts'
import { type CompiledPolicy, draftOf } from '../policy/types.ts'
import type { Attestation } from '../signature/types.ts'
import {
  type About,
  attestorOf,
  type Found,
  failure,
  isGood,
  keyOf,
  passKey,
  TOO_MANY,
  uncovered,
  unknownOf,
  unusableOf,
} from './call-parts.ts'
import type { Pass, Question } from './calls.ts'
import { describe, unread } from './inconclusive.ts'
import { readPayload } from './payload.ts'
import type { Asked, Settled } from './settled.ts'

type ContextQuestion = Question & { kind: 'context' }

/** An image whose tag is asked about, and for which policy. */
export type TaggedImage = Pick<Question & { kind: 'tag' }, 'policy' | 'image'>

/** What a ledger does for its rare calls. */
export interface LedgerCore {
  facts: FactSet
  sealedOnly: boolean
  countFor(name: string, about: About, attestors: JsonValue | undefined, pass: Pass): HostAnswer
  lookUp(asked: Asked): Found
  ask(key: string, question: Question): 'pending' | 'too many'
}

/**
 * The calls of a ledger that few policies make: attestations and what is in them, the data of images, exceptions by tag, and what surrounds
 * the request. A ledger loads it with the first of them.
 */
export class RareCalls {
  readonly #core: LedgerCore
  readonly #payloads = new Map<string, JsonValue | AdmissionError>()
  readonly #data = new Map<string, JsonValue | AdmissionError>()
  readonly #tags = new Map<string, boolean | AdmissionError>()

  constructor(core: LedgerCore) {
    this.#core = core
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
    const about = { policyHash: policy.hash, function: TAG_CALL, image, attestor: '' }
    if (this.#core.facts.find(about) !== undefined) return 'sealed'
    return this.#tags.get(tagKey(policy, image)) === true ? 'live' : undefined
  }

  /** Answers as `CallLedger.answer` does. */
  answer(policy: CompiledPolicy, call: HostCall, pass: Pass): HostAnswer {
    if (!ABOUT_IMAGES.has(call.name)) return this.#context({ kind: 'context', policy, call })
    const [image, second, third] = call.args
    if (typeof image !== 'string') return failure(`${call.name}: the image is not a string`)
    switch (call.name) {
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
    return this.#core.countFor('verifyAttestationSignatures', about, attestors, pass)
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
    const found = asked.map((who) => this.#core.lookUp({ ...about, ...who }))
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
    return this.#ask(`payload|${key}`, { kind: 'payload', ...asked, blob })
  }

  #imageData(policy: CompiledPolicy, image: string): HostAnswer {
    const key = dataKey(policy, image)
    const known = this.#data.get(key)
    if (known instanceof Error) return failure(`failed to get image data: ${known.message}`)
    if (known !== undefined) return { kind: 'value', value: known }
    if (this.#core.sealedOnly) return failure(uncovered(image))
    return this.#ask(key, { kind: 'data', policy, image })
  }

  /** Once for one policy's namespace, so that time, chance and the cluster are the same for all that is evaluated. Never sealed. */
  #context(question: ContextQuestion): HostAnswer {
    const { policy, call } = question
    const key = contextKey(policy, call)
    const known = this.#data.get(key)
    if (known instanceof Error) return failure(`${call.name}: ${known.message}`)
    if (known !== undefined) return { kind: 'value', value: known }
    return this.#ask(key, question)
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
    if (this.#core.sealedOnly) return failure(uncovered(image))
    return this.#ask(key, question)
  }

  #ask(key: string, question: Question): HostAnswer {
    return this.#core.ask(key, question) === 'pending' ? { kind: 'pending' } : TOO_MANY
  }
}

/** Host calls whose first argument is an image. All others are about what surrounds the request. */
const ABOUT_IMAGES: ReadonlySet<string> = new Set([
  'verifyAttestationSignatures',
  'extractPayload',
  'getImageData',
  TAG_CALL,
])

/** Upstream's words; of a referrer it would give one that nobody verified instead. */
function unverified(attestation: Attestation): HostAnswer {
  return failure(
    'intoto' in attestation
      ? 'failed to get payload: intoto attestation payload cannot be fetch before verifying intoto attestation'
      : 'failed to get payload: referrer attestation payload cannot be fetch before verifying referrer attestation',
  )
}

function attestationOf(
  { attestations }: CompiledPolicy,
  name: JsonValue | undefined,
): Attestation | undefined {
  return attestations.find((attestation) => attestation.name === name)
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
