import type { Bytes } from '../bytes.ts'
import type { SignatureAlgorithm, VerifyingKey } from './key.ts'

/** A signature that verified with the public key. */
export interface ConfirmCall {
  message: Bytes
  signature: Bytes
  algorithm: SignatureAlgorithm
}

/** A key as its service keeps it. */
export interface ServiceKey {
  /** What it is kept under in memory: the service and everything that says which key it is. */
  id: string
  /** For messages. */
  name: string
  /** Throws `KMS_REFUSED`, `KMS_UNAVAILABLE`, `DEADLINE_EXCEEDED`, or `KEY_INVALID` for a key that is not for verifying. */
  fetch(signal: AbortSignal): Promise<FetchedKey>
}

/** The public half, and the way to have the service itself verify. */
export interface FetchedKey {
  key: VerifyingKey
  /** True when the service says the signature is right. Throws as `fetch` does, and `CONFIG_INVALID` for what it cannot be asked. */
  verify(call: ConfirmCall, signal: AbortSignal): Promise<boolean>
}
