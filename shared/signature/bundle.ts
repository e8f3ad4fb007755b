import { type Bytes, equal, fromBase64, fromHex } from '../bytes.ts'
import type { JsonValue } from '../json.ts'
import { MAX_BLOB_BYTES, MAX_PAYLOAD_BYTES } from '../limits.ts'
import type { Descriptor, RegistrySession } from '../registry/types.ts'
import {
  dig,
  digestHex,
  type FoundSignatures,
  isDigest,
  malformed,
  quote,
  readDescriptor,
  readJson,
  readSignature,
  type SignedContent,
  type Subject,
  storeOf,
} from './content.ts'
import { OCI11_SIGNATURE, payloadsIn } from './cosign.ts'
import { type Envelope, openEnvelope } from './dsse.ts'
import { digestOf } from './key.ts'
import { readStatement, SIGN_PREDICATE, unwantedPredicate } from './statement.ts'
import type { HashAlgorithm } from './types.ts'

/** Media type of a Sigstore bundle as cosign 3 writes it. */
export const BUNDLE_V03 = 'application/vnd.dev.sigstore.bundle.v0.3+json'
const BUNDLE_PREFIX = 'application/vnd.dev.sigstore.bundle'
const BUNDLE_TYPES: ReadonlySet<string> = new Set([
  BUNDLE_V03,
  `${BUNDLE_PREFIX}+json;version=0.1`,
  `${BUNDLE_PREFIX}+json;version=0.2`,
  `${BUNDLE_PREFIX}+json;version=0.3`,
])
/** What some registries put for `artifactType` when the writer gave none: it says nothing about the content. */
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json'

/** Names of digest algorithms in a bundle's message digest. */
const MESSAGE_DIGESTS: Readonly<Record<string, HashAlgorithm>> = {
  SHA2_256: 'sha256',
  SHA2_384: 'sha384',
  SHA2_512: 'sha512',
}

/** base64 of the longest digest, SHA-512. */
const MAX_DIGEST_CHARS = 88
/** What the writer says a bundle's statement is: lets large attestations stay where they are. */
const PREDICATE_ANNOTATION = 'dev.sigstore.bundle.predicateType'

/**
 * The referrers of an image that may be Sigstore bundles (specs/signatures.md 1.3 and 1.4). A descriptor's
 * `artifactType` is a hint that registries fill in wrongly: only those that surely are something else are left out
 * here, and the manifest decides about the rest. `wanted` are the predicate types of the statements that count: those of a signature
 * unless attestations are looked for. Where a signature is, cosign's experimental ones by OCI 1.1 are among them.
 */
export async function findBundles(
  subject: Subject,
  registry: RegistrySession,
  wanted: readonly string[] = [SIGN_PREDICATE],
): Promise<FoundSignatures> {
  const { descriptors, omitted } = await registry.referrers(storeOf(subject), subject.digest)
  const isWanted = ({ artifactType = '' }: Descriptor) =>
    mayBe(artifactType, BUNDLE_PREFIX) ||
    (wanted.includes(SIGN_PREDICATE) && artifactType === OCI11_SIGNATURE)
  const signatures = descriptors.filter(isWanted).map((descriptor) => ({
    location: descriptor.digest,
    read: () => readReferrer(descriptor, subject, registry, wanted),
    ...(wanted.includes(SIGN_PREDICATE) && {
      nested: () => readPayloads(descriptor, subject, registry),
    }),
  }))
  return { signatures, omitted }
}

/** The signatures in a referrer of the `.sig` scheme; undefined for any other. What lists it is asked once, whoever asks. */
async function readPayloads(
  { digest, artifactType = '' }: Descriptor,
  subject: Subject,
  registry: RegistrySession,
): Promise<FoundSignatures | undefined> {
  if (!mayBe(artifactType, OCI11_SIGNATURE)) return undefined
  const manifest = await registry.manifest(storeOf(subject), digest)
  if (manifest === undefined || typeOf(manifest.json) !== OCI11_SIGNATURE) return undefined
  demandSubject(manifest.json, subject.digest)
  return payloadsIn(manifest, subject, registry)
}

/**
 * The signed content of a bundle, compared with the image. `manifest` gives the image's manifest bytes, which is what
 * a message-signature bundle signs. Verification material (certificate, key hint, log entries) is not read here: a key
 * comes from the policy only, and for identities the bundle is handed on. Throws AdmissionError, mostly `SIGNATURE_MALFORMED`.
 */
export async function readBundle(
  bytes: Bytes,
  digest: string,
  manifest: () => Promise<Bytes>,
  wanted: readonly string[] = [SIGN_PREDICATE],
): Promise<SignedContent> {
  const bundle = readJson(bytes)
  const mediaType = dig(bundle, 'mediaType')
  if (typeof mediaType !== 'string' || !BUNDLE_TYPES.has(mediaType)) {
    throw malformed(`bundle media type is ${quote(mediaType)}, expected versions 0.1 to 0.3`)
  }
  const envelope = dig(bundle, 'dsseEnvelope') ?? undefined
  const messageSignature = dig(bundle, 'messageSignature') ?? undefined
  if (envelope !== undefined && messageSignature === undefined) {
    const value = fromHex(digestHex(digest)) ?? new Uint8Array()
    const artifact = { digest: { algorithm: 'sha256' as const, value } }
    const opened = openEnvelope(envelope, maxPayloadBytes(wanted))
    const content = readDsse(opened, digest, wanted)
    return { ...content, bundle: { json: bundle, envelope: opened, artifact } }
  }
  if (envelope === undefined && messageSignature !== undefined) {
    if (!wanted.includes(SIGN_PREDICATE)) throw malformed('a message signature, no attestation')
    const content = await readMessageSignature(messageSignature, await manifest())
    return { ...content, bundle: { json: bundle, artifact: { bytes: content.message } } }
  }
  const found = envelope === undefined ? 'neither' : 'both'
  throw malformed(`bundle holds ${found} of dsseEnvelope and messageSignature, expected one`)
}

/** True for a type that begins so, and for one that says nothing. */
function mayBe(artifactType: string, type: string): boolean {
  return artifactType === '' || artifactType === EMPTY_TYPE || artifactType.startsWith(type)
}

async function readReferrer(
  { digest }: Descriptor,
  subject: Subject,
  registry: RegistrySession,
  wanted: readonly string[],
): Promise<SignedContent | undefined> {
  const manifest = await registry.manifest(storeOf(subject), digest)
  if (manifest === undefined) throw malformed('the referrer is listed but gone')
  if (!isBundleManifest(manifest.json)) return undefined
  const stated = dig(manifest.json, 'annotations', PREDICATE_ANNOTATION)
  if (typeof stated === 'string' && !wanted.includes(stated))
    throw unwantedPredicate(stated, wanted)
  const layer = readBundleLayer(manifest.json, subject.digest)
  const bytes = await registry.blob(storeOf(subject), layer, MAX_BLOB_BYTES)
  const manifestBytes = () => readManifest(subject, registry)
  return { ...(await readBundle(bytes, subject.digest, manifestBytes, wanted)), blob: layer }
}

/** The manifest's own word: its artifact type, or as older writers have it the media type of its config. */
function typeOf(manifest: JsonValue): string {
  for (const type of [dig(manifest, 'artifactType'), dig(manifest, 'config', 'mediaType')]) {
    if (typeof type === 'string' && type !== '' && type !== EMPTY_TYPE) return type
  }
  return ''
}

/** By its artifact type where it has one, else by the media type of a layer. */
function isBundleManifest(manifest: JsonValue): boolean {
  const artifactType = dig(manifest, 'artifactType')
  if (typeof artifactType === 'string' && artifactType !== '' && artifactType !== EMPTY_TYPE) {
    return artifactType.startsWith(BUNDLE_PREFIX)
  }
  const layers = dig(manifest, 'layers')
  return Array.isArray(layers) && layers.some((layer) => isBundleType(dig(layer, 'mediaType')))
}

/** The listing is the registry's word; the subject is under the manifest's own digest. */
function demandSubject(manifest: JsonValue, digest: string): void {
  const subject = dig(manifest, 'subject', 'digest')
  if (!isDigest(subject, digest)) {
    throw malformed(`referrer is about ${quote(subject)}, expected ${digest}`)
  }
}

function readBundleLayer(manifest: JsonValue, digest: string): Descriptor {
  demandSubject(manifest, digest)
  const layers = dig(manifest, 'layers')
  if (!Array.isArray(layers) || layers.length !== 1) {
    throw malformed('bundle manifest does not have exactly one layer')
  }
  const layer = readDescriptor(layers[0])
  if (!isBundleType(layer.mediaType)) {
    throw malformed(`layer media type is ${quote(layer.mediaType)}, expected a Sigstore bundle`)
  }
  return layer
}

function isBundleType(mediaType: JsonValue | undefined): boolean {
  return typeof mediaType === 'string' && mediaType.startsWith(BUNDLE_PREFIX)
}

async function readManifest(subject: Subject, registry: RegistrySession): Promise<Bytes> {
  const manifest = await registry.manifest(subject.repository, subject.digest)
  // Everything a message signature proves hangs on these being the image's bytes, so the digest is compared here too.
  if (manifest === undefined || !isDigest(manifest.descriptor.digest, subject.digest)) {
    throw malformed(`manifest ${subject.digest} is gone`)
  }
  return manifest.bytes
}

/** A statement that only signs is short. */
function maxPayloadBytes(wanted: readonly string[]): number {
  return wanted.every((type) => type === SIGN_PREDICATE) ? MAX_PAYLOAD_BYTES : MAX_BLOB_BYTES
}

function readDsse(
  { payload, message, signature }: Envelope,
  digest: string,
  wanted: readonly string[],
): SignedContent {
  const { annotations } = readStatement(payload, digest, wanted)
  return { message, signature, statement: payload, annotations }
}

/** The message of a message-signature bundle is the manifest itself; the bundle only repeats its digest. */
async function readMessageSignature(value: JsonValue, manifest: Bytes): Promise<SignedContent> {
  const algorithm = dig(value, 'messageDigest', 'algorithm')
  const known = typeof algorithm === 'string' && Object.hasOwn(MESSAGE_DIGESTS, algorithm)
  const hash = known ? MESSAGE_DIGESTS[algorithm] : undefined
  if (hash === undefined) throw malformed(`message digest algorithm is ${quote(algorithm)}`)
  const claimed = dig(value, 'messageDigest', 'digest')
  const short = typeof claimed === 'string' && claimed.length <= MAX_DIGEST_CHARS
  const claimedBytes = short ? fromBase64(claimed) : undefined
  const actual = await digestOf(hash, manifest)
  if (claimedBytes === undefined || !equal(claimedBytes, actual)) {
    throw malformed('message digest is not the digest of the image manifest')
  }
  const signature = readSignature(dig(value, 'signature'), 'message signature')
  return { message: manifest, signature }
}
