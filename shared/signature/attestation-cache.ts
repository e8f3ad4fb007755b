import { Cache } from '../cache.ts'
import { MAX_CACHE_ENTRIES, MAX_CACHED_PAYLOAD_BYTES } from '../limits.ts'
import type { AttestationVerification } from './types.ts'

/** Settled verdicts of one isolate with their payloads, `maxBytes` of them together: the oldest payloads go first. */
export class AttestationCache {
  readonly #verdicts = new Cache<AttestationVerification>()
  /** Bytes of the payloads by key, oldest first. */
  readonly #sizes = new Map<string, number>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number = MAX_CACHED_PAYLOAD_BYTES) {
    this.#maxBytes = maxBytes
  }

  get(key: string, now: number): AttestationVerification | undefined {
    return this.#verdicts.get(key, now)
  }

  /** Keeps a verdict until `expiresAt` (epoch milliseconds), unless its payload alone is more than a quarter of what may be kept. */
  set(key: string, verdict: AttestationVerification, expiresAt: number): void {
    this.#forget(key)
    const size = verdict.status === 'verified' ? verdict.payload.bytes.length : 0
    if (size > this.#maxBytes / 4) return
    this.#verdicts.set(key, verdict, expiresAt)
    if (size === 0) return
    this.#sizes.set(key, size)
    this.#bytes += size
    for (const oldest of this.#sizes.keys()) {
      // A verdict that ended is forgotten without its size.
      if (this.#bytes <= this.#maxBytes && this.#sizes.size <= MAX_CACHE_ENTRIES) break
      this.#forget(oldest)
    }
  }

  #forget(key: string): void {
    this.#verdicts.delete(key)
    this.#bytes -= this.#sizes.get(key) ?? 0
    this.#sizes.delete(key)
  }
}
