import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  OCI_INDEX,
  OCI_MANIFEST,
  type PushedReferrer,
  pushBlob,
  pushManifest,
  pushReferrer,
} from '#functions/local/push.ts'
import {
  bundleReferrer,
  dsseBundle,
  envelopeBundle,
  messageBundle,
  oci11Referrer,
  type SignedImage,
  signImage,
  signStatement,
  tagLayer,
} from '#functions/local/sign.ts'
import { localSigner } from '#functions/local/signer.ts'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { BUNDLE_V03, readBundle } from '#shared/signature/bundle.ts'
import { SIGN_PREDICATE } from '#shared/signature/statement.ts'
import type { Attestor } from '#shared/signature/types.ts'
import { attestorOf, derOf, detailsOf, keyPair, openStage, type Stage } from './setup.ts'

type Image = SignedImage & { manifest: Uint8Array }
/** A bundle whose parts a test may replace. */
type Bundle = {
  dsseEnvelope: { payload: string; payloadType: string; signatures: { sig: string }[] }
  messageSignature: { messageDigest: object; signature: string }
}

const ours = localSigner(keyPair('P-256').privateKey)
const theirs = localSigner(keyPair('P-256', 'theirs').privateKey)
const NOT_OURS = 'signature is not by this ECDSA P-256 key'
const OTHER = `sha256:${'b'.repeat(64)}`
const OTHER_HEX = 'b'.repeat(64)

let stage: Stage
/** A registry without the referrers API, whose listing anybody can write. */
let fallback: Stage
let attestor: Attestor
beforeAll(async () => {
  stage = await openStage()
  fallback = await openStage({ referrersApi: false })
  attestor = await attestorOf(keyPair('P-256').publicKey)
})
afterAll(() => Promise.all([stage.close(), fallback.close()]))

const hexOf = (image: SignedImage) => image.descriptor.digest.replace('sha256:', '')
const bytesOf = (value: object) => Buffer.from(JSON.stringify(value))
const dsse = async (image: Image, change: (bundle: Bundle) => object) =>
  change((await dsseBundle(image, ours)) as Bundle)
const message = async (image: Image, change: (bundle: Bundle) => object) =>
  change((await messageBundle(image, ours)) as Bundle)
/** A bundle with our signature over this statement. */
const statement = (change: object) => (image: Image) =>
  envelopeBundle(bytesOf({ ...signStatement(image.descriptor.digest), ...change }), ours)

/** Pushes a bundle without the annotation that says what its statement is. */
async function push(
  where: Stage,
  image: Image,
  bundle: object,
  changes: Partial<PushedReferrer> = {},
) {
  const artifact = { ...bundleReferrer(bundle, 'dsse'), annotations: {}, ...changes }
  return pushReferrer(where.target, image.descriptor, artifact)
}

describe('a Sigstore bundle does not count when', () => {
  const base64 = 'DSSE payload is not strict base64'
  test.each<{
    name: string
    bundle: (image: Image) => Promise<object>
    detail: string | ((image: Image) => string)
  }>([
    {
      name: 'another key made its DSSE signature',
      bundle: (image) => dsseBundle(image, theirs),
      detail: NOT_OURS,
    },
    {
      name: 'another key made its message signature',
      bundle: (image) => messageBundle(image, theirs),
      detail: NOT_OURS,
    },
    {
      name: 'its statement is about another image',
      bundle: statement({ subject: [{ digest: { sha256: OTHER_HEX } }] }),
      detail: (image) => `statement is about sha256 "${OTHER_HEX}", expected ${hexOf(image)}`,
    },
    {
      name: 'its statement has no subject',
      bundle: statement({ subject: [] }),
      detail: (image) => `statement is about sha256 nothing, expected ${hexOf(image)}`,
    },
    {
      name: 'its statement has an object for its subjects',
      bundle: (image) => statement({ subject: { digest: { sha256: hexOf(image) } } })(image),
      detail: (image) => `statement is about sha256 nothing, expected ${hexOf(image)}`,
    },
    {
      name: 'its subject spells the digest in upper case',
      bundle: (image) =>
        statement({ subject: [{ digest: { sha256: hexOf(image).toUpperCase() } }] })(image),
      detail: (image) =>
        `statement is about sha256 "${hexOf(image).toUpperCase()}", expected ${hexOf(image)}`,
    },
    {
      name: 'its subject has the digest under another algorithm',
      bundle: (image) => statement({ subject: [{ digest: { sha512: hexOf(image) } }] })(image),
      detail: (image) => `statement is about sha256 nothing, expected ${hexOf(image)}`,
    },
    {
      name: 'its statement is a provenance',
      bundle: statement({ predicateType: 'https://slsa.dev/provenance/v1' }),
      detail: 'an attestation of type "https://slsa.dev/provenance/v1", not an image signature',
    },
    {
      name: 'its statement has no predicate type',
      bundle: statement({ predicateType: undefined }),
      detail: 'an attestation of type nothing, not an image signature',
    },
    {
      name: 'its statement is of an unknown version',
      bundle: statement({ _type: 'https://in-toto.io/Statement/v2' }),
      detail:
        'statement type is "https://in-toto.io/Statement/v2", expected an in-toto Statement v0.1 or v1',
    },
    {
      name: 'its payload is not JSON',
      bundle: () => envelopeBundle(Buffer.from('signed'), ours),
      detail: expect.any(String) as unknown as string,
    },
    {
      name: 'its payload type is another, signed as such',
      bundle: (image) =>
        envelopeBundle(bytesOf(signStatement(image.descriptor.digest)), ours, 'application/json'),
      detail: 'DSSE payload type is "application/json", expected application/vnd.in-toto+json',
    },
    {
      name: 'its payload type was changed after signing',
      bundle: async (image) => {
        const bundle = (await envelopeBundle(
          bytesOf(signStatement(image.descriptor.digest)),
          ours,
          'text/plain',
        )) as Bundle
        return {
          ...bundle,
          dsseEnvelope: { ...bundle.dsseEnvelope, payloadType: 'application/vnd.in-toto+json' },
        }
      },
      detail: NOT_OURS,
    },
    {
      name: 'its signature is over the payload and not over its pre-authentication encoding',
      bundle: (image) =>
        dsse(image, (bundle) => bundle).then(async (bundle) => {
          const { dsseEnvelope } = bundle as Bundle
          const sig = await ours.sign(Buffer.from(dsseEnvelope.payload, 'base64'))
          const signatures = [{ sig: Buffer.from(sig).toString('base64') }]
          return { ...bundle, dsseEnvelope: { ...dsseEnvelope, signatures } }
        }),
      detail: NOT_OURS,
    },
    {
      name: 'its payload was changed after signing',
      bundle: (image) =>
        dsse(image, (bundle) => {
          const { predicate: _, ...rest } = signStatement(image.descriptor.digest) as {
            predicate: object
          }
          const payload = bytesOf({ ...rest, predicate: { a: 1 } }).toString('base64')
          return { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, payload } }
        }),
      detail: NOT_OURS,
    },
    {
      name: 'its envelope has two signatures, ours first',
      bundle: (image) =>
        dsse(image, (bundle) => {
          const [signature] = bundle.dsseEnvelope.signatures
          const signatures = [signature, signature]
          return { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, signatures } }
        }),
      detail: 'DSSE envelope has 2 signatures, expected one',
    },
    {
      name: 'its envelope has no signature',
      bundle: (image) =>
        dsse(image, (bundle) => ({
          ...bundle,
          dsseEnvelope: { ...bundle.dsseEnvelope, signatures: [] },
        })),
      detail: 'DSSE envelope has 0 signatures, expected one',
    },
    ...[
      {
        name: 'has a line break',
        change: (payload: string) => `${payload.slice(0, 8)}\n${payload.slice(8)}`,
      },
      {
        name: 'has junk in it',
        change: (payload: string) => `${payload.slice(0, 8)}*${payload.slice(8)}`,
      },
      { name: 'is unpadded', change: (payload: string) => `${payload.replaceAll('=', '')}AA` },
      { name: 'is base64url', change: (payload: string) => `-${payload.slice(1)}` },
    ].map(({ name, change }) => ({
      name: `the base64 of its payload ${name}`,
      bundle: (image: Image) =>
        dsse(image, (bundle) => {
          const payload = change(bundle.dsseEnvelope.payload)
          return { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, payload } }
        }),
      detail: base64,
    })),
    {
      name: 'its payload is larger than any real one',
      bundle: (image) =>
        dsse(image, (bundle) => ({
          ...bundle,
          dsseEnvelope: { ...bundle.dsseEnvelope, payload: 'A'.repeat(1_500_000) },
        })),
      detail: 'DSSE payload is larger than 1048576 bytes',
    },
    {
      name: 'its payload is missing',
      bundle: (image) =>
        dsse(image, (bundle) => ({
          ...bundle,
          dsseEnvelope: { ...bundle.dsseEnvelope, payload: null },
        })),
      detail: 'DSSE payload is missing',
    },
    {
      name: 'the base64 of its signature is not strict',
      bundle: (image) =>
        dsse(image, (bundle) => {
          const signatures = [{ sig: `${bundle.dsseEnvelope.signatures[0]?.sig} ` }]
          return { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, signatures } }
        }),
      detail: 'DSSE signature is not base64 of at most 2048 bytes',
    },
    {
      name: 'its message digest is of another manifest',
      bundle: (image) =>
        message(image, (bundle) => ({
          ...bundle,
          messageSignature: {
            ...bundle.messageSignature,
            messageDigest: { algorithm: 'SHA2_256', digest: Buffer.alloc(32).toString('base64') },
          },
        })),
      detail: 'message digest is not the digest of the image manifest',
    },
    {
      name: 'its message digest is of an unknown algorithm',
      bundle: (image) =>
        message(image, (bundle) => ({
          ...bundle,
          messageSignature: {
            ...bundle.messageSignature,
            messageDigest: { algorithm: 'SHA1', digest: '' },
          },
        })),
      detail: 'message digest algorithm is "SHA1"',
    },
    {
      name: 'its message signature is of another image',
      bundle: async (image) => {
        const other = (await messageBundle(await stage.image(), ours)) as Bundle
        const { messageDigest } = ((await messageBundle(image, ours)) as Bundle).messageSignature
        return { ...other, messageSignature: { ...other.messageSignature, messageDigest } }
      },
      detail: NOT_OURS,
    },
    {
      name: 'it holds an envelope and a message signature',
      bundle: async (image) => ({
        ...(await messageBundle(image, ours)),
        ...(await dsseBundle(image, ours)),
      }),
      detail: 'bundle holds both of dsseEnvelope and messageSignature, expected one',
    },
    {
      name: 'it holds neither an envelope nor a message signature',
      bundle: (image) => dsse(image, (bundle) => ({ ...bundle, dsseEnvelope: null })),
      detail: 'bundle holds neither of dsseEnvelope and messageSignature, expected one',
    },
    {
      name: 'it is of an unknown version',
      bundle: (image) =>
        dsse(image, (bundle) => ({
          ...bundle,
          mediaType: 'application/vnd.dev.sigstore.bundle.v0.4+json',
        })),
      detail:
        'bundle media type is "application/vnd.dev.sigstore.bundle.v0.4+json", expected versions 0.1 to 0.3',
    },
    {
      name: 'its hint names the key that made it',
      bundle: (image) => dsseBundle(image, { ...theirs, hint: ours.hint }),
      detail: NOT_OURS,
    },
    {
      name: 'it brings a public key where a certificate belongs',
      bundle: async (image) => ({
        ...(await dsseBundle(image, theirs)),
        verificationMaterial: {
          certificate: {
            rawBytes: Buffer.from(derOf(keyPair('P-256', 'theirs').publicKey)).toString('base64'),
          },
        },
      }),
      detail: NOT_OURS,
    },
    {
      name: 'it is not an object',
      bundle: async () => [],
      detail: 'bundle media type is nothing, expected versions 0.1 to 0.3',
    },
  ])('$name', async ({ bundle, detail }) => {
    const image = await stage.image()
    const pushed = await push(stage, image, await bundle(image))
    const verification = await stage.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(verification.candidates).toEqual([
      {
        source: 'bundle',
        location: pushed.digest,
        verified: false,
        detail: typeof detail === 'function' ? detail(image) : detail,
      },
    ])
  })

  test('its bytes are not JSON', async () => {
    const image = await stage.image()
    const layers = [
      { mediaType: BUNDLE_V03, bytes: bytesOf(await dsseBundle(image, ours)).subarray(0, 200) },
    ]
    await push(stage, image, {}, { layers })
    expect((await stage.verify(image, attestor)).status).toBe('rejected')
  })

  test('its manifest has two layers, or one of another type', async () => {
    const image = await stage.image()
    const bytes = bytesOf(await dsseBundle(image, ours))
    const layer = { mediaType: BUNDLE_V03, bytes }
    await push(stage, image, {}, { layers: [layer, layer] })
    await push(stage, image, {}, { layers: [{ ...layer, mediaType: 'application/json' }] })
    const verification = await stage.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification).sort()).toEqual([
      'bundle manifest does not have exactly one layer',
      'layer media type is "application/json", expected a Sigstore bundle',
    ])
  })

  test('the registry gives other bytes for its manifest or for its content', async () => {
    for (const on of ['manifests', 'blobs']) {
      const image = await stage.image()
      const [pushed] = await signImage(stage.target, image, [ours], 'dsse')
      const place = on === 'blobs' ? /blobs/ : new RegExp(pushed?.digest ?? '')
      const heal = stage.registry.faults.add({ kind: 'wrong-bytes' }, { on: place })
      const verification = await stage.verify(image, attestor)
      heal()
      expect(verification.status).toBe('inconclusive')
      expect(detailsOf(verification)).toEqual([expect.stringMatching(/content hashes to|bytes$/)])
    }
  })

  test('the annotation of its manifest says it is something else', async () => {
    const image = await stage.image()
    const predicateType = 'https://cyclonedx.org/bom'
    await push(stage, image, await dsseBundle(image, ours), {
      annotations: { 'dev.sigstore.bundle.predicateType': predicateType },
    })
    stage.registry.requests.length = 0
    const verification = await stage.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual([
      `an attestation of type "${predicateType}", not an image signature`,
    ])
    expect(stage.registry.requests.filter(({ url }) => url.includes('/blobs/'))).toEqual([])
  })

  test('the listing names a referrer of another image', async () => {
    const image = await fallback.image()
    const other = await fallback.image()
    // Our signature of this image in a referrer of the other one: only its subject is wrong.
    const pushed = await push(fallback, other, await dsseBundle(image, ours))
    await list(image, [pushed])
    const verification = await fallback.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual([
      `referrer is about "${other.descriptor.digest}", expected ${image.descriptor.digest}`,
    ])
  })

  test('the listing names a signature of another image, as cosign writes them by OCI 1.1', async () => {
    const image = await fallback.image()
    const other = await fallback.image()
    const referrer = oci11Referrer([await tagLayer(image, ours)])
    await list(image, [await pushReferrer(fallback.target, other.descriptor, referrer)])
    expect(detailsOf(await fallback.verify(image, attestor))).toEqual([
      `referrer is about "${other.descriptor.digest}", expected ${image.descriptor.digest}`,
    ])
  })

  test('the listing names something that has no subject', async () => {
    const image = await fallback.image()
    const bytes = bytesOf(await dsseBundle(image, ours))
    const manifest = {
      schemaVersion: 2,
      mediaType: OCI_MANIFEST,
      artifactType: BUNDLE_V03,
      config: await pushBlob(fallback.target, Buffer.from('{}')),
      layers: [await pushBlob(fallback.target, bytes, BUNDLE_V03)],
    }
    await list(image, [await pushManifest(fallback.target, manifest)])
    expect(detailsOf(await fallback.verify(image, attestor))).toEqual([
      `referrer is about nothing, expected ${image.descriptor.digest}`,
    ])
  })

  test('the listing names a manifest that is gone', async () => {
    const image = await fallback.image()
    await list(image, [{ mediaType: OCI_MANIFEST, digest: OTHER, size: 100 }])
    const verification = await fallback.verify(image, attestor)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual(['the referrer is listed but gone'])
  })

  /** Writes the fallback index of an image. */
  async function list(image: Image, manifests: readonly object[]): Promise<void> {
    const tag = image.descriptor.digest.replace(':', '-')
    const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests }
    await pushManifest(fallback.target, index, { tag })
  }
})

describe('a Sigstore bundle counts', () => {
  test.each(['dsse', 'message'] as const)('with a %s signature', async (layout) => {
    const image = await stage.image()
    const [pushed] = await signImage(stage.target, image, [ours], layout)
    expect((await stage.verify(image, attestor)).candidates).toEqual([
      {
        source: 'bundle',
        location: pushed?.digest,
        verified: true,
        detail: 'signature verifies (ECDSA, sha256)',
      },
    ])
  })

  test.each([
    'application/vnd.dev.sigstore.bundle+json;version=0.1',
    'application/vnd.dev.sigstore.bundle+json;version=0.2',
    'application/vnd.dev.sigstore.bundle+json;version=0.3',
  ])('of media type %s', async (mediaType) => {
    const image = await stage.image()
    const bytes = bytesOf({ ...(await dsseBundle(image, ours)), mediaType })
    await push(stage, image, {}, { artifactType: mediaType, layers: [{ mediaType, bytes }] })
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('when its statement is v0.1, or names the image as its second subject', async () => {
    const changes = [
      () => ({ _type: 'https://in-toto.io/Statement/v0.1' }),
      (image: Image) => ({
        subject: [
          { digest: { sha256: OTHER_HEX } },
          { name: 'app', digest: { sha256: hexOf(image) } },
        ],
      }),
    ]
    for (const change of changes) {
      const image = await stage.image()
      await push(stage, image, await statement(change(image))(image))
      expect((await stage.verify(image, attestor)).status).toBe('verified')
    }
  })

  test('with a message digest of SHA-384', async () => {
    const image = await stage.image()
    const digest = await crypto.subtle.digest('SHA-384', new Uint8Array(image.manifest))
    const bundle = await message(image, (good) => ({
      ...good,
      messageSignature: {
        ...good.messageSignature,
        messageDigest: { algorithm: 'SHA2_384', digest: Buffer.from(digest).toString('base64') },
      },
    }))
    await push(stage, image, bundle)
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test.each([
    { said: 'nothing', told: null },
    { said: 'the empty type', told: 'application/vnd.oci.empty.v1+json' },
    { said: 'an empty string', told: '' },
  ])('when the fallback listing says $said about its type', async ({ told }) => {
    const image = await fallback.image()
    const artifact = bundleReferrer(await dsseBundle(image, ours), 'dsse')
    await pushReferrer(fallback.target, image.descriptor, {
      ...artifact,
      fallbackArtifactType: told,
    })
    expect((await fallback.verify(image, attestor)).status).toBe('verified')
  })

  test('when its manifest gives its type only through its layer', async () => {
    const image = await stage.image()
    await push(stage, image, await dsseBundle(image, ours), { artifactType: '' })
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('beside other artifacts, which are neither read nor counted', async () => {
    const image = await stage.image()
    const sbom = { mediaType: 'application/json', bytes: Buffer.from('{}') }
    await pushReferrer(stage.target, image.descriptor, {
      artifactType: 'application/vnd.cyclonedx+json',
      layers: [sbom],
    })
    await pushReferrer(stage.target, image.descriptor, { artifactType: '', layers: [sbom] })
    expect(await stage.verify(image, attestor)).toEqual({
      status: 'rejected',
      reason: `no signature found for ${stage.registry.host}/app@${image.descriptor.digest}: neither tag sha256-${hexOf(image)}.sig nor a Sigstore bundle among its referrers`,
      candidates: [],
    })
    await signImage(stage.target, image, [ours], 'dsse')
    const verification = await stage.verify(image, attestor)
    expect(verification.status).toBe('verified')
    expect(verification.candidates).toHaveLength(1)
  })
})

describe('readBundle', () => {
  const digest = `sha256:${'a'.repeat(64)}`
  const manifest = () => Promise.resolve(utf8('{}'))

  async function outcomeOf(bytes: Uint8Array): Promise<unknown> {
    return readBundle(new Uint8Array(bytes), digest, manifest).then(
      () => 'read',
      (error) => error,
    )
  }

  test('fails with AdmissionError only, on any bytes and any JSON', async () => {
    const json = fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)))
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 200 }), json), async (bytes) => {
        expect(await outcomeOf(bytes)).toBeInstanceOf(AdmissionError)
      }),
    )
  })

  test('fails with AdmissionError only, on bundles with any part replaced by any JSON', async () => {
    const statementBytes = bytesOf(signStatement(digest))
    const good = {
      mediaType: BUNDLE_V03,
      dsseEnvelope: {
        payload: statementBytes.toString('base64'),
        payloadType: 'application/vnd.in-toto+json',
        signatures: [{ sig: 'AAAA' }],
      },
      messageSignature: {
        messageDigest: { algorithm: 'SHA2_256', digest: 'AAAA' },
        signature: 'AAAA',
      },
    }
    expect(await outcomeOf(bytesOf({ ...good, messageSignature: undefined }))).toBe('read')
    const part = <K extends string>(...names: K[]) =>
      fc.dictionary(fc.constantFrom(...names), fc.jsonValue(), { maxKeys: 2 })
    const changed = fc
      .tuple(
        part('mediaType', 'dsseEnvelope', 'messageSignature', '__proto__'),
        part('payload', 'payloadType', 'signatures'),
        part('messageDigest', 'signature'),
        fc.boolean(),
      )
      .map(([top, envelope, signature, withEnvelope]) => ({
        mediaType: BUNDLE_V03,
        ...(withEnvelope ? { dsseEnvelope: { ...good.dsseEnvelope, ...envelope } } : {}),
        ...(withEnvelope ? {} : { messageSignature: { ...good.messageSignature, ...signature } }),
        ...top,
      }))
    await fc.assert(
      fc.asyncProperty(changed, async (bundle) => {
        const outcome = await outcomeOf(bytesOf(bundle))
        expect(outcome === 'read' || outcome instanceof AdmissionError).toBe(true)
      }),
    )
  })

  test('fails with AdmissionError only, on statements with any part replaced by any JSON', async () => {
    const names = fc.constantFrom('_type', 'subject', 'predicateType', 'predicate')
    await fc.assert(
      fc.asyncProperty(fc.dictionary(names, fc.jsonValue()), async (change) => {
        const bundle = await envelopeBundle(bytesOf({ ...signStatement(digest), ...change }), ours)
        const outcome = await outcomeOf(bytesOf(bundle))
        const harmless = Object.keys(change).every((name) => name === 'predicate')
        expect(outcome === 'read' || outcome instanceof AdmissionError).toBe(true)
        if (harmless) expect(outcome).toBe('read')
      }),
    )
  })

  test('reads a bundle nested too deeply as malformed, not as a crash', async () => {
    const deep = Buffer.from(
      `{"mediaType":"${SIGN_PREDICATE}","a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    )
    expect(await outcomeOf(deep)).toMatchObject({ code: 'JSON_INVALID' })
  })

  test('reads a bundle of a million values as malformed, without making them', async () => {
    const many = Buffer.from(`{"mediaType":"${SIGN_PREDICATE}","a":[${'{},'.repeat(1_000_000)}0]}`)
    expect(await outcomeOf(many)).toMatchObject({ code: 'JSON_INVALID' })
  })
})
