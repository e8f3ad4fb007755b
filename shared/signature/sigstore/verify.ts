import { type Bytes, equal, toHex } from '../../bytes.ts'
import { AdmissionError, toAdmissionError } from '../../errors.ts'
import { isContentFault } from '../content.ts'
import { IN_TOTO, preAuthenticationEncoding } from '../dsse.ts'
import { HASHES, importVerifyingKey } from '../key.ts'
import type { HashAlgorithm } from '../types.ts'
import { type Bundle, readBundle } from './bundle.ts'
import { type Certificate, CODE_SIGNING, readCertificate } from './certificate.ts'
import type { IdentityMatcher } from './identity.ts'
import { verifyInclusion } from './log.ts'
import { bodyFault, type Logged } from './log-body.ts'
import { subjectFault } from './statement.ts'
import type { TransparencyLog, TrustedRoot } from './trusted-root.ts'
import type { Artifact, BundleVerdict } from './types.ts'

/** What a bundle is verified against. None of it comes from the bundle. */
export interface Expectation {
  artifact: Artifact
  root: TrustedRoot
  /** Whose signature counts: certificates of these identities, or one key (its SubjectPublicKeyInfo). */
  signer: { identity: IdentityMatcher } | { publicKey: Bytes }
  /** Milliseconds. It counts only where nobody else has to say when the signature was made. */
  now: number
}

/** Ends the verification: we know, no. */
class Refusal extends Error {}

/**
 * Whether the bundle (its JSON) holds a signature of the signer over the artifact that the trusted root's witnesses have seen while
 * the signer's certificate was valid. Asks nobody. Never throws: what cannot be told is `inconclusive`.
 */
export async function verifyBundle(json: Uint8Array, wanted: Expectation): Promise<BundleVerdict> {
  try {
    const bundle = readBundle(json)
    const signer = await signerOf(bundle, wanted)
    const logged = await verifyContent(bundle, signer, wanted.artifact)
    const seen = await verifyLogs(bundle, logged, wanted.root)
    const times = verifyTimes(bundle, logged, seen, signer, wanted)
    const name =
      signer.certificate === undefined
        ? await fingerprint(signer.publicKey)
        : verifyCertificate(signer.certificate, times, wanted)
    const statement =
      'envelope' in bundle.content ? { statement: bundle.content.envelope.payload } : {}
    return { status: 'verified', signer: name, times, ...statement }
  } catch (thrown) {
    if (thrown instanceof Refusal) return { status: 'rejected', reason: thrown.message }
    const error = toAdmissionError(thrown, 'verifying a Sigstore bundle')
    if (isContentFault(error)) return { status: 'rejected', reason: error.message }
    return { status: 'inconclusive', error }
  }
}

// --- the signer

interface Signer {
  publicKey: Bytes
  certificate: Certificate | undefined
}

/** With a key configured a certificate in the bundle means nothing; without one nothing but a certificate does. */
async function signerOf(bundle: Bundle, { signer }: Expectation): Promise<Signer> {
  if ('publicKey' in signer) return { publicKey: signer.publicKey, certificate: undefined }
  if (bundle.certificate === undefined) {
    throw new Refusal('bundle was signed with a key, expected the certificate of an identity')
  }
  const certificate = readCertificate(bundle.certificate)
  await refuseUnfitKey(certificate.publicKey)
  return { publicKey: certificate.publicKey, certificate }
}

/** A key outside the table is a fault of the configuration in a policy, but in a certificate it is the signer's. */
async function refuseUnfitKey(publicKey: Bytes): Promise<void> {
  try {
    await importVerifyingKey(publicKey)
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError) || thrown.code !== 'KEY_INVALID') throw thrown
    throw new Refusal(`certificate: ${thrown.message}`)
  }
}

// --- the content

/** Verifies signature and digests, and returns what every log entry has to be about. */
async function verifyContent(
  { content }: Bundle,
  { publicKey, certificate }: Signer,
  artifact: Artifact,
): Promise<Logged> {
  const verifier = certificate?.der ?? publicKey
  if ('envelope' in content) {
    const { payload, message, signature } = content.envelope
    await verifySignature(publicKey, message, signature)
    const fault = await subjectFault(payload, (algorithm) => digestOf(artifact, algorithm))
    if (fault !== undefined) throw new Refusal(fault)
    const signed = preAuthenticationEncoding(IN_TOTO, payload)
    return {
      signature,
      verifier,
      messageDigest: (algorithm) => hash(algorithm, signed),
      payloadDigest: (algorithm) => hash(algorithm, payload),
    }
  }
  const { signature, digest } = content.message
  const actual = await digestOf(artifact, digest.algorithm)
  if (actual === undefined) {
    throw new AdmissionError(
      'INTERNAL',
      `the artifact has no ${digest.algorithm} digest to compare`,
    )
  }
  if (!equal(actual, digest.value)) throw new Refusal('bundle is about another artifact')
  if ('bytes' in artifact) {
    await verifySignature(publicKey, artifact.bytes, signature, digest.algorithm)
  } else {
    await verifyDigestSignature(publicKey, artifact, digest.algorithm, signature)
  }
  return { signature, verifier, messageDigest: (algorithm) => digestOf(artifact, algorithm) }
}

async function verifySignature(
  publicKey: Bytes,
  message: Bytes,
  signature: Bytes,
  algorithm?: HashAlgorithm,
): Promise<void> {
  const key = await importVerifyingKey(publicKey)
  if ((await key.verify(message, signature, algorithm)) === undefined) {
    throw new Refusal('signature does not verify under the key of the signer')
  }
}

async function verifyDigestSignature(
  publicKey: Bytes,
  artifact: Exclude<Artifact, { bytes: Bytes }>,
  algorithm: HashAlgorithm,
  signature: Bytes,
): Promise<void> {
  // The algorithm table is the same for digests.
  await importVerifyingKey(publicKey)
  if (artifact.verifyDigest === undefined) {
    throw new AdmissionError('INTERNAL', 'a signature over a message needs the message itself')
  }
  if (!artifact.verifyDigest(publicKey, algorithm, artifact.digest.value, signature)) {
    throw new Refusal('signature does not verify under the key of the signer')
  }
}

async function digestOf(artifact: Artifact, algorithm: HashAlgorithm): Promise<Bytes | undefined> {
  if ('bytes' in artifact) return hash(algorithm, artifact.bytes)
  return artifact.digest.algorithm === algorithm ? artifact.digest.value : undefined
}

async function hash(algorithm: HashAlgorithm, bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(HASHES[algorithm].name, bytes))
}

// --- the witnesses

interface Seen {
  log: TransparencyLog
  /** Milliseconds, when the log has promised it. */
  time: number | undefined
}

/** Every entry of a known log has to be right; enough logs have to have one. */
async function verifyLogs(
  { entries }: Bundle,
  logged: Logged,
  { logs, thresholds }: TrustedRoot,
): Promise<readonly Seen[]> {
  const seen: Seen[] = []
  for (const entry of entries) {
    const inclusion = await verifyInclusion(entry, logs)
    if (inclusion.status === 'unknown') continue
    if (inclusion.status === 'refused') throw new Refusal(inclusion.reason)
    const fault = await bodyFault(entry, logged)
    if (fault !== undefined) throw new Refusal(fault)
    seen.push(inclusion)
  }
  const count = new Set(seen.map(({ log }) => toHex(log.id))).size
  if (count < thresholds.logs) {
    throw new Refusal(`entries of ${count} known transparency logs, expected ${thresholds.logs}`)
  }
  return seen
}

/** Every time the signature was seen at; the current one when nobody has to say. */
function verifyTimes(
  { timestamps }: Bundle,
  logged: Logged,
  seen: readonly Seen[],
  { certificate }: Signer,
  { root, now }: Expectation,
): readonly number[] {
  const witnesses = new Map<string, number[]>()
  const note = (witness: string, time: number) =>
    witnesses.set(witness, [...(witnesses.get(witness) ?? []), time])
  for (const { log, time } of seen) if (time !== undefined) note(toHex(log.id), time)
  let refused = ''
  for (const token of timestamps) {
    const stamp = root.authorities.timestamp(token, logged.signature)
    if ('time' in stamp) note(stamp.authority, stamp.time)
    else refused = ` (${stamp.refused})`
  }
  const wanted = root.thresholds.times
  // A plain key is valid at any time.
  if (certificate !== undefined && witnesses.size < wanted) {
    throw new Refusal(`times by ${witnesses.size} trusted witnesses, expected ${wanted}${refused}`)
  }
  const times = witnesses.size === 0 ? [now] : [...new Set([...witnesses.values()].flat())]
  for (const { log, time } of seen) {
    if (time === undefined && !times.some((at) => log.from <= at && at <= log.until)) {
      throw new Refusal('log key was not valid when the signature was made')
    }
  }
  return times
}

// --- the certificate

/** Verifies profile, validity, chain, certificate logs and identity, and returns whose it is. */
function verifyCertificate(
  certificate: Certificate,
  times: readonly number[],
  { root, signer }: Expectation,
): string {
  const { der, names, oidcIssuer, notBefore, notAfter } = certificate
  const fault = profileFault(certificate)
  if (fault !== undefined) throw new Refusal(`certificate ${fault}`)
  if (times.some((at) => at < notBefore || at > notAfter)) {
    throw new Refusal('certificate was not valid when the signature was made')
  }
  const broken = root.authorities.certificate(der, times, root.thresholds.certificateLogs)
  if (broken !== undefined) throw new Refusal(`certificate is not trusted: ${broken}`)
  if (oidcIssuer === undefined) throw new Refusal('certificate names no issuer')
  if (!('identity' in signer) || !signer.identity(oidcIssuer, names)) {
    throw new Refusal(
      `signed by ${JSON.stringify(names)} of ${JSON.stringify(oidcIssuer)}, expected another identity`,
    )
  }
  return `${names.join(', ')} (${oidcIssuer})`
}

function profileFault(certificate: Certificate): string | undefined {
  if (certificate.isSelfIssued) return 'is a root, expected one of a signer'
  if (certificate.isAuthority) return 'is one of an authority, expected one of a signer'
  if (!certificate.maySign) return 'is not for digital signatures'
  if (!certificate.usages.includes(CODE_SIGNING)) return 'is not for code signing'
  return undefined
}

async function fingerprint(publicKey: Bytes): Promise<string> {
  const { name, fingerprint } = await importVerifyingKey(publicKey)
  return `${name} key ${fingerprint}`
}
