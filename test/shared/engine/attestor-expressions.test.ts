import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { certified, keylessSigner } from '#functions/local/evidence.ts'
import { pushReferrer } from '#functions/local/push.ts'
import { attest, signImage } from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import type { ClusterClient, JsonRecord } from '#shared/cluster/types.ts'
import type { EngineOptions } from '#shared/engine/image-policy.ts'
import { hashOfTexts } from '#shared/engine/unresolved.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_ATTESTOR_TEXT_CHARS } from '#shared/limits.ts'
import { mintSigner } from '#test/fakes/fulcio.ts'
import { mintEnvelope } from '#test/fakes/notary.ts'
import { mint, mintIntermediate, mintRoot, NOTARY_NAME, pemOf } from '#test/fakes/pki.ts'
import { ISSUER, SIGNED_AT, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'
import {
  admit,
  callFor,
  createWorld,
  type PushedImage,
  patched,
  podWith,
  requestFor,
  START,
  said,
  type World,
} from '#test/fakes/world.ts'
import { policyDocument } from '../policy/documents.ts'

const SLSA = 'https://slsa.dev/provenance/v1'
const DAY = 86_400_000
const validity = [new Date(START - DAY), new Date(START + DAY)] as const
const root = mintRoot({ validity })
const middle = mintIntermediate(root, { validity })
const CHAIN = [mint({ issuer: middle, validity }), middle, root]
const stranger = mintRoot({ validity, keyName: 'stranger' })
const builder = mintSigner({
  issuer: middle,
  validity,
  oidcIssuer: null,
  subject: NOTARY_NAME('builder'),
})
const sigstore = new SigstoreWorld()
const ROOT = JSON.stringify(sigstore.trustedRoot())
const OTHER_ROOT = JSON.stringify(new SigstoreWorld().trustedRoot())

let world: World
let signed: PushedImage
let foreign: PushedImage
beforeAll(async () => {
  world = await createWorld()
  signed = await world.push('shop/signed', ['release'])
  foreign = await world.push('shop/foreign', ['other'])
})
afterAll(() => world.close())
beforeEach(() => world.reset())

const IGNORE = { insecureIgnoreTlog: true, insecureIgnoreSCT: true }
/** The key is an annotation of the Pod: what a policy that trusts its users would say, and what a test can change. */
const BY_ANNOTATION = {
  name: 'by',
  cosign: { key: { expression: 'object.metadata.annotations.key' }, ctlog: IGNORE },
}
const byKey = (name: 'release' | 'other') => ({
  name,
  cosign: { key: { data: world.keys[name] }, ctlog: IGNORE },
})
const signedBy = (...names: string[]) =>
  `images.containers.all(i, verifyImageSignatures(i, [${names.map((n) => `attestors.${n}`).join()}]) > 0)`

/** A policy as JSON, which is YAML too. */
function policy(attestors: readonly object[] = [BY_ANNOTATION], spec: object = {}): string {
  const validations = [{ expression: signedBy('by'), message: 'not signed' }]
  return JSON.stringify(policyDocument({ attestors, validations, ...spec }, 'asked'))
}

const pod = (image: PushedImage, annotations: JsonObject = {}): JsonObject =>
  podWith([image.tagged], { name: 'web', namespace: 'shop', annotations })

async function verdict(text: string, object: JsonObject, options?: Partial<EngineOptions>) {
  return said((await admit(await world.engine([text], options), object)).validated)
}

const LIVE_IS_FORBIDDEN: Partial<EngineOptions> = {
  live: () => Promise.reject(new Error('nothing may be found out live')),
}

let pushed = 0
const image = () => world.push(`asked/${++pushed}`, [])

async function signedWith(signer: Signer, layout: 'tag' | 'dsse' = 'dsse'): Promise<PushedImage> {
  const one = await image()
  await signImage(one.target, one, [signer], layout)
  return one
}

describe('a key that an expression gives', () => {
  test.each([
    { name: 'counts where it is the one that signed', image: () => signed, is: 'admitted' },
    {
      name: 'and not where another one did',
      image: () => foreign,
      is: expect.stringMatching(/^Policy asked failed: not signed \| none of 1 signatures/),
    },
  ])('$name', async ({ image: of, is }) => {
    expect(await verdict(policy(), pod(of(), { key: world.keys.release }))).toEqual(is)
  })

  test('is that of each request: neither a yes nor a no of one is another’s', async () => {
    const engine = await world.engine([policy()])
    const with_ = async (key: string) =>
      (await admit(engine, pod(signed, { key }))).validated.allowed
    const { release, other } = world.keys
    expect([
      await with_(release),
      await with_(other),
      await with_(release),
      await with_(other),
    ]).toEqual([true, false, true, false])
  })

  test.each<{ name: string; annotations: JsonObject; spec?: object; is: string | RegExp }>([
    {
      name: 'is not there',
      annotations: {},
      is: 'failed to convert key in compiled attestor: by, error: no such key: key',
    },
    {
      name: 'is a number',
      annotations: { key: 5 },
      is: 'failed to convert key in compiled attestor: by, error: the value is not a string',
    },
    {
      name: 'is empty',
      annotations: { key: '' },
      is: 'failed to convert key in compiled attestor: by, error: the value is empty',
    },
    {
      name: 'is too long',
      annotations: { key: 'x'.repeat(MAX_ATTESTOR_TEXT_CHARS + 1) },
      is: `failed to convert key in compiled attestor: by, error: ${MAX_ATTESTOR_TEXT_CHARS + 1} characters, at most ${MAX_ATTESTOR_TEXT_CHARS} are read`,
    },
    {
      name: 'is none',
      annotations: { key: 'ssh-ed25519 AAAA' },
      is: /^attestor by cannot be used: .*PEM/,
    },
    {
      name: 'is a reference of a key service, which only data of the policy may name',
      annotations: { key: 'awskms:///alias/mine' },
      is: 'attestor by cannot be used: public key: found a reference; references belong in key.kms',
    },
  ])('that $name is an error of the policy', async ({ annotations, is }) => {
    const found = await verdict(policy(), pod(signed, annotations))
    const [, message] =
      /^Policy asked error: failed to evaluate policy: ([^|]*?)(?: \| .*)?$/.exec(found) ?? []
    if (typeof is === 'string') expect(message).toBe(is)
    else expect(message ?? found).toMatch(is)
  })

  test('that is none is no signature too few, whoever else signed', async () => {
    const text = policy([byKey('release'), BY_ANNOTATION], {
      validations: [{ expression: signedBy('release', 'by'), message: 'not signed' }],
    })
    expect(await verdict(text, pod(signed, { key: 'no key' }))).toMatch(
      /failed to evaluate policy: attestor by cannot be used/,
    )
    expect(await verdict(text, pod(signed, { key: world.keys.other }))).toBe('admitted')
  })

  test('is not asked for before a validation asks for the attestor', async () => {
    const text = policy([byKey('release'), BY_ANNOTATION], {
      validations: [{ expression: signedBy('release') }],
    })
    expect(await verdict(text, pod(signed))).toBe('admitted')
  })

  test('may come through variables, and attestors can be gone through', async () => {
    const text = policy(
      [
        {
          name: 'by',
          cosign: { key: { expression: 'variables.keys[1]' }, ctlog: IGNORE },
        },
      ],
      {
        variables: [
          { name: 'key', expression: 'object.metadata.annotations.key' },
          { name: 'keys', expression: '[dyn("none"), variables.key]' },
        ],
        validations: [
          {
            expression:
              'size(attestors) == 1 && attestors.all(name, images.containers.all(i, verifyImageSignatures(i, [attestors[name]]) == 1))',
          },
        ],
      },
    )
    expect(await verdict(text, pod(signed, { key: world.keys.release }))).toBe('admitted')
  })
})

describe('what the mutate phase sealed', () => {
  test('needs nobody while the key stays the same', async () => {
    const engine = await world.engine([policy()])
    const object = pod(signed, { key: world.keys.release })
    const final = patched(object, await engine.mutate(requestFor(object), callFor()))
    const fresh = await world.engine([policy()], LIVE_IS_FORBIDDEN)
    const validated = await fresh.validate(requestFor(final), callFor())
    expect(validated).toMatchObject({ allowed: true, record: { seal: 'open' } })
  })

  test.each(['verify', 'deny'] as const)(
    'is about one key, and covers no other under the same name (onMissing: %s)',
    async (onMissing) => {
      const outcomes = { onMissing, lifetimeMs: 60_000 }
      const engine = await world.engine([policy()], { outcomes })
      const annotated = (object: JsonObject) => {
        const metadata = object.metadata as JsonObject
        const annotations = { ...(metadata.annotations as JsonObject), key: world.keys.other }
        return { ...object, metadata: { ...metadata, annotations } }
      }
      const { validated } = await admit(engine, pod(signed, { key: world.keys.release }), {
        between: annotated,
      })
      expect(validated.allowed).toBe(false)
      expect(validated.record).toMatchObject({ seal: 'open' })
      if (onMissing === 'deny')
        expect(said(validated)).toMatch(/is not covered by the sealed outcomes/)
    },
  )

  test('is kept to the letter when mutate is called again', async () => {
    const engine = await world.engine([policy()])
    const object = pod(signed, { key: world.keys.release })
    const once = patched(object, await engine.mutate(requestFor(object), callFor()))
    const again = await engine.mutate(requestFor(once), callFor())
    expect(again.patch).toEqual([])
  })

  test('lists of texts never run together', async () => {
    const hashes = await Promise.all(
      [
        ['ab', 'c'],
        ['a', 'bc'],
        ['abc'],
        ['', 'abc'],
        ['a","b'],
        ['a', 'b'],
        ['\ud800'],
        ['\ufffd'],
      ].map(hashOfTexts),
    )
    expect(new Set(hashes).size).toBe(hashes.length)
  })
})

describe('attestations by such an attestor', () => {
  const text = (attestors: readonly object[] = [BY_ANNOTATION]) =>
    policy(attestors, {
      attestations: [{ name: 'slsa', intoto: { type: SLSA } }],
      validations: [
        {
          expression:
            'images.containers.all(i, verifyAttestationSignatures(i, attestations.slsa, [attestors.by]) > 0)',
          message: 'no provenance',
        },
        {
          expression:
            'images.containers.all(i, extractPayload(i, attestations.slsa).predicate.builder == "ci")',
          message: 'built elsewhere',
        },
      ],
    })

  async function attested(predicate: object) {
    const one = await image()
    const { release } = world.signers
    await attest(one.target, one, release, { predicateType: SLSA, predicate, layout: 'tag' })
    return one
  }

  test('count, with their payload, and through the seal', async () => {
    const one = await attested({ builder: 'ci' })
    const object = pod(one, { key: world.keys.release })
    const engine = await world.engine([text()])
    const final = patched(object, await engine.mutate(requestFor(object), callFor()))
    const fresh = await world.engine([text()])
    const validated = await fresh.validate(requestFor(final), callFor())
    expect(said(validated)).toBe('admitted')
    expect(validated.record).toMatchObject({ seal: 'open', calls: { registry: 1 } })
  })

  test('are looked into', async () => {
    const one = await attested({ builder: 'laptop' })
    expect(await verdict(text(), pod(one, { key: world.keys.release }))).toMatch(/built elsewhere/)
  })

  test('of another key do not count', async () => {
    const one = await attested({ builder: 'ci' })
    expect(await verdict(text(), pod(one, { key: world.keys.other }))).toMatch(/no provenance/)
  })

  test('by a notary attestor are refused as they are by one that is written out', async () => {
    const notary = {
      name: 'by',
      notary: { certs: { expression: 'object.metadata.annotations.key' } },
    }
    const one = await attested({ builder: 'ci' })
    expect(await verdict(text([notary]), pod(one, { key: pemOf(root) }))).toMatch(
      /notary verifier only supports oci 1\.1 referrers as attestations/,
    )
  })
})

describe('certificates, roots and subjects that expressions give', () => {
  const annotation = (name: string) => ({ expression: `object.metadata.annotations.${name}` })
  const own = (fields: object) => ({
    name: 'by',
    cosign: { certificate: fields, ctlog: IGNORE },
  })
  const AUTHORITIES = pemOf(middle) + pemOf(root)
  const byBuilder = () =>
    signedWith(certified(localSigner(builder.keys.privateKey), [builder.der]), 'tag')
  const keyless = () => signedWith(keylessSigner(sigstore))
  const byIdentity = (identity: object, trustedRoot: object = { value: ROOT }) => ({
    name: 'by',
    cosign: { keyless: { identities: [{ issuer: ISSUER, ...identity }] }, trustedRoot },
  })
  const denied = expect.stringMatching(/^Policy asked failed: not signed/)
  const unusable = (why: RegExp) =>
    expect.stringMatching(
      new RegExp(
        `^Policy asked error: failed to evaluate policy: attestor by cannot be used: ${why.source}`,
      ),
    )

  test.each<{
    name: string
    attestor: object
    image: () => Promise<PushedImage>
    annotations: JsonObject
    is: unknown
  }>([
    {
      name: 'a chain',
      attestor: own({ certChain: annotation('chain') }),
      image: byBuilder,
      annotations: { chain: AUTHORITIES },
      is: 'admitted',
    },
    {
      name: 'a chain in base64, as upstream takes it',
      attestor: own({ certChain: annotation('chain') }),
      image: byBuilder,
      annotations: { chain: btoa(AUTHORITIES) },
      is: 'admitted',
    },
    {
      name: 'a chain of somebody else',
      attestor: own({ certChain: annotation('chain') }),
      image: byBuilder,
      annotations: { chain: pemOf(stranger) },
      is: denied,
    },
    {
      name: 'a chain that is none',
      attestor: own({ certChain: annotation('chain') }),
      image: byBuilder,
      annotations: { chain: 'none' },
      is: unusable(/certificate\.certChain: no certificate/),
    },
    {
      name: 'an empty chain beside a certificate is not no chain',
      attestor: own({ cert: { value: pemOf(builder) }, certChain: annotation('chain') }),
      image: byBuilder,
      annotations: { chain: '' },
      is: expect.stringMatching(
        /failed to convert cert chain in compiled attestor: by, error: the value is empty/,
      ),
    },
    {
      name: 'an empty certificate beside a chain is not any certificate',
      attestor: own({ cert: annotation('cert'), certChain: { value: AUTHORITIES } }),
      image: byBuilder,
      annotations: { cert: '' },
      is: expect.stringMatching(
        /failed to convert cert in compiled attestor: by, error: the value is empty/,
      ),
    },
    {
      name: 'a certificate and its chain',
      attestor: own({ cert: annotation('cert'), certChain: annotation('chain') }),
      image: byBuilder,
      annotations: { cert: pemOf(builder), chain: AUTHORITIES },
      is: 'admitted',
    },
    {
      name: 'a certificate that does not chain up',
      attestor: own({ cert: annotation('cert'), certChain: annotation('chain') }),
      image: byBuilder,
      annotations: { cert: pemOf(builder), chain: pemOf(stranger) },
      is: unusable(/certificate\.cert: a certificate that does not chain to certChain/),
    },
    {
      name: 'the subject of a keyless signature',
      attestor: byIdentity({ subjectExpression: 'object.metadata.annotations.who' }),
      image: keyless,
      annotations: { who: SUBJECT },
      is: 'admitted',
    },
    {
      name: 'another subject: upstream ignores the field and takes anybody of the issuer',
      attestor: byIdentity({ subjectExpression: 'object.metadata.annotations.who' }),
      image: keyless,
      annotations: { who: `${SUBJECT}/x` },
      is: denied,
    },
    {
      name: 'a part of the subject, which is no pattern',
      attestor: byIdentity({ subjectExpression: 'object.metadata.annotations.who' }),
      image: keyless,
      annotations: { who: '.*' },
      is: denied,
    },
    {
      name: 'a trusted root',
      attestor: byIdentity({ subject: SUBJECT }, annotation('root')),
      image: keyless,
      annotations: { root: ROOT },
      is: 'admitted',
    },
    {
      name: 'another trusted root',
      attestor: byIdentity({ subject: SUBJECT }, annotation('root')),
      image: keyless,
      annotations: { root: OTHER_ROOT },
      is: denied,
    },
    {
      name: 'a trusted root that is none',
      attestor: byIdentity({ subject: SUBJECT }, annotation('root')),
      image: keyless,
      annotations: { root: '{}' },
      is: unusable(/trusted root: no trusted root of version 0\.1 or 0\.2/),
    },
    {
      name: 'a trusted root that trusts nobody is not one that asks for nobody',
      attestor: byIdentity({ subject: SUBJECT }, annotation('root')),
      image: keyless,
      annotations: {
        root: '{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}',
      },
      is: unusable(/trusted root: neither a transparency log nor a timestamp authority is in it/),
    },
    {
      name: 'a trusted root that is none, for a key that needs no log',
      attestor: {
        name: 'by',
        cosign: {
          key: { expression: 'object.metadata.annotations.key' },
          ctlog: IGNORE,
          trustedRoot: annotation('root'),
        },
      },
      image: async () => signed,
      annotations: { root: '{}', key: 'that of release' },
      is: unusable(/trusted root: no trusted root of version 0\.1 or 0\.2/),
    },
  ])('$name', async ({ attestor, image: of, annotations, is }) => {
    const own = annotations.key === undefined ? {} : { key: world.keys.release }
    const found = await verdict(policy([attestor]), pod(await of(), { ...annotations, ...own }))
    expect(found).toEqual(is)
  })

  test('everything here was signed when the log saw it', () => {
    expect(SIGNED_AT * 1000).toBeLessThan(START)
  })
})

/**
 * As chainsaw standard/notary-configmap-cert has it (specs/image-validating-policy.md 8.1): the certificates of a notary attestor are in a
 * ConfigMap that a variable gets. Upstream's image and certificate are replaced by some made here.
 */
describe('the certificates of a notary attestor in a ConfigMap', () => {
  const text = policy(
    [{ name: 'notary', notary: { certs: { expression: 'variables.cm.data.certificate' } } }],
    {
      variables: [
        {
          name: 'cm',
          expression: 'resource.Get("v1", "configmaps", "kyverno-image-verification", "keys")',
        },
      ],
      validations: [
        {
          expression:
            'images.containers.map(image, verifyImageSignatures(image, [attestors.notary])).all(e, e > 0)',
          message: 'failed to verify image with notary cert',
        },
      ],
    },
  )

  function clusterWith(answer: () => JsonRecord | null): Partial<EngineOptions> {
    const client: ClusterClient = {
      session: () => ({
        namespace: async () => null,
        get: async () => answer(),
        list: async () => ({ items: [] }),
        resourceOf: async () => 'configmaps',
      }),
    }
    return { context: async () => ({ cluster: () => client }) }
  }
  const certificate = (pem: string) => () => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    data: { certificate: pem },
  })

  async function notarised() {
    const one = await image()
    const { mediaType, digest, size } = one.descriptor
    const { envelope, mediaType: type } = mintEnvelope({
      format: 'JWS',
      chain: CHAIN,
      payload: { targetArtifact: { mediaType, digest, size } },
    })
    await pushReferrer(one.target, one.descriptor, {
      artifactType: 'application/vnd.cncf.notary.signature',
      layers: [{ mediaType: type, bytes: envelope }],
    })
    return one
  }

  test('count where they are those of the signer', async () => {
    const options = clusterWith(certificate(pemOf(root)))
    expect(await verdict(text, pod(await notarised()), options)).toBe('admitted')
  })

  test('deny where they are not', async () => {
    const options = clusterWith(certificate(pemOf(stranger)))
    expect(await verdict(text, pod(await notarised()), options)).toMatch(
      /^Policy asked failed: failed to verify image with notary cert/,
    )
  })

  test('deny an image that nobody signed', async () => {
    const options = clusterWith(certificate(pemOf(root)))
    expect(await verdict(text, pod(await image()), options)).toMatch(
      /^Policy asked failed: failed to verify image with notary cert/,
    )
  })

  test('take effect when they are rotated: nothing that is remembered is about the old ones', async () => {
    let pem = pemOf(stranger)
    const engine = await world.engine(
      [text],
      clusterWith(() => certificate(pem)()),
    )
    const object = pod(await notarised())
    const before = await admit(engine, object)
    pem = pemOf(root)
    const after = await admit(engine, object)
    pem = pemOf(stranger)
    const again = await admit(engine, object)
    expect([before, after, again].map(({ validated }) => validated.allowed)).toEqual([
      false,
      true,
      false,
    ])
  })

  test.each<{ name: string; answer: () => JsonRecord | null; is: RegExp }>([
    {
      name: 'the ConfigMap has no such key',
      answer: () => ({ data: {} }),
      is: /failed to convert notary cert in compiled attestor: notary, error: no such key: certificate/,
    },
    {
      name: 'there is no ConfigMap',
      answer: () => null,
      is: /failed to convert notary cert in compiled attestor: notary, error: /,
    },
    {
      name: 'the cluster does not say',
      answer: () => {
        throw new AdmissionError('CLUSTER_UNAVAILABLE', 'no answer in 5 s')
      },
      is: /failed to convert notary cert in compiled attestor: notary, error: .*no answer in 5 s/,
    },
    {
      name: 'what is in it is no certificate',
      answer: certificate('none'),
      is: /attestor notary cannot be used: notary\.certs: found no certificate in PEM/,
    },
  ])('are an error of the policy when $name', async ({ answer, is }) => {
    const found = await verdict(text, pod(await notarised()), clusterWith(answer))
    expect(found).toMatch(/^Policy asked error: failed to evaluate policy: /)
    expect(found).toMatch(is)
  })
})
