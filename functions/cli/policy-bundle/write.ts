import type { Deployment } from '#functions/deployment.ts'
import { packPolicies } from '#functions/deployment.ts'
import { audienceOf, PAYLOAD_TYPE, POLICY_FORMAT } from '#functions/policy-bundle/payload.ts'
import { type Bytes, toBase64, utf8 } from '#shared/bytes.ts'
import { type JsonValue, stringifyJson } from '#shared/json.ts'
import { preAuthenticationEncoding } from '#shared/signature/dsse.ts'

/** When a bundle is made and how long it counts. */
export interface BundleTimes {
  sequence: number
  /** Epoch milliseconds. */
  issuedAt: number
  /** Epoch milliseconds. */
  expiresAt?: number
}

/** Signs a message with the private key of bundles. */
export interface BundleSigner {
  /** A hint for people; nobody finds a key by it. */
  keyId: string
  sign(message: Bytes): Promise<Uint8Array>
}

/** What is signed of a deployment: its policies, its pinned keys and whom they are for. The same deployment and times give the same bytes. */
export function payloadOf(
  { config, policies }: Deployment,
  { sequence, issuedAt, expiresAt }: BundleTimes,
): Bytes {
  const { pinned } = config.kms
  const payload = {
    format: POLICY_FORMAT,
    audience: audienceOf(config),
    sequence,
    issuedAt: new Date(issuedAt).toISOString(),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    ...(pinned !== undefined && { pinned }),
    ...packPolicies(policies),
  }
  // JSON by construction; interfaces just have no index signature.
  return utf8(stringifyJson(payload as unknown as JsonValue))
}

/** The text of a DSSE envelope of a payload. */
export async function signedBundle(payload: Bytes, signer: BundleSigner): Promise<string> {
  const signature = await signer.sign(preAuthenticationEncoding(PAYLOAD_TYPE, payload))
  const envelope = {
    payloadType: PAYLOAD_TYPE,
    payload: toBase64(payload),
    signatures: [{ keyid: signer.keyId, sig: toBase64(signature) }],
  }
  return `${JSON.stringify(envelope)}\n`
}
