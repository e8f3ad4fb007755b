import type { Cache } from '../cache.ts'
import type { ContextPorts } from '../cluster/types.ts'
import type { NamespaceState } from '../policy/subject.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { RegistryClient, ResolvedImage } from '../registry/types.ts'
import type { Attestor, Verifier } from '../signature/types.ts'
import type { Answers } from './answers.ts'
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
  /** Attestors of earlier requests that expressions made. */
  resolved: Cache<Attestor>
  context: () => Promise<ContextPorts>
  /** Epoch milliseconds. */
  now: () => number
}

/** What one request finds out. What finds it out is loaded with the first question: a covering seal leaves none. */
export class Inquiry {
  readonly #options: InquiryOptions
  #answers: Answers | undefined

  constructor(options: InquiryOptions) {
    this.#options = options
  }

  /** Outside calls of this request so far, for its record. */
  get calls(): Readonly<Record<string, number>> {
    return this.#answers?.calls ?? { registry: 0, kms: 0, cacheHits: 0 }
  }

  /** True for a verdict of an earlier request that this one was given. */
  isRemembered(settled: unknown): boolean {
    return this.#answers?.isRemembered(settled) ?? false
  }

  /** The manifest descriptor of an image string, resolved once per request with the logins of the policy. Throws AdmissionError. */
  async resolve(image: string, policy: CompiledPolicy): Promise<ResolvedImage> {
    return (await this.#load()).resolve(image, policy)
  }

  /** Tells the ledger the answers to all of the questions. What could not be found out is one, too. */
  async settle(questions: readonly Question[], ledger: CallLedger): Promise<void> {
    await (await this.#load()).settle(questions, ledger)
  }

  /** A namespace of the cluster, for policies that read it. */
  async namespace(name: string): Promise<NamespaceState> {
    return (await this.#load()).namespace(name)
  }

  async #load(): Promise<Answers> {
    const { Answers } = await import('./answers.ts')
    this.#answers ??= new Answers(this.#options)
    return this.#answers
  }
}
