import { sha256, toHex, utf8 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { canonicalJson, type JsonValue } from '../json.ts'
import { importVerifyingKey } from './key.ts'
import { parseKmsReference } from './kms-reference.ts'
import { publicKeyFromPem } from './pem.ts'
import type { CosignKeyAttestor, HashAlgorithm } from './types.ts'

/** What every `attestors[].cosign` of a policy may have beside its signer. */
export type CosignOptions = Pick<
  CosignKeyAttestor,
  'name' | 'annotations' | 'source' | 'predicateTypes' | 'trust'
>

/** `attestors[].cosign.key` of a policy. Exactly one of `data` and `kms` is set. */
export interface CosignKeyFields extends CosignOptions {
  /** PEM public key. */
  data?: string
  /** A reference of a key service: `awskms://`, `hashivault://`. */
  kms?: string
  hashAlgorithm?: HashAlgorithm
}

/**
 * The attestor a policy's key fields describe, with its hash. The key or reference is checked here, when the policy
 * loads: throws `KEY_INVALID`, `KMS_REFERENCE_INVALID`, or `POLICY_UNSUPPORTED` for another key service.  What the trust holds is not.
 */
export async function createCosignKeyAttestor(fields: CosignKeyFields): Promise<CosignKeyAttestor> {
  const { data, kms, hashAlgorithm, ...options } = fields
  const key = await checkKey(data, kms)
  const hash = hashAlgorithm === undefined ? {} : { hashAlgorithm }
  return withHash({ kind: 'cosign-key', key, ...hash, ...options })
}

async function checkKey(
  data: string | undefined,
  kms: string | undefined,
): Promise<CosignKeyAttestor['key']> {
  if (data !== undefined && kms === undefined) {
    await importVerifyingKey(publicKeyFromPem(data))
    return { data }
  }
  if (kms !== undefined && data === undefined) {
    parseKmsReference(kms)
    return { kms }
  }
  const found = data === undefined ? 'neither' : 'both'
  throw new AdmissionError(
    'KEY_INVALID',
    `cosign.key: found ${found} of data and kms, expected one`,
  )
}

/** The attestor with the hash of everything but its name. */
export async function withHash<A extends { name: string }>(
  attestor: A,
): Promise<A & { hash: string }> {
  const { name: _, ...content } = attestor
  // Strings, and lists and records of them: an attestor is serialisable.
  const text = canonicalJson(content as unknown as JsonValue)
  return { ...attestor, hash: toHex(await sha256(utf8(text))) }
}
