import { countedFaults } from '#functions/files.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'

/** What is wrong with one plan, from wherever it was found: all of it is told at once. */
export class Refusals {
  readonly #cluster: string
  readonly #thrown: AdmissionError[] = []

  constructor(cluster: string) {
    this.#cluster = cluster
  }

  /** What the work gives, or undefined where it throws an AdmissionError, which is kept. */
  async from<T>(work: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (thrown) {
      if (!(thrown instanceof AdmissionError)) throw thrown
      this.#thrown.push(thrown)
      return undefined
    }
  }

  add(faults: readonly Fault[]): void {
    if (faults.length > 0) this.#thrown.push(this.#error(faults))
  }

  get isEmpty(): boolean {
    return this.#thrown.length === 0
  }

  /** Throws `CONFIG_INVALID` with all of them; one alone as it is. */
  throwIfAny(): void {
    const [first, ...others] = this.#thrown
    if (first === undefined) return
    if (others.length === 0) throw first
    throw this.#error(this.#thrown.flatMap((each) => this.#faultsOf(each)))
  }

  #faultsOf({ faults, message }: AdmissionError): readonly Fault[] {
    return faults.length > 0 ? faults : [{ path: `cluster ${this.#cluster}`, message }]
  }

  #error(faults: readonly Fault[]): AdmissionError {
    const message = `webhooks of ${this.#cluster}: ${countedFaults(faults)}`
    return new AdmissionError('CONFIG_INVALID', message, { faults })
  }
}
