import { type Bytes, equal } from '../../bytes.ts'
import { AdmissionError, toAdmissionError } from '../../errors.ts'
import { MAX_NOTARY_ENVELOPE_BYTES } from '../../limits.ts'
import type { Descriptor } from '../../registry/types.ts'
import { ecdsaSignatureToDer } from '../der.ts'
import { importVerifyingKey, type Scheme } from '../key.ts'
import type { RevocationStatus } from '../revocation/types.ts'
import { checkTimestamp } from '../timestamp.ts'
import type { HashAlgorithm } from '../types.ts'
import type { Certificate } from '../x509/certificate.ts'
import { areValidAt } from '../x509/chain.ts'
import { printName } from '../x509/name.ts'
import { malformed } from '../x509/reader.ts'
import { openCose } from './cose.ts'
import { isTrustedIdentity } from './identity.ts'
import { openJws } from './jws.ts'
import { whyNotTarget } from './payload.ts'
import { whyNotSigningChain } from './profile.ts'
import type {
  NotaryAlgorithm,
  NotaryCheck,
  NotaryEnvelope,
  NotaryOutcome,
  NotaryPolicy,
  NotaryVerification,
  RevocationPolicy,
  VerificationLevel,
} from './types.ts'

/** Media types of the layer an envelope is in. */
export const JWS_TYPE = 'application/jose+json'
export const COSE_TYPE = 'application/cose'

/** The key decides the algorithm; the header has to agree (specs/signatures.md 1.5). */
const ALGORITHMS: Readonly<
  Record<NotaryAlgorithm, { key: string; hash: HashAlgorithm; scalarBytes?: number }>
> = {
  PS256: { key: 'RSA 2048', hash: 'sha256' },
  PS384: { key: 'RSA 3072', hash: 'sha384' },
  PS512: { key: 'RSA 4096', hash: 'sha512' },
  ES256: { key: 'ECDSA P-256', hash: 'sha256', scalarBytes: 32 },
  ES384: { key: 'ECDSA P-384', hash: 'sha384', scalarBytes: 48 },
  ES512: { key: 'ECDSA P-521', hash: 'sha512', scalarBytes: 66 },
}

/** Checks whose failure a level only notes. */
const LOGGED: Readonly<Record<Exclude<VerificationLevel, 'skip'>, ReadonlySet<NotaryCheck>>> = {
  strict: new Set(),
  permissive: new Set(['authenticTimestamp', 'expiry', 'revocation']),
  audit: new Set(['authenticity', 'authenticTimestamp', 'expiry', 'revocation']),
}

/** A Notary Project signature as a registry holds it, and what it has to be about. */
export interface NotarySignature {
  /** Media type of the layer, which says how to read the envelope. */
  mediaType: string
  envelope: Bytes
  /** The resolved manifest's descriptor. */
  artifact: Descriptor
}

/** What one check says: fine, or why not. */
type Found = { fault: string } | { passed: string }

/** What the checks of one signature share. */
interface Examination {
  envelope: NotaryEnvelope
  policy: NotaryPolicy
  now: number
  /** The timestamp authority's chain once it is trusted, and the last instant of its timestamp, epoch milliseconds. */
  stamped?: { chain: readonly Certificate[]; at: number }
}

/**
 * Whether the signature is about the artifact and by somebody the policy trusts. Never rejects: what cannot be read or asked is
 * `inconclusive`. `now` is milliseconds since the epoch.
 */
export async function verifyNotary(
  signature: NotarySignature,
  policy: NotaryPolicy,
  now: number,
): Promise<NotaryVerification> {
  if (policy.level === 'skip') return { status: 'skipped' }
  const outcomes: NotaryOutcome[] = []
  let envelope: NotaryEnvelope
  try {
    envelope = openEnvelope(signature)
    const stranger = whyNotAnchored(envelope, policy)
    if (stranger !== undefined && !LOGGED[policy.level].has('authenticity')) {
      // Known before any signature is checked: anybody can make long chains of slow keys.
      outcomes.push(outcome('authenticity', 'enforce', { fault: stranger }))
      return { status: 'rejected', reason: stranger, outcomes }
    }
    const fault = await whyNotIntegral(envelope, signature.artifact)
    outcomes.push(
      outcome('integrity', 'enforce', fault ? { fault } : { passed: algorithmOf(envelope) }),
    )
    if (fault !== undefined) return { status: 'rejected', reason: fault, outcomes }
  } catch (thrown) {
    const error = toAdmissionError(thrown, 'Notary Project envelope')
    outcomes.push(outcome('integrity', 'enforce', { fault: error.message }))
    return { status: 'inconclusive', error, outcomes }
  }
  const examination: Examination = { envelope, policy, now }
  for (const [check, run] of CHECKS) {
    const action = LOGGED[policy.level].has(check) ? 'log' : 'enforce'
    const found = await run(examination).catch((thrown: unknown) => ({
      error: toAdmissionError(thrown, check),
    }))
    const fault = faultOf(found)
    outcomes.push(outcome(check, action, 'error' in found ? { fault: found.error.message } : found))
    if (fault === undefined || action === 'log') continue
    return 'error' in found
      ? { status: 'inconclusive', error: found.error, outcomes }
      : { status: 'rejected', reason: fault, outcomes }
  }
  return { status: 'verified', signer: signerOf(envelope), outcomes }
}

const CHECKS: readonly (readonly [NotaryCheck, (examination: Examination) => Promise<Found>])[] = [
  ['authenticity', checkAuthenticity],
  ['authenticTimestamp', checkTime],
  ['expiry', checkExpiry],
  ['revocation', checkRevocation],
]

function openEnvelope({ mediaType, envelope }: NotarySignature): NotaryEnvelope {
  if (envelope.length > MAX_NOTARY_ENVELOPE_BYTES) {
    throw malformed(`the envelope has more than ${MAX_NOTARY_ENVELOPE_BYTES} bytes`)
  }
  if (mediaType === JWS_TYPE) return openJws(envelope)
  if (mediaType === COSE_TYPE) return openCose(envelope)
  throw malformed(`the envelope is neither ${JWS_TYPE} nor ${COSE_TYPE}`)
}

/** Everything that no level relaxes: the chain's profile, the algorithm, the signature and what it is about. */
async function whyNotIntegral(
  envelope: NotaryEnvelope,
  artifact: Descriptor,
): Promise<string | undefined> {
  const [leaf] = envelope.certificates
  if (leaf === undefined) return 'there is no certificate'
  const { key: keyName, hash, scalarBytes } = ALGORITHMS[envelope.algorithm]
  const scheme: Scheme = scalarBytes === undefined ? 'RSASSA_PSS' : 'ECDSA'
  const key = await importVerifyingKey(leaf.spki, scheme === 'ECDSA' ? undefined : scheme)
  if (key.name !== keyName) return `the algorithm is ${envelope.algorithm}, the key is ${key.name}`
  const signature =
    scalarBytes === undefined
      ? envelope.signature
      : ecdsaSignatureToDer(envelope.signature, scalarBytes)
  const verified = signature && (await key.verify(envelope.message, signature, hash))
  if (verified?.scheme !== scheme) return 'the signature is not by the certificate in the envelope'
  return (
    whyNotTarget(envelope.payload, artifact) ?? (await whyNotSigningChain(envelope.certificates))
  )
}

/** Why no certificate of the chain is in the trust store of the scheme, byte for byte, or undefined when one is. */
function whyNotAnchored(
  { certificates, scheme }: NotaryEnvelope,
  { trustStores }: NotaryPolicy,
): string | undefined {
  const store = scheme === 'notary.x509' ? 'ca' : 'signingAuthority'
  const anchored = certificates.some(({ der }) =>
    trustStores[store].some((each) => equal(each.der, der)),
  )
  return anchored ? undefined : `no certificate of the chain is in the ${store} store`
}

/** The chain is anchored in the trust store and the leaf is one of the identities. */
async function checkAuthenticity({ envelope, policy }: Examination): Promise<Found> {
  const fault = whyNotAnchored(envelope, policy)
  if (fault !== undefined) return { fault }
  const [leaf] = envelope.certificates
  return leaf !== undefined && isTrustedIdentity(leaf.subject, policy.trustedIdentities)
    ? { passed: `${signerOf(envelope)} is trusted` }
    : { fault: `${signerOf(envelope)} is not a trusted identity` }
}

/** The certificates were valid when the signature was made, at a time that somebody trusted vouches for. */
async function checkTime(examination: Examination): Promise<Found> {
  const { envelope, policy, now } = examination
  const { certificates, scheme, signingTime } = envelope
  if (scheme === 'notary.x509.signingAuthority') {
    return areValidAt(certificates, signingTime)
      ? { passed: 'certificates were valid at the time the signing authority gives' }
      : { fault: 'a certificate was not valid at the time the signing authority gives' }
  }
  const validNow = areValidAt(certificates, now)
  const { tsa } = policy.trustStores
  if (tsa === undefined || (policy.verifyTimestamp === 'afterCertExpiry' && validNow)) {
    return validNow
      ? { passed: 'certificates are valid now' }
      : { fault: 'a certificate is not valid now, and no timestamp says it was' }
  }
  return checkCountersignature(examination, tsa)
}

async function checkCountersignature(
  examination: Examination,
  anchors: readonly Certificate[],
): Promise<Found> {
  const { envelope } = examination
  const { timestampToken, signature, certificates } = envelope
  if (timestampToken === undefined) return { fault: 'there is no timestamp' }
  const timestamp = await checkTimestamp(timestampToken, signature, anchors)
  if (!timestamp.valid) return { fault: `the timestamp: ${timestamp.reason}` }
  const { earliest, latest, chain } = timestamp
  if (!areValidAt(certificates, earliest) || !areValidAt(certificates, latest)) {
    return { fault: 'a certificate was not valid at the time of the timestamp' }
  }
  examination.stamped = { chain, at: latest }
  return { passed: `certificates were valid at ${new Date(latest).toISOString()}` }
}

async function checkExpiry({ envelope: { expiry }, now }: Examination): Promise<Found> {
  if (expiry === undefined) return { passed: 'the signature does not expire' }
  const at = new Date(expiry).toISOString()
  return now <= expiry ? { passed: `it expires ${at}` } : { fault: `it expired ${at}` }
}

/**
 * Nobody revoked the signer or the timestamp authority. A certificate of the signer may have become invalid after a trusted timestamp; what
 * its own authority vouches for is not enough, since whoever has a stolen key chooses that time.
 */
async function checkRevocation({ envelope, policy, stamped }: Examination): Promise<Found> {
  const { revocation } = policy
  if (revocation.mode === 'skip') return { passed: 'revocation is not asked about' }
  // Its URLs are followed, so a chain that only a lenient level let through is not asked about.
  if (whyNotAnchored(envelope, policy)) return { fault: 'nobody is asked about an untrusted chain' }
  const statuses = await Promise.all([
    statusOf(revocation, envelope.certificates, stamped?.at),
    ...(stamped ? [statusOf(revocation, stamped.chain)] : []),
  ])
  const by = (wanted: RevocationStatus['status']) =>
    statuses.find(({ status }) => status === wanted)?.detail
  const revoked = by('revoked')
  if (revoked !== undefined) return { fault: revoked }
  const doubt = by('unknown')
  if (doubt === undefined) return { passed: by('good') ?? '' }
  const detail = `whether a certificate is revoked is not known: ${doubt}`
  if (revocation.mode === 'strict') throw new AdmissionError('REVOCATION_UNKNOWN', detail)
  return { passed: `${detail}, which the policy allows` }
}

/** A source that cannot be used knows nothing; only `softfail` lets that pass, so `strict` says what went wrong. */
async function statusOf(
  { mode, source }: Exclude<RevocationPolicy, { mode: 'skip' }>,
  chain: readonly Certificate[],
  signedAt?: number,
): Promise<RevocationStatus> {
  try {
    return await source.status(chain, signedAt)
  } catch (thrown) {
    if (mode === 'strict' || !(thrown instanceof AdmissionError)) throw thrown
    return { status: 'unknown', detail: thrown.message }
  }
}

function outcome(check: NotaryCheck, action: 'enforce' | 'log', found: Found): NotaryOutcome {
  return 'fault' in found
    ? { check, action, passed: false, detail: found.fault }
    : { check, action, passed: true, detail: found.passed }
}

function faultOf(found: Found | { error: AdmissionError }): string | undefined {
  if ('error' in found) return found.error.message
  return 'fault' in found ? found.fault : undefined
}

function signerOf({ certificates: [leaf] }: NotaryEnvelope): string {
  return leaf === undefined ? 'nobody' : printName(leaf.subject)
}

function algorithmOf({ algorithm, format }: NotaryEnvelope): string {
  return `signature verifies (${format}, ${algorithm})`
}
