import { type Bytes, digestBytes, equal, fromBase64, toHex } from '../bytes.ts'
import { AdmissionError, type ErrorCode } from '../errors.ts'
import { decodeJson, getOwn, isJsonObject, type JsonValue } from '../json.ts'
import { MAX_SIGNATURE_BYTES } from '../limits.ts'
import { maxValuesOf } from '../registry/json-object.ts'
import type { Descriptor, Repository } from '../registry/types.ts'
import type { Artifact, OpenedBundle } from './sigstore/types.ts'
import type { Candidate } from './types.ts'

/** The image a signature has to be about: where it is and its digest, settled once per request. */
export interface Subject {
  repository: Repository
  /** `sha256:<64 hex>`. */
  digest: string
  /** Where its signatures and attestations are, when not beside it. */
  store?: Repository
  /** Stands before the tags of its signatures and attestations. */
  tagPrefix?: string
}

/** The repository that holds the signatures of the image. */
export function storeOf({ repository, store }: Subject): Repository {
  return store ?? repository
}

/** The bytes that were signed and the signature over them. */
export interface SignedContent {
  message: Bytes
  signature: Bytes
  /** The in-toto statement inside the message; undefined for a payload or a message signature. */
  statement?: Bytes
  /** The blob that holds the statement. */
  blob?: Descriptor
  /** What a payload calls `optional` and a statement its subject's `annotations`: signed, unlike annotations of a layer. */
  annotations?: Readonly<Record<string, string>>
  /** The Sigstore bundle it is from, for attestors that are more than a key. */
  bundle?: SignedBundle
  /** What the layer it is from says beside it, for attestors that are more than a key. */
  layer?: LayerEvidence
}

/**
 * What the annotations of a `.sig` or `.att` layer bring along (specs/signatures.md 1.1 and 1.2), as they stand there: nothing of it is
 * parsed, and all of it is anybody's who may push.
 */
export interface LayerEvidence {
  /** `dev.sigstore.cosign/certificate`: PEM. */
  certificate?: string
  /** `dev.sigstore.cosign/chain`: a PEM bundle. */
  chain?: string
  /** `dev.sigstore.cosign/bundle`: JSON of the log's promise. */
  bundle?: string
  /** `dev.sigstore.cosign/rfc3161timestamp`: JSON. */
  timestamp?: string
  /** What a timestamp has to be over: the signature of a payload, the JSON of an envelope. */
  stamped: Bytes
}

/** A Sigstore bundle about an image. */
export interface SignedBundle extends OpenedBundle {
  /** What it has to be about: the image's digest for a statement, its manifest for a message signature. */
  artifact: Artifact
}

/** A signature found beside an image and not read yet. `Content` is what a check of its kind takes. */
export interface FoundSignature<Content = SignedContent> {
  /** `sha256:… layer 2`. */
  location: string
  /** Of another kind than its layout. */
  source?: Candidate['source']
  /** Those that this holds, when it turns out to be a list of several; undefined when it is one. Throws as `read` does. */
  nested?(): Promise<FoundSignatures<Content> | undefined>
  /**
   * What was signed, once everything it says has been compared with the image; undefined when this turns out to be
   * another kind of artifact. Throws AdmissionError; `isContentFault` tells a "no" from "could not tell".
   */
  read(): Promise<Content | undefined>
}

/** What one layout holds for an image. */
export interface FoundSignatures<Content = SignedContent> {
  signatures: readonly FoundSignature<Content>[]
  /** How many more there are beyond the bound, at least. */
  omitted: number
}

/**
 * Codes that say something about what was published: it is not a valid signature, now or later. Whoever can push to
 * the repository can cause these, so they must never count as an outage. Other bytes than those of a digest are not among them: they
 * come from a registry that is broken or lies, and what was published remains unknown.
 */
const CONTENT_FAULTS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'SIGNATURE_MALFORMED',
  'JSON_INVALID',
  'REGISTRY_NOT_FOUND',
  'REGISTRY_RESPONSE_INVALID',
  'REGISTRY_TOO_LARGE',
])

/** True when the fault lies in the published content, false when the content could not be read. */
export function isContentFault(error: AdmissionError): boolean {
  return CONTENT_FAULTS.has(error.code)
}

/** The fault of content that does not count as a signature of this image. */
export function malformed(reason: string): AdmissionError {
  return new AdmissionError('SIGNATURE_MALFORMED', reason)
}

/** The JSON that somebody published. Throws `JSON_INVALID`, also for more values than a document of its length has. */
export function readJson(bytes: Uint8Array): JsonValue {
  return decodeJson(bytes, { maxValues: maxValuesOf(bytes) })
}

/** The value under nested own keys, or undefined where the path ends early. */
export function dig(
  value: JsonValue | undefined,
  ...keys: readonly string[]
): JsonValue | undefined {
  let at = value
  for (const key of keys) at = isJsonObject(at) ? getOwn(at, key) : undefined
  return at
}

/** A value from a registry for a message: JSON, cut to a readable length. */
export function quote(value: JsonValue | undefined): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value)
  }
  return value === undefined
    ? 'nothing'
    : `a value of type ${Array.isArray(value) ? 'list' : typeof value}`
}

/** A descriptor of a manifest. Throws `SIGNATURE_MALFORMED` unless its fields have the right form. */
export function readDescriptor(value: JsonValue | undefined): Descriptor {
  const mediaType = dig(value, 'mediaType')
  const digest = dig(value, 'digest')
  const size = dig(value, 'size')
  if (typeof mediaType !== 'string') throw malformed(`layer media type is ${quote(mediaType)}`)
  if (typeof digest !== 'string' || digestBytes(digest) === undefined) {
    throw malformed(`layer digest is ${quote(digest)}, expected sha256:<64 hex>`)
  }
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw malformed('layer size is not a non-negative integer')
  }
  return { mediaType, digest, size }
}

/** The bytes of a base64 signature. Throws `SIGNATURE_MALFORMED` unless it is strict and of a sane size. */
export function readSignature(value: JsonValue | undefined, what: string): Bytes {
  if (typeof value !== 'string' || value === '') throw malformed(`${what} is missing`)
  const bytes = value.length > 2 * MAX_SIGNATURE_BYTES ? undefined : fromBase64(value)
  if (bytes === undefined || bytes.length > MAX_SIGNATURE_BYTES) {
    throw malformed(`${what} is not base64 of at most ${MAX_SIGNATURE_BYTES} bytes`)
  }
  return bytes
}

/** True when the text is exactly this digest (lower case), compared as bytes. */
export function isDigest(text: JsonValue | undefined, digest: string): boolean {
  const actual = typeof text === 'string' ? digestBytes(text) : undefined
  const expected = digestBytes(digest)
  return actual !== undefined && expected !== undefined && equal(actual, expected)
}

/** `sha256:<hex>` without its prefix. */
export function digestHex(digest: string): string {
  return toHex(digestBytes(digest) ?? new Uint8Array())
}
