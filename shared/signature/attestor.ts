import { sha256, toHex, utf8 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { importVerifyingKey } from './key.ts'
import { parseKmsReference } from './kms-reference.ts'
import { publicKeyFromPem } from './pem.ts'
import type { CosignKeyAttestor, HashAlgorithm } from './types.ts'

/** `attestors[].cosign.key` of a policy. Exactly one of `data` and `kms` is set. */
export interface CosignKeyFields {
  name: string
  /** PEM public key. */
  data?: string
  /** `awskms://` reference. */
  kms?: string
  hashAlgorithm?: HashAlgorithm
}

/**
 * The attestor a policy's key fields describe, with its hash. The key or reference is checked here, when the policy
 * loads: throws `KEY_INVALID`, `KMS_REFERENCE_INVALID`, or `POLICY_UNSUPPORTED` for another key service.
 */
export async function createCosignKeyAttestor(fields: CosignKeyFields): Promise<CosignKeyAttestor> {
  const { name, hashAlgorithm } = fields
  const key = await checkKey(fields)
  const content = {
    kind: 'cosign-key' as const,
    key,
    ...(hashAlgorithm === undefined ? {} : { hashAlgorithm }),
  }
  return { ...content, name, hash: await hashOf(content) }
}

async function checkKey({ data, kms }: CosignKeyFields): Promise<CosignKeyAttestor['key']> {
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

/** Members in a fixed order, so that one attestor has one hash. */
async function hashOf(content: Omit<CosignKeyAttestor, 'name' | 'hash'>): Promise<string> {
  const { hashAlgorithm = null, key, kind } = content
  return toHex(await sha256(utf8(JSON.stringify({ hashAlgorithm, key, kind }))))
}
