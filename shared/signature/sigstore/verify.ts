import { type Bytes, equal, toHex } from '../../bytes.ts'
import { AdmissionError, toAdmissionError } from '../../errors.ts'
import { isContentFault, type LayerEvidence, type SignedContent } from '../content.ts'
import { digestOf } from '../key.ts'
import type { CheckStep, HashAlgorithm } from '../types.ts'
import { isWithin } from './authority.ts'
import { type Bundle, type Evidence, readBundle } from './bundle.ts'
import { readLayerEvidence } from './layer.ts'
import { verifyInclusion } from './log.ts'
import { bodyFault, type Logged } from './log-body.ts'
import { Refusal } from './refusal.ts'
import { judge, type Party, partyOf } from './signer.ts'
import { readStamp } from './stamp.ts'
import { subjectFault } from './statement.ts'
import type { TransparencyLog, Trust } from './trust.ts'
import type { Artifact, BundleVerdict, OpenedBundle, SigstoreSigner } from './types.ts'

/** What a signature is verified against. None of it comes from the evidence. */
export interface Expectation {
  trust: Trust
  signer: SigstoreSigner
  /** Milliseconds. It counts only where nobody else has to say when the signature was made. */
  now: number
  /** Is told every check in the order they are made; all but the last one pass. */
  note?: ((step: CheckStep) => void) | undefined
}

/**
 * Whether the bundle (its JSON, or what was opened of it) holds a signature of the signer over the artifact that the trusted witnesses
 * have seen while the signer's certificate was valid. Asks nobody. Never throws: what cannot be told is `inconclusive`.
 */
export function verifyBundle(
  source: Uint8Array | OpenedBundle,
  { artifact, ...wanted }: Expectation & { artifact: Artifact },
): Promise<BundleVerdict> {
  return verdictOf(wanted, async (passed) => {
    const bundle = readBundle(source, { entries: readsEntries(wanted.trust) })
    const party = await partyOf(wanted.signer, bundle)
    const logged = await verifyContent(bundle, party, artifact)
    const sighting = { logged, stamped: logged.signature, passed, ...wanted }
    const verdict = await witnessed(bundle, party, sighting)
    return 'envelope' in bundle.content
      ? { ...verdict, statement: bundle.content.envelope.payload }
      : verdict
  })
}

/** The same for a signature whose evidence is in the annotations of its layer; the content was compared with the image. */
export function verifyLayer(
  content: SignedContent,
  layer: LayerEvidence,
  wanted: Expectation,
): Promise<BundleVerdict> {
  return verdictOf(wanted, async (passed) => {
    const { message, signature, statement } = content
    const evidence = readLayerEvidence(layer, {
      certificate: !('key' in wanted.signer),
      entries: readsEntries(wanted.trust),
    })
    const party = await partyOf(wanted.signer, evidence)
    await verifySignature(party, message, signature)
    const logged: Logged = {
      signature,
      verifiers: party.verifiers,
      messageDigest: hasher(message),
      ...(statement && { payloadDigest: hasher(statement) }),
    }
    const sighting = { logged, stamped: layer.stamped, passed, ...wanted }
    const verdict = await witnessed(evidence, party, sighting)
    return { ...verdict, ...(statement && { statement }) }
  })
}

/** What is checked, in this order. */
const CHECKS = ['signature', 'log', 'time', 'certificate'] as const

/** Tells that the next check has passed, with what it found. */
type Passed = (detail: string) => void

async function verdictOf(
  { note }: Expectation,
  verify: (passed: Passed) => Promise<BundleVerdict>,
): Promise<BundleVerdict> {
  let count = 0
  const next = (passed: boolean, detail: string) =>
    note?.({ check: CHECKS[count++] ?? 'certificate', passed, detail })
  try {
    return await verify((detail) => next(true, detail))
  } catch (thrown) {
    const error = toAdmissionError(thrown, 'verifying a Sigstore signature')
    const reason = thrown instanceof Refusal ? thrown.message : error.message
    next(false, reason)
    return thrown instanceof Refusal || isContentFault(error)
      ? { status: 'rejected', reason }
      : { status: 'inconclusive', error }
  }
}

/** Where no log counts, not even the form of entries does. */
const readsEntries = ({ logs, thresholds }: Trust) => logs.length > 0 || thresholds.logs > 0

// --- the content

/** Verifies signature and digests, and returns what every log entry has to be about. */
async function verifyContent(
  { content }: Bundle,
  party: Party,
  artifact: Artifact,
): Promise<Logged> {
  const { verifiers } = party
  const digestOf = digesterOf(artifact)
  if ('envelope' in content) {
    const { payload, message, signature } = content.envelope
    await verifySignature(party, message, signature)
    const fault = await subjectFault(payload, digestOf)
    if (fault !== undefined) throw new Refusal(fault)
    return { signature, verifiers, messageDigest: hasher(message), payloadDigest: hasher(payload) }
  }
  const { signature, digest } = content.message
  const actual = await digestOf(digest.algorithm)
  if (actual === undefined) {
    throw new AdmissionError(
      'INTERNAL',
      `the artifact has no ${digest.algorithm} digest to compare`,
    )
  }
  if (!equal(actual, digest.value)) throw new Refusal('bundle is about another artifact')
  if ('bytes' in artifact) {
    await verifySignature(party, artifact.bytes, signature, digest.algorithm)
  } else {
    verifyDigestSignature(party, artifact, digest.algorithm, signature)
  }
  return { signature, verifiers, messageDigest: digestOf }
}

async function verifySignature(
  { key, hashAlgorithm }: Party,
  message: Bytes,
  signature: Bytes,
  algorithm?: HashAlgorithm,
): Promise<void> {
  const isRight = hashAlgorithm === undefined || algorithm === undefined
  const isWanted = isRight || hashAlgorithm === algorithm
  if (!isWanted || !(await key.verify(message, signature, hashAlgorithm ?? algorithm))) {
    throw new Refusal('signature does not verify under the key of the signer')
  }
}

function verifyDigestSignature(
  { spki }: Party,
  artifact: Exclude<Artifact, { bytes: Bytes }>,
  algorithm: HashAlgorithm,
  signature: Bytes,
): void {
  if (artifact.verifyDigest === undefined) {
    throw new AdmissionError('INTERNAL', 'a signature over a message needs the message itself')
  }
  if (!artifact.verifyDigest(spki, algorithm, artifact.digest.value, signature)) {
    throw new Refusal('signature does not verify under the key of the signer')
  }
}

/** Digests of the artifact, as far as they are known. */
function digesterOf(artifact: Artifact): Logged['messageDigest'] {
  if ('bytes' in artifact) return hasher(artifact.bytes)
  const { algorithm: known, value } = artifact.digest
  return async (algorithm) => (algorithm === known ? value : undefined)
}

/** Digests of the bytes, each made once. */
function hasher(bytes: Bytes): (algorithm: HashAlgorithm) => Promise<Bytes> {
  const made = new Map<HashAlgorithm, Bytes>()
  return async (algorithm) => {
    const digest = made.get(algorithm) ?? (await digestOf(algorithm, bytes))
    made.set(algorithm, digest)
    return digest
  }
}

// --- the witnesses

/** What witnesses have to have seen, and by whose word. */
interface Sighting extends Expectation {
  logged: Logged
  /** What timestamps have to be over. */
  stamped: Bytes
  passed: Passed
}

/** Verifies log entries, timestamps and the signer's certificate. Throws `Refusal`. */
async function witnessed(
  evidence: Evidence,
  party: Party,
  sighting: Sighting,
): Promise<BundleVerdict & { status: 'verified' }> {
  const { signer, trust, passed } = sighting
  passed(`signature verifies under the ${party.key.name} key`)
  const seen = await verifyLogs(evidence, sighting)
  const logs = seen.map(({ log }) => log.name ?? toHex(log.id))
  passed(logs.length === 0 ? 'no log is asked for' : `entry in ${logs.join(', ')}`)
  const times = await verifyTimes(evidence, party, seen, sighting)
  passed(times.map((at) => new Date(at).toISOString()).join(', '))
  const brought = evidence.intermediates
  const name = await judge(party, { signer, times, trust, brought })
  passed(party.certificate === undefined ? 'the key is all that counts' : name)
  return { status: 'verified', signer: name, times }
}

interface Seen {
  log: TransparencyLog
  /** Milliseconds, when the log has promised it. */
  time: number | undefined
}

/** Every entry of a known log has to be right; enough logs have to have one. */
async function verifyLogs(
  { entries }: Evidence,
  { logged, trust: { logs, thresholds } }: Sighting,
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
    // Most often the trusted root is that of another instance.
    const others = seen.length < entries.length ? '; those it has are of others' : ''
    const expected = `expected ${thresholds.logs}${others}`
    throw new Refusal(`entries of ${count} known transparency logs, ${expected}`)
  }
  return seen
}

/** Every time the signature was seen at; the current one when nobody has to say. */
async function verifyTimes(
  { timestamps }: Evidence,
  { certificate }: Party,
  seen: readonly Seen[],
  { stamped, trust, now }: Sighting,
): Promise<readonly number[]> {
  const witnesses = new Set<string>()
  const times = new Set<number>()
  const note = (witness: string, time: number) => witnesses.add(witness) && times.add(time)
  for (const { log, time } of seen) if (time !== undefined) note(toHex(log.id), time)
  let refused = ''
  for (const response of timestamps) {
    const stamp = await readStamp(response, stamped, trust.stampAuthorities)
    if ('time' in stamp) note(stamp.witness, stamp.time)
    else refused = ` (${stamp.refused})`
  }
  const wanted = trust.thresholds.times
  // A plain key is valid at any time, but where no log is asked for these are all who have to have seen what it signed.
  const isAsked = certificate !== undefined || trust.thresholds.logs === 0
  if (isAsked && witnesses.size < wanted) {
    throw new Refusal(`times by ${witnesses.size} trusted witnesses, expected ${wanted}${refused}`)
  }
  if (times.size === 0) times.add(now)
  for (const { log, time } of seen) {
    if (time === undefined && ![...times].some((at) => isWithin(log, at))) {
      throw new Refusal('log key was not valid when the signature was made')
    }
  }
  return [...times]
}
