import { concat, toBase64, toHex, utf8 } from '#shared/bytes.ts'
import { toPem } from '../pem.ts'
import { digestOf, type Pair, signWith, spkiOf } from './keys.ts'

/** Entries of the transparency logs of a local Sigstore, of both generations. */

/** JSON that is put together here, as a record that whoever asked for it may change. */
export type Document = Record<string, unknown>

/** What a log entry is about. */
export interface Logged {
  signature: Uint8Array
  /** The signer's certificate; without one, its key is logged. */
  leaf: Uint8Array | undefined
  signer: Pick<Pair, 'publicKey'>
  payload: Uint8Array
  /** What was signed. */
  message: Uint8Array
  hash: string
}

/** What may differ between entries. */
export interface EntryOptions {
  content?: 'message' | 'dsse'
  rekor?: 'v1' | 'v2' | 'unknown' | 'none'
  /** Kind and version of the entry. */
  kind?: string
  /** Seconds. */
  integratedTime?: number
  /** Changes the entry's body before the log signs it: an entry that is really in the log, about something else. */
  changeBody?: (body: Document) => void
  promise?: boolean
  proof?: boolean
  /** Rewrites the checkpoint's text before the log signs it. */
  note?: (note: string) => string
  /** Rewrites the signature lines. */
  signatures?: (lines: string) => string
}

/** A log: its key, the name on its checkpoints, and its generation. */
export interface Log {
  key: Pair
  name: string
  isV2: boolean
}

/** A bundle's log entry about a signature, with promise and proof; v2 logs make no promises and tell no times. */
export function logEntry(
  log: Log,
  about: Logged,
  options: EntryOptions & { integratedTime: number },
): Document {
  const byContent = options.content === 'dsse' ? 'dsse 0.0.1' : 'hashedrekord 0.0.1'
  const kind = options.kind ?? (log.isV2 ? 'hashedrekord 0.0.2' : byContent)
  const content = bodyOf(kind, about)
  options.changeBody?.(content)
  const bytes = utf8(JSON.stringify(content))
  const [name, version] = kind.split(' ')
  const body = toBase64(bytes)
  const promised = !log.isV2 && options.promise !== false
  return {
    logIndex: '41',
    logId: { keyId: toBase64(idOf(log)) },
    kindVersion: { kind: name, version },
    ...(log.isV2 ? {} : { integratedTime: String(options.integratedTime) }),
    ...(promised ? { inclusionPromise: promiseOf(log, body, options.integratedTime) } : {}),
    ...(options.proof === false ? {} : { inclusionProof: proofOf(log, bytes, options) }),
    canonicalizedBody: body,
  }
}

const idOf = ({ key }: Log) => digestOf(spkiOf(key))

function promiseOf(log: Log, body: string, integratedTime: number): Document {
  const promised = { body, integratedTime, logID: toHex(idOf(log)), logIndex: 41 }
  return { signedEntryTimestamp: toBase64(signWith(utf8(JSON.stringify(promised)), log.key)) }
}

/** The middle one of three leaves. */
function proofOf(log: Log, body: Uint8Array, options: EntryOptions): Document {
  const leaf = (bytes: Uint8Array) => digestOf(concat(Uint8Array.of(0), bytes))
  const node = (left: Uint8Array, right: Uint8Array) =>
    digestOf(concat(Uint8Array.of(1), left, right))
  const [first, last] = [leaf(utf8('first')), leaf(utf8('last'))]
  const root = node(node(first, leaf(body)), last)
  const plain = `${log.name}\n3\n${toBase64(root)}\n`
  const note = options.note?.(plain) ?? plain
  const signed = toBase64(concat(idOf(log).subarray(0, 4), signWith(utf8(note), log.key)))
  const lines = `— ${log.name} ${signed}\n`
  return {
    logIndex: '1',
    treeSize: '3',
    rootHash: toBase64(root),
    hashes: [toBase64(first), toBase64(last)],
    checkpoint: { envelope: `${note}\n${options.signatures?.(lines) ?? lines}` },
  }
}

function bodyOf(kind: string, about: Logged): Document {
  const [name, apiVersion] = kind.split(' ')
  return { apiVersion, kind: name, spec: specOf(kind, about) }
}

function specOf(
  kind: string,
  { signature, leaf, signer, payload, message, hash }: Logged,
): Document {
  const verifier =
    leaf === undefined
      ? { publicKey: { rawBytes: toBase64(spkiOf(signer)) } }
      : { x509Certificate: { rawBytes: toBase64(leaf) } }
  const label = leaf === undefined ? 'PUBLIC KEY' : 'CERTIFICATE'
  const pem = toBase64(utf8(toPem(label, leaf ?? spkiOf(signer))))
  const sig = toBase64(signature)
  const hex = (bytes: Uint8Array, algorithm = 'sha256') => ({
    algorithm,
    value: toHex(digestOf(bytes, algorithm)),
  })
  const tagged = (bytes: Uint8Array, algorithm = 'sha256') => ({
    algorithm: `SHA2_${algorithm.slice(3)}`,
    digest: toBase64(digestOf(bytes, algorithm)),
  })
  switch (kind) {
    case 'hashedrekord 0.0.1':
      return {
        data: { hash: hex(message, hash) },
        signature: { content: sig, publicKey: { content: pem } },
      }
    case 'hashedrekord 0.0.2':
      return {
        hashedRekordV002: {
          data: tagged(message, hash),
          signature: { content: sig, verifier },
        },
      }
    case 'dsse 0.0.1':
      return { payloadHash: hex(payload), signatures: [{ signature: sig, verifier: pem }] }
    case 'dsse 0.0.2':
      return {
        dsseV002: { payloadHash: tagged(payload), signatures: [{ content: sig, verifier }] },
      }
    case 'intoto 0.0.1':
      return { content: { hash: hex(payload), payloadHash: hex(payload) }, publicKey: pem }
    case 'intoto 0.0.2': {
      const signatures = [{ sig: toBase64(utf8(sig)), publicKey: pem }]
      return { content: { envelope: { signatures }, payloadHash: hex(payload) } }
    }
    default:
      return {}
  }
}
