import type { Descriptor } from '#shared/registry/types.ts'
import { BUNDLE_V03 } from '#shared/signature/bundle.ts'
import {
  PAYLOAD_TYPE,
  SIGNATURE_ANNOTATION,
  SIMPLE_SIGNING,
  signatureTag,
} from '#shared/signature/cosign.ts'
import { IN_TOTO, preAuthenticationEncoding } from '#shared/signature/dsse.ts'
import { SIGN_PREDICATE } from '#shared/signature/statement.ts'
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

/** Where a signature goes: the `.sig` tag, or a Sigstore bundle with a DSSE statement or a message signature. */
export type SignatureLayout = 'tag' | 'dsse' | 'message'

/** What is signed. */
export interface SignedImage {
  descriptor: Descriptor
  /** What the payload calls the image, such as `registry.example.com/shop/api`. Nobody checks it. */
  reference: string
  /** The manifest's bytes; a message signature is over them. */
  manifest?: Uint8Array
}

/**
 * The descriptors of the manifests that hold the signatures, after signing an image the way cosign does and pushing
 * the result: one `.sig` manifest for all signers, or one referrer each.
 */
export async function signImage(
  target: PushTarget,
  image: SignedImage,
  signers: readonly Signer[],
  layout: SignatureLayout,
): Promise<readonly Descriptor[]> {
  if (layout === 'tag') {
    const layers = await Promise.all(signers.map((signer) => tagLayer(image, signer)))
    return [await pushSignatureTag(target, image.descriptor.digest, layers)]
  }
  const pushed: Descriptor[] = []
  // One after the other: a registry without the referrers API keeps them in an index that is read and rewritten.
  for (const signer of signers) {
    const bundle = await (layout === 'dsse'
      ? dsseBundle(image, signer)
      : messageBundle(image, signer))
    pushed.push(await pushReferrer(target, image.descriptor, bundleReferrer(bundle, layout)))
  }
  return pushed
}

/** The descriptor of a `.sig` manifest with these layers, as it was pushed. */
export async function pushSignatureTag(
  target: PushTarget,
  digest: string,
  layers: readonly PushedLayer[],
): Promise<Descriptor> {
  const config = Buffer.from(JSON.stringify({ architecture: '', os: '', config: {}, rootfs: {} }))
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: await pushBlob(target, config, 'application/vnd.oci.image.config.v1+json'),
    layers: await Promise.all(layers.map((layer) => pushLayer(target, layer))),
  }
  return pushManifest(target, manifest, { tag: signatureTag(digest) })
}

/** One signature of the tag scheme: the payload as a layer, the signature in its annotation. */
export async function tagLayer(image: SignedImage, signer: Signer): Promise<PushedLayer> {
  const bytes = toBytes(simpleSigningPayload(image.reference, image.descriptor.digest))
  const signature = await signer.sign(bytes)
  return {
    mediaType: SIMPLE_SIGNING,
    bytes,
    annotations: { [SIGNATURE_ANNOTATION]: toBase64(signature) },
  }
}

/** The document cosign 1 and 2 sign. */
export function simpleSigningPayload(reference: string, digest: string): object {
  return {
    critical: {
      identity: { 'docker-reference': reference },
      image: { 'docker-manifest-digest': digest },
      type: PAYLOAD_TYPE,
    },
    optional: null,
  }
}

/** The in-toto statement cosign 3 signs. */
export function signStatement(digest: string): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ digest: { sha256: digest.replace('sha256:', '') } }],
    predicateType: SIGN_PREDICATE,
    predicate: {},
  }
}

/** A bundle with a signed statement about the image. */
export async function dsseBundle(image: SignedImage, signer: Signer): Promise<object> {
  return envelopeBundle(toBytes(signStatement(image.descriptor.digest)), signer)
}

/** A bundle with this payload in a DSSE envelope. */
export async function envelopeBundle(
  payload: Uint8Array,
  signer: Signer,
  payloadType: string = IN_TOTO,
): Promise<object> {
  const signature = await signer.sign(preAuthenticationEncoding(payloadType, payload))
  return {
    ...bundleHead(signer),
    dsseEnvelope: {
      payload: toBase64(payload),
      payloadType,
      signatures: [{ sig: toBase64(signature), keyid: '' }],
    },
  }
}

/** A bundle with a signature over the image's manifest. */
export async function messageBundle(image: SignedImage, signer: Signer): Promise<object> {
  if (image.manifest === undefined) throw new TypeError('a message signature needs the manifest')
  const digest = Buffer.from(image.descriptor.digest.replace('sha256:', ''), 'hex')
  return {
    ...bundleHead(signer),
    messageSignature: {
      messageDigest: { algorithm: 'SHA2_256', digest: digest.toString('base64') },
      signature: toBase64(await signer.sign(image.manifest)),
    },
  }
}

/** The artifact that carries a bundle, to be pushed as a referrer of the image. */
export function bundleReferrer(
  bundle: object,
  content: Exclude<SignatureLayout, 'tag'>,
): PushedReferrer {
  return {
    artifactType: BUNDLE_V03,
    layers: [{ mediaType: BUNDLE_V03, bytes: toBytes(bundle) }],
    annotations:
      content === 'dsse'
        ? {
            'dev.sigstore.bundle.content': 'dsse-envelope',
            'dev.sigstore.bundle.predicateType': SIGN_PREDICATE,
          }
        : { 'dev.sigstore.bundle.content': 'message-signature' },
  }
}

function bundleHead({ hint }: Signer): object {
  return { mediaType: BUNDLE_V03, verificationMaterial: { publicKey: { hint } } }
}

function toBytes(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
