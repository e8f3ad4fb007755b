import { type Bytes, equal, fromBase64, fromHex, fromUtf8 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import type { JsonValue } from '../../json.ts'
import { MAX_CERTIFICATE_BYTES, MAX_SIGNATURE_BYTES } from '../../limits.ts'
import { dig, malformed, quote, readJson } from '../content.ts'
import type { HashAlgorithm } from '../types.ts'
import { base64, type LogEntry, readDigest } from './bundle.ts'

/** What an entry has to be about. */
export interface Logged {
  signature: Bytes
  /** DER of what the signature verified under and an entry may name: the certificate, else the public key. */
  verifiers: readonly Bytes[]
  /** Digest of the signed bytes: the artifact, or a DSSE envelope's pre-authentication encoding. */
  messageDigest(algorithm: HashAlgorithm): Promise<Bytes | undefined>
  /** Digest of a DSSE envelope's payload; undefined for a message signature. */
  payloadDigest?: (algorithm: HashAlgorithm) => Promise<Bytes>
}

/** What a body names. Undefined: this kind of entry does not hold it. */
interface Body {
  signature: Bytes | undefined
  verifier: Bytes
  digest: { algorithm: HashAlgorithm; value: Bytes }
  digestOf: 'message' | 'payload'
}

/**
 * Why the log entry is about something else, or undefined when signature, digest and key are all the ones of this bundle: an entry of
 * somebody else's would otherwise lend its time (specs/signatures.md 1.6, 5). Kinds: hashedrekord 0.0.1 and 0.0.2, dsse 0.0.1 and
 * 0.0.2, intoto 0.0.1 (whose body holds no signature) and 0.0.2.
 */
export async function bodyFault(entry: LogEntry, logged: Logged): Promise<string | undefined> {
  let body: Body
  try {
    body = readBody(entry)
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return thrown.message
    throw thrown
  }
  if (body.signature !== undefined && !equal(body.signature, logged.signature)) {
    return 'log entry is about another signature'
  }
  if (!logged.verifiers.some((each) => equal(body.verifier, each)))
    return 'log entry is about another key'
  const { algorithm, value } = body.digest
  const digestOf = body.digestOf === 'message' ? logged.messageDigest : logged.payloadDigest
  const digest = await digestOf?.(algorithm)
  if (digest === undefined) return `log entry of the kind ${quote(entry.kind)} does not fit`
  return equal(digest, value) ? undefined : 'log entry is about other content'
}

function readBody(entry: LogEntry): Body {
  const json = readJson(entry.body)
  const { kind, version } = entry
  if (dig(json, 'kind') !== kind || dig(json, 'apiVersion') !== version) {
    throw malformed('log entry is of another kind than its body')
  }
  const spec = dig(json, 'spec')
  switch (`${kind} ${version}`) {
    case 'hashedrekord 0.0.1':
      return {
        signature: signature(dig(spec, 'signature', 'content')),
        verifier: pem(dig(spec, 'signature', 'publicKey', 'content')),
        digest: hexDigest(dig(spec, 'data', 'hash')),
        digestOf: 'message',
      }
    case 'hashedrekord 0.0.2': {
      const inner = dig(spec, 'hashedRekordV002')
      return {
        signature: signature(dig(inner, 'signature', 'content')),
        verifier: der(dig(inner, 'signature', 'verifier')),
        digest: readDigest(dig(inner, 'data'), 'log entry digest'),
        digestOf: 'message',
      }
    }
    case 'dsse 0.0.1': {
      const only = onlyOf(dig(spec, 'signatures'))
      return {
        signature: signature(dig(only, 'signature')),
        verifier: pem(dig(only, 'verifier')),
        digest: hexDigest(dig(spec, 'payloadHash')),
        digestOf: 'payload',
      }
    }
    case 'dsse 0.0.2': {
      const inner = dig(spec, 'dsseV002')
      const only = onlyOf(dig(inner, 'signatures'))
      return {
        signature: signature(dig(only, 'content')),
        verifier: der(dig(only, 'verifier')),
        digest: readDigest(dig(inner, 'payloadHash'), 'log entry digest'),
        digestOf: 'payload',
      }
    }
    case 'intoto 0.0.1':
      return {
        signature: undefined,
        verifier: pem(dig(spec, 'publicKey')),
        digest: hexDigest(dig(spec, 'content', 'payloadHash')),
        digestOf: 'payload',
      }
    case 'intoto 0.0.2': {
      const only = onlyOf(dig(spec, 'content', 'envelope', 'signatures'))
      // Twice base64: the log encodes the text that the envelope holds.
      const sig = text(base64(dig(only, 'sig'), 'log entry signature', 2 * MAX_SIGNATURE_BYTES))
      return {
        signature: signature(sig),
        verifier: pem(dig(only, 'publicKey')),
        digest: hexDigest(dig(spec, 'content', 'payloadHash')),
        digestOf: 'payload',
      }
    }
    default:
      throw malformed(`log entry is of the unknown kind ${quote(`${kind} ${version}`)}`)
  }
}

const signature = (value: JsonValue | undefined) =>
  base64(value, 'log entry signature', MAX_SIGNATURE_BYTES)

function text(bytes: Bytes): string {
  try {
    return fromUtf8(bytes)
  } catch {
    throw malformed('log entry holds a text that is not UTF-8')
  }
}

function onlyOf(value: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(value) || value.length !== 1) {
    throw malformed('log entry does not hold exactly one signature')
  }
  return value[0]
}

function hexDigest(value: JsonValue | undefined): Body['digest'] {
  const algorithm = dig(value, 'algorithm')
  const hex = dig(value, 'value')
  const digest = typeof hex === 'string' ? fromHex(hex) : undefined
  if (algorithm !== 'sha256' && algorithm !== 'sha384' && algorithm !== 'sha512') {
    throw malformed(`log entry digest has the algorithm ${quote(algorithm)}`)
  }
  if (digest === undefined) throw malformed('log entry digest is not hexadecimal')
  return { algorithm, value: digest }
}

/** A certificate or key in the form Rekor v2 writes. */
function der(value: JsonValue | undefined): Bytes {
  const bytes = dig(value, 'x509Certificate', 'rawBytes') ?? dig(value, 'publicKey', 'rawBytes')
  return base64(bytes, 'log entry key', MAX_CERTIFICATE_BYTES)
}

/** The one PEM block inside the base64 that Rekor v1 writes. */
function pem(value: JsonValue | undefined): Bytes {
  const block = text(base64(value, 'log entry key', 2 * MAX_CERTIFICATE_BYTES))
  const [, label, body, end] =
    /^\s*-----BEGIN (CERTIFICATE|PUBLIC KEY)-----([^-]*)-----END ([A-Z ]+)-----\s*$/.exec(block) ??
    []
  const bytes = label === end ? fromBase64((body ?? '').replaceAll(/\s/g, '')) : undefined
  if (bytes === undefined || bytes.length === 0) {
    throw malformed('log entry key is not one certificate or public key')
  }
  return bytes
}
