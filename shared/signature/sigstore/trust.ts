import { type Bytes, equal, fromBase64, sha256, utf8 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import {
  MAX_POLICY_CHAIN_CERTIFICATES,
  MAX_TSA_CERTIFICATES,
  MAX_TSA_INTERMEDIATES,
} from '../../limits.ts'
import { importVerifyingKey, type VerifyingKey } from '../key.ts'
import { publicKeyFromPem } from '../pem.ts'
import type { SigstoreTrust } from '../types.ts'
import type { Certificate } from '../x509/certificate.ts'
import { buildChain, isSelfIssued, keyOf } from '../x509/chain.ts'
import { CODE_SIGNING } from '../x509/leaf.ts'
import { certificatesFromPem } from '../x509/pem.ts'
import { ALWAYS, type Issuer, issuersOf, type Window } from './authority.ts'
import type { CertificateLog } from './sct.ts'
import { type StampAuthority, stampAuthority } from './stamp.ts'
import { loadTrustedRoot } from './trusted-root.ts'
import type { CertificateSigner, Thresholds } from './types.ts'

/** A transparency log whose entries count. */
export interface TransparencyLog extends Window {
  id: Bytes
  /** First four bytes of what its checkpoint signatures begin with. */
  hint: Bytes
  /** What its checkpoints are signed as: its address without the scheme. Undefined: any name. */
  name: string | undefined
  key: VerifyingKey
  /** SubjectPublicKeyInfo. */
  spki: Bytes
}

/** Whom signatures are verified against, and how many of each have to have seen one. */
export interface Trust {
  logs: readonly TransparencyLog[]
  issuers: readonly Issuer[]
  certificateLogs: readonly CertificateLog[]
  stampAuthorities: readonly StampAuthority[]
  thresholds: Thresholds
}

/**
 * What a policy says of witnesses, ready to verify; it takes milliseconds, so it is worth keeping. What stands beside the root takes the
 * place of what the root has of that kind. `thresholds` are those of `loadTrustedRoot` by default; a log entry is needed unless
 * `ignoreTlog`, and then the time is a timestamp's or now. Throws `CONFIG_INVALID` for material that cannot be read or is missing.
 */
export async function createTrust(
  trust: SigstoreTrust,
  thresholds: Partial<Thresholds> = {},
): Promise<Trust> {
  const { root: json, roots, rekorPubKey, ctLogPubKey, tsaCertChain } = trust
  const { ignoreTlog = false, ignoreSct = false } = trust
  const root = json ? await loadTrustedRoot(utf8(json), thresholds) : NOBODY
  if (!json && !rekorPubKey && !ignoreTlog) {
    throw invalid('ctlog', 'a trusted root, a key of a transparency log, or to ignore it is needed')
  }
  if (json && !rekorPubKey && !ignoreTlog && !tsaCertChain && !root.thresholds.times) {
    throw invalid('trusted root', 'neither a transparency log nor a timestamp authority is in it')
  }
  if (!json && roots && !ctLogPubKey && !ignoreSct) {
    const found = 'a trusted root, a key of a certificate log, or to ignore it is needed'
    throw invalid('keyless.roots', found)
  }
  const wanted = {
    logs: rekorPubKey ? 1 : root.thresholds.logs,
    times: rekorPubKey || tsaCertChain ? 1 : root.thresholds.times,
    certificateLogs: ctLogPubKey ? 1 : root.thresholds.certificateLogs,
    ...(ignoreTlog ? { logs: 0, times: 0 } : {}),
    ...(ignoreSct ? { certificateLogs: 0 } : {}),
    ...thresholds,
  }
  return {
    logs: ignoreTlog
      ? []
      : rekorPubKey
        ? [await logOf('ctlog.rekorPubKey', rekorPubKey)]
        : root.logs,
    issuers: roots ? await rootsOf(roots) : root.issuers,
    certificateLogs: ignoreSct
      ? []
      : ctLogPubKey
        ? [await logOf('ctlog.ctLogPubKey', ctLogPubKey)]
        : root.certificateLogs,
    stampAuthorities: tsaCertChain ? [await stampsOf(tsaCertChain)] : root.stampAuthorities,
    thresholds: wanted,
  }
}

const NOBODY: Trust = {
  logs: [],
  issuers: [],
  certificateLogs: [],
  stampAuthorities: [],
  thresholds: { logs: 0, times: 0, certificateLogs: 0 },
}

/**
 * `cosign.certificate` of a policy (specs/image-validating-policy.md 4.3): a certificate, a chain for it, or a chain that signatures bring
 * the certificate for. Self-issued authorities of the chain are its anchors, without any the last certificate is. Throws
 * `CONFIG_INVALID` for material that cannot be read, is missing or does not chain up.
 */
export async function createCertificateSigner({
  certificate,
  chain,
}: {
  certificate?: string
  chain?: string
}): Promise<CertificateSigner> {
  const [leaf] = certificate ? readPem('certificate.cert', plain(certificate)) : []
  const all = chain ? readPem('certificate.certChain', plain(chain)) : []
  if (all.length > MAX_POLICY_CHAIN_CERTIFICATES) {
    const reason = `certificate chain too long (${all.length}), maximum allowed is ${MAX_POLICY_CHAIN_CERTIFICATES}`
    throw invalid('certificate.certChain', reason)
  }
  if (leaf === undefined && all.length === 0) throw invalid('certificate', 'no certificate')
  // A chain may begin with the certificate itself.
  const above = all.filter((each) => leaf === undefined || !equal(each.der, leaf.der))
  const roots = above.filter(isSelfIssued)
  const anchors = roots.length > 0 ? roots : above.slice(-1)
  if (all.length > 0 && anchors.length === 0) {
    throw invalid('certificate.certChain', 'no certificate of an authority')
  }
  const intermediates = above.filter((each) => !anchors.includes(each))
  const signer = { anchors, intermediates }
  return leaf === undefined ? signer : { ...signer, ...(await pin(leaf, signer)) }
}

/** PEM as such, or in base64 as upstream takes it as well. */
function plain(text: string): string {
  const bytes = text.includes('-----') ? undefined : fromBase64(text.replace(/\s/g, ''))
  return bytes === undefined ? text : new TextDecoder().decode(bytes)
}

async function pin(
  leaf: Certificate,
  material: Pick<CertificateSigner, 'anchors' | 'intermediates'>,
): Promise<Pick<CertificateSigner, 'leaf' | 'chain'>> {
  try {
    await keyOf(leaf.spki)
    if (material.anchors.length === 0) return { leaf }
    const chain = await buildChain(leaf, { ...material, purpose: CODE_SIGNING })
    if (chain !== undefined) return { leaf, chain }
  } catch (cause) {
    throw asInvalid('certificate.cert', cause)
  }
  throw invalid('certificate.cert', 'a certificate that does not chain to certChain')
}

// --- what stands beside a root

async function rootsOf(pem: string): Promise<readonly Issuer[]> {
  const certificates = readPem('keyless.roots', pem)
  const issuers = await Promise.all(certificates.map((each) => issuersOf([each], ALWAYS)))
  if (issuers.some((each) => each.length === 0)) {
    throw invalid('keyless.roots', 'a certificate of no authority for code signing')
  }
  return issuers.flat()
}

/** A log of either kind, known by its key alone. */
async function logOf(field: string, pem: string): Promise<TransparencyLog> {
  try {
    const spki = publicKeyFromPem(pem)
    const id = await sha256(spki)
    const key = await importVerifyingKey(spki)
    return { id, hint: id.subarray(0, 4), name: undefined, spki, key, ...ALWAYS }
  } catch (cause) {
    throw asInvalid(field, cause)
  }
}

/** The bounds and messages are Kyverno's (specs/image-validating-policy.md 4.3). */
async function stampsOf(pem: string): Promise<StampAuthority> {
  const field = 'ctlog.tsaCertChain'
  // Counted before anything is parsed.
  const count = pem.split('-----BEGIN CERTIFICATE-----').length - 1
  if (count > MAX_TSA_CERTIFICATES) {
    const reason = `TSA certificate chain contains too many certificates (${count}), maximum allowed is ${MAX_TSA_CERTIFICATES}`
    throw invalid(field, reason)
  }
  const certificates = readPem(field, pem)
  const isAuthority = ({ basicConstraints }: Certificate) => basicConstraints?.ca === true
  const [leaf, ...more] = certificates.filter((each) => !isAuthority(each))
  if (more.length > 0) {
    throw invalid(field, 'certificate chain must contain at most one TSA certificate')
  }
  const authorities = certificates.filter(isAuthority)
  const anchors = authorities.filter(isSelfIssued)
  const intermediates = authorities.filter((each) => !isSelfIssued(each))
  if (intermediates.length > MAX_TSA_INTERMEDIATES) {
    const reason = `TSA certificate chain contains too many intermediate certificates (${intermediates.length}), maximum allowed is ${MAX_TSA_INTERMEDIATES}`
    throw invalid(field, reason)
  }
  if (anchors.length === 0) throw invalid(field, 'no root certificate')
  const parts = { leaf, intermediates, anchors, ...ALWAYS }
  const authority = await stampAuthority(parts).catch((cause) => {
    throw asInvalid(field, cause)
  })
  if (authority === undefined) throw invalid(field, 'its certificates are no chain')
  return authority
}

function readPem(field: string, pem: string): readonly Certificate[] {
  try {
    const certificates = certificatesFromPem(pem)
    if (certificates.length > 0) return certificates
  } catch (cause) {
    throw asInvalid(field, cause)
  }
  throw invalid(field, 'no certificate')
}

function asInvalid(field: string, cause: unknown): AdmissionError {
  const reason = cause instanceof Error ? cause.message : 'not readable'
  return invalid(field, reason, cause)
}

function invalid(field: string, found: string, cause?: unknown): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', `${field}: ${found}`, { cause })
}
