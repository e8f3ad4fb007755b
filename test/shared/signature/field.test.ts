import type { KeyObject } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { witnessed } from '#functions/local/evidence.ts'
import { pushManifest, pushReferrer } from '#functions/local/push.ts'
import {
  attest,
  bundleReferrer,
  dsseBundle,
  envelopeBundle,
  pushSignatureTag,
  type SignedImage,
  signImage,
  tagLayer,
} from '#functions/local/sign.ts'
import { localSigner } from '#functions/local/signer.ts'
import { signWith, spkiOf } from '#functions/local/sigstore/keys.ts'
import { toBase64, utf8 } from '#shared/bytes.ts'
import { createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import { signatureTag } from '#shared/signature/cosign.ts'
import { createKeylessAttestor } from '#shared/signature/sigstore/attestor.ts'
import type { HashAlgorithm } from '#shared/signature/types.ts'
import { ISSUER, type Json, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'
import { keyPair, openStage, pemOf, type Stage } from './setup.ts'

/** What happened to people, by its number in the list of cases: rows that say what has to come out. */

const world = new SigstoreWorld()
const root = JSON.stringify(world.trustedRoot())
const K1 = keyPair('P-256', 'K1')
const K2 = keyPair('P-256', 'K2')
const k1 = localSigner(K1.privateKey)
const k2 = localSigner(K2.privateKey)

let stage: Stage
let fallback: Stage
beforeAll(async () => {
  ;[stage, fallback] = await Promise.all([openStage(), openStage({ referrersApi: false })])
})
afterAll(() => Promise.all([stage.close(), fallback.close()]))

type Fields = Omit<Parameters<typeof createCosignKeyAttestor>[0], 'name'>
const attestorOf = (fields: Fields = {}, key: KeyObject = K1.publicKey) =>
  createCosignKeyAttestor({ name: 'k1', data: pemOf(key), ...fields })

/** What `verifyImageSignatures` counts. */
async function count(image: SignedImage, fields?: Fields, where = stage): Promise<0 | 1> {
  const { status } = await where.verify(image, await attestorOf(fields))
  expect(status).not.toBe('inconclusive')
  return status === 'verified' ? 1 : 0
}

test('IMG-04: a signature of another image under the tag of this one', async () => {
  const [image, other] = [await stage.image(), await stage.image()]
  const { digest } = image.descriptor
  await pushSignatureTag(stage.target, digest, [await tagLayer(other, k1)])
  expect(await count(image)).toBe(0)
  await pushSignatureTag(stage.target, digest, [await tagLayer(image, k1)])
  expect(await count(image)).toBe(1)
})

test('IMG-05: another name in the payload, as of a mirrored image', async () => {
  const image = await stage.image()
  await signImage(stage.target, { ...image, reference: 'registry.test/app' }, [k1], 'tag')
  expect(await count(image)).toBe(1)
})

test('IMG-07: annotations that were signed, and those of the layer', async () => {
  const [signed, beside] = [await stage.image(), await stage.image()]
  const annotations = { stage: 'ci' }
  await signImage(stage.target, { ...signed, annotations }, [k1], 'tag')
  const layer = await tagLayer(beside, k1)
  const dressed = { ...layer, annotations: { ...layer.annotations, ...annotations } }
  await pushSignatureTag(stage.target, beside.descriptor.digest, [dressed])
  expect([await count(signed, { annotations }), await count(beside, { annotations })]).toEqual([
    1, 0,
  ])
})

describe('IMG-08: a registry without the referrers API', () => {
  test.each([
    { name: 'finds bundles by the fallback tag', type: undefined },
    { name: 'finds them where older writers left the type out', type: null },
    {
      name: 'finds them under the type of an empty config',
      type: 'application/vnd.oci.empty.v1+json',
    },
  ])('$name', async ({ type }) => {
    const image = await fallback.image()
    const referrer = bundleReferrer(await dsseBundle(image, k1), 'dsse')
    const told = type === undefined ? {} : { fallbackArtifactType: type }
    await pushReferrer(fallback.target, image.descriptor, { ...referrer, ...told })
    expect(await count(image, {}, fallback)).toBe(1)
  })

  test('an empty list leaves the .sig tag', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [k1], 'tag')
    expect(await count(image)).toBe(1)
  })

  test('an error is neither "unsigned" nor a pass', async () => {
    const image = await stage.image()
    stage.registry.faults.add({ kind: 'status', status: 500 }, { on: /referrers/ })
    const { status } = await stage.verify(image, await attestorOf())
    stage.registry.faults.clear()
    expect(status).toBe('inconclusive')
  })
})

describe('IMG-10: keys that hash by their curve', () => {
  const HASHES = ['sha256', 'sha384', 'sha512'] as const
  test.each([
    ['P-256', 'sha256'],
    ['P-384', 'sha384'],
    ['P-521', 'sha512'],
  ] as const)('%s verifies with %s only', async (kind, own: HashAlgorithm) => {
    const { privateKey, publicKey } = keyPair(kind, 'IMG-10')
    const image = await stage.image()
    await signImage(stage.target, image, [localSigner(privateKey, own)], 'tag')
    const counts = []
    for (const hashAlgorithm of HASHES) {
      const attestor = await attestorOf({ hashAlgorithm }, publicKey)
      counts.push((await stage.verify(image, attestor)).status === 'verified')
    }
    expect(counts).toEqual(HASHES.map((hash) => hash === own))
  })
})

test('IMG-13: an index is signed, and not the manifest of its platform', async () => {
  const child = await stage.image()
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [{ ...child.descriptor, platform: { os: 'linux', architecture: 'amd64' } }],
  }
  const descriptor = await pushManifest(stage.target, index)
  const image = { descriptor, reference: 'registry.test/app' }
  await signImage(stage.target, image, [k1], 'tag')
  expect([await count(image), await count(child)]).toEqual([1, 0])
})

describe('IMG-14: a provenance that the policy takes for a signature', () => {
  const PROVENANCE = 'https://slsa.dev/provenance/v1'
  const other = { name: 'x', digest: { sha256: 'c'.repeat(64) } }
  const about = ({ descriptor }: SignedImage) => ({
    name: 'y',
    digest: { sha256: descriptor.digest.slice(7) },
  })
  test.each<{ name: string; statement: (image: SignedImage) => object; counts: 0 | 1 }>([
    {
      name: 'any of its subjects may be the image',
      statement: (image) => ({ subject: [other, about(image)] }),
      counts: 1,
    },
    { name: 'one has to be', statement: () => ({ subject: [other] }), counts: 0 },
    {
      name: 'its type has to be the one that was named',
      statement: (image) => ({
        subject: [about(image)],
        predicateType: 'https://slsa.dev/provenance/v0.2',
      }),
      counts: 0,
    },
  ])('$name', async ({ statement, counts }) => {
    const image = await stage.image()
    const attested = { predicateType: PROVENANCE, predicate: {}, layout: 'dsse' } as const
    await attest(stage.target, image, k1, { ...attested, statement: statement(image) })
    expect(await count(image, { predicateTypes: [PROVENANCE] })).toBe(counts)
  })

  test.each([
    { name: 'of another payload type', payload: '{}', type: 'text/plain' },
    { name: 'that is no JSON', payload: 'signed', type: undefined },
  ])('not one $name', async ({ payload, type }) => {
    const image = await stage.image()
    const bundle = await envelopeBundle(utf8(payload), k1, type)
    const referrer = bundleReferrer(bundle, 'dsse', PROVENANCE)
    await pushReferrer(stage.target, image.descriptor, referrer)
    expect(await count(image, { predicateTypes: [PROVENANCE] })).toBe(0)
  })
})

describe('IMG-16: material inside the artifact is no key', () => {
  const identity = () =>
    createKeylessAttestor({
      name: 'k1',
      identities: [{ issuer: ISSUER, subject: SUBJECT }],
      trust: { root },
    })

  test.each([{ kind: 'a key' }, { kind: 'an identity' }])(
    'a public key in the annotation of a certificate, for $kind',
    async ({ kind }) => {
      const image = await stage.image()
      const layer = await tagLayer(image, k2)
      const certificate = { 'dev.sigstore.cosign/certificate': pemOf(K2.publicKey) }
      const dressed = { ...layer, annotations: { ...layer.annotations, ...certificate } }
      await pushSignatureTag(stage.target, image.descriptor.digest, [dressed])
      const attestor = kind === 'a key' ? await attestorOf() : await identity()
      expect((await stage.verify(image, attestor)).status).toBe('rejected')
    },
  )

  test.each<{ name: string; material: object }>([
    { name: 'a hint that names it', material: { publicKey: { hint: k2.hint } } },
    {
      name: 'a certificate that is one',
      material: { certificate: { rawBytes: toBase64(spkiOf(K2)) } },
    },
  ])('$name in a bundle', async ({ material }) => {
    const image = await stage.image()
    const bundle = { ...(await dsseBundle(image, k2)), verificationMaterial: material }
    await pushReferrer(stage.target, image.descriptor, bundleReferrer(bundle, 'dsse'))
    expect(await count(image)).toBe(0)
    expect((await stage.verify(image, await identity())).status).toBe('rejected')
  })
})

describe('IMG-17: a log entry has to be about this very signature', () => {
  const other = utf8('another payload')
  test.each<{
    name: string
    change?: (spec: Json) => void
    rekor?: 'v1' | 'unknown'
    counts: 0 | 1
  }>([
    { name: 'and then it counts', counts: 1 },
    {
      name: 'not about another valid signature',
      change: (spec) => {
        spec.signature.content = toBase64(signWith(other, K1))
      },
      counts: 0,
    },
    {
      name: 'not about another payload',
      change: (spec) => {
        spec.data.hash.value = 'c'.repeat(64)
      },
      counts: 0,
    },
    {
      name: 'not with another key',
      change: (spec) => {
        spec.signature.publicKey.content = toBase64(utf8(pemOf(K2.publicKey)))
      },
      counts: 0,
    },
    { name: 'not by an unknown log', rekor: 'unknown', counts: 0 },
  ])('$name, under the tag and in a bundle', async ({ change, rekor = 'v1', counts }) => {
    const changeBody = ({ spec }: Json) => {
      // Bundles of statements are logged in another form, which is not what is changed here.
      if (spec.signature !== undefined) change?.(spec)
    }
    const kind = 'hashedrekord 0.0.1'
    const signer = witnessed(k1, world, { rekor, entry: { kind, changeBody } })
    for (const layout of ['tag', 'message', 'oci11'] as const) {
      const image = await stage.image()
      await signImage(stage.target, image, [signer], layout)
      expect([layout, await count(image, { trust: { root } })]).toEqual([layout, counts])
    }
  })
})

test('a tag that holds no signatures is a no, and one that cannot be read is none', async () => {
  const image = await stage.image()
  const { digest } = image.descriptor
  await pushManifest(
    stage.target,
    { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests: [] },
    { tag: signatureTag(digest) },
  )
  expect(await count(image)).toBe(0)
})
