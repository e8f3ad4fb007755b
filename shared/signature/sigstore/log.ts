import { sha256 as hashNow } from '@noble/hashes/sha2.js'
import { type Bytes, concat, equal, fromBase64, sha256, toHex, utf8 } from '../../bytes.ts'
import { isWithin } from './authority.ts'
import type { InclusionProof, LogEntry } from './bundle.ts'
import type { TransparencyLog } from './trust.ts'

/** What a log says about an entry, once all of it is verified. */
export type Inclusion =
  /** `time` in milliseconds when the log has promised one. */
  | { status: 'included'; log: TransparencyLog; time: number | undefined }
  /** None of the trusted logs: it says nothing, for or against. */
  | { status: 'unknown' }
  | { status: 'refused'; reason: string }

/**
 * Whether one of the trusted logs holds the entry: by its promise (SET) at a time its key was valid, by an inclusion proof up to a
 * checkpoint that this same log signed, or by both, and then both have to be right.
 */
export async function verifyInclusion(
  entry: LogEntry,
  logs: readonly TransparencyLog[],
): Promise<Inclusion> {
  const candidates: TransparencyLog[] = []
  for (const log of logs) if (await isOf(entry, log)) candidates.push(log)
  if (candidates.length === 0) return { status: 'unknown' }
  if (entry.promise === undefined && entry.proof === undefined) {
    return { status: 'refused', reason: 'log entry with neither promise nor proof' }
  }
  let reason = ''
  for (const log of candidates) {
    const fault = await faultOf(entry, log)
    if (fault === undefined) {
      const time = entry.promise === undefined ? undefined : entry.integratedTime * 1000
      return { status: 'included', log, time }
    }
    reason = fault
  }
  return { status: 'refused', reason }
}

/**
 * True when the entry names the log. One that is known by its key alone may also be named by what the key is called together with the
 * name on its checkpoints, as Rekor v2 does (an Ed25519 key of a signed note).
 */
async function isOf({ logId, proof }: LogEntry, log: TransparencyLog): Promise<boolean> {
  if (equal(log.id, logId)) return true
  if (log.name !== undefined || log.key.name !== 'Ed25519' || proof === undefined) return false
  const [origin = ''] = proof.checkpoint.split('\n', 1)
  const named = concat(utf8(`${origin}\n`), Uint8Array.of(1), log.spki.subarray(-32))
  return equal(await sha256(named), logId)
}

async function faultOf(entry: LogEntry, log: TransparencyLog): Promise<string | undefined> {
  const { promise, proof } = entry
  if (promise !== undefined) {
    const time = entry.integratedTime * 1000
    if (!isWithin(log, time)) return 'log key was not valid at the integrated time'
    const verified = await log.key.verify(promisedBytes(entry), promise)
    if (verified === undefined) return 'inclusion promise does not verify'
  }
  return proof === undefined ? undefined : await proofFault(entry, proof, log)
}

/** What a promise is over: canonical JSON (RFC 8785) of four members that need no escaping. */
function promisedBytes({ text, integratedTime, logId, logIndex }: LogEntry): Bytes {
  return utf8(JSON.stringify({ body: text, integratedTime, logID: toHex(logId), logIndex }))
}

async function proofFault(
  { body, logId }: LogEntry,
  proof: InclusionProof,
  log: TransparencyLog,
): Promise<string | undefined> {
  const hint = log.name === undefined ? logId.subarray(0, 4) : log.hint
  const checkpoint = await openCheckpoint(proof.checkpoint, log, hint)
  if (typeof checkpoint === 'string') return checkpoint
  const root = await rootOf(body, proof, checkpoint.size)
  if (root === undefined) return 'inclusion proof does not fit the size of the log'
  return equal(root, checkpoint.root)
    ? undefined
    : 'inclusion proof does not lead to the checkpoint'
}

// --- checkpoints (signed notes)

interface Checkpoint {
  size: bigint
  root: Bytes
}

/** The checkpoint, or why it is not one by this log. Signatures of others, witnesses included, say nothing here. */
async function openCheckpoint(
  envelope: string,
  log: TransparencyLog,
  hint: Bytes,
): Promise<Checkpoint | string> {
  const split = envelope.indexOf('\n\n')
  if (split < 0) return 'checkpoint without signatures'
  const note = envelope.slice(0, split + 1)
  const [origin = '', size = '', hash = ''] = note.split('\n')
  const root = fromBase64(hash)
  if (!/^(0|[1-9]\d{0,18})$/.test(size) || root?.length !== 32) {
    return 'checkpoint without size or root hash'
  }
  // Rekor v1 names the tree behind its own name.
  const isNamed = (name: string | undefined) => log.name === undefined || name === log.name
  if (!isNamed(origin) && !origin.startsWith(`${log.name} - `)) {
    return 'checkpoint of another log'
  }
  for (const line of envelope.slice(split + 2).split('\n')) {
    const [dash, name, text, ...rest] = line.split(' ')
    if (dash !== '—' || !isNamed(name) || text === undefined || rest.length > 0) continue
    const bytes = fromBase64(text)
    if (bytes === undefined || !equal(bytes.subarray(0, 4), hint)) continue
    // The first decides, as in Go's signed notes: whoever adds thousands of false ones could keep this busy for seconds.
    if (await log.key.verify(utf8(note), bytes.subarray(4))) return { size: BigInt(size), root }
    break
  }
  return 'checkpoint is not signed by the log of the entry'
}

// --- Merkle trees (RFC 9162 section 2.1.3.2)

/** The root the proof leads to, or undefined when it has not as many hashes as a leaf there needs. */
async function rootOf(
  body: Bytes,
  { logIndex, hashes }: InclusionProof,
  size: bigint,
): Promise<Uint8Array | undefined> {
  let index = BigInt(logIndex)
  let last = size - 1n
  if (index > last) return undefined
  let root: Uint8Array = await sha256(concat(Uint8Array.of(0), body))
  for (const hash of hashes) {
    if (last === 0n || hash.length !== 32) return undefined
    if ((index & 1n) === 1n || index === last) {
      root = parentOf(hash, root)
      while ((index & 1n) === 0n && index !== 0n) {
        index >>= 1n
        last >>= 1n
      }
    } else {
      root = parentOf(root, hash)
    }
    index >>= 1n
    last >>= 1n
  }
  return last === 0n ? root : undefined
}

/** A proof has dozens of these: for two hashes WebCrypto takes longer to be asked than to answer. */
const parentOf = (left: Uint8Array, right: Uint8Array) =>
  hashNow(concat(Uint8Array.of(1), left, right))
