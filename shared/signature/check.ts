import type { Cache } from '../cache.ts'
import { AdmissionError, toAdmissionError, unreachable } from '../errors.ts'
import type { SignedContent } from './content.ts'
import { importVerifyingKey, type SignatureAlgorithm, type VerifyingKey } from './key.ts'
import type { KmsKeys } from './kms.ts'
import { publicKeyFromPem } from './pem.ts'
import type { KeylessTrust } from './sigstore/check.ts'
import type {
  CosignAttestor,
  CosignKeyAttestor,
  CosignKeylessAttestor,
  HashAlgorithm,
} from './types.ts'

/** Finds out whether the attestor made a signature. Never rejects. */
export type Check = (content: SignedContent) => Promise<Checked>

/** Whether the attestor made a signature. */
export type Checked =
  | { kind: 'yes'; signer: string; detail: string }
  | { kind: 'no'; detail: string }
  /** The key cannot be had; trying it on further signatures would only wait again. */
  | { kind: 'no-key'; error: AdmissionError }

/** A yes by a key, with what KMS has to know to confirm it. */
type CheckedByKey =
  | (Checked & { kind: 'yes'; algorithm: SignatureAlgorithm })
  | (Checked & { kind: 'no' })

/** Where keys and trust come from. */
export interface KeySources {
  keys: Cache<VerifyingKey>
  /** By the hash of the attestor. */
  trusts: Cache<KeylessTrust>
  /** Epoch milliseconds. */
  now: () => number
  kms: KmsKeys
  signal: AbortSignal
}

/** The check for one cosign attestor in one request. */
export function createCheck(attestor: CosignAttestor, sources: KeySources): Check {
  return async (content) => {
    try {
      switch (attestor.kind) {
        case 'cosign-key':
          return await checkByKey(content, attestor, sources)
        case 'cosign-keyless':
          return await checkByIdentity(content, attestor, sources)
        case 'cosign-certificate':
          throw new AdmissionError(
            'POLICY_UNSUPPORTED',
            'certificate attestors are not checked yet',
          )
        default:
          return unreachable(attestor)
      }
    } catch (thrown) {
      const part = attestor.kind === 'cosign-key' ? 'key of attestor' : 'attestor'
      const error = toAdmissionError(thrown, `${part} ${attestor.name}`)
      return { kind: 'no-key', error }
    }
  }
}

async function checkByKey(
  content: SignedContent,
  { key: source, hash, hashAlgorithm }: CosignKeyAttestor,
  sources: KeySources,
): Promise<Checked> {
  return 'kms' in source
    ? checkWithKms(content, source.kms, hashAlgorithm, sources)
    : checkWith(await importOnce(sources.keys, hash, source.data), content, hashAlgorithm)
}

/** What verifies chains and logs is loaded when the first bundle asks for it. */
async function checkByIdentity(
  { bundle }: SignedContent,
  attestor: CosignKeylessAttestor,
  sources: KeySources,
): Promise<Checked> {
  if (bundle === undefined) {
    // It may well be a good one: a policy that wants images unsigned must not take this for a no.
    const message = 'keyless signatures under a .sig tag cannot be verified yet'
    return { kind: 'no-key', error: new AdmissionError('POLICY_UNSUPPORTED', message) }
  }
  const { checkKeyless } = await import('./sigstore/check.ts')
  const verdict = await checkKeyless(bundle, attestor, sources)
  switch (verdict.status) {
    case 'verified':
      return { kind: 'yes', signer: verdict.signer, detail: 'signature, identity and logs verify' }
    case 'rejected':
      return { kind: 'no', detail: verdict.reason }
    case 'inconclusive':
      return { kind: 'no-key', error: verdict.error }
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
): Promise<CheckedByKey> {
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
