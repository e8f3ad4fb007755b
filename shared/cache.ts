import { MAX_CACHE_ENTRIES } from './limits.ts'

/**
 * Settled values with an expiry, at most `maxEntries` of them: the one unused for longest goes first.
 * It holds values only, never promises, so one request can never wait on another's call.
 */
export class Cache<T> {
  readonly #entries = new Map<string, { value: T; expiresAt: number }>()
  readonly #maxEntries: number

  constructor(maxEntries: number = MAX_CACHE_ENTRIES) {
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#entries.size
  }

  /** The live value of a key, or undefined. `now` is epoch milliseconds. */
  get(key: string, now: number): T | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (entry.expiresAt <= now) {
      this.#entries.delete(key)
      return undefined
    }
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Keeps a value until `expiresAt` (epoch milliseconds). */
  set(key: string, value: T, expiresAt: number): void {
    this.#entries.delete(key)
    this.#entries.set(key, { value, expiresAt })
    if (this.#entries.size > this.#maxEntries) {
      const oldest = this.#entries.keys().next().value
      if (oldest !== undefined) this.#entries.delete(oldest)
    }
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}
