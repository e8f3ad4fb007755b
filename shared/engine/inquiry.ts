import { type AdmissionError, toAdmissionError } from '../errors.ts'
import { parseReference } from '../image/reference.ts'
import type { JsonValue } from '../json.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { RegistryClient, RegistrySession, ResolvedImage } from '../registry/types.ts'
import type { Verification, Verifier } from '../signature/types.ts'
import type { CallLedger, Question } from './calls.ts'

/** The parts that talk to the outside. Loaded when the first question needs them: a covering seal needs neither. */
export interface Live {
  registry: RegistryClient
  verifier: Verifier
}

/** What an inquiry of one request needs. */
export interface InquiryOptions {
  cluster: string
  signal: AbortSignal
  live: () => Promise<Live>
}

/**
 * Finds out what the ledger's programs asked for: one registry session for the request, every question at once (the session
 * itself keeps to six calls at a time). Never throws: a question that could not be answered is settled as inconclusive.
 */
export class Inquiry {
  readonly #options: InquiryOptions
  #session: RegistrySession | undefined
  #verifier: Verifier | undefined
  #kmsCallsBefore = 0
  #cacheHits = 0

  constructor(options: InquiryOptions) {
    this.#options = options
  }

  /** Outside calls of this request so far, for its record. */
  get calls(): { registry: number; kms: number; cacheHits: number } {
    return {
      registry: this.#session?.calls ?? 0,
      kms: (this.#verifier?.kmsCalls ?? 0) - this.#kmsCallsBefore,
      cacheHits: this.#cacheHits,
    }
  }

  /** The manifest descriptor of an image string, resolved once per request with the logins of the policy. Throws AdmissionError. */
  async resolve(image: string, policy: CompiledPolicy): Promise<ResolvedImage> {
    const session = await this.#open(policy)
    return session.resolve(parseReference(image))
  }

  async settle(questions: readonly Question[], ledger: CallLedger): Promise<void> {
    await Promise.all(
      questions.map(async (question) => {
        if (question.kind === 'data') ledger.settleData(question, await this.#data(question))
        else ledger.settleSignature(question, await this.#signature(question))
      }),
    )
  }

  async #signature(question: Question & { kind: 'signature' }): Promise<Verification> {
    const { policy, image } = question
    const attestor = policy.attestors.find((candidate) => candidate.name === question.attestor)
    try {
      if (attestor === undefined) throw new TypeError(`no attestor ${question.attestor}`)
      const { signal } = this.#options
      const cluster = this.#scopeOf(policy)
      const { verifier } = await this.#live()
      const known = verifier.recall(parseReference(image), attestor, cluster)
      if (known !== undefined) {
        this.#cacheHits++
        return known
      }
      const resolved = await this.resolve(image, policy)
      const registry = await this.#open(policy)
      return await verifier.verifyImage(resolved, attestor, { cluster, registry, signal })
    } catch (thrown) {
      // Also an image that is not there for us: a cluster with another login may well pull it.
      const error = toAdmissionError(thrown, `verifying ${image}`)
      return { status: 'inconclusive', error, candidates: [] }
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
