import pLimit from 'p-limit'
import { AdmissionError, type ErrorCode } from '../errors.ts'
import { MAX_CONTEXT_CONCURRENCY } from '../limits.ts'
import type { CallContext } from '../registry/fetch.ts'

/** What one review may ask of one side: its cluster, or the hosts of its policies' requests. */
export interface Bounds {
  /** Requests, the tries of one call counted each. */
  calls: number
  /** Of all bodies together. */
  bytes: number
  /** Of what is thrown past them: the review has had its share, however often it is tried. */
  code: ErrorCode
  /** For that message: `requests to the cluster`. */
  what: string
}

/** The share of one review: what its calls go by, and how many there were. */
export class Budget {
  readonly context: CallContext
  calls = 0
  #bytes = 0

  constructor(signal: AbortSignal, { calls, bytes, code, what }: Bounds) {
    const limit = pLimit(MAX_CONTEXT_CONCURRENCY)
    this.context = {
      signal,
      limit: (run) => limit(run),
      onRequest: () => {
        if (this.calls >= calls) {
          throw new AdmissionError(code, `more than ${calls} ${what} for one review`)
        }
        this.calls++
      },
      onBytes: (count) => {
        this.#bytes += count
        if (this.#bytes > bytes) {
          throw new AdmissionError(code, `${what} gave more than ${bytes} bytes for one review`)
        }
      },
    }
  }
}
