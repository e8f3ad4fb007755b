import type { Cache } from '../cache.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { quote, type SignedContent } from './content.ts'
import type { Checked } from './examine.ts'
import { importVerifyingKey, type SignatureAlgorithm, type VerifyingKey } from './key.ts'
import type { KmsKeys } from './kms.ts'
import { publicKeyFromPem } from './pem.ts'
import type { SigstoreMaterial } from './sigstore/attestor.ts'
import type { SigstoreSigner } from './sigstore/types.ts'
import type { CheckStep, CosignAttestor, CosignKeyAttestor, HashAlgorithm } from './types.ts'

/** Finds out whether the attestor made a signature. Never rejects. */
export type Check = (content: SignedContent) => Promise<Checked>

/** A yes by a key, with what KMS has to know to confirm it. */
type CheckedByKey =
  | (Checked & { kind: 'yes'; algorithm: SignatureAlgorithm })
  | (Checked & { kind: 'no' })

/** Where keys and trust come from. */
export interface KeySources {
  keys: Cache<VerifyingKey>
  /** By the hash of the attestor. */
  trusts: Cache<SigstoreMaterial>
  /** Epoch milliseconds. */
  now: () => number
  kms: KmsKeys
  signal: AbortSignal
}

/** The check for one cosign attestor in one request: who signed, who witnessed it, and what the signer said beside it. */
export function createCheck(attestor: CosignAttestor, sources: KeySources): Check {
  return async (content) => {
    try {
      const checked = await (attestor.kind === 'cosign-key'
        ? checkByKey(content, attestor, sources)
        : checkBySigstore(content, attestor, undefined, sources))
      return checked.kind === 'yes' ? checkAnnotations(checked, content, attestor) : checked
    } catch (thrown) {
      const part = attestor.kind === 'cosign-key' ? 'key of attestor' : 'attestor'
      const error = toAdmissionError(thrown, `${part} ${attestor.name}`)
      return { kind: 'no-key', error }
    }
  }
}

/** The signature first, which costs least; then who has seen it, then what only KMS may say. */
async function checkByKey(
  content: SignedContent,
  attestor: CosignKeyAttestor,
  sources: KeySources,
): Promise<Checked> {
  const { key: source, hash, hashAlgorithm, trust } = attestor
  const { kms, signal } = sources
  const key =
    'kms' in source
      ? await kms.publicKey(source.kms, signal)
      : await importOnce(sources.keys, hash, source.data)
  const byKey = await checkWith(key, content, hashAlgorithm)
  if (byKey.kind !== 'yes') return byKey
  const signer = 'kms' in source ? `${source.kms} (${byKey.signer})` : byKey.signer
  const wanted = { key, ...(hashAlgorithm === undefined ? {} : { hashAlgorithm }) }
  const checked: Checked =
    trust === undefined ? byKey : await checkBySigstore(content, attestor, wanted, sources)
  if (checked.kind !== 'yes') return checked
  const { algorithm } = byKey
  if (!('kms' in source) || (await kms.confirm(source.kms, { ...content, algorithm }, signal))) {
    return { ...checked, signer }
  }
  return failed(checked, 'kms', 'signature is not by this key, says KMS')
}

/** What verifies chains and logs is loaded when the first signature asks for it. */
async function checkBySigstore(
  content: SignedContent,
  attestor: CosignAttestor,
  key: Omit<SigstoreSigner & { key: VerifyingKey }, 'spki'> | undefined,
  { trusts, now }: KeySources,
): Promise<Checked> {
  const { checkSigstore } = await import('./sigstore/check.ts')
  const { trust, ...known } = await materialOf(attestor, trusts)
  const signer = key === undefined ? known.signer : { ...key, spki: key.key.spki }
  if (signer === undefined) throw new TypeError('an attestor without a signer')
  const steps: CheckStep[] = []
  const verdict = await checkSigstore(content, signer, trust, now(), (step) => steps.push(step))
  switch (verdict.status) {
    case 'verified':
      return { kind: 'yes', signer: verdict.signer, detail: WITNESSED[attestor.kind], steps }
    case 'rejected':
      return { kind: 'no', detail: verdict.reason, steps }
    case 'inconclusive':
      return { kind: 'no-key', error: verdict.error, steps }
  }
}

const WITNESSED: Readonly<Record<CosignAttestor['kind'], string>> = {
  'cosign-key': 'signature and logs verify',
  'cosign-keyless': 'signature, identity and logs verify',
  'cosign-certificate': 'signature and certificate verify',
}

/** A no after what has passed. */
function failed({ steps = [] }: Checked, check: string, detail: string): Checked {
  return { kind: 'no', detail, steps: [...steps, { check, passed: false, detail }] }
}

async function materialOf(
  attestor: CosignAttestor,
  trusts: Cache<SigstoreMaterial>,
): Promise<SigstoreMaterial> {
  const known = trusts.get(attestor.hash, 0)
  if (known !== undefined) return known
  const { loadMaterial } = await import('./sigstore/attestor.ts')
  // Attestors of one root share it, once it is loaded.
  const shared = JSON.stringify(attestor.trust ?? null)
  const material = await loadMaterial(attestor, trusts.get(shared, 0)?.trust).catch(couldNotLoad)
  const { trust } = material
  trusts.set(shared, { trust }, Number.POSITIVE_INFINITY)
  trusts.set(attestor.hash, material, Number.POSITIVE_INFINITY)
  return material
}

/** All of it was right when the policy was loaded, so what is wrong now is where this runs. */
function couldNotLoad(cause: unknown): never {
  const reason = cause instanceof Error ? cause.message : String(cause)
  const message = `signatures of this kind cannot be verified here: ${reason}`
  throw new AdmissionError('INTERNAL', message, { cause })
}

/** Only what was signed satisfies them: annotations of a layer are anybody's who may push (image-validating-policy.md 4.6). */
function checkAnnotations(
  checked: Checked,
  { annotations = {} }: SignedContent,
  attestor: CosignAttestor,
): Checked {
  const wanted = Object.entries(attestor.annotations ?? {})
  for (const [name, expected] of wanted) {
    const found = Object.hasOwn(annotations, name) ? annotations[name] : undefined
    if (found === expected) continue
    const what = `signed annotation ${JSON.stringify(name)}`
    return failed(checked, 'annotations', `${what} is ${quote(found)}, expected ${quote(expected)}`)
  }
  if (wanted.length === 0) return checked
  const detail = `signed with ${wanted.map(([name]) => name).join(', ')}`
  const passed = { check: 'annotations', passed: true, detail }
  return { ...checked, steps: [...(checked.steps ?? []), passed] }
}

async function checkWith(
  key: VerifyingKey,
  { message, signature }: SignedContent,
  hashAlgorithm: HashAlgorithm | undefined,
): Promise<CheckedByKey> {
  const algorithm = await key.verify(message, signature, hashAlgorithm)
  const step = (passed: boolean, detail: string) => [{ check: 'signature', passed, detail }]
  if (algorithm === undefined) {
    const detail = `signature is not by this ${key.name} key`
    return { kind: 'no', detail, steps: step(false, detail) }
  }
  const detail = `signature verifies (${spell(algorithm)})`
  const signer = `${key.name} key sha256:${key.fingerprint}`
  return { kind: 'yes', algorithm, signer, detail, steps: step(true, detail) }
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
