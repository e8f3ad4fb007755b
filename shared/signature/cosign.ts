import type { Bytes } from '../bytes.ts'
import type { JsonValue } from '../json.ts'
import {
  MAX_BLOB_BYTES,
  MAX_LAYER_ANNOTATION_BYTES,
  MAX_PAYLOAD_BYTES,
  MAX_SIGNATURE_LAYERS,
} from '../limits.ts'
import type { Manifest, RegistrySession } from '../registry/types.ts'
import {
  dig,
  type FoundSignatures,
  isDigest,
  type LayerEvidence,
  malformed,
  quote,
  readDescriptor,
  readJson,
  readSignature,
  type SignedContent,
  type Subject,
  storeOf,
} from './content.ts'
import { openEnvelope } from './dsse.ts'
import { readStatement, textsOf, unwantedPredicate } from './statement.ts'
import type { Candidate } from './types.ts'

/** Media type of a layer whose blob is a simple-signing payload. */
export const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json'
/** The layer annotation that holds the signature. */
export const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature'
/** Artifact type of cosign's experimental signatures by OCI 1.1. */
export const OCI11_SIGNATURE = 'application/vnd.dev.cosign.artifact.sig.v1+json'
/** Media type of a layer whose blob is a DSSE envelope. */
export const DSSE_ENVELOPE = 'application/vnd.dsse.envelope.v1+json'
/** `critical.type` of a payload that signs an image. */
export const PAYLOAD_TYPE = 'cosign container image signature'

/** Members of the evidence by the annotation that holds them. */
const EVIDENCE = [
  ['certificate', 'certificate'],
  ['chain', 'chain'],
  ['bundle', 'bundle'],
  ['timestamp', 'rfc3161timestamp'],
] as const

/** The tag under which cosign 1 and 2 keep the signatures of a digest: `sha256-<hex>.sig`, after the policy's prefix. */
export function signatureTag(digest: string, prefix = ''): string {
  return `${prefix}${digest.replace(':', '-')}.sig`
}

/** The tag under which cosign 1 and 2 keep the attestations of a digest: `sha256-<hex>.att`, after the policy's prefix. */
export function attestationTag(digest: string, prefix = ''): string {
  return `${prefix}${digest.replace(':', '-')}.att`
}

/**
 * The signatures under the `.sig` tag, one per layer, or none when the tag does not exist (specs/signatures.md 1.1).
 * Throws what the registry throws, and `SIGNATURE_MALFORMED` when the tag holds no image manifest.
 */
export function findTagSignatures(
  subject: Subject,
  registry: RegistrySession,
): Promise<FoundSignatures> {
  const tag = signatureTag(subject.digest, subject.tagPrefix)
  return findLayers(subject, tag, registry, (layer) => readPayloadLayer(layer, subject, registry))
}

/**
 * The attestations under the `.att` tag, one per layer, or none when the tag does not exist (specs/signatures.md 1.2): those whose
 * statement is of one of the wanted predicate types. New ones are added at the end, so of too many the first are left out. Throws as
 * `findTagSignatures` does.
 */
export function findTagAttestations(
  subject: Subject,
  registry: RegistrySession,
  wanted: readonly string[],
): Promise<FoundSignatures> {
  const tag = attestationTag(subject.digest, subject.tagPrefix)
  const read = (layer: JsonValue) => readEnvelopeLayer(layer, subject, registry, wanted)
  return findLayers(subject, tag, registry, read, 'last')
}

async function findLayers(
  subject: Subject,
  tag: string,
  registry: RegistrySession,
  read: (layer: JsonValue) => Promise<SignedContent>,
  which: 'first' | 'last' = 'first',
): Promise<FoundSignatures> {
  const manifest = await registry.manifest(storeOf(subject), tag)
  if (manifest === undefined) return { signatures: [], omitted: 0 }
  return layersOf(manifest, read, 'tag', which)
}

/**
 * The signatures in a manifest that is a referrer of the image and has the form of one under a `.sig` tag, one per layer: cosign's
 * experimental layout by OCI 1.1. Throws `SIGNATURE_MALFORMED` when it has no layers.
 */
export function payloadsIn(
  manifest: Manifest,
  subject: Subject,
  registry: RegistrySession,
): FoundSignatures {
  return layersOf(manifest, (layer) => readPayloadLayer(layer, subject, registry), 'referrer')
}

function layersOf(
  { descriptor, json }: Manifest,
  read: (layer: JsonValue) => Promise<SignedContent>,
  source: Candidate['source'],
  which: 'first' | 'last' = 'first',
): FoundSignatures {
  const layers = dig(json, 'layers')
  if (!Array.isArray(layers)) throw malformed('the signature tag holds no image manifest')
  const start = which === 'first' ? 0 : Math.max(0, layers.length - MAX_SIGNATURE_LAYERS)
  const signatures = layers.slice(start, start + MAX_SIGNATURE_LAYERS).map((layer, index) => ({
    location: `${descriptor.digest} layer ${start + index}`,
    source,
    read: () => read(layer),
  }))
  return { signatures, omitted: layers.length - signatures.length }
}

async function readPayloadLayer(
  layer: JsonValue,
  subject: Subject,
  registry: RegistrySession,
): Promise<SignedContent> {
  const message = await readLayer(layer, SIMPLE_SIGNING, MAX_PAYLOAD_BYTES, subject, registry)
  const annotations = dig(layer, 'annotations')
  const signature = readSignatureAnnotation(dig(annotations, SIGNATURE_ANNOTATION))
  const optional = readPayload(message, subject.digest)
  return {
    message,
    signature,
    annotations: textsOf(optional),
    layer: readEvidence(annotations, signature),
  }
}

/** The signature is in the envelope; the annotation of that name is empty. Statements may be as large as a bundle's. */
async function readEnvelopeLayer(
  layer: JsonValue,
  subject: Subject,
  registry: RegistrySession,
  wanted: readonly string[],
): Promise<SignedContent> {
  const annotations = dig(layer, 'annotations')
  const stated = dig(annotations, 'predicateType')
  if (typeof stated === 'string' && !wanted.includes(stated))
    throw unwantedPredicate(stated, wanted)
  const bytes = await readLayer(layer, DSSE_ENVELOPE, MAX_BLOB_BYTES, subject, registry)
  const { payload, message, signature } = openEnvelope(readJson(bytes))
  const statement = readStatement(payload, subject.digest, wanted)
  return {
    message,
    signature,
    statement: payload,
    blob: readDescriptor(layer),
    annotations: statement.annotations,
    layer: readEvidence(annotations, bytes),
  }
}

async function readLayer(
  layer: JsonValue,
  mediaType: string,
  maxBytes: number,
  subject: Subject,
  registry: RegistrySession,
): Promise<Bytes> {
  const descriptor = readDescriptor(layer)
  if (descriptor.mediaType !== mediaType) {
    throw malformed(`layer media type is ${quote(descriptor.mediaType)}, expected ${mediaType}`)
  }
  if (descriptor.size > maxBytes) {
    throw malformed(`payload of ${descriptor.size} bytes, at most ${maxBytes} are read`)
  }
  return registry.blob(storeOf(subject), descriptor, maxBytes)
}

/** What the annotations bring along, as it stands there. What is longer than any real one is left out: a key needs none of it. */
function readEvidence(annotations: JsonValue | undefined, stamped: Bytes): LayerEvidence {
  const evidence: LayerEvidence = { stamped }
  for (const [member, name] of EVIDENCE) {
    const text = dig(annotations, `dev.sigstore.cosign/${name}`)
    if (typeof text !== 'string' || text === '' || text.length > MAX_LAYER_ANNOTATION_BYTES)
      continue
    evidence[member] = text
  }
  return evidence
}

function readSignatureAnnotation(value: JsonValue | undefined): Bytes {
  if (typeof value === 'string' && value.length > MAX_LAYER_ANNOTATION_BYTES) {
    throw malformed(`signature annotation is longer than ${MAX_LAYER_ANNOTATION_BYTES} bytes`)
  }
  return readSignature(value, 'signature annotation')
}

/**
 * What the payload calls `optional`; throws unless it claims to sign exactly this digest. cosign's own claim verifier leaves `critical.type`
 * unchecked; without it any document with a digest in the right place would do (specs/signatures.md 1.6, 3 and 4).
 * `docker-reference` is information: a mirrored image keeps its signature.
 */
function readPayload(payload: Bytes, digest: string): JsonValue | undefined {
  const json = readJson(payload)
  const critical = dig(json, 'critical')
  const type = dig(critical, 'type')
  if (type !== PAYLOAD_TYPE) {
    throw malformed(`payload type is ${quote(type)}, expected ${JSON.stringify(PAYLOAD_TYPE)}`)
  }
  const claimed = dig(critical, 'image', 'docker-manifest-digest')
  if (!isDigest(claimed, digest)) {
    throw malformed(`payload is about ${quote(claimed)}, expected ${digest}`)
  }
  return dig(json, 'optional')
}
