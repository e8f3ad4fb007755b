import { Cache } from '../cache.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { KMS_KEY_TTL_MS, KMS_REFUSAL_TTL_MS, KMS_STALE_MS, KMS_STALE_RETRY_MS } from '../limits.ts'
import type { KmsKey, KmsPort, VaultKey, VaultPort } from '../ports.ts'
import type { VerifyingKey } from './key.ts'
import { checkKmsSettings, type KmsSettings, resolveKeyReference } from './kms-reference.ts'
import type { ConfirmCall, FetchedKey, ServiceKey } from './kms-service.ts'

/** Public keys that live in a key service. */
export interface KmsKeys {
  /**
   * The public key of a reference, from memory or from KMS. Throws `KMS_REFERENCE_INVALID`, `KMS_REFUSED`,
   * `KMS_UNAVAILABLE`, `DEADLINE_EXCEEDED`, or `KEY_INVALID` for a key that is not for verifying.
   */
  publicKey(reference: string, signal: AbortSignal): Promise<VerifyingKey>
  /**
   * True when the key service itself agrees that a signature that verified here is right; true at once unless the operator set
   * `verifyRemotely`. A disabled key is `KMS_REFUSED` and its public key forgotten, so disabling revokes, once verdicts already
   * in memory (`FACT_TTL_MS`) have run out.
   */
  confirm(reference: string, call: ConfirmCall, signal: AbortSignal): Promise<boolean>
  /** KMS requests made so far. */
  readonly calls: number
}

export interface KmsKeysOptions extends KmsSettings {
  port: KmsPort
  /** Needed where `vault` is set. */
  vaultPort?: VaultPort
  /** Epoch milliseconds. */
  now: () => number
  /** Ask the service about every signature that verifies locally: revocation by disabling, and a record in its audit trail. */
  verifyRemotely?: boolean
}

type Entry =
  | { kind: 'key'; fetched: FetchedKey; freshUntil: number; staleUntil: number }
  | { kind: 'refused'; error: AdmissionError }

/**
 * Keys by reference with the caching rules of specs/signatures.md 4.1: a key for five minutes, a refusal for half a
 * minute, and a key past its time only while its service throttles or does not answer, never once that refuses it. Throws
 * `CONFIG_INVALID` when the settings are wrong.
 */
export function createKmsKeys(options: KmsKeysOptions): KmsKeys {
  checkKmsSettings(options)
  return new CachedKmsKeys(options)
}

class CachedKmsKeys implements KmsKeys {
  readonly #options: KmsKeysOptions
  readonly #cache = new Cache<Entry>()
  /** Calls under way by the signal of the request that made them: one request asks once, and never waits for another. */
  readonly #underWay = new WeakMap<AbortSignal, Map<string, Promise<FetchedKey>>>()
  #calls = 0

  constructor(options: KmsKeysOptions) {
    this.#options = options
  }

  get calls(): number {
    return this.#calls
  }

  async publicKey(reference: string, signal: AbortSignal): Promise<VerifyingKey> {
    return (await this.#have(this.#locate(reference), signal)).key
  }

  async confirm(reference: string, call: ConfirmCall, signal: AbortSignal): Promise<boolean> {
    if (this.#options.verifyRemotely !== true) return true
    const at = this.#locate(reference)
    const fetched = await this.#have(at, signal)
    this.#calls++
    try {
      return await fetched.verify(call, signal)
    } catch (thrown) {
      throw this.#noteRefusal(at, thrown)
    }
  }

  #locate(reference: string): ServiceKey {
    const target = resolveKeyReference(reference, this.#options)
    return 'keyId' in target ? this.#awsKey(target) : this.#vaultKey(target)
  }

  #awsKey(target: KmsKey): ServiceKey {
    const { keyId, region, endpoint = '' } = target
    return {
      id: JSON.stringify(['awskms', region, endpoint, keyId]),
      name: `KMS key ${keyId}`,
      fetch: async (signal) => {
        // Of the services, a function loads those that its policies name.
        const { fetchAwsKey } = await import('./kms-aws.ts')
        return fetchAwsKey(target, this.#options.port, signal)
      },
    }
  }

  #vaultKey(target: VaultKey): ServiceKey {
    const { name, address, mount, namespace = '' } = target
    return {
      id: JSON.stringify(['vault', address, namespace, mount, name]),
      name: `Vault key ${name}`,
      fetch: async (signal) => {
        const { vaultPort } = this.#options
        if (vaultPort === undefined) throw new AdmissionError('CONFIG_INVALID', 'no Vault client')
        const { fetchVaultKey } = await import('./kms-vault.ts')
        return fetchVaultKey(target, vaultPort, signal)
      },
    }
  }

  async #have(at: ServiceKey, signal: AbortSignal): Promise<FetchedKey> {
    const now = this.#options.now()
    const known = this.#cache.get(at.id, now)
    if (known?.kind === 'refused') throw known.error
    if (known !== undefined && now < known.freshUntil) return known.fetched
    return this.#once(at.id, signal, () => this.#refresh(at, known, signal))
  }

  #once(id: string, signal: AbortSignal, call: () => Promise<FetchedKey>): Promise<FetchedKey> {
    const underWay = this.#underWay.get(signal) ?? new Map<string, Promise<FetchedKey>>()
    this.#underWay.set(signal, underWay)
    const shared = underWay.get(id) ?? call().finally(() => underWay.delete(id))
    underWay.set(id, shared)
    return shared
  }

  async #refresh(
    at: ServiceKey,
    stale: Extract<Entry, { kind: 'key' }> | undefined,
    signal: AbortSignal,
  ): Promise<FetchedKey> {
    const { now } = this.#options
    try {
      this.#calls++
      const fetched = await at.fetch(signal)
      const freshUntil = now() + KMS_KEY_TTL_MS
      const staleUntil = freshUntil + KMS_STALE_MS
      this.#cache.set(at.id, { kind: 'key', fetched, freshUntil, staleUntil }, staleUntil)
      return fetched
    } catch (thrown) {
      const error = this.#noteRefusal(at, thrown)
      if (error.code !== 'KMS_UNAVAILABLE' || stale === undefined || now() >= stale.staleUntil) {
        throw error
      }
      const freshUntil = Math.min(now() + KMS_STALE_RETRY_MS, stale.staleUntil)
      this.#cache.set(at.id, { ...stale, freshUntil }, stale.staleUntil)
      return stale.fetched
    }
  }

  /** What was thrown, as an error. A refusal takes the place of the key: it must not serve again when the service is down next. */
  #noteRefusal(at: ServiceKey, thrown: unknown): AdmissionError {
    const error = toAdmissionError(thrown, at.name)
    if (error.code === 'KMS_REFUSED' || error.code === 'KEY_INVALID') {
      this.#cache.set(at.id, { kind: 'refused', error }, this.#options.now() + KMS_REFUSAL_TTL_MS)
    }
    return error
  }
}
