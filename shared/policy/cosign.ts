import { fromBase64, fromUtf8, sha256, toHex } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { parseReference } from '../image/reference.ts'
import { type CosignOptions, createCosignKeyAttestor } from '../signature/attestor.ts'
import { createCertificateAttestor, createKeylessAttestor } from '../signature/sigstore/attestor.ts'
import { createTrust } from '../signature/sigstore/trust.ts'
import type { CosignAttestor, SignatureSource, SigstoreTrust } from '../signature/types.ts'
import type { CosignFields, CosignSpec } from './attestors.ts'
import type { Path } from './shape.ts'

/** The rest of a tag, `sha256-<64 hex>.sig`, takes 75 of its 128 characters. */
const TAG_PREFIX = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,52}$/

/** Where trust comes from that is not in the policy: as in `LoadOptions`. */
export interface TrustSources {
  trustedRoot?: (mirror: string | undefined) => string | undefined
  tufRootHash?: (mirror: string | undefined) => string | undefined
}

/** What is wrong with a field of an attestor. */
export class FieldFault extends AdmissionError {
  /** Below the attestor's entry. */
  readonly path: Path

  constructor(path: Path, error: AdmissionError) {
    super(error.code, error.message, { cause: error })
    this.path = path
  }
}

/**
 * The attestor that `cosign` of a policy describes, with its trust resolved: nothing is looked up when an image is verified
 * (image-validating-policy.md 4.1, 4.3). `predicateTypes` are those of attestations that count as signatures. Throws FieldFault.
 */
export async function cosignAttestor(
  { name, cosign }: CosignFields,
  predicateTypes: readonly string[],
  sources: TrustSources,
): Promise<CosignAttestor> {
  const { annotations = {} } = cosign
  const source = await at(['source', 'repository'], () => sourceOf(cosign))
  const trust = await trustOf(cosign, sources)
  const options: CosignOptions = {
    name,
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(source === undefined ? {} : { source }),
    ...(predicateTypes.length === 0 ? {} : { predicateTypes }),
    ...(trust === undefined ? {} : { trust }),
  }
  if (cosign.key !== undefined) return keyAttestor(cosign.key, options)
  return cosign.keyless === undefined
    ? certificateAttestor(cosign.certificate ?? {}, options)
    : keylessAttestor(cosign.keyless, { ...options, trust: trust ?? {} })
}

async function keyAttestor(
  { data, kms, hashAlgorithm }: NonNullable<CosignSpec['key']>,
  options: CosignOptions,
): Promise<CosignAttestor> {
  const fields = {
    ...options,
    ...(data === undefined ? {} : { data }),
    ...(kms === undefined ? {} : { kms }),
    ...(hashAlgorithm === undefined ? {} : { hashAlgorithm }),
  }
  const path = ['key', kms === undefined ? 'data' : 'kms']
  return at(path, () => createCosignKeyAttestor(fields))
}

async function keylessAttestor(
  { identities, additionalExtensions = {} }: NonNullable<CosignSpec['keyless']>,
  options: CosignOptions & { trust: SigstoreTrust },
): Promise<CosignAttestor> {
  const hasExtensions = Object.keys(additionalExtensions).length > 0
  const named = identities.map(({ issuer, issuerRegExp, subject, subjectRegExp }) => ({
    ...(issuer === undefined ? {} : { issuer }),
    ...(issuerRegExp === undefined ? {} : { issuerRegExp }),
    ...(subject === undefined ? {} : { subject }),
    ...(subjectRegExp === undefined ? {} : { subjectRegExp }),
    ...(hasExtensions ? { extensions: additionalExtensions } : {}),
  }))
  return at(['keyless', 'identities'], () =>
    createKeylessAttestor({ ...options, identities: named }),
  )
}

async function certificateAttestor(
  { cert, certChain }: NonNullable<CosignSpec['certificate']>,
  options: CosignOptions,
): Promise<CosignAttestor> {
  const certificate = await pemAt(['certificate', 'cert', 'value'], cert?.value)
  const chain = await pemAt(['certificate', 'certChain', 'value'], certChain?.value)
  return at(['certificate'], () =>
    createCertificateAttestor({
      ...options,
      ...(certificate === undefined ? {} : { certificate }),
      ...(chain === undefined ? {} : { chain }),
    }),
  )
}

function sourceOf({ source = {} }: CosignSpec): SignatureSource | undefined {
  const { repository, tagPrefix, PullSecrets = [] } = source
  if (repository !== undefined) {
    parseReference(repository)
    if (/@|:[^/]*$/.test(repository)) throw invalid('a repository has neither tag nor digest')
  }
  // What is no tag with it would look like a tag without signatures.
  if (tagPrefix !== undefined && !TAG_PREFIX.test(tagPrefix)) {
    const reason = `${JSON.stringify(tagPrefix)} cannot begin a tag of a digest`
    throw new FieldFault(['cosign', 'source', 'tagPrefix'], invalid(reason))
  }
  const found = {
    ...(repository === undefined ? {} : { repository }),
    ...(tagPrefix === undefined ? {} : { tagPrefix }),
    ...(PullSecrets.length === 0 ? {} : { pullSecrets: PullSecrets.map(({ name }) => name) }),
  }
  return Object.keys(found).length === 0 ? undefined : found
}

/** Who has to have witnessed a signature, or undefined when its signer is enough. */
async function trustOf(
  cosign: CosignSpec,
  sources: TrustSources,
): Promise<SigstoreTrust | undefined> {
  const { ctlog = {}, keyless } = cosign
  const { rekorPubKey, ctLogPubKey, insecureIgnoreTlog, insecureIgnoreSCT } = ctlog
  const roots = await pemAt(['keyless', 'roots'], keyless?.roots)
  const tsaCertChain = await pemAt(['ctlog', 'tsaCertChain'], ctlog.tsaCertChain)
  const root = await rootOf(cosign, sources)
  const trust: SigstoreTrust = {
    ...(root === undefined ? {} : { root }),
    ...(roots === undefined ? {} : { roots }),
    ...(rekorPubKey === undefined ? {} : { rekorPubKey }),
    ...(ctLogPubKey === undefined ? {} : { ctLogPubKey }),
    ...(tsaCertChain === undefined ? {} : { tsaCertChain }),
    ...(insecureIgnoreTlog === true ? { ignoreTlog: true } : {}),
    ...(insecureIgnoreSCT === true ? { ignoreSct: true } : {}),
  }
  // Also a root that nothing will be verified with has to be right.
  await at(['ctlog'], () => createTrust(trust))
  const isPlainKey = keyless === undefined && cosign.certificate?.certChain?.value === undefined
  // A key proves itself, unless somebody is to say when.
  return isPlainKey && insecureIgnoreTlog === true && tsaCertChain === undefined ? undefined : trust
}

/** JSON of the trusted root, or undefined where the policy brings everything that is needed of one. */
async function rootOf(cosign: CosignSpec, sources: TrustSources): Promise<string | undefined> {
  const { tuf, trustedRoot } = cosign
  if (trustedRoot?.value !== undefined) return trustedRoot.value
  const mirror = tuf?.mirror
  const missing = missingOf(cosign)
  if (tuf === undefined && missing.length === 0) return undefined
  await at(['tuf', 'root', 'data'], () => checkTufRoot(tuf, sources))
  const root = sources.trustedRoot?.(mirror)
  if (root !== undefined) return root
  const of = mirror === undefined ? '' : ` of ${mirror}`
  const without =
    cosign.key !== undefined && missing.length > 0
      ? ', or ctlog.insecureIgnoreTlog: true for a key without a log'
      : ''
  const message = `no trusted root${of} is known, and ${missing.join(', ') || 'tuf'} needs one: run countersign trust, set trustedRoot.value${without}`
  const path = mirror === undefined ? [] : ['tuf', 'mirror']
  throw new FieldFault(['cosign', ...path], new AdmissionError('CONFIG_INVALID', message))
}

/** What is needed of a trusted root. */
function missingOf({ key, keyless, certificate, ctlog = {} }: CosignSpec): string[] {
  const { rekorPubKey, ctLogPubKey, insecureIgnoreTlog, insecureIgnoreSCT } = ctlog
  const isChain = key === undefined && (keyless ?? certificate?.certChain) !== undefined
  const needs = {
    'the authority of certificates': keyless !== undefined && keyless.roots === undefined,
    'the transparency log': insecureIgnoreTlog !== true && rekorPubKey === undefined,
    'the certificate log': isChain && insecureIgnoreSCT !== true && ctLogPubKey === undefined,
  }
  return Object.entries(needs).flatMap(([what, isMissing]) => (isMissing ? [what] : []))
}

/** A policy may name the root that its mirror's metadata descends from; whether it does was found out when it was refreshed. */
async function checkTufRoot(tuf: CosignSpec['tuf'], sources: TrustSources): Promise<void> {
  const data = tuf?.root?.data
  if (data === undefined) return
  const bytes = fromBase64(data.replace(/\s/g, ''))
  if (bytes === undefined) throw invalid('not base64')
  const known = sources.tufRootHash?.(tuf?.mirror)
  if (known === toHex(await sha256(bytes))) return
  throw invalid(
    known === undefined
      ? 'no TUF root of this mirror is in the config; run countersign trust'
      : 'the trusted root of this mirror descends from another TUF root',
  )
}

/** PEM, or base64 of it. */
function pemAt(path: Path, value: string | undefined): Promise<string | undefined> {
  return at(path, () => {
    if (value === undefined || value.includes('-----BEGIN ')) return value
    const bytes = fromBase64(value.replace(/\s/g, ''))
    const text = bytes === undefined ? '' : decoded(bytes)
    if (!text.includes('-----BEGIN ')) throw invalid('found neither PEM nor base64 of PEM')
    return text
  })
}

function decoded(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes)
  } catch {
    return ''
  }
}

/** What `run` gives; its fault becomes one of the field, or of the field that the message begins with. */
async function at<T>(path: Path, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (thrown) {
    if (thrown instanceof FieldFault || !(thrown instanceof AdmissionError)) throw thrown
    throw new FieldFault(['cosign', ...(namedField(thrown.message) ?? path)], thrown)
  }
}

/** Material is checked as a whole, and what is wrong is said by its field. */
function namedField(message: string): Path | undefined {
  if (message.startsWith('trusted root: ')) return ['trustedRoot', 'value']
  const [, name] = /^((?:ctlog|keyless|certificate)\.[A-Za-z]+): /.exec(message) ?? []
  if (name === undefined) return undefined
  const path = name.split('.')
  return path[0] === 'certificate' ? [...path, 'value'] : path
}

function invalid(reason: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', reason)
}
