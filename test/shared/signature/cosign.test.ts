import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  OCI_INDEX,
  OCI_MANIFEST,
  type PushedLayer,
  pushBlob,
  pushManifest,
} from '#functions/local/push.ts'
import {
  pushSignatureTag,
  type SignedImage,
  signImage,
  simpleSigningPayload,
  tagLayer,
} from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import { SIGNATURE_ANNOTATION, SIMPLE_SIGNING, signatureTag } from '#shared/signature/cosign.ts'
import type { Attestor } from '#shared/signature/types.ts'
import { attestorOf, detailsOf, keyPair, openStage, pemOf, type Stage } from './setup.ts'

const ours = localSigner(keyPair('P-256').privateKey)
const theirs = localSigner(keyPair('P-256', 'theirs').privateKey)
const NOT_OURS = 'signature is not by this ECDSA P-256 key'
const OTHER = `sha256:${'b'.repeat(64)}`

let stage: Stage
let attestor: Attestor
beforeAll(async () => {
  stage = await openStage()
  attestor = await attestorOf(keyPair('P-256').publicKey)
})
afterAll(() => stage.close())

/** A layer with this payload, signed; `annotations` and `mediaType` replace what cosign would write. */
async function layerOf(
  payload: object | Uint8Array,
  signer: Signer = ours,
  changes: Partial<PushedLayer> = {},
): Promise<PushedLayer> {
  const bytes = payload instanceof Uint8Array ? payload : Buffer.from(JSON.stringify(payload))
  const signature = Buffer.from(await signer.sign(bytes)).toString('base64')
  const annotations = { [SIGNATURE_ANNOTATION]: signature, ...changes.annotations }
  return { mediaType: SIMPLE_SIGNING, bytes, ...changes, annotations }
}

/** cosign's payload with something replaced in its `critical` part. */
function payloadWith(image: SignedImage, critical: object): object {
  const payload = simpleSigningPayload(image.reference, image.descriptor.digest)
  return { ...payload, critical: { ...(payload as { critical: object }).critical, ...critical } }
}

describe('a signature under the .sig tag does not count when', () => {
  test.each<{
    name: string
    layer: (image: SignedImage) => Promise<PushedLayer>
    detail: string | ((image: SignedImage) => string)
  }>([
    { name: 'another key made it', layer: (image) => tagLayer(image, theirs), detail: NOT_OURS },
    {
      name: 'its payload is about another image',
      layer: (image) => layerOf(simpleSigningPayload(image.reference, OTHER)),
      detail: (image) => `payload is about "${OTHER}", expected ${image.descriptor.digest}`,
    },
    {
      name: 'its payload spells the digest in upper case',
      layer: (image) => layerOf(simpleSigningPayload('a', image.descriptor.digest.toUpperCase())),
      detail: (image) =>
        `payload is about ${JSON.stringify(image.descriptor.digest.toUpperCase())}, expected ${image.descriptor.digest}`,
    },
    {
      name: 'its payload spells the name of the digest as Go would also accept it',
      layer: (image) =>
        layerOf(
          payloadWith(image, { image: { 'Docker-manifest-digest': image.descriptor.digest } }),
        ),
      detail: (image) => `payload is about nothing, expected ${image.descriptor.digest}`,
    },
    {
      name: 'its payload is of another type',
      layer: (image) => layerOf(payloadWith(image, { type: 'atomic container signature' })),
      detail:
        'payload type is "atomic container signature", expected "cosign container image signature"',
    },
    {
      name: 'its payload type has a capital letter',
      layer: (image) => layerOf(payloadWith(image, { type: 'Cosign container image signature' })),
      detail:
        'payload type is "Cosign container image signature", expected "cosign container image signature"',
    },
    {
      name: 'its payload has no type',
      layer: (image) => layerOf(payloadWith(image, { type: undefined })),
      detail: 'payload type is nothing, expected "cosign container image signature"',
    },
    {
      name: 'the claims are in the prototype of the payload',
      layer: (image) =>
        layerOf(Buffer.from(`{"__proto__":${JSON.stringify(payloadWith(image, {}))}}`)),
      detail: 'payload type is nothing, expected "cosign container image signature"',
    },
    {
      name: 'the payload was changed after signing',
      async layer(image) {
        const layer = await tagLayer(image, ours)
        return { ...layer, bytes: Buffer.concat([layer.bytes, Buffer.from('\n')]) }
      },
      detail: NOT_OURS,
    },
    {
      name: 'the signature was changed',
      async layer(image) {
        const layer = await tagLayer(image, ours)
        const bytes = Buffer.from(layer.annotations?.[SIGNATURE_ANNOTATION] ?? '', 'base64')
        bytes[20] = bytes[20]! ^ 1
        return { ...layer, annotations: { [SIGNATURE_ANNOTATION]: bytes.toString('base64') } }
      },
      detail: NOT_OURS,
    },
    {
      name: 'the signature has a byte after its DER',
      async layer(image) {
        const layer = await tagLayer(image, ours)
        const bytes = Buffer.from(layer.annotations?.[SIGNATURE_ANNOTATION] ?? '', 'base64')
        const longer = Buffer.concat([bytes, Buffer.from([0])]).toString('base64')
        return { ...layer, annotations: { [SIGNATURE_ANNOTATION]: longer } }
      },
      detail: NOT_OURS,
    },
    {
      name: 'the payload is not JSON',
      layer: () => layerOf(Buffer.from('signed')),
      detail: expect.any(String) as unknown as string,
    },
    {
      name: 'the payload names the digest twice',
      layer: (image) =>
        layerOf(
          Buffer.from(
            JSON.stringify(payloadWith(image, {})).replace(
              '"docker-manifest-digest"',
              `"docker-manifest-digest":"${OTHER}","docker-manifest-digest"`,
            ),
          ),
        ),
      detail: expect.any(String) as unknown as string,
    },
    {
      name: 'the payload is not UTF-8',
      layer: () => layerOf(Buffer.from([0x22, 0xff, 0x22])),
      detail: 'JSON is not valid UTF-8',
    },
    {
      name: 'the payload is larger than any real one',
      layer: (image) =>
        layerOf({ ...payloadWith(image, {}), optional: { a: 'a'.repeat(1024 * 1024) } }),
      detail: expect.stringMatching(
        /^payload of \d+ bytes, at most 1048576 are read$/,
      ) as unknown as string,
    },
    {
      name: 'the layer is of another media type',
      layer: (image) =>
        layerOf(payloadWith(image, {}), ours, {
          mediaType: 'application/vnd.dsse.envelope.v1+json',
        }),
      detail: `layer media type is "application/vnd.dsse.envelope.v1+json", expected ${SIMPLE_SIGNING}`,
    },
    {
      name: 'an annotation brings the key along',
      layer: (image) =>
        layerOf(payloadWith(image, {}), theirs, {
          annotations: {
            'dev.sigstore.cosign/certificate': pemOf(keyPair('P-256', 'theirs').publicKey),
            'dev.sigstore.cosign/chain': pemOf(keyPair('P-256', 'theirs').publicKey),
          },
        }),
      detail: NOT_OURS,
    },
    ...[
      { name: 'is empty', text: '', detail: 'signature annotation is missing' },
      {
        name: 'is base64url',
        text: '-_-_',
        detail: 'signature annotation is not base64 of at most 2048 bytes',
      },
      {
        name: 'is unpadded',
        text: 'TUU',
        detail: 'signature annotation is not base64 of at most 2048 bytes',
      },
      {
        name: 'is longer than any signature',
        text: 'A'.repeat(8000),
        detail: 'signature annotation is not base64 of at most 2048 bytes',
      },
    ].map(({ name, text, detail }) => ({
      name: `the signature annotation ${name}`,
      layer: (image: SignedImage) =>
        layerOf(payloadWith(image, {}), ours, { annotations: { [SIGNATURE_ANNOTATION]: text } }),
      detail,
    })),
  ])('$name', async ({ layer, detail }) => {
    const image = await stage.image()
    await pushSignatureTag(stage.target, image.descriptor.digest, [await layer(image)])
    const verification = await stage.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual([typeof detail === 'function' ? detail(image) : detail])
  })

  test('base64 of the signature has a line break in it', async () => {
    const image = await stage.image()
    const layer = await tagLayer(image, ours)
    const signature = layer.annotations?.[SIGNATURE_ANNOTATION] ?? ''
    const broken = `${signature.slice(0, 40)}\n${signature.slice(40)}`
    await pushSignatureTag(stage.target, image.descriptor.digest, [
      { ...layer, annotations: { [SIGNATURE_ANNOTATION]: broken } },
    ])
    expect(detailsOf(await stage.verify(image, attestor))).toEqual([
      'signature annotation is not base64 of at most 2048 bytes',
    ])
  })

  test.each<{ name: string; change: (layer: object) => object; detail: RegExp }>([
    {
      name: 'states a size that is wrong',
      change: (layer) => ({ ...layer, size: 10 }),
      detail: /: more than 10 bytes$/,
    },
    {
      name: 'states a negative size',
      change: (layer) => ({ ...layer, size: -1 }),
      detail: /^layer size is not/,
    },
    {
      name: 'states a fraction as its size',
      change: (layer) => ({ ...layer, size: 1.5 }),
      detail: /^layer size is not/,
    },
    {
      name: 'states a digest of another algorithm',
      change: (layer) => ({ ...layer, digest: `sha512:${'a'.repeat(128)}` }),
      detail: /^layer digest is "sha512:a+…", expected sha256:<64 hex>$/,
    },
    {
      name: 'names a blob that does not exist',
      change: (layer) => ({ ...layer, digest: OTHER }),
      detail: /does not exist$/,
    },
    { name: 'is not an object', change: () => [], detail: /^layer media type is nothing$/ },
    {
      name: 'has a number for its signature',
      change: (layer) => ({ ...layer, annotations: { [SIGNATURE_ANNOTATION]: 1 } }),
      detail: /^signature annotation is missing$/,
    },
    {
      name: 'has a list for its annotations',
      change: (layer) => ({ ...layer, annotations: [] }),
      detail: /^signature annotation is missing$/,
    },
  ])('its layer $name', async ({ change, detail }) => {
    const image = await stage.image()
    const layer = await tagLayer(image, ours)
    const descriptor = await pushBlob(stage.target, layer.bytes, layer.mediaType)
    const config = await pushBlob(stage.target, Buffer.from('{}'))
    const layers = [change({ ...descriptor, annotations: layer.annotations })]
    await pushManifest(
      stage.target,
      { schemaVersion: 2, mediaType: OCI_MANIFEST, config, layers },
      { tag: signatureTag(image.descriptor.digest) },
    )
    const verification = await stage.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual([expect.stringMatching(detail)])
  })

  test('the registry gives other bytes for its payload', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    const remove = stage.registry.faults.add({ kind: 'wrong-bytes' }, { on: /blobs/ })
    const verification = await stage.verify(image, attestor)
    remove()
    expect(verification.status).toBe('inconclusive')
    expect(detailsOf(verification)).toEqual([expect.stringMatching(/blob sha256:/)])
  })

  test('the tag holds an index', async () => {
    const image = await stage.image()
    const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests: [] }
    await pushManifest(stage.target, index, { tag: signatureTag(image.descriptor.digest) })
    const verification = await stage.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual(['the signature tag holds no image manifest'])
  })

  test('it is beyond the bound of 50 layers', async () => {
    const image = await stage.image()
    const bad = await tagLayer(image, theirs)
    const layers = [...Array.from({ length: 50 }, () => bad), await tagLayer(image, ours)]
    await pushSignatureTag(stage.target, image.descriptor.digest, layers)
    const verification = await stage.verify(image, attestor)
    expect(verification).toMatchObject({
      status: 'inconclusive',
      error: {
        code: 'REGISTRY_TOO_LARGE',
        message: expect.stringMatching(
          /; 47 more; at least 1 beyond the bound were not looked at$/,
        ),
      },
    })
    expect(verification.candidates).toHaveLength(50)
  })
})

describe('a signature under the .sig tag counts', () => {
  test('wherever it is among others, and says which one it was', async () => {
    const image = await stage.image()
    const layers = await Promise.all(
      [theirs, theirs, ours].map((signer) => tagLayer(image, signer)),
    )
    const manifest = await pushSignatureTag(stage.target, image.descriptor.digest, layers)
    const verification = await stage.verify(image, attestor)
    expect(verification).toEqual({
      status: 'verified',
      signer: expect.stringMatching(/^ECDSA P-256 key sha256:[0-9a-f]{64}$/),
      candidates: [0, 1, 2].map((index) => ({
        source: 'tag',
        location: `${manifest.digest} layer ${index}`,
        verified: index === 2,
        detail: index === 2 ? 'signature verifies (ECDSA, sha256)' : NOT_OURS,
      })),
    })
  })

  test('when the image was copied from another repository', async () => {
    const image = await stage.image()
    await signImage(stage.target, { ...image, reference: 'elsewhere.test/app' }, [ours], 'tag')
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('whatever the other annotations say', async () => {
    const image = await stage.image()
    const layer = await tagLayer(image, ours)
    const annotations = {
      ...layer.annotations,
      'dev.sigstore.cosign/certificate': pemOf(keyPair('P-256', 'theirs').publicKey),
      'dev.sigstore.cosign/bundle': '{"SignedEntryTimestamp":"junk"}',
      'dev.sigstore.cosign/chain': 'junk'.repeat(20_000),
    }
    await pushSignatureTag(stage.target, image.descriptor.digest, [{ ...layer, annotations }])
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })
})
