import { type Bytes, digestBytes, sha256Digest } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import { MAX_LAYER_ANNOTATION_BYTES } from '../limits.ts'
import { field, isObject, type JsonObject, parseJsonObject } from './json-object.ts'
import type { Descriptor, Manifest } from './types.ts'

/** The image index of OCI, which referrers and fallback tags use. */
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json'
const INDEXES = [OCI_INDEX, 'application/vnd.docker.distribution.manifest.list.v2+json']
const MANIFESTS = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
]

/** `Accept` header for every manifest we can read. */
export const ACCEPT_MANIFESTS = [...INDEXES, ...MANIFESTS].join(', ')

/**
 * A manifest or index from its bytes: hashed first, then read. Its media type is the one it states, or where it states none
 * the content type. Throws `REGISTRY_RESPONSE_INVALID` when that is not one of the four known, when the two contradict each
 * other, and when one document can be read both as an index and as a manifest (CVE-2021-41190).
 */
export async function readManifest(
  bytes: Bytes,
  contentType: string | null,
  what: string,
): Promise<Manifest> {
  const digest = await sha256Digest(bytes)
  const json = parseJsonObject(bytes, what)
  const mediaType = mediaTypeOf(json, contentType, what)
  const isIndex = INDEXES.includes(mediaType)
  const [wanted, foreign] = isIndex ? ['manifests', 'layers'] : ['layers', 'manifests']
  if (!Array.isArray(field(json, wanted)) || field(json, foreign) !== undefined) {
    throw invalid(`${what}: ${mediaType} must have ${wanted}, and no ${foreign}`)
  }
  return { descriptor: { mediaType, digest, size: bytes.length }, bytes, json }
}

/**
 * The descriptors of an index that can be used. Those without a sound digest, size or media type are left out, as cosign
 * does: anyone who may push may add one. A missing or odd `artifactType` is no reason, because registries lose and rewrite it.
 */
export function descriptorsOf(index: JsonObject): readonly Descriptor[] {
  const entries = field(index, 'manifests')
  return Array.isArray(entries) ? entries.flatMap((entry) => parseDescriptor(entry) ?? []) : []
}

/** A descriptor, or undefined when digest, size or media type are not what the specification asks for. */
function parseDescriptor(value: JsonValue | undefined): Descriptor | undefined {
  if (!isObject(value)) return undefined
  const [mediaType, digest, size, artifactType, annotations] = [
    'mediaType',
    'digest',
    'size',
    'artifactType',
    'annotations',
  ].map((name) => field(value, name))
  if (typeof mediaType !== 'string' || mediaType === '') return undefined
  if (typeof digest !== 'string' || digestBytes(digest) === undefined) return undefined
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) return undefined
  const descriptor: Descriptor = { mediaType, digest, size }
  if (typeof artifactType === 'string') descriptor.artifactType = artifactType
  if (isObject(annotations)) descriptor.annotations = stringsOf(annotations)
  return descriptor
}

/** `type/subtype` of a content type, lower case, without its parameters. */
export function essenceOf(contentType: string | null): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

function mediaTypeOf(json: JsonObject, contentType: string | null, what: string): string {
  const sent = essenceOf(contentType)
  const stated = field(json, 'mediaType') ?? sent
  if (typeof stated !== 'string' || !isKnown(stated)) {
    throw invalid(`${what}: not a manifest or index of OCI or Docker v2`)
  }
  if (isKnown(sent) && sent !== stated) throw invalid(`${what}: says ${stated}, sent as ${sent}`)
  return stated
}

/** True for the media type of an index or manifest of OCI or Docker v2. */
function isKnown(mediaType: string): boolean {
  return INDEXES.includes(mediaType) || MANIFESTS.includes(mediaType)
}

/** The annotations that are strings of a bearable length, on a prototype-free record: keys come from outside. */
function stringsOf(annotations: JsonObject): Record<string, string> {
  const strings: Record<string, string> = Object.create(null)
  for (const [key, value] of Object.entries(annotations)) {
    if (typeof value === 'string' && value.length <= MAX_LAYER_ANNOTATION_BYTES)
      strings[key] = value
  }
  return strings
}

function invalid(message: string): AdmissionError {
  return new AdmissionError('REGISTRY_RESPONSE_INVALID', message)
}
