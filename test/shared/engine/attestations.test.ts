import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type PushedReferrer, pushReferrer } from '#functions/local/push.ts'
import {
  type Attested,
  attest,
  attestationLayer,
  bundleReferrer,
  envelopeBundle,
  pushAttestationTag,
  signImage,
} from '#functions/local/sign.ts'
import type { Decision } from '#shared/admission/types.ts'
import type { EngineOptions } from '#shared/engine/image-policy.ts'
import type { ImagePolicyEngine } from '#shared/engine/types.ts'
import { REJECTION_TTL_MS } from '#shared/limits.ts'
import { SEAL_ANNOTATION } from '#shared/outcome/annotation.ts'
import { attestationTag } from '#shared/signature/cosign.ts'
import { mintEnvelope } from '#test/fakes/notary.ts'
import { type Minted, mint, mintIntermediate, mintRoot, pemOf } from '#test/fakes/pki.ts'
import {
  admit,
  callFor,
  createWorld,
  type KeyName,
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
const VULN = 'https://cosign.sigstore.dev/attestation/vuln/v1'
const RIGHT = { builder: { id: 'https://ci.example.com/builder' }, runs: 3 }
const BUILDER = 'https://ci.example.com/builder'

const DAY = 86_400_000
const validity = [new Date(START - DAY), new Date(START + DAY)] as const
const root = mintRoot({ validity })
const middle = mintIntermediate(root, { validity })
const CHAIN = [mint({ issuer: middle, validity }), middle, root]
const stranger = mintRoot({ validity, keyName: 'stranger' })
const STRANGERS = [mint({ issuer: stranger, validity, keyName: 'stranger' }), stranger]
const NOTARY_TYPE = 'application/vnd.cncf.notary.signature'

let world: World
beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.close())
beforeEach(() => world.reset())

/** What a policy of this file may differ in. */
interface PolicyOptions {
  name?: string
  attestors?: readonly object[]
  attestations?: readonly object[]
  validations?: readonly object[]
  spec?: object
}

const byKey = (name: KeyName) => ({
  name,
  cosign: { key: { data: world.keys[name] }, ctlog: { insecureIgnoreTlog: true } },
})
/** Nobody can say whether this one signed: there is no KMS here. */
const UNKNOWN = {
  name: 'unknown',
  cosign: {
    key: { kms: 'awskms:///arn:aws:kms:eu-west-1:111122223333:alias/a' },
    ctlog: { insecureIgnoreTlog: true },
  },
}
const byNotary = (...certs: readonly Minted[]) => ({
  name: 'notary',
  notary: { certs: { value: certs.map(pemOf).join('') } },
})

const VERIFIED =
  'images.containers.all(i, verifyAttestationSignatures(i, attestations.slsa, [attestors.release]) > 0)'
const BUILT =
  'images.containers.all(i, extractPayload(i, attestations.slsa).predicate.builder.id == "https://ci.example.com/builder")'

/** A policy as JSON, which is YAML too. */
function policy(options: PolicyOptions = {}): string {
  const { name = 'built', spec = {} } = options
  const document = {
    attestors: options.attestors ?? [byKey('release')],
    attestations: options.attestations ?? [{ name: 'slsa', intoto: { type: SLSA } }],
    validations: options.validations ?? [
      { expression: VERIFIED, message: 'no provenance' },
      { expression: BUILT, message: 'built elsewhere' },
    ],
    ...spec,
  }
  return JSON.stringify(policyDocument(document, name))
}

/** One validation and nothing else. */
const only = (expression: string) => ({ validations: [{ expression, message: 'it is false' }] })

let pushed = 0
/** A new image without any signature. */
const image = () => world.push(`attested/${++pushed}`, [])

const PROVENANCE: Attested = { predicateType: SLSA, predicate: RIGHT, layout: 'tag' }

/** A new image with one attestation by the release key. */
async function attested(attestation: Partial<Attested> = {}, by: KeyName = 'release') {
  const one = await image()
  await attest(one.target, one, world.signers[by], { ...PROVENANCE, ...attestation })
  return one
}

async function decide(
  text: string | readonly string[],
  one: PushedImage,
  options?: Partial<EngineOptions>,
): Promise<{ mutated: Decision; validated: Decision }> {
  const engine = await world.engine(typeof text === 'string' ? [text] : text, options)
  return admit(engine, podWith([one.tagged]))
}

/** `admitted`, or the message and the first warning. */
async function verdict(text: string | readonly string[], one: PushedImage): Promise<string> {
  const { validated } = await decide(text, one)
  return said(validated)
}

const subject = (digest: string, annotations?: object) => ({
  name: 'x',
  digest: { sha256: digest.replace('sha256:', '') },
  ...(annotations && { annotations }),
})

describe('an attestation of the wanted type by the attestor', () => {
  test.each<{ name: string; attestation: Partial<Attested>; type?: string }>([
    { name: 'under the .att tag', attestation: { layout: 'tag' } },
    { name: 'in a Sigstore bundle', attestation: { layout: 'dsse' } },
    {
      name: 'in a statement v1',
      attestation: { statement: { _type: 'https://in-toto.io/Statement/v1' } },
    },
    { name: 'wanted by an alias', attestation: {}, type: 'slsaprovenance1' },
    {
      name: 'wanted by an alias of another version',
      attestation: { predicateType: 'https://slsa.dev/provenance/v0.2' },
      type: 'slsaprovenance',
    },
    {
      name: 'of a type of one’s own',
      attestation: { predicateType: 'https://example.com/built/v7' },
      type: 'https://example.com/built/v7',
    },
  ])('$name counts, and its payload can be read', async ({ attestation, type = SLSA }) => {
    const one = await attested(attestation)
    const text = policy({ attestations: [{ name: 'slsa', intoto: { type } }] })
    expect(await verdict(text, one)).toBe('admitted')
  })

  test('may be about several images, whichever of them is asked for', async () => {
    const [one, other] = [await image(), await image()]
    const statement = { subject: [subject(other.digest), subject(one.digest)] }
    await attest(one.target, one, world.signers.release, { ...PROVENANCE, statement })
    expect(await verdict(policy(), one)).toBe('admitted')
  })

  test('is evidence for `required`, and its numbers are doubles as in Go', async () => {
    const one = await attested()
    const expression = `verifyAttestationSignatures(images.containers[0], "slsa", [attestors.release]) == 1
      && type(extractPayload(images.containers[0], "slsa").predicate.runs) == double`
    expect(await verdict(policy(only(expression)), one)).toBe('admitted')
  })

  test('gives its reason to the message of a denial', async () => {
    const one = await attested({ predicate: { builder: { id: 'https://laptop.example.com' } } })
    const validations = [
      { expression: VERIFIED },
      {
        expression: BUILT,
        messageExpression:
          '"built by " + extractPayload(images.containers[0], attestations.slsa).predicate.builder.id',
      },
    ]
    expect(await verdict(policy({ validations }), one)).toBe(
      'Policy built failed: built by https://laptop.example.com',
    )
  })
})

describe('an attestation that does not count', () => {
  const nothing = async () => image()
  test.each<{ name: string; prepare: () => Promise<PushedImage>; reason: RegExp }>([
    {
      name: 'is not there at all',
      prepare: nothing,
      reason:
        /required predicate type https:\/\/slsa\.dev\/provenance\/v1 not found, found \[\] for 127\.0\.0\.1:\d+\/attested\/\d+@sha256:[0-9a-f]{64}/,
    },
    {
      name: 'is of another predicate type, which is named',
      prepare: () => attested({ predicateType: VULN }),
      reason: /not found, found \["https:\/\/cosign\.sigstore\.dev\/attestation\/vuln\/v1"\]/,
    },
    {
      name: 'is of another predicate type in a bundle',
      prepare: () => attested({ predicateType: VULN, layout: 'dsse' }),
      reason: /not found, found \["https:\/\/cosign\.sigstore\.dev\/attestation\/vuln\/v1"\]/,
    },
    {
      name: 'only says beside the statement that it is of the type',
      prepare: () => attested({ statement: { predicateType: VULN } }),
      reason: /not found, found \["https:\/\/cosign\.sigstore\.dev\/attestation\/vuln\/v1"\]/,
    },
    {
      name: 'is the signature of the image',
      prepare: async () => {
        const one = await image()
        await signImage(one.target, one, [world.signers.release], 'dsse')
        return one
      },
      reason: /not found, found \["https:\/\/sigstore\.dev\/cosign\/sign\/v1"\]/,
    },
    {
      name: 'is about another image',
      prepare: () => attested({ statement: { subject: [subject(`sha256:${'c'.repeat(64)}`)] } }),
      reason:
        /none of 1 attestations of predicate type \S+ of \S+ counts: .* statement is about sha256 "c{64}", expected [0-9a-f]{64}/,
    },
    {
      name: 'is about another image in a bundle',
      prepare: () =>
        attested({
          layout: 'dsse',
          statement: { subject: [subject(`sha256:${'c'.repeat(64)}`)] },
        }),
      reason: /statement is about sha256 "c{64}"/,
    },
    {
      name: 'is about nothing',
      prepare: () => attested({ statement: { subject: [] } }),
      reason: /statement is about sha256 nothing/,
    },
    {
      name: 'is no in-toto statement',
      prepare: () => attested({ statement: { _type: 'https://in-toto.io/Statement/v2' } }),
      reason: /statement type is "https:\/\/in-toto\.io\/Statement\/v2"/,
    },
    {
      name: 'is by another key',
      prepare: () => attested({}, 'other'),
      reason:
        /signature is not by this ECDSA P-256 key \(attestation slsa, attestor release, image/,
    },
    {
      name: 'is by another key in a bundle',
      prepare: () => attested({ layout: 'dsse' }, 'other'),
      reason: /signature is not by this ECDSA P-256 key/,
    },
    {
      name: 'has a payload that was changed',
      prepare: async () => {
        const one = await image()
        const layer = await attestationLayer(one, world.signers.release, PROVENANCE)
        const envelope = JSON.parse(Buffer.from(layer.bytes).toString())
        const payload = Buffer.from(envelope.payload, 'base64').toString()
        envelope.payload = Buffer.from(payload.replace('ci.example', 'my.example')).toString(
          'base64',
        )
        const bytes = Buffer.from(JSON.stringify(envelope))
        await pushAttestationTag(one.target, one.digest, [{ ...layer, bytes }])
        return one
      },
      reason: /signature is not by this ECDSA P-256 key/,
    },
    {
      name: 'is signed and no JSON',
      prepare: async () => {
        const one = await image()
        const bundle = await envelopeBundle(Buffer.from('not JSON'), world.signers.release)
        await pushReferrer(one.target, one.descriptor, bundleReferrer(bundle, 'dsse', SLSA))
        return one
      },
      reason: /none of 1 attestations of .* JSON/,
    },
    {
      name: 'is signed as text',
      prepare: async () => {
        const one = await image()
        const layer = await attestationLayer(one, world.signers.release, PROVENANCE)
        const { payload } = JSON.parse(Buffer.from(layer.bytes).toString())
        const signed = Buffer.from(payload, 'base64')
        const bundle = await envelopeBundle(signed, world.signers.release, 'text/plain')
        await pushReferrer(one.target, one.descriptor, bundleReferrer(bundle, 'dsse', SLSA))
        return one
      },
      reason: /DSSE payload type is "text\/plain", expected application\/vnd\.in-toto\+json/,
    },
    {
      name: 'has two signatures in one envelope',
      prepare: async () => {
        const one = await image()
        const layer = await attestationLayer(one, world.signers.release, PROVENANCE)
        const envelope = JSON.parse(Buffer.from(layer.bytes).toString())
        envelope.signatures.push(envelope.signatures[0])
        const bytes = Buffer.from(JSON.stringify(envelope))
        await pushAttestationTag(one.target, one.digest, [{ ...layer, bytes }])
        return one
      },
      reason: /DSSE envelope has 2 signatures, expected one/,
    },
    {
      name: 'is attached to another image',
      prepare: async () => {
        const [one, other] = [await attested({ layout: 'dsse' }), await image()]
        const bundle = await envelopeBundle(Buffer.from('{}'), world.signers.release)
        await pushReferrer(other.target, one.descriptor, bundleReferrer(bundle, 'dsse', SLSA))
        return other
      },
      reason: /not found, found \[\]/,
    },
  ])('$name', async ({ prepare, reason }) => {
    const found = await verdict(policy(), await prepare())
    expect(found).toMatch(/^Policy built failed: no provenance \| /)
    expect(found).toMatch(reason)
  })

  test('is one that cannot be read: that is no "no"', async () => {
    const one = await attested()
    world.registry.faults.add({ kind: 'status', status: 500 }, { on: /\.att$/ })
    expect(
      await verdict(
        policy(
          only(
            'images.containers.all(i, verifyAttestationSignatures(i, attestations.slsa, [attestors.release]) == 0)',
          ),
        ),
        one,
      ),
    ).toMatch(
      /^Policy built error: failed to evaluate policy: could not verify image \S+, attestation slsa, attestor release: .*answered 500/,
    )
  })

  test('is one of many more than are looked at: that is no "no" either', async () => {
    const one = await image()
    const layer = await attestationLayer(one, world.signers.other, PROVENANCE)
    await pushAttestationTag(one.target, one.digest, Array(51).fill(layer))
    expect(await verdict(policy(), one)).toMatch(
      /^Policy built error: .* at least 1 beyond the bound were not looked at/,
    )
  })

  test('does not hide a good one beside it, in either layout', async () => {
    const one = await attested({ layout: 'dsse' })
    await attest(one.target, one, world.signers.other, PROVENANCE)
    await attest(one.target, one, world.signers.other, { ...PROVENANCE, layout: 'dsse' })
    await attest(one.target, one, world.signers.release, {
      ...PROVENANCE,
      layout: 'dsse',
      predicateType: VULN,
    })
    expect(await verdict(policy(), one)).toBe('admitted')
  })
})

describe('extractPayload', () => {
  const PAYLOAD = 'extractPayload(images.containers[0], attestations.slsa)'
  const COUNT =
    'verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.release])'
  const builtBy = (id: string): Partial<Attested> => ({ predicate: { builder: { id } } })
  const NOT_BEFORE =
    'Policy built error: failed to evaluate policy: failed to get payload: intoto attestation payload cannot be fetch before verifying intoto attestation'

  test.each([
    { name: 'without a verification', expression: `${PAYLOAD}.predicate.runs == 3` },
    {
      name: 'before the verification',
      expression: `${PAYLOAD}.predicate.runs == 3 && ${COUNT} > 0`,
    },
    {
      name: 'after verifying another attestation',
      expression: `verifyAttestationSignatures(images.containers[0], attestations.vuln, [attestors.release]) == 0 && ${PAYLOAD}.predicate.runs == 3`,
    },
  ])('is an error $name', async ({ expression }) => {
    const one = await attested()
    const attestations = [
      { name: 'slsa', intoto: { type: SLSA } },
      { name: 'vuln', intoto: { type: VULN } },
    ]
    expect(await verdict(policy({ ...only(expression), attestations }), one)).toBe(NOT_BEFORE)
  })

  test('is an error after a verification that nobody passed', async () => {
    const one = await attested({}, 'other')
    const found = await verdict(
      policy(only(`${COUNT} == 0 && ${PAYLOAD}.predicate.runs == 3`)),
      one,
    )
    expect(found.split(' | ')[0]).toBe(NOT_BEFORE)
  })

  test('waits for a verification that something else made unnecessary', async () => {
    const one = await attested()
    const validations = [
      { expression: `${COUNT} > 0 || true` },
      { expression: `${PAYLOAD}.predicate.runs == 3` },
    ]
    expect(await verdict(policy({ validations }), one)).toBe('admitted')
  })

  test('works in variables, messages and audit annotations', async () => {
    const one = await attested()
    const spec = {
      variables: [
        { name: 'count', expression: COUNT },
        { name: 'payload', expression: PAYLOAD },
      ],
      auditAnnotations: [
        { key: 'builder', valueExpression: 'string(variables.payload.predicate.builder.id)' },
      ],
    }
    const expression = 'variables.count > 0 && variables.payload.predicate.runs == 3'
    const { validated } = await decide(policy({ ...only(expression), spec }), one)
    expect(said(validated)).toBe('admitted')
    expect(JSON.stringify(validated.auditAnnotations)).toContain(BUILDER)
  })

  describe('of several that verify', () => {
    test('is the last layer of the .att tag', async () => {
      const one = await image()
      const layers = await Promise.all(
        ['https://a.example.com', 'https://b.example.com', BUILDER].map((id) =>
          attestationLayer(one, world.signers.release, { ...PROVENANCE, ...builtBy(id) }),
        ),
      )
      await pushAttestationTag(one.target, one.digest, layers)
      expect(await verdict(policy(), one)).toBe('admitted')
      await pushAttestationTag(one.target, one.digest, layers.toReversed())
      expect(await verdict(policy(), one)).toBe('Policy built failed: built elsewhere')
    })

    test('is the last bundle of the listing, before any layer', async () => {
      const one = await attested(builtBy('https://tag.example.com'))
      for (const id of ['https://a.example.com', BUILDER]) {
        const layout = 'dsse'
        await attest(one.target, one, world.signers.release, {
          ...PROVENANCE,
          ...builtBy(id),
          layout,
        })
      }
      expect(await verdict(policy(), one)).toBe('admitted')
    })

    test('is the last of more layers than are looked at', async () => {
      const one = await image()
      const old = { ...PROVENANCE, ...builtBy('https://old.example.com') }
      const before = await attestationLayer(one, world.signers.release, old)
      const ours = await attestationLayer(one, world.signers.release, PROVENANCE)
      await pushAttestationTag(one.target, one.digest, [...Array(60).fill(before), ours])
      expect(await verdict(policy(), one)).toBe('admitted')
    })

    test('is the last that verifies, whoever attached others', async () => {
      const one = await image()
      const ours = await attestationLayer(one, world.signers.release, PROVENANCE)
      const evil = { ...PROVENANCE, ...builtBy('https://evil.example.com') }
      const theirs = await attestationLayer(one, world.signers.other, evil)
      await pushAttestationTag(one.target, one.digest, [theirs, ours, theirs, theirs, theirs])
      expect(await verdict(policy(), one)).toBe('admitted')
    })

    test('is none while one that might come first cannot be read', async () => {
      const one = await image()
      const layers = await Promise.all(
        ['https://old.example.com', 'https://new.example.com'].map((id) =>
          attestationLayer(one, world.signers.release, { ...PROVENANCE, ...builtBy(id) }),
        ),
      )
      await pushAttestationTag(one.target, one.digest, layers)
      world.registry.faults.add({ kind: 'status', status: 500 }, { on: /\/referrers\// })
      const validations = [{ expression: `${COUNT} > 0` }, { expression: `${PAYLOAD} != null` }]
      expect(await verdict(policy({ validations }), one)).toMatch(
        /^Policy built error: failed to evaluate policy: could not verify image \S+, attestation slsa, attestor release: .*answered 500/,
      )
      expect(await verdict(policy(only(`${COUNT} > 0`)), one)).toBe('admitted')
    })

    test('is that of the attestor who was asked first', async () => {
      const one = await image()
      const layers = [
        await attestationLayer(one, world.signers.release, PROVENANCE),
        await attestationLayer(one, world.signers.audit, {
          ...PROVENANCE,
          ...builtBy('https://audit.example.com'),
        }),
      ]
      await pushAttestationTag(one.target, one.digest, layers)
      const text = (list: string, id: string) =>
        policy({
          attestors: [byKey('release'), byKey('audit')],
          ...only(
            `verifyAttestationSignatures(images.containers[0], attestations.slsa, [${list}]) == 2 && ${PAYLOAD}.predicate.builder.id == "${id}"`,
          ),
        })
      expect(await verdict(text('attestors.release, attestors.audit', BUILDER), one)).toBe(
        'admitted',
      )
      expect(
        await verdict(text('attestors.audit, attestors.release', 'https://audit.example.com'), one),
      ).toBe('admitted')
    })
  })

  test('is an error while an attestor that was asked cannot be told, though another is good', async () => {
    const one = await attested()
    const count = `verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.unknown, attestors.release])`
    const attestors = [byKey('release'), UNKNOWN]
    expect(await verdict(policy({ attestors, ...only(`${count} > 0`) }), one)).toBe('admitted')
    const both = `${count} > 0 && ${PAYLOAD}.predicate.runs == 3`
    expect(await verdict(policy({ attestors, ...only(both) }), one)).toMatch(
      /^Policy built error: failed to evaluate policy: could not verify image \S+, attestation slsa, attestor unknown: no KMS here/,
    )
    // Nor while a signature is left out of a count: with it the payload might not have been asked for.
    const signed = await world.push('attested/signed', ['release'])
    const stored = { mediaType: '', digest: signed.digest, size: 1 }
    const target = { url: world.registry.url, repository: 'attested/signed' }
    await attest(target, { descriptor: stored, reference: '' }, world.signers.release, PROVENANCE)
    const signature = `verifyImageSignatures(images.containers[0], [attestors.unknown, attestors.release]) > 0`
    const onlyOurs = `${COUNT} > 0 && ${PAYLOAD}.predicate.runs == 3`
    expect(
      await verdict(policy({ attestors, ...only(`${signature} && ${onlyOurs}`) }), signed),
    ).toMatch(/^Policy built error: .* attestor unknown: no KMS here/)
    expect(
      await verdict(policy({ attestors, ...only(`${onlyOurs} && ${signature}`) }), signed),
    ).toBe('admitted')
    expect(await verdict(policy({ attestors, ...only(`${count} > 1`) }), one)).toMatch(
      /^Policy built error: .*attestor unknown: no KMS here/,
    )
  })
})

describe('what upstream has no verification for', () => {
  const COUNT =
    'verifyAttestationSignatures(images.containers[0], attestations.sbom, [attestors.release])'
  const REFERRER = [{ name: 'sbom', referrer: { type: 'sbom/cyclone-dx' } }]

  test('a cosign attestor attests no referrers: it counts 0, and the warning says why', async () => {
    const found = await verdict(
      policy({ attestations: REFERRER, ...only(`${COUNT} > 0`) }),
      await image(),
    )
    expect(found).toMatch(
      /^Policy built failed: it is false \| cosign verifier only supports intoto referrers as attestations/,
    )
  })

  test('a notary attestor attests no statements: that is an error', async () => {
    const attestors = [byNotary(root)]
    const expression =
      'verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.notary]) == 0'
    expect(await verdict(policy({ attestors, ...only(expression) }), await image())).toBe(
      'Policy built error: failed to evaluate policy: notary verifier only supports oci 1.1 referrers as attestations',
    )
  })

  test('a name that is no attestation is an error', async () => {
    const expression =
      'verifyAttestationSignatures(images.containers[0], object.metadata.name, [attestors.release]) == 0'
    expect(await verdict(policy(only(expression)), await image())).toBe(
      'Policy built error: failed to evaluate policy: attestation not found in policy: web',
    )
    const payload = 'extractPayload(images.containers[0], object.metadata.name) == null'
    expect(await verdict(policy(only(payload)), await image())).toBe(
      'Policy built error: failed to evaluate policy: attestation not found in policy: web',
    )
  })

  test('an image that is not the policy’s counts 0 and is not asked about', async () => {
    const one = await attested()
    const spec = { matchImageReferences: [{ glob: 'ghcr.io/*' }] }
    const expression = `object.spec.containers.all(c, verifyAttestationSignatures(c.image, attestations.slsa, [attestors.release]) == 0)`
    world.registry.requests.length = 0
    expect(await verdict(policy({ ...only(expression), spec }), one)).toBe('admitted')
    expect(world.registry.requests).toEqual([])
  })
})

describe('referrers with Notary Project signatures of their own', () => {
  const TYPE = 'sbom/cyclone-dx'
  const SBOM = { bomFormat: 'CycloneDX', serial: 1 }
  const COUNT =
    'verifyAttestationSignatures(images.containers[0], attestations.sbom, [attestors.notary])'
  const text = (
    expression = `${COUNT} > 0 && extractPayload(images.containers[0], attestations.sbom).bomFormat == "CycloneDX"`,
  ) =>
    policy({
      attestors: [byNotary(root)],
      attestations: [{ name: 'sbom', referrer: { type: TYPE } }],
      ...only(expression),
    })

  const layerOf = (content: unknown) => ({
    mediaType: 'application/json',
    bytes: Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)),
  })
  const referrer = (
    changes: Partial<PushedReferrer> = {},
    content: unknown = SBOM,
  ): PushedReferrer => ({
    artifactType: TYPE,
    layers: [layerOf(content)],
    ...changes,
  })

  /** Pushes a referrer of the image and, by default, signs it. */
  async function refer(
    one: PushedImage,
    what: PushedReferrer = referrer(),
    chain: readonly Minted[] | null = CHAIN,
  ) {
    const descriptor = await pushReferrer(one.target, one.descriptor, what)
    if (chain === null) return descriptor
    const { mediaType, digest, size } = descriptor
    const payload = { targetArtifact: { mediaType, digest, size } }
    const { envelope, mediaType: type } = mintEnvelope({ format: 'JWS', chain, payload })
    const layers = [{ mediaType: type, bytes: envelope }]
    await pushReferrer(one.target, descriptor, { artifactType: NOTARY_TYPE, layers })
    return descriptor
  }

  test('count, and the payload is the layer', async () => {
    const one = await image()
    await refer(one)
    expect(await verdict(text(), one)).toBe('admitted')
  })

  test('count beside one that nobody signed, whose payload is never used', async () => {
    const one = await image()
    await refer(one, referrer({}, { bomFormat: 'evil' }), null)
    await refer(one, referrer({}, { bomFormat: 'evil too' }), STRANGERS)
    await refer(one)
    expect(await verdict(text(), one)).toBe('admitted')
  })

  test.each<{ name: string; prepare: (one: PushedImage) => Promise<unknown>; reason: RegExp }>([
    {
      name: 'that are not there',
      prepare: async () => {},
      reason: /required artifact type sbom\/cyclone-dx not found, found \[\]/,
    },
    {
      name: 'of another type, which is named',
      prepare: (one) => refer(one, referrer({ artifactType: 'sbom/spdx' })),
      reason: /not found, found \["sbom\/spdx"\]/,
    },
    {
      name: 'without a signature',
      prepare: (one) => refer(one, referrer(), null),
      reason: /it has no Notary Project signature/,
    },
    {
      name: 'by a stranger',
      prepare: (one) => refer(one, referrer(), STRANGERS),
      reason: /no certificate of the chain is in the ca store/,
    },
    {
      name: 'with two layers',
      prepare: (one) => refer(one, referrer({ layers: [layerOf(SBOM), layerOf({ a: 1 })] })),
      reason: /invalid referrer descriptor, must have only one layer/,
    },
    {
      name: 'with the signature of the image only',
      prepare: async (one) => {
        await refer(one, referrer(), null)
        const payload = { targetArtifact: one.descriptor }
        const { envelope, mediaType } = mintEnvelope({ format: 'COSE', chain: CHAIN, payload })
        await pushReferrer(one.target, one.descriptor, {
          artifactType: NOTARY_TYPE,
          layers: [{ mediaType, bytes: envelope }],
        })
      },
      reason: /it has no Notary Project signature/,
    },
  ])('do not count $name', async ({ prepare, reason }) => {
    const one = await image()
    await prepare(one)
    const found = await verdict(text(`${COUNT} > 0`), one)
    expect(found).toMatch(/^Policy built failed: it is false \| /)
    expect(found).toMatch(reason)
  })

  test('whose layer is no JSON count, and have no payload', async () => {
    const one = await image()
    await refer(one, referrer({}, 'not JSON'))
    expect(await verdict(text(`${COUNT} > 0`), one)).toBe('admitted')
    expect(await verdict(text(), one)).toMatch(
      /^Policy built error: failed to evaluate policy: failed to get payload: failed to unmarshal json for attestation sbom: /,
    )
  })

  test('that nobody verified have no payload', async () => {
    const one = await image()
    await refer(one)
    const expression =
      'extractPayload(images.containers[0], attestations.sbom).bomFormat == "CycloneDX"'
    expect(await verdict(text(expression), one)).toMatch(
      /^Policy built error: failed to evaluate policy: failed to get payload: referrer attestation payload cannot be fetch before/,
    )
  })
})

describe('what the seal hands over', () => {
  /** The object as mutate leaves it, and engines that know nothing. */
  async function handedOver(
    one: PushedImage,
    text: string,
    options?: Partial<EngineOptions>,
  ): Promise<{
    final: ReturnType<typeof podWith>
    fresh: ImagePolicyEngine
    warm: ImagePolicyEngine
  }> {
    const warm = await world.engine([text], options)
    const pod = podWith([one.tagged])
    const mutated = await warm.mutate(requestFor(pod), callFor())
    const final = patched(pod, mutated)
    world.registry.requests.length = 0
    return { final, warm, fresh: await world.engine([text], options) }
  }
  const urls = () =>
    world.registry.requests.map(({ url }) => url.replace(/^\/v2\/attested\/\d+/, ''))
  const validate = (engine: ImagePolicyEngine, final: ReturnType<typeof podWith>) =>
    engine.validate(requestFor(final), callFor())
  const verifyOnly = () => policy(only(VERIFIED))
  const blobOf = (one: PushedImage) => {
    const stored = world.registry.repositories.get(one.target.repository)
    const manifest = stored?.manifest(attestationTag(one.digest))
    return JSON.parse(manifest?.bytes.toString() ?? '{}').layers.at(-1).digest as string
  }
  const STRICT = { outcomes: { onMissing: 'deny' as const, lifetimeMs: 120_000 } }

  test.each([
    { mode: 'verify', options: {} },
    { mode: 'deny', options: STRICT },
  ])('a verification needs no outside call in validate (onMissing: $mode)', async ({ options }) => {
    const one = await attested()
    const { final } = await handedOver(one, verifyOnly(), options)
    const offline = await world.engine([verifyOnly()], {
      ...options,
      live: () => Promise.reject(new Error('nothing may be found out live')),
    })
    const validated = await validate(offline, final)
    expect(said(validated)).toBe('admitted')
    expect(validated.record).toMatchObject({ seal: 'open', calls: { registry: 0, kms: 0 } })
    expect(urls()).toEqual([])
  })

  test.each([
    { mode: 'verify', options: {} },
    { mode: 'deny', options: STRICT },
  ])('a payload takes one blob, by its digest (onMissing: $mode)', async ({ options }) => {
    const one = await attested()
    const { final, fresh } = await handedOver(one, policy(), options)
    expect(said(await validate(fresh, final))).toBe('admitted')
    expect(urls()).toEqual([`/blobs/${blobOf(one)}`])
  })

  test('a payload in a bundle, and that of a referrer, too', async () => {
    const one = await attested({ layout: 'dsse' })
    const { final, fresh } = await handedOver(one, policy())
    expect(said(await validate(fresh, final))).toBe('admitted')
    expect(urls()).toHaveLength(1)
  })

  test('an isolate that has the payload asks nobody', async () => {
    const one = await attested()
    const { final, warm } = await handedOver(one, policy())
    expect(said(await validate(warm, final))).toBe('admitted')
    expect(urls()).toEqual([])
  })

  test('another attestation in the place of the sealed one is not read', async () => {
    const one = await attested()
    const { final, fresh } = await handedOver(one, policy())
    const evil = { ...PROVENANCE, predicate: { builder: { id: 'https://new.example.com' } } }
    await attest(one.target, one, world.signers.release, evil)
    expect(said(await validate(fresh, final))).toBe('admitted')
  })

  test('other bytes under the digest of the sealed blob are refused', async () => {
    const one = await attested()
    const { final, fresh } = await handedOver(one, policy())
    world.registry.faults.add({ kind: 'wrong-bytes' }, { on: /\/blobs\// })
    expect(said(await validate(fresh, final))).toMatch(
      /^Policy built error: failed to evaluate policy: failed to get payload: .*(hashes to sha256:|expected sha256:|not \d+ bytes)/,
    )
  })

  test.each([
    { mode: 'verify', options: {} },
    { mode: 'deny', options: STRICT },
  ])(
    'a sealed blob that is gone is refused, nothing else is looked for (onMissing: $mode)',
    async ({ options }) => {
      const one = await attested()
      const { final, fresh } = await handedOver(one, policy(), options)
      world.registry.repositories.get(one.target.repository)?.blobs.delete(blobOf(one))
      expect(said(await validate(fresh, final))).toMatch(
        /^Policy built error: failed to evaluate policy: failed to get payload: .*does not exist$/,
      )
      expect(urls()).toHaveLength(1)
    },
  )

  test('a seal with another digest in it does not open, and everything is found out live', async () => {
    const one = await attested()
    const { final, fresh } = await handedOver(one, policy())
    const annotations = (final.metadata as { annotations: Record<string, string> }).annotations
    const [version, kid, body = '', mac] = annotations[SEAL_ANNOTATION]?.split('.') ?? []
    const text = Buffer.from(body, 'base64url').toString()
    expect(text).toContain(blobOf(one))
    const forged = Buffer.from(text.replace(blobOf(one), `sha256:${'d'.repeat(64)}`)).toString(
      'base64url',
    )
    annotations[SEAL_ANNOTATION] = [version, kid, forged, mac].join('.')
    const validated = await validate(fresh, final)
    expect(said(validated)).toBe('admitted')
    expect(validated.record).toMatchObject({
      seal: 'refused: it was not made by us for this object',
    })
  })

  test('under the strict contract an attestation that the seal does not cover is refused', async () => {
    const one = await attested({}, 'other')
    const { final, fresh } = await handedOver(one, verifyOnly(), STRICT)
    expect(said(await validate(fresh, final))).toMatch(
      /^Policy built failed: it is false \| image \S+ is not covered by the sealed outcomes of the mutate phase \(attestation slsa/,
    )
    expect(urls()).toEqual([])
  })

  test('a reinvoked mutate keeps the seal to the letter', async () => {
    const one = await attested()
    const { final, fresh } = await handedOver(one, policy())
    expect((await fresh.mutate(requestFor(final), callFor())).patch).toEqual([])
  })
})

describe('what an isolate remembers', () => {
  test('an attestation that verified, with its payload', async () => {
    const one = await attested()
    const engine = await world.engine([policy()])
    const pinned = podWith([one.pinned])
    expect((await engine.validate(requestFor(pinned), callFor())).allowed).toBe(true)
    world.registry.requests.length = 0
    expect((await engine.validate(requestFor(pinned), callFor())).allowed).toBe(true)
    expect(world.registry.requests).toEqual([])
  })

  test('that there was none, for a moment only', async () => {
    const one = await image()
    const engine = await world.engine([policy()])
    const pinned = podWith([one.pinned])
    const admits = async () => (await engine.validate(requestFor(pinned), callFor())).allowed
    expect(await admits()).toBe(false)
    await attest(one.target, one, world.signers.release, PROVENANCE)
    expect(await admits()).toBe(false)
    world.clock.now += REJECTION_TTL_MS
    expect(await admits()).toBe(true)
  })

  test('nothing of an outage', async () => {
    const one = await attested()
    const engine = await world.engine([policy()])
    const pinned = podWith([one.pinned])
    const heal = world.registry.faults.add({ kind: 'status', status: 500 }, { on: /\.att$/ })
    expect((await engine.validate(requestFor(pinned), callFor())).allowed).toBe(false)
    heal()
    expect((await engine.validate(requestFor(pinned), callFor())).allowed).toBe(true)
  })

  test('nothing of one type for another, or of one attestor for another', async () => {
    const one = await attested()
    const count = (attestation: string, attestor: string) =>
      `verifyAttestationSignatures(images.containers[0], attestations.${attestation}, [attestors.${attestor}])`
    const text = policy({
      attestors: [byKey('release'), byKey('audit')],
      attestations: [
        { name: 'slsa', intoto: { type: SLSA } },
        { name: 'vuln', intoto: { type: 'vuln' } },
      ],
      ...only(
        `[${count('slsa', 'release')}, ${count('vuln', 'release')}, ${count('slsa', 'audit')}] == [1, 0, 0]`,
      ),
    })
    expect(await verdict(text, one)).toBe('admitted')
  })
})
