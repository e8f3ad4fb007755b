import { Cache } from '#shared/cache.ts'
import { AdmissionError } from '#shared/errors.ts'
import {
  LOGIN_REFUSAL_TTL_MS,
  LOGIN_SLACK_MS,
  MAX_KEPT_TOKENS,
  MAX_REGISTRY_TOKEN_TTL_MS,
} from '#shared/limits.ts'
import type { RegistryCredential } from '#shared/ports.ts'

/** A credential and when it ends, epoch milliseconds. */
export interface Login {
  credential: RegistryCredential
  expiresAt: number
}

/**
 * Logins of one isolate. Of what a request asks for twice the second waits for the first; nothing under way is shared with other
 * requests. A refusal is kept for a moment, since asking again at once would only fill the provider's log; outages are not.
 */
export class KeptLogins {
  readonly #now: () => number
  readonly #settled = new Cache<RegistryCredential | AdmissionError>(MAX_KEPT_TOKENS)
  /** By the signal of the request, which ends with it. */
  readonly #underWay = new WeakMap<AbortSignal, Map<string, Promise<RegistryCredential>>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** The credential under a key, or what `obtain` gives or throws. */
  async get(
    key: string,
    signal: AbortSignal,
    obtain: () => Promise<Login>,
  ): Promise<RegistryCredential> {
    const known = this.#settled.get(key, this.#now())
    if (known instanceof AdmissionError) throw known
    if (known !== undefined) return known
    const calls = this.#underWay.get(signal) ?? new Map<string, Promise<RegistryCredential>>()
    this.#underWay.set(signal, calls)
    const call = calls.get(key) ?? this.#obtain(key, obtain)
    calls.set(key, call)
    return call
  }

  async #obtain(key: string, obtain: () => Promise<Login>): Promise<RegistryCredential> {
    const askedAt = this.#now()
    try {
      const { credential, expiresAt } = await obtain()
      const longest = askedAt + MAX_REGISTRY_TOKEN_TTL_MS
      this.#settled.set(key, credential, Math.min(expiresAt - LOGIN_SLACK_MS, longest))
      return credential
    } catch (thrown) {
      if (thrown instanceof AdmissionError && thrown.code === 'REGISTRY_UNAUTHORIZED') {
        this.#settled.set(key, thrown, this.#now() + LOGIN_REFUSAL_TTL_MS)
      }
      throw thrown
    }
  }
}
