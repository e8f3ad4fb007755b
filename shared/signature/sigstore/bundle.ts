import { type Bytes, fromBase64, toBase64, toHex } from '../../bytes.ts'
import type { JsonValue } from '../../json.ts'
import {
  MAX_CERTIFICATE_BYTES,
  MAX_CHAIN_CERTIFICATES,
  MAX_CHECKPOINT_CHARS,
  MAX_LOG_ENTRIES,
  MAX_PAYLOAD_BYTES,
  MAX_PROOF_HASHES,
  MAX_TIMESTAMP_BYTES,
} from '../../limits.ts'
import { dig, malformed, quote, readJson, readSignature } from '../content.ts'
import { type Envelope, openEnvelope } from '../dsse.ts'
import type { HashAlgorithm } from '../types.ts'
import { type Certificate, parseCertificate } from '../x509/certificate.ts'
import { isSelfIssued } from '../x509/chain.ts'
import type { OpenedBundle } from './types.ts'

/** A Sigstore bundle, read strictly. Nothing about it is verified. */
export interface Bundle extends Evidence {
  content: { message: MessageSignature } | { envelope: Envelope }
}

/** What somebody brings along to show who signed and when, in whatever form. Nothing about it is verified. */
export interface Evidence {
  /** The signer's, or undefined when it was made with a plain key. */
  certificate: Certificate | undefined
  /** Between it and an authority; roots are the verifier's. */
  intermediates: readonly Certificate[]
  entries: readonly LogEntry[]
  /** RFC 3161 responses. */
  timestamps: readonly Bytes[]
}

export interface MessageSignature {
  signature: Bytes
  digest: { algorithm: HashAlgorithm; value: Bytes }
}

/** An entry of a transparency log. */
export interface LogEntry {
  kind: string
  version: string
  logId: Bytes
  logIndex: number
  /** Seconds; trusted only with a promise over it. Zero: none, as in Rekor v2. */
  integratedTime: number
  body: Bytes
  /** The body in base64, which is what a promise is over. */
  text: string
  /** The signed entry timestamp. */
  promise: Bytes | undefined
  proof: InclusionProof | undefined
}

export interface InclusionProof {
  logIndex: number
  hashes: readonly Bytes[]
  checkpoint: string
}

const MEDIA_TYPE =
  /^application\/vnd\.dev\.sigstore\.bundle(?:\+json;version=(0\.[123])|\.v(0\.3)\+json)$/

/** Hash algorithms by their names in bundles and log entries. */
const ALGORITHMS: Readonly<Record<string, HashAlgorithm>> = {
  SHA2_256: 'sha256',
  SHA2_384: 'sha384',
  SHA2_512: 'sha512',
}

/**
 * The bundle, in JSON or opened before, versions 0.1 to 0.3. Throws `SIGNATURE_MALFORMED` or `JSON_INVALID` unless it is strict: known
 * version, strict base64, one signature, bounded lists, no entry or timestamp twice, and what its version has to hold about every log entry. Without
 * `entries` none is read.
 */
export function readBundle(
  bundle: Uint8Array | OpenedBundle,
  { entries: readsEntries = true } = {},
): Bundle {
  const opened: OpenedBundle = bundle instanceof Uint8Array ? { json: readJson(bundle) } : bundle
  const { json } = opened
  const mediaType = dig(json, 'mediaType')
  const [, named, plain] = MEDIA_TYPE.exec(typeof mediaType === 'string' ? mediaType : '') ?? []
  const version = named ?? plain
  if (version === undefined) throw malformed(`bundle has the media type ${quote(mediaType)}`)
  const material = dig(json, 'verificationMaterial')
  const logged = readsEntries ? dig(material, 'tlogEntries') : undefined
  const entries = list(logged, 'log entries').map((entry) => readEntry(entry, version))
  refuseTwice(
    entries.map(({ logId, logIndex }) => `${toHex(logId)} ${logIndex}`),
    'log entry',
  )
  const timestamps = list(
    dig(material, 'timestampVerificationData', 'rfc3161Timestamps'),
    'timestamps',
  ).map((each) => base64(dig(each, 'signedTimestamp'), 'timestamp', MAX_TIMESTAMP_BYTES))
  refuseTwice(timestamps.map(toBase64), 'timestamp')
  const [certificate, ...intermediates] = readSigner(material, version)
  return { certificate, intermediates, content: readContent(opened), entries, timestamps }
}

/** In JSON of protocol buffers null is absent. */
function readContent({ json, envelope: opened }: OpenedBundle): Bundle['content'] {
  const message = dig(json, 'messageSignature') ?? undefined
  const envelope = dig(json, 'dsseEnvelope') ?? undefined
  if ((message === undefined) === (envelope === undefined)) {
    throw malformed('bundle holds neither or both of a message signature and a DSSE envelope')
  }
  if (envelope !== undefined) return { envelope: opened ?? openEnvelope(envelope) }
  return {
    message: {
      signature: readSignature(dig(message, 'signature'), 'message signature'),
      digest: readDigest(dig(message, 'messageDigest'), 'message digest'),
    },
  }
}

/** A digest with its algorithm by the names of Sigstore's messages. Throws `SIGNATURE_MALFORMED`. */
export function readDigest(
  value: JsonValue | undefined,
  what: string,
): { algorithm: HashAlgorithm; value: Bytes } {
  const name = dig(value, 'algorithm')
  if (typeof name !== 'string' || !Object.hasOwn(ALGORITHMS, name)) {
    throw malformed(`${what} has the algorithm ${quote(name)}, expected SHA2_256, _384 or _512`)
  }
  return {
    algorithm: ALGORITHMS[name] ?? 'sha256',
    value: base64(dig(value, 'digest'), what, 64),
  }
}

function readSigner(material: JsonValue | undefined, version: string): readonly Certificate[] {
  const certificate = dig(material, 'certificate') ?? undefined
  const chain = dig(material, 'x509CertificateChain') ?? undefined
  const key = dig(material, 'publicKey') ?? undefined
  if ([certificate, chain, key].filter((each) => each !== undefined).length !== 1) {
    throw malformed('bundle names no signer, or several')
  }
  if (key !== undefined) return []
  if (certificate !== undefined) return [readCertificate(certificate)]
  if (version === '0.3') throw malformed('bundle of version 0.3 with a certificate chain')
  const certificates = dig(chain, 'certificates')
  const all = Array.isArray(certificates) ? certificates : []
  if (all.length === 0 || all.length > MAX_CHAIN_CERTIFICATES) {
    throw malformed(
      `bundle has ${all.length} certificates, expected 1 to ${MAX_CHAIN_CERTIFICATES}`,
    )
  }
  const read = all.map(readCertificate)
  // The roots are the verifier's; a bundle that brings one wants to be its own.
  if (read.some(isSelfIssued)) throw malformed('bundle brings a root certificate')
  return read
}

const readCertificate = (value: JsonValue | undefined) =>
  parseCertificate(base64(dig(value, 'rawBytes'), 'certificate', MAX_CERTIFICATE_BYTES))

function readEntry(entry: JsonValue, version: string): LogEntry {
  const promise = dig(entry, 'inclusionPromise', 'signedEntryTimestamp') ?? undefined
  const proof = dig(entry, 'inclusionProof') ?? undefined
  if (version === '0.1' && promise === undefined) {
    throw malformed('log entry without an inclusion promise')
  }
  if (version !== '0.1' && proof === undefined) {
    throw malformed('log entry without an inclusion proof')
  }
  const kind = dig(entry, 'kindVersion', 'kind')
  const kindVersion = dig(entry, 'kindVersion', 'version')
  if (typeof kind !== 'string' || typeof kindVersion !== 'string') {
    throw malformed('log entry without a kind')
  }
  return {
    kind,
    version: kindVersion,
    logId: base64(dig(entry, 'logId', 'keyId'), 'log id', 64),
    logIndex: natural(dig(entry, 'logIndex') ?? 0, 'log index'),
    integratedTime: natural(dig(entry, 'integratedTime') ?? 0, 'integrated time'),
    ...readBody(dig(entry, 'canonicalizedBody')),
    promise: promise === undefined ? undefined : readSignature(promise, 'inclusion promise'),
    proof: proof === undefined ? undefined : readProof(proof),
  }
}

/** The body of a log entry, which strict base64 spells in one way. Throws `SIGNATURE_MALFORMED`. */
export function readBody(value: JsonValue | undefined): Pick<LogEntry, 'body' | 'text'> {
  const body = base64(value, 'log entry body', 2 * MAX_PAYLOAD_BYTES)
  return { body, text: typeof value === 'string' ? value : '' }
}

function readProof(proof: JsonValue): InclusionProof {
  const hashes = dig(proof, 'hashes') ?? []
  if (!Array.isArray(hashes) || hashes.length > MAX_PROOF_HASHES) {
    throw malformed(`inclusion proof is not a list of at most ${MAX_PROOF_HASHES} hashes`)
  }
  const checkpoint = dig(proof, 'checkpoint', 'envelope')
  if (typeof checkpoint !== 'string' || checkpoint.length > MAX_CHECKPOINT_CHARS) {
    throw malformed('inclusion proof without a checkpoint')
  }
  return {
    logIndex: natural(dig(proof, 'logIndex') ?? 0, 'log index'),
    hashes: hashes.map((hash) => base64(hash, 'inclusion proof', 32)),
    checkpoint,
  }
}

/** The bytes of strict base64, at least one. Throws `SIGNATURE_MALFORMED`. */
export function base64(value: JsonValue | undefined, what: string, maxBytes: number): Bytes {
  const isText = typeof value === 'string' && value !== '' && value.length <= 2 * maxBytes + 4
  const bytes = isText ? fromBase64(value) : undefined
  if (bytes === undefined || bytes.length > maxBytes) {
    throw malformed(`${what} is not strict base64 of 1 to ${maxBytes} bytes`)
  }
  return bytes
}

/** An int64, which JSON of protocol buffers writes as a text. Throws `SIGNATURE_MALFORMED`. */
export function natural(value: JsonValue, what: string): number {
  const text = typeof value === 'number' ? String(value) : value
  const number = typeof text === 'string' && /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : -1
  if (!Number.isSafeInteger(number) || number < 0) {
    throw malformed(`${what} is not a number from 0 to ${Number.MAX_SAFE_INTEGER}`)
  }
  return number
}

function list(value: JsonValue | undefined, what: string): readonly JsonValue[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || value.length > MAX_LOG_ENTRIES) {
    throw malformed(`${what} are not a list of at most ${MAX_LOG_ENTRIES}`)
  }
  return value
}

function refuseTwice(ids: readonly string[], what: string): void {
  if (new Set(ids).size !== ids.length) throw malformed(`bundle holds one ${what} twice`)
}
