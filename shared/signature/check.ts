import type { Cache } from '../cache.ts'
import { type AdmissionError, toAdmissionError } from '../errors.ts'
import type { SignedContent } from './content.ts'
import { importVerifyingKey, type SignatureAlgorithm, type VerifyingKey } from './key.ts'
import type { KmsKeys } from './kms.ts'
import { publicKeyFromPem } from './pem.ts'
import type { CosignKeyAttestor, HashAlgorithm } from './types.ts'

/** Finds out whether the attestor made a signature. Never rejects. */
export type Check = (content: SignedContent) => Promise<Checked>

/** Whether the attestor made a signature. */
export type Checked =
  | { kind: 'yes'; algorithm: SignatureAlgorithm; signer: string; detail: string }
  | { kind: 'no'; detail: string }
  /** The key cannot be had; trying it on further signatures would only wait again. */
  | { kind: 'no-key'; error: AdmissionError }

/** Where keys come from. */
export interface KeySources {
  keys: Cache<VerifyingKey>
  kms: KmsKeys
  signal: AbortSignal
}

/** The check for one key attestor in one request. */
export function createCheck(attestor: CosignKeyAttestor, sources: KeySources): Check {
  const { key: source, hash, hashAlgorithm } = attestor
  return async (content) => {
    try {
      return 'kms' in source
        ? await checkWithKms(content, source.kms, hashAlgorithm, sources)
        : await checkWith(await importOnce(sources.keys, hash, source.data), content, hashAlgorithm)
    } catch (thrown) {
      const error = toAdmissionError(thrown, `key of attestor ${attestor.name}`)
      return { kind: 'no-key', error }
    }
  }
}

async function checkWithKms(
  content: SignedContent,
  reference: string,
  hashAlgorithm: HashAlgorithm | undefined,
  { kms, signal }: KeySources,
): Promise<Checked> {
  const key = await kms.publicKey(reference, signal)
  const checked = await checkWith(key, content, hashAlgorithm)
  if (checked.kind !== 'yes') return checked
  return (await kms.confirm(reference, { ...content, algorithm: checked.algorithm }, signal))
    ? { ...checked, signer: `${reference} (${checked.signer})` }
    : { kind: 'no', detail: 'signature is not by this key, says KMS' }
}

async function checkWith(
  key: VerifyingKey,
  { message, signature }: SignedContent,
  hashAlgorithm: HashAlgorithm | undefined,
): Promise<Checked> {
  const algorithm = await key.verify(message, signature, hashAlgorithm)
  if (algorithm === undefined) {
    return { kind: 'no', detail: `signature is not by this ${key.name} key` }
  }
  return {
    kind: 'yes',
    algorithm,
    signer: `${key.name} key sha256:${key.fingerprint}`,
    detail: `signature verifies (${spell(algorithm)})`,
  }
}

/** Finding and parsing a key costs more than verifying with it, so it is imported once per isolate. */
async function importOnce(
  keys: Cache<VerifyingKey>,
  hash: string,
  pem: string,
): Promise<VerifyingKey> {
  const known = keys.get(hash, 0)
  if (known !== undefined) return known
  const key = await importVerifyingKey(publicKeyFromPem(pem))
  keys.set(hash, key, Number.POSITIVE_INFINITY)
  return key
}

function spell({ scheme, hash }: SignatureAlgorithm): string {
  return hash === undefined ? scheme : `${scheme}, ${hash}`
}
