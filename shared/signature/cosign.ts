import type { Bytes } from '../bytes.ts'
import type { JsonValue } from '../json.ts'
import { MAX_LAYER_ANNOTATION_BYTES, MAX_PAYLOAD_BYTES, MAX_SIGNATURE_LAYERS } from '../limits.ts'
import type { RegistrySession } from '../registry/types.ts'
import {
  dig,
  type FoundSignatures,
  isDigest,
  malformed,
  quote,
  readDescriptor,
  readJson,
  readSignature,
  type SignedContent,
  type Subject,
} from './content.ts'

/** Media type of a layer whose blob is a simple-signing payload. */
export const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json'
/** The layer annotation that holds the signature. Every other annotation is ignored when a key is configured. */
export const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature'
/** `critical.type` of a payload that signs an image. */
export const PAYLOAD_TYPE = 'cosign container image signature'

/** The tag under which cosign 1 and 2 keep the signatures of a digest: `sha256-<hex>.sig`. */
export function signatureTag(digest: string): string {
  return `${digest.replace(':', '-')}.sig`
}

/**
 * The signatures under the `.sig` tag, one per layer, or none when the tag does not exist (specs/signatures.md 1.1).
 * Throws what the registry throws, and `SIGNATURE_MALFORMED` when the tag holds no image manifest.
 */
export async function findTagSignatures(
  subject: Subject,
  registry: RegistrySession,
): Promise<FoundSignatures> {
  const manifest = await registry.manifest(subject.repository, signatureTag(subject.digest))
  if (manifest === undefined) return { signatures: [], omitted: 0 }
  const layers = dig(manifest.json, 'layers')
  if (!Array.isArray(layers)) throw malformed('the signature tag holds no image manifest')
  const signatures = layers.slice(0, MAX_SIGNATURE_LAYERS).map((layer, index) => ({
    location: `${manifest.descriptor.digest} layer ${index}`,
    read: () => readLayer(layer, subject, registry),
  }))
  return { signatures, omitted: layers.length - signatures.length }
}

async function readLayer(
  layer: JsonValue,
  subject: Subject,
  registry: RegistrySession,
): Promise<SignedContent> {
  const descriptor = readDescriptor(layer)
  if (descriptor.mediaType !== SIMPLE_SIGNING) {
    throw malformed(
      `layer media type is ${quote(descriptor.mediaType)}, expected ${SIMPLE_SIGNING}`,
    )
  }
  if (descriptor.size > MAX_PAYLOAD_BYTES) {
    throw malformed(`payload of ${descriptor.size} bytes, at most ${MAX_PAYLOAD_BYTES} are read`)
  }
  const signature = readAnnotation(dig(layer, 'annotations', SIGNATURE_ANNOTATION))
  const message = await registry.blob(subject.repository, descriptor, MAX_PAYLOAD_BYTES)
  checkPayload(message, subject.digest)
  return { message, signature }
}

function readAnnotation(value: JsonValue | undefined): Bytes {
  if (typeof value === 'string' && value.length > MAX_LAYER_ANNOTATION_BYTES) {
    throw malformed(`signature annotation is longer than ${MAX_LAYER_ANNOTATION_BYTES} bytes`)
  }
  return readSignature(value, 'signature annotation')
}

/**
 * Throws unless the payload claims to sign exactly this digest. cosign's own claim verifier leaves `critical.type`
 * unchecked; without it any document with a digest in the right place would do (specs/signatures.md 1.6, 3 and 4).
 * `docker-reference` is information: a mirrored image keeps its signature.
 */
function checkPayload(payload: Bytes, digest: string): void {
  const critical = dig(readJson(payload), 'critical')
  const type = dig(critical, 'type')
  if (type !== PAYLOAD_TYPE) {
    throw malformed(`payload type is ${quote(type)}, expected ${JSON.stringify(PAYLOAD_TYPE)}`)
  }
  const claimed = dig(critical, 'image', 'docker-manifest-digest')
  if (!isDigest(claimed, digest)) {
    throw malformed(`payload is about ${quote(claimed)}, expected ${digest}`)
  }
}
