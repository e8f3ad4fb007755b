import type { Bytes } from './bytes.ts'

// What the engine needs from outside, as types only. Every runtime passes its own: the engine reads no environment, opens no file and knows no
// clock. Whatever takes time takes an AbortSignal and honours it.

/** The platform's `fetch`. The engine sets `redirect: 'manual'` and its own signal on every call. */
export type FetchPort = (url: string, init: RequestInit) => Promise<Response>

/** A fetch that trusts the authorities of a PEM bundle and no others. Not every platform has one: Workers trust public ones only. */
export type TrustingFetch = (ca: string) => Promise<FetchPort>

/**
 * SHA-256 and HMAC-SHA-256 (RFC 2104) of short messages, at once: every review hashes a token and a seal, and WebCrypto hands each
 * call to another thread, which takes longer than hashing a kilobyte does. Manifests and blobs use `sha256` of `bytes.ts`.
 */
export interface HashPort {
  sha256(message: Uint8Array): Bytes
  hmacSha256(key: Uint8Array, message: Uint8Array): Bytes
}

/** One structured record for one line of the log. Holds no token, credential, signature or object body. */
export type LogPort = (record: Readonly<Record<string, unknown>>) => void

/** How to log in to a registry. `token` goes out as a Bearer token as it is; `identity` is an OAuth2 refresh token. */
export type RegistryCredential =
  | { kind: 'basic'; username: string; password: string }
  | { kind: 'token'; token: string }
  | { kind: 'identity'; token: string }

/**
 * The credential for exactly this registry host (`host[:port]`, lower case) and repository, or undefined for
 * anonymous access. Must compare hosts exactly, never by substring.
 */
export type CredentialsPort = (
  host: string,
  repository: string,
  signal: AbortSignal,
) => Promise<RegistryCredential | undefined>

/** A KMS key in one region: what an `awskms://` reference says after config has filled in the region. */
export interface KmsKey {
  /** Key id, key ARN, alias name (`alias/…`) or alias ARN. */
  keyId: string
  region: string
  /** `https://host[:port]`, only ever from the operator's allow list. */
  endpoint?: string
}

/** The answer of `GetPublicKey`. */
export interface KmsPublicKey {
  /** SubjectPublicKeyInfo, DER. */
  spki: Bytes
  /** `RSA_2048`, `ECC_NIST_P256`, `ECC_NIST_EDWARDS25519`, … */
  keySpec: string
  /** `SIGN_VERIFY` for a key that can verify. */
  keyUsage: string
  signingAlgorithms: readonly string[]
  /** The key ARN that answered, when KMS gave one. */
  keyArn?: string
}

/** A signature to be verified by KMS: of a digest, or of a short message where the algorithm takes nothing else. */
export type KmsVerification = {
  signature: Bytes
  /** `ECDSA_SHA_256`, `RSASSA_PSS_SHA_512`, `ED25519_SHA_512`, … */
  algorithm: string
} & ({ digest: Bytes } | { message: Bytes })

/**
 * A key management service. Every method throws AdmissionError only: `KMS_REFUSED` (final: not found, disabled, pending deletion,
 * access denied, wrong usage) or `KMS_UNAVAILABLE` (transient: throttled, 5xx, no answer).
 */
export interface KmsPort {
  getPublicKey(key: KmsKey, signal: AbortSignal): Promise<KmsPublicKey>
  /** True when the signature is right, false when KMS says it is not (`KMSInvalidSignatureException`). */
  verify(key: KmsKey, call: KmsVerification, signal: AbortSignal): Promise<boolean>
  /** HMAC-SHA-256 (`HMAC_SHA_256`) of the message under an HMAC key. */
  generateMac(key: KmsKey, message: Bytes, signal: AbortSignal): Promise<Bytes>
}

/** A key of a Vault transit engine: the name is from a `hashivault://` reference, everything else is the operator's. */
export interface VaultKey {
  name: string
  /** `https://host[:port]`. */
  address: string
  /** Path of the transit engine, without slashes around it. */
  mount: string
  namespace?: string
}

/** The latest version of a transit key. */
export interface VaultPublicKey {
  /** `ecdsa-p256`, `ed25519`, `rsa-2048`, … */
  type: string
  version: number
  /** As Vault spells it: PEM, or for Ed25519 the base64 of its 32 bytes. Empty when Vault shows none. */
  publicKey: string
}

/** A signature to be verified by Vault: of a digest, or of the message itself under a key that hashes on its own. */
export interface VaultVerification {
  input: Bytes
  /** What made the digest; undefined: the input is the message. */
  hash?: 'sha2-256' | 'sha2-384' | 'sha2-512'
  signature: Bytes
  /** The version of the key that is asked. */
  version: number
}

/** The transit engine of Vault or OpenBao. Throws as KmsPort does. */
export interface VaultPort {
  getPublicKey(key: VaultKey, signal: AbortSignal): Promise<VaultPublicKey>
  verify(key: VaultKey, call: VaultVerification, signal: AbortSignal): Promise<boolean>
}
