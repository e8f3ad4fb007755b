import { createHash } from 'node:crypto'
import { toBase64 } from '#shared/bytes.ts'
import type { Descriptor } from '#shared/registry/types.ts'
import { BUNDLE_V03 } from '#shared/signature/bundle.ts'
import {
  attestationTag,
  DSSE_ENVELOPE,
  OCI11_SIGNATURE,
  PAYLOAD_TYPE,
  SIGNATURE_ANNOTATION,
  SIMPLE_SIGNING,
  signatureTag,
} from '#shared/signature/cosign.ts'
import { IN_TOTO, preAuthenticationEncoding } from '#shared/signature/dsse.ts'
import { SIGN_PREDICATE } from '#shared/signature/statement.ts'
import { layerAnnotations, verificationMaterial } from './evidence.ts'
import {
  OCI_MANIFEST,
  type PushedLayer,
  type PushedReferrer,
  type PushTarget,
  pushBlob,
  pushLayer,
  pushManifest,
  pushReferrer,
} from './push.ts'
import type { Signer } from './signer.ts'

/**
 * Where a signature goes: the `.sig` tag, a Sigstore bundle with a DSSE statement or a message signature, or cosign's experimental
 * referrer of OCI 1.1.
 */
export type SignatureLayout = 'tag' | 'dsse' | 'message' | 'oci11'

/** What is signed. */
export interface SignedImage {
  descriptor: Descriptor
  /** What the payload calls the image, such as `registry.example.com/shop/api`. Nobody checks it. */
  reference: string
  /** The manifest's bytes; a message signature is over them. */
  manifest?: Uint8Array
  /** What `cosign sign -a` adds, signed like the rest. */
  annotations?: Record<string, string>
}

/** The version of a Sigstore bundle. */
export type BundleVersion = '0.1' | '0.2' | '0.3'

/**
 * The descriptors of the manifests that hold the signatures, after signing an image the way cosign does and pushing
 * the result: one `.sig` manifest for all signers, or one referrer each.
 */
export async function signImage(
  target: PushTarget,
  image: SignedImage,
  signers: readonly Signer[],
  layout: SignatureLayout,
  { tagPrefix = '' } = {},
): Promise<readonly Descriptor[]> {
  if (layout === 'tag') {
    const layers = await Promise.all(signers.map((signer) => tagLayer(image, signer)))
    return [await pushSignatureTag(target, image.descriptor.digest, layers, tagPrefix)]
  }
  const pushed: Descriptor[] = []
  // One after the other: a registry without the referrers API keeps them in an index that is read and rewritten.
  for (const signer of signers) {
    const referrer = await referrerOf(image, signer, layout)
    pushed.push(await pushReferrer(target, image.descriptor, referrer))
  }
  return pushed
}

async function referrerOf(
  image: SignedImage,
  signer: Signer,
  layout: Exclude<SignatureLayout, 'tag'>,
): Promise<PushedReferrer> {
  switch (layout) {
    case 'dsse':
      return bundleReferrer(await dsseBundle(image, signer), layout)
    case 'message':
      return bundleReferrer(await messageBundle(image, signer), layout)
    case 'oci11':
      return oci11Referrer([await tagLayer(image, signer)])
  }
}

/** What is attested: an in-toto statement about the image, and where it goes. */
export interface Attested {
  predicateType: string
  predicate: unknown
  /** The `.att` tag, or a Sigstore bundle. */
  layout: 'tag' | 'dsse'
  /** Replaces members of the statement. */
  statement?: object
}

/**
 * The descriptor of the manifest that holds the attestation, after signing it the way cosign does and pushing it. Under the tag it takes
 * the place of what was there: `pushAttestationTag` takes several.
 */
export async function attest(
  target: PushTarget,
  image: SignedImage,
  signer: Signer,
  attested: Attested,
): Promise<Descriptor> {
  if (attested.layout === 'tag') {
    const layer = await attestationLayer(image, signer, attested)
    return pushAttestationTag(target, image.descriptor.digest, [layer])
  }
  const bundle = await envelopeBundle(toBytes(attestationOf(image, attested)), signer)
  const referrer = bundleReferrer(bundle, 'dsse', attested.predicateType)
  return pushReferrer(target, image.descriptor, referrer)
}

/** One attestation of the tag scheme: the envelope as a layer, whose annotation of a signature is empty. */
export async function attestationLayer(
  image: SignedImage,
  signer: Signer,
  attested: Omit<Attested, 'layout'>,
): Promise<PushedLayer> {
  const payload = toBytes(attestationOf(image, attested))
  const { envelope, message, signature } = await envelopeOf(payload, signer)
  const bytes = toBytes(envelope)
  return {
    mediaType: DSSE_ENVELOPE,
    bytes,
    annotations: {
      [SIGNATURE_ANNOTATION]: '',
      predicateType: attested.predicateType,
      // Over the envelope here, over the signature in a bundle (specs/signatures.md 1.2).
      ...layerAnnotations(signer, { signature, message, payload, stamped: bytes }),
    },
  }
}

function attestationOf(
  { descriptor }: SignedImage,
  { predicateType, predicate, statement = {} }: Omit<Attested, 'layout'>,
): object {
  return {
    _type: 'https://in-toto.io/Statement/v0.1',
    predicateType,
    subject: [{ name: 'image', digest: { sha256: descriptor.digest.replace('sha256:', '') } }],
    predicate,
    ...statement,
  }
}

/** The descriptor of a `.sig` manifest with these layers, as it was pushed. */
export async function pushSignatureTag(
  target: PushTarget,
  digest: string,
  layers: readonly PushedLayer[],
  tagPrefix = '',
): Promise<Descriptor> {
  return pushLayers(target, signatureTag(digest, tagPrefix), layers)
}

/** The descriptor of an `.att` manifest with these layers, as it was pushed. */
export async function pushAttestationTag(
  target: PushTarget,
  digest: string,
  layers: readonly PushedLayer[],
  tagPrefix = '',
): Promise<Descriptor> {
  return pushLayers(target, attestationTag(digest, tagPrefix), layers)
}

async function pushLayers(
  target: PushTarget,
  tag: string,
  layers: readonly PushedLayer[],
): Promise<Descriptor> {
  const config = Buffer.from(JSON.stringify({ architecture: '', os: '', config: {}, rootfs: {} }))
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: await pushBlob(target, config, 'application/vnd.oci.image.config.v1+json'),
    layers: await Promise.all(layers.map((layer) => pushLayer(target, layer))),
  }
  return pushManifest(target, manifest, { tag })
}

/** One signature of the tag scheme: the payload as a layer, the signature in its annotation. */
export async function tagLayer(image: SignedImage, signer: Signer): Promise<PushedLayer> {
  const { descriptor, reference, annotations } = image
  const bytes = toBytes(simpleSigningPayload(reference, descriptor.digest, annotations))
  const signature = await signer.sign(bytes)
  return {
    mediaType: SIMPLE_SIGNING,
    bytes,
    annotations: {
      [SIGNATURE_ANNOTATION]: toBase64(signature),
      ...layerAnnotations(signer, { signature, message: bytes, stamped: signature }),
    },
  }
}

/** The document cosign 1 and 2 sign. */
export function simpleSigningPayload(
  reference: string,
  digest: string,
  annotations?: Record<string, string>,
): object {
  return {
    critical: {
      identity: { 'docker-reference': reference },
      image: { 'docker-manifest-digest': digest },
      type: PAYLOAD_TYPE,
    },
    optional: annotations ?? null,
  }
}

/** The in-toto statement cosign 3 signs. */
export function signStatement(digest: string, annotations?: Record<string, string>): object {
  const subject = { digest: { sha256: digest.replace('sha256:', '') } }
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [annotations === undefined ? subject : { ...subject, annotations }],
    predicateType: SIGN_PREDICATE,
    predicate: {},
  }
}

/** A bundle with a signed statement about the image. */
export async function dsseBundle(
  { descriptor, annotations }: SignedImage,
  signer: Signer,
  version?: BundleVersion,
): Promise<object> {
  const statement = toBytes(signStatement(descriptor.digest, annotations))
  return envelopeBundle(statement, signer, IN_TOTO, version)
}

/** A bundle with this payload in a DSSE envelope. */
export async function envelopeBundle(
  payload: Uint8Array,
  signer: Signer,
  payloadType: string = IN_TOTO,
  version: BundleVersion = '0.3',
): Promise<object> {
  const { envelope, message, signature } = await envelopeOf(payload, signer, payloadType)
  const made = { signature, message, payload, stamped: signature }
  return {
    mediaType: mediaTypeOf(version),
    verificationMaterial: verificationMaterial(signer, made, version),
    dsseEnvelope: envelope,
  }
}

async function envelopeOf(payload: Uint8Array, signer: Signer, payloadType = IN_TOTO) {
  const message = preAuthenticationEncoding(payloadType, payload)
  const signature = await signer.sign(message)
  const envelope = {
    payload: toBase64(payload),
    payloadType,
    signatures: [{ sig: toBase64(signature), keyid: '' }],
  }
  return { envelope, message, signature }
}

/** A bundle with a signature over the image's manifest. */
export async function messageBundle(
  image: SignedImage,
  signer: Signer,
  version: BundleVersion = '0.3',
): Promise<object> {
  const { manifest } = image
  if (manifest === undefined) throw new TypeError('a message signature needs the manifest')
  const digest = createHash(signer.hash).update(manifest).digest()
  const signature = await signer.sign(manifest)
  const made = { signature, message: manifest, stamped: signature }
  return {
    mediaType: mediaTypeOf(version),
    verificationMaterial: verificationMaterial(signer, made, version),
    messageSignature: {
      messageDigest: {
        algorithm: `SHA2_${signer.hash.replace('sha', '')}`,
        digest: toBase64(digest),
      },
      signature: toBase64(signature),
    },
  }
}

/** The artifact that carries a bundle, to be pushed as a referrer of the image. */
export function bundleReferrer(
  bundle: object,
  content: 'dsse' | 'message',
  predicateType = SIGN_PREDICATE,
): PushedReferrer {
  return {
    artifactType: BUNDLE_V03,
    layers: [{ mediaType: BUNDLE_V03, bytes: toBytes(bundle) }],
    annotations:
      content === 'dsse'
        ? {
            'dev.sigstore.bundle.content': 'dsse-envelope',
            'dev.sigstore.bundle.predicateType': predicateType,
          }
        : { 'dev.sigstore.bundle.content': 'message-signature' },
  }
}

/** The artifact that carries signatures of the tag scheme as a referrer: its type is that of its config, as cosign writes it. */
export function oci11Referrer(layers: readonly PushedLayer[]): PushedReferrer {
  return {
    artifactType: null,
    config: { mediaType: OCI11_SIGNATURE, bytes: Buffer.from('{}') },
    layers,
  }
}

function mediaTypeOf(version: BundleVersion): string {
  return version === '0.3'
    ? BUNDLE_V03
    : `application/vnd.dev.sigstore.bundle+json;version=${version}`
}

function toBytes(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}
