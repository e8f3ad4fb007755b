import type { Bytes } from '../bytes.ts'
import { Cache } from '../cache.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { KMS_KEY_TTL_MS, KMS_REFUSAL_TTL_MS, KMS_STALE_MS, KMS_STALE_RETRY_MS } from '../limits.ts'
import type { KmsKey, KmsPort, KmsPublicKey } from '../ports.ts'
import { HASHES, importVerifyingKey, type SignatureAlgorithm, type VerifyingKey } from './key.ts'
import { checkKmsSettings, type KmsSettings, resolveKmsKey } from './kms-reference.ts'

/** Key specs of KMS and the key each must turn out to be. A spec that is not here cannot be used. */
const KEY_SPECS: Readonly<Record<string, string>> = {
  ECC_NIST_P256: 'ECDSA P-256',
  ECC_NIST_P384: 'ECDSA P-384',
  ECC_NIST_P521: 'ECDSA P-521',
  ECC_NIST_EDWARDS25519: 'Ed25519',
  RSA_2048: 'RSA 2048',
  RSA_3072: 'RSA 3072',
  RSA_4096: 'RSA 4096',
}

/** Public keys that live in a key service. */
export interface KmsKeys {
  /**
   * The public key of a reference, from memory or from KMS. Throws `KMS_REFERENCE_INVALID`, `KMS_REFUSED`,
   * `KMS_UNAVAILABLE`, `DEADLINE_EXCEEDED`, or `KEY_INVALID` for a key that is not for verifying.
   */
  publicKey(reference: string, signal: AbortSignal): Promise<VerifyingKey>
  /**
   * True when KMS itself agrees that a signature that verified here is right; true at once unless the operator set
   * `verifyRemotely`. A disabled key is `KMS_REFUSED`, so disabling revokes, once verdicts already in memory
   * (`FACT_TTL_MS`) have run out.
   */
  confirm(reference: string, call: ConfirmCall, signal: AbortSignal): Promise<boolean>
  /** KMS requests made so far. */
  readonly calls: number
}

/** A signature that verified with the public key. */
export interface ConfirmCall {
  message: Bytes
  signature: Bytes
  algorithm: SignatureAlgorithm
}

export interface KmsKeysOptions extends KmsSettings {
  port: KmsPort
  /** Epoch milliseconds. */
  now: () => number
  /** Ask KMS about every signature that verifies locally: revocation by disabling, and a CloudTrail record. */
  verifyRemotely?: boolean
}

type Entry =
  | { kind: 'key'; key: VerifyingKey; freshUntil: number; staleUntil: number }
  | { kind: 'refused'; error: AdmissionError }

/**
 * Keys by reference with the caching rules of specs/signatures.md 4.1: a key for five minutes, a refusal for half a
 * minute, and a key past its time only while KMS throttles or does not answer, never once KMS refuses it. Throws
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
  readonly #underWay = new WeakMap<AbortSignal, Map<string, Promise<VerifyingKey>>>()
  #calls = 0

  constructor(options: KmsKeysOptions) {
    this.#options = options
  }

  get calls(): number {
    return this.#calls
  }

  async publicKey(reference: string, signal: AbortSignal): Promise<VerifyingKey> {
    const target = resolveKmsKey(reference, this.#options)
    const id = JSON.stringify([target.region, target.endpoint ?? '', target.keyId])
    const now = this.#options.now()
    const known = this.#cache.get(id, now)
    if (known?.kind === 'refused') throw known.error
    if (known !== undefined && now < known.freshUntil) return known.key
    return this.#once(id, signal, () => this.#refresh(id, target, known, signal))
  }

  async confirm(reference: string, call: ConfirmCall, signal: AbortSignal): Promise<boolean> {
    if (this.#options.verifyRemotely !== true) return true
    const target = resolveKmsKey(reference, this.#options)
    const { scheme, hash } = call.algorithm
    if (hash === undefined) {
      throw new AdmissionError(
        'CONFIG_INVALID',
        `KMS key ${target.keyId}: ${scheme} signatures cannot be verified remotely, KMS takes no digest for them`,
      )
    }
    const digest = new Uint8Array(await crypto.subtle.digest(HASHES[hash].name, call.message))
    const algorithm = `${scheme}_${hash.replace('sha', 'SHA_')}`
    this.#calls++
    return this.#options.port.verify(
      target,
      { digest, signature: call.signature, algorithm },
      signal,
    )
  }

  #once(id: string, signal: AbortSignal, call: () => Promise<VerifyingKey>): Promise<VerifyingKey> {
    const underWay = this.#underWay.get(signal) ?? new Map<string, Promise<VerifyingKey>>()
    this.#underWay.set(signal, underWay)
    const shared = underWay.get(id) ?? call().finally(() => underWay.delete(id))
    underWay.set(id, shared)
    return shared
  }

  async #refresh(
    id: string,
    target: KmsKey,
    stale: Extract<Entry, { kind: 'key' }> | undefined,
    signal: AbortSignal,
  ): Promise<VerifyingKey> {
    const { now, port } = this.#options
    try {
      this.#calls++
      const key = await toVerifyingKey(await port.getPublicKey(target, signal), target)
      const freshUntil = now() + KMS_KEY_TTL_MS
      const staleUntil = freshUntil + KMS_STALE_MS
      this.#cache.set(id, { kind: 'key', key, freshUntil, staleUntil }, staleUntil)
      return key
    } catch (thrown) {
      const error = toAdmissionError(thrown, `KMS key ${target.keyId}`)
      if (error.code === 'KMS_UNAVAILABLE' && stale !== undefined && now() < stale.staleUntil) {
        const freshUntil = Math.min(now() + KMS_STALE_RETRY_MS, stale.staleUntil)
        this.#cache.set(id, { ...stale, freshUntil }, stale.staleUntil)
        return stale.key
      }
      if (error.code === 'KMS_REFUSED' || error.code === 'KEY_INVALID') {
        this.#cache.set(id, { kind: 'refused', error }, now() + KMS_REFUSAL_TTL_MS)
      }
      throw error
    }
  }
}

async function toVerifyingKey(answer: KmsPublicKey, target: KmsKey): Promise<VerifyingKey> {
  const { spki, keySpec, keyUsage, signingAlgorithms } = answer
  if (keyUsage !== 'SIGN_VERIFY') {
    throw unfit(target, `its usage is ${keyUsage}, expected SIGN_VERIFY`)
  }
  const expected = Object.hasOwn(KEY_SPECS, keySpec) ? KEY_SPECS[keySpec] : undefined
  if (expected === undefined) {
    throw unfit(
      target,
      `key spec ${keySpec} is not supported, only ${Object.keys(KEY_SPECS).join(', ')}`,
    )
  }
  const pssOnly =
    signingAlgorithms.length > 0 && signingAlgorithms.every((name) => name.startsWith('RSASSA_PSS'))
  const key = await importVerifyingKey(spki, pssOnly ? 'RSASSA_PSS' : 'RSASSA_PKCS1_V1_5')
  if (key.name !== expected)
    throw unfit(target, `it is ${key.name} although its spec is ${keySpec}`)
  return key
}

function unfit(target: KmsKey, reason: string): AdmissionError {
  return new AdmissionError('KEY_INVALID', `KMS key ${target.keyId} in ${target.region}: ${reason}`)
}
