import type { Bytes } from '../bytes.ts'

/**
 * A settled host call: this function, for exactly this image string resolved to this digest, under this policy and attestor,
 * succeeded. Only successes are facts; what is not a fact is found out again.
 */
export interface Fact {
  /** Policy key: `name`, or `namespace/name`. */
  policy: string
  /** Hash of the policy's spec and everything its verdict depends on. */
  policyHash: string
  /** Host function: `verifyImageSignatures`, `verifyAttestationSignatures`, or `resolveTag` of an image that is exempt by its tag. */
  function: string
  /** The image string exactly as the object has it after our patch. */
  image: string
  /** `sha256:<64 hex>`. */
  digest: string
  attestor: string
  /** SHA-256 hex of the texts that expressions gave the attestor: exactly where it has some. Other texts are another signer. */
  material?: string
  /** Name of the attestation and the blob its payload was read from: both exactly when the function is about attestations. */
  attestation?: string
  payload?: { digest: string; size: number }
}

/** What one mutate call proved: the policies it evaluated to the end, and the facts. */
export interface Outcomes {
  policies: readonly { policy: string; policyHash: string }[]
  facts: readonly Fact[]
}

/** What a seal is bound to besides its body; recomputed from the request by whoever opens it. */
export interface SealContext {
  /** From the authenticated caller, never from the body. */
  cluster: string
  /** `group/version/resource[/subresource]` of `requestResource`. */
  resource: string
  namespace: string
  operation: string
  /** `["n", name]`, or `["g", generateName]` where the API server makes the name up. */
  name: readonly ['n' | 'g', string]
}

/** Opened outcomes, or why the seal does not count. `reason` is for the log and the audit annotation. */
export type Opened =
  | { status: 'open'; outcomes: Outcomes; issuedAt: number; expiresAt: number }
  | { status: 'absent' }
  | { status: 'refused'; reason: string }
  | { status: 'unavailable'; reason: string }

/** Status words of the readable record, as Kyverno spells them. */
export type OutcomeStatus = 'pass' | 'fail' | 'skip' | 'error'

/** One entry of `kyverno.io/image-verification-outcomes`. For people and tools; it decides nothing. */
export interface OutcomeRecord {
  name: string
  ruleType: 'ImageVerify' | 'Validation'
  message: string
  status: OutcomeStatus
  emitWarning?: boolean
  properties?: Record<string, string>
}

/** A key that makes MACs and never shows itself. */
export interface MacKey {
  /** HMAC-SHA-256 of the message, 32 bytes. */
  mac(message: Uint8Array): Bytes
}

/** MAC keys by id. Throws `SEAL_KEY_UNAVAILABLE` when the key service does not answer. */
export interface KeyRing {
  /** The key new seals are made with. `now` is epoch milliseconds. */
  current(now: number, signal: AbortSignal): Promise<{ kid: string; key: MacKey }>
  /** The key of a kid that is acceptable now (epoch −1, 0, +1, or a live ring entry), or undefined. */
  find(kid: string, now: number, signal: AbortSignal): Promise<MacKey | undefined>
}
