import { fromBase64, fromUtf8, sha256, toHex } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { parseReference } from '../image/reference.ts'
import { type CosignOptions, createCosignKeyAttestor } from '../signature/attestor.ts'
import { createCertificateAttestor, createKeylessAttestor } from '../signature/sigstore/attestor.ts'
import { createTrust } from '../signature/sigstore/trust.ts'
import type {
  AttestorDraft,
  CosignAttestor,
  SignatureSource,
  SigstoreTrust,
} from '../signature/types.ts'
import { type CosignFields, type CosignSpec, isGiven } from './attestors.ts'
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

/** An attestor of cosign before it is checked. */
export type CosignDraft = Exclude<AttestorDraft, { kind: 'notary' }>

/**
 * The attestor that `cosign` of a policy describes, with its trust resolved: nothing is looked up when an image is verified
 * (image-validating-policy.md 4.1, 4.3). `predicateTypes` are those of attestations that count as signatures. Throws FieldFault.
 */
export async function cosignAttestor(
  fields: CosignFields,
  predicateTypes: readonly string[],
  sources: TrustSources,
): Promise<CosignAttestor> {
  return checkedCosign(await cosignDraft(fields, predicateTypes, sources))
}

/** The attestor of a draft without gaps. Throws FieldFault. */
export async function checkedCosign(draft: CosignDraft): Promise<CosignAttestor> {
  switch (draft.kind) {
    case 'cosign-key': {
      const { key, ...fields } = draft
      const path = ['key', 'kms' in key ? 'kms' : 'data']
      return at(path, () => createCosignKeyAttestor({ ...fields, ...key }))
    }
    case 'cosign-keyless':
      return at(['keyless', 'identities'], () => createKeylessAttestor(draft))
    case 'cosign-certificate':
      return at(['certificate'], () => createCertificateAttestor(draft))
  }
}

/**
 * As `cosignAttestor`, with gaps where expressions give texts: an empty key, nothing for whatever else. Of the rest all is checked that
 * belongs to its source and its trust. Throws FieldFault.
 */
export async function cosignDraft(
  { name, cosign }: CosignFields,
  predicateTypes: readonly string[],
  sources: TrustSources,
): Promise<CosignDraft> {
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
  if (cosign.key !== undefined) return keyDraft(cosign.key, options)
  return cosign.keyless === undefined
    ? certificateDraft(cosign.certificate ?? {}, options)
    : keylessDraft(cosign.keyless, { ...options, trust: trust ?? {} })
}

function keyDraft(
  { data = '', kms, hashAlgorithm }: NonNullable<CosignSpec['key']>,
  options: CosignOptions,
): CosignDraft {
  return {
    kind: 'cosign-key',
    ...options,
    key: kms === undefined ? { data } : { kms },
    ...(hashAlgorithm === undefined ? {} : { hashAlgorithm }),
  }
}

function keylessDraft(
  { identities, additionalExtensions = {} }: NonNullable<CosignSpec['keyless']>,
  options: CosignOptions & { trust: SigstoreTrust },
): CosignDraft {
  const hasExtensions = Object.keys(additionalExtensions).length > 0
  const named = identities.map(({ issuer, issuerRegExp, subject, subjectRegExp }) => ({
    ...(issuer === undefined ? {} : { issuer }),
    ...(issuerRegExp === undefined ? {} : { issuerRegExp }),
    ...(subject === undefined ? {} : { subject }),
    ...(subjectRegExp === undefined ? {} : { subjectRegExp }),
    ...(hasExtensions ? { extensions: additionalExtensions } : {}),
  }))
  return { kind: 'cosign-keyless', ...options, identities: named }
}

async function certificateDraft(
  { cert, certChain }: NonNullable<CosignSpec['certificate']>,
  options: CosignOptions,
): Promise<CosignDraft> {
  const certificate = await pemAt(['certificate', 'cert', 'value'], cert?.value)
  const chain = await pemAt(['certificate', 'certChain', 'value'], certChain?.value)
  return {
    kind: 'cosign-certificate',
    ...options,
    ...(certificate === undefined ? {} : { certificate }),
    ...(chain === undefined ? {} : { chain }),
  }
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
  const isAwaited = cosign.trustedRoot?.expression !== undefined
  // Also a root that nothing will be verified with has to be right.
  await at(['ctlog'], () =>
    isAwaited ? createTrust({ ...trust, root: EMPTY_ROOT }, { times: 1 }) : createTrust(trust),
  )
  const isPlainKey = keyless === undefined && !isGiven(cosign.certificate?.certChain)
  // A key proves itself, unless somebody is to say when.
  const isEnough = isPlainKey && insecureIgnoreTlog === true && tsaCertChain === undefined
  return isEnough && !isAwaited ? undefined : trust
}

/** JSON of the trusted root, or undefined where the policy brings everything that is needed of one. */
async function rootOf(cosign: CosignSpec, sources: TrustSources): Promise<string | undefined> {
  const { tuf, trustedRoot } = cosign
  if (isGiven(trustedRoot)) return trustedRoot.value
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
  const isChain = key === undefined && (keyless !== undefined || isGiven(certificate?.certChain))
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

/** Stands for a trusted root that is not known yet, so that what is given beside it can be checked. */
const EMPTY_ROOT = '{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}'

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
