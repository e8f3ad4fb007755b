import type { ContextSession } from '../cluster/session.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { parseReference } from '../image/reference.ts'
import type { JsonValue } from '../json.ts'
import type { NamespaceState } from '../policy/subject.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { RegistrySession, ResolvedImage } from '../registry/types.ts'
import type {
  Attestation,
  AttestationVerification,
  Attestor,
  Verification,
  Verifier,
} from '../signature/types.ts'
import type { Asked, CallLedger, Question, Settled } from './calls.ts'
import type { InquiryOptions, Live } from './inquiry.ts'
import { readPayload } from './payload.ts'
import type { TaggedImage } from './rare-calls.ts'

/**
 * Finds out what the ledger's programs asked for: one registry session for the request, every question at once (the session
 * itself keeps to six calls at a time). Never throws: a question that could not be answered is settled as inconclusive.
 */
export class Answers {
  readonly #options: InquiryOptions
  #session: RegistrySession | undefined
  #verifier: Verifier | undefined
  #kmsCallsBefore = 0
  readonly #found = new Map<string, Promise<Verification | AttestationVerification>>()
  readonly #remembered = new Set<unknown>()
  #cacheHits = 0
  #context: ContextSession | undefined

  constructor(options: InquiryOptions) {
    this.#options = options
  }

  /** Outside calls of this request so far, for its record. */
  get calls(): Readonly<Record<string, number>> {
    return {
      registry: this.#session?.calls ?? 0,
      kms: (this.#verifier?.kmsCalls ?? 0) - this.#kmsCallsBefore,
      cacheHits: this.#cacheHits,
      ...this.#context?.calls,
    }
  }

  /** True for a verdict of an earlier request that this one was given. */
  isRemembered(settled: unknown): boolean {
    return this.#remembered.has(settled)
  }

  /** The manifest descriptor of an image string, resolved once per request with the logins of the policy. Throws AdmissionError. */
  async resolve(image: string, policy: CompiledPolicy): Promise<ResolvedImage> {
    const session = await this.#open(policy)
    return session.resolve(parseReference(image))
  }

  async settle(questions: readonly Question[], ledger: CallLedger): Promise<void> {
    await Promise.all(
      questions.map(async (question) => {
        switch (question.kind) {
          case 'data':
            return ledger.rare?.settleData(question, await this.#data(question))
          case 'payload':
            return ledger.rare?.settlePayload(question, await this.#payload(question))
          case 'context':
            return ledger.rare?.settleContext(question, await this.#answer(question))
          case 'tag':
            return ledger.rare?.settleTag(question, await this.#tag(question))
          case 'material': {
            const { hashOfTexts } = await import('./unresolved.ts')
            return ledger.settleMaterial(question.texts, await hashOfTexts(question.texts))
          }
          default:
            return ledger.settle(question, await this.#verify(question))
        }
      }),
    )
  }

  /** What policies of one scope ask alike is found out once. */
  async #verify(asked: Asked): Promise<Exclude<Settled, { status: 'sealed' | 'uncovered' }>> {
    const { policy, image } = asked
    let attestor: Attestor
    try {
      attestor = await this.#attestorOf(asked)
    } catch (thrown) {
      return { status: 'unusable', error: toAdmissionError(thrown, 'reading an attestor') }
    }
    try {
      const attestation = attestationOf(asked)
      const wanted = attestation && { ...attestation, name: '' }
      const id = JSON.stringify([this.#scopeOf(policy), image, attestor.hash, wanted ?? null])
      const found = this.#found.get(id) ?? this.#verifyOnce(policy, image, attestor, attestation)
      this.#found.set(id, found)
      return await found
    } catch (thrown) {
      // Also an image that is not there for us: a cluster with another login may well pull it.
      const error = toAdmissionError(thrown, `verifying ${image}`)
      return { status: 'inconclusive', error, candidates: [] }
    }
  }

  async #verifyOnce(
    policy: CompiledPolicy,
    image: string,
    attestor: Attestor,
    attestation: Attestation | undefined,
  ): Promise<Verification | AttestationVerification> {
    const { signal } = this.#options
    const cluster = this.#scopeOf(policy)
    const { verifier } = await this.#live()
    const reference = parseReference(image)
    const known =
      attestation === undefined
        ? verifier.recall(reference, attestor, cluster)
        : verifier.recallAttestation(reference, attestation, attestor, cluster)
    if (known !== undefined) {
      this.#cacheHits++
      this.#remembered.add(known)
      return known
    }
    const resolved = await this.resolve(image, policy)
    const context = { cluster, registry: await this.#open(policy), signal }
    return attestation === undefined
      ? verifier.verifyImage(resolved, attestor, context)
      : verifier.verifyAttestation(resolved, attestation, attestor, context)
  }

  /** What is in a blob that the seal names: from an earlier verdict that is about the same blob, else from the registry, by its digest. */
  async #payload(question: Question & { kind: 'payload' }): Promise<JsonValue | AdmissionError> {
    const { policy, image, blob } = question
    try {
      const attestor = await this.#attestorOf(question)
      const attestation = attestationOf(question)
      if (attestation === undefined) throw new TypeError('no attestation')
      const { verifier } = await this.#live()
      const reference = parseReference(image)
      const scope = this.#scopeOf(policy)
      const known = verifier.recallAttestation(reference, attestation, attestor, scope)
      if (known?.status === 'verified' && known.payload.blob.digest === blob.digest) {
        this.#cacheHits++
        return readPayload(known.payload.bytes, attestation.name)
      }
      const registry = await this.#open(policy)
      const bytes = await verifier.readPayload(reference, attestation, attestor, blob, registry)
      return readPayload(bytes, attestation.name)
    } catch (thrown) {
      const { code, message } = toAdmissionError(thrown, 'reading a payload')
      return new AdmissionError(code, `failed to get payload: ${message}`)
    }
  }

  async #data({ image, policy }: Question & { kind: 'data' }): Promise<JsonValue | AdmissionError> {
    try {
      const { imageData } = await import('./image-data.ts')
      return await imageData(await this.resolve(image, policy), await this.#open(policy))
    } catch (thrown) {
      return toAdmissionError(thrown, `reading the data of ${image}`)
    }
  }

  async #answer({
    policy,
    call,
  }: Question & { kind: 'context' }): Promise<JsonValue | AdmissionError> {
    try {
      return await (await this.#surroundings()).answer(call, policy.namespace)
    } catch (thrown) {
      return toAdmissionError(thrown, call.name)
    }
  }

  /** A namespace of the cluster, for policies that read it. */
  async namespace(name: string): Promise<NamespaceState> {
    try {
      const object = await (await this.#surroundings()).namespace(name)
      return { status: 'known', object }
    } catch (thrown) {
      const { message } = toAdmissionError(thrown, 'reading the namespace')
      return {
        status: 'unknown',
        message: `namespace ${JSON.stringify(name)} is not known: ${message}`,
      }
    }
  }

  async #surroundings(): Promise<ContextSession> {
    const { context, cluster, signal, now } = this.#options
    const [{ ContextSession }, ports] = await Promise.all([
      import('../cluster/session.ts'),
      context(),
    ])
    this.#context ??= new ContextSession({ ports, cluster, signal, now })
    return this.#context
  }

  async #tag(question: TaggedImage): Promise<boolean | AdmissionError> {
    const { isTagOf } = await import('./tags.ts')
    return isTagOf(question, this)
  }

  async #attestorOf({ policy, attestor: name, material }: Asked): Promise<Attestor> {
    const known = policy.attestors.find((attestor) => attestor.name === name)
    if (known === undefined) throw new TypeError(`policy ${policy.name} has no attestor ${name}`)
    if (known.kind !== 'unresolved') return known
    if (material === undefined) throw new TypeError(`attestor ${name} without its texts`)
    const { resolved } = await import('./unresolved.ts')
    return resolved(policy, known, material, this.#options.resolved)
  }

  async #live(): Promise<Live> {
    const live = await this.#options.live()
    if (this.#verifier === undefined) {
      this.#verifier = live.verifier
      this.#kmsCallsBefore = live.verifier.kmsCalls
    }
    return live
  }

  async #open({ credentials }: CompiledPolicy): Promise<RegistrySession> {
    const { registry } = await this.#live()
    this.#session ??= registry.session(this.#options.signal)
    return credentials === undefined ? this.#session : this.#session.withCredentials(credentials)
  }

  /**
   * Whose verdicts a policy may share: those of its cluster that were found out with the same logins. Registries hide from one login what
   * they show to another, so that neither a yes nor a "no signature found" is good for both.
   */
  #scopeOf({ credentials }: CompiledPolicy): string {
    const { cluster } = this.#options
    return credentials === undefined ? cluster : JSON.stringify([cluster, credentials])
  }
}

/** The attestation that a question names, if it names one. */
function attestationOf({ policy, attestation: name }: Asked): Attestation | undefined {
  const attestation = policy.attestations.find((each) => each.name === name)
  if (name === attestation?.name) return attestation
  throw new TypeError(`policy ${policy.name} has no attestation ${name}`)
}
