import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { certified, keylessSigner, pemOf, witnessed } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import { pushReferrer } from '#functions/local/push.ts'
import {
  attest,
  bundleReferrer,
  dsseBundle,
  messageBundle,
  oci11Referrer,
  type SignatureLayout,
  signImage,
  tagLayer,
} from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import { MAX_SIGNATURE_LAYERS, MAX_SIGNATURE_READS } from '#shared/limits.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import { createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import { OCI11_SIGNATURE } from '#shared/signature/cosign.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import {
  createCertificateAttestor,
  createKeylessAttestor,
} from '#shared/signature/sigstore/attestor.ts'
import type { Attestor, CosignCertificateAttestor } from '#shared/signature/types.ts'
import { mint, mintRoot } from '#test/fakes/pki.ts'
import { ISSUER, SIGNED_AT, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'
import {
  derOf,
  detailsOf,
  keyPair,
  NO_KMS,
  NOW,
  openStage,
  pemOf as publicPem,
  type Stage,
} from './setup.ts'

const world = new SigstoreWorld()
const root = JSON.stringify(world.trustedRoot())
const LAYOUTS: readonly SignatureLayout[] = ['tag', 'dsse', 'message', 'oci11']

/** Valid now and when the logs here see signatures, which is later. */
const validity = [new Date(NOW - 1000), new Date(SIGNED_AT * 1000 + 1000)] as const
const ca = mintRoot({ keyName: 'layouts ca', validity })
const middle = mint({
  keyName: 'layouts middle',
  subject: [['2.5.4.3', 'middle']],
  issuer: ca,
  validity,
  usages: [5],
  purposes: null,
  ca: {},
})
const leaf = mint({ keyName: 'layouts leaf', issuer: middle, validity })
const ours = localSigner(keyPair('P-256').privateKey)
const theirs = localSigner(keyPair('P-256', 'theirs').privateKey)
const byLeaf = certified(localSigner(leaf.keys.privateKey), [leaf.der, middle.der, ca.der])

let stage: Stage
/** A registry without the referrers API. */
let fallback: Stage
beforeAll(async () => {
  ;[stage, fallback] = await Promise.all([openStage(), openStage({ referrersApi: false })])
})
afterAll(() => Promise.all([stage.close(), fallback.close()]))

const keyAttestor = (more: Partial<Parameters<typeof createCosignKeyAttestor>[0]> = {}) =>
  createCosignKeyAttestor({ name: 'a', data: publicPem(keyPair('P-256').publicKey), ...more })
const identityAttestor = (trust = {}) =>
  createKeylessAttestor({
    name: 'a',
    identities: [{ issuer: ISSUER, subject: SUBJECT }],
    trust: { root, ...trust },
  })
const certificateAttestor = (fields: Partial<CosignCertificateAttestor>) =>
  createCertificateAttestor({ name: 'a', ...fields })

const IGNORE = { ignoreTlog: true, ignoreSct: true }
const CERT = pemOf([leaf.der])
const CHAIN = pemOf([middle.der, ca.der])

interface Material {
  attestor: () => Promise<Attestor>
  signer: Signer
  /** Made by somebody, or seen by somebody, else. */
  wrong: Signer
  /** What is said of it, in every layout. */
  says: string
}

const MATERIALS: Readonly<Record<string, Material>> = {
  'a key': {
    attestor: keyAttestor,
    signer: ours,
    wrong: theirs,
    says: 'signature is not by this ECDSA P-256 key',
  },
  'a key that a log has to have seen': {
    attestor: () => keyAttestor({ trust: { root } }),
    signer: witnessed(ours, world),
    wrong: ours,
    says: 'entries of 0 known transparency logs, expected 1',
  },
  'an identity': {
    attestor: identityAttestor,
    signer: keylessSigner(world),
    wrong: keylessSigner(world, { leaf: { names: { uri: ['https://evil.test'] } } }),
    says: `signed by ["https://evil.test"] of "${ISSUER}", expected another identity`,
  },
  'an identity whose time an authority tells': {
    attestor: () => identityAttestor({ ignoreTlog: true }),
    signer: keylessSigner(world, { rekor: 'none' }),
    // Without any time it is now, years before the certificate.
    wrong: keylessSigner(world, { rekor: 'none', timestamp: null }),
    says: 'certificate was not valid when the signature was made',
  },
  'a certificate': {
    attestor: () => certificateAttestor({ certificate: CERT }),
    signer: localSigner(leaf.keys.privateKey),
    wrong: ours,
    says: 'signature does not verify under the key of the signer',
  },
  'a certificate with its chain': {
    attestor: () => certificateAttestor({ certificate: CERT, chain: CHAIN, trust: IGNORE }),
    signer: localSigner(leaf.keys.privateKey),
    wrong: ours,
    says: 'signature does not verify under the key of the signer',
  },
  'a certificate that a log has to have seen': {
    attestor: () =>
      certificateAttestor({ certificate: CERT, chain: CHAIN, trust: { root, ignoreSct: true } }),
    signer: witnessed(byLeaf, world),
    wrong: byLeaf,
    says: 'entries of 0 known transparency logs, expected 1',
  },
  'any certificate of an authority': {
    attestor: () => certificateAttestor({ chain: CHAIN, trust: IGNORE }),
    signer: byLeaf,
    wrong: keylessSigner(world),
    says: 'certificate was not valid when the signature was made',
  },
}

describe.each(LAYOUTS)('in the layout %s', (layout) => {
  test.each(Object.entries(MATERIALS))('%s verifies, and nothing else', async (_, material) => {
    const attestor = await material.attestor()
    const [good, bad] = [await stage.image(), await stage.image()]
    await signImage(stage.target, good, [material.wrong, material.signer], layout)
    await signImage(stage.target, bad, [material.wrong], layout)
    const verified = await stage.verify(good, attestor)
    expect(verified.status).toBe('verified')
    const source = { tag: 'tag', dsse: 'bundle', message: 'bundle', oci11: 'referrer' }[layout]
    expect(verified.candidates.find((each) => each.verified)?.source).toBe(source)
    const rejected = await stage.verify(bad, attestor)
    expect([rejected.status, detailsOf(rejected)]).toEqual(['rejected', [material.says]])
  })

  test('is found through the fallback tag', async () => {
    const image = await fallback.image()
    await signImage(fallback.target, image, [ours], layout)
    expect((await fallback.verify(image, await keyAttestor())).status).toBe('verified')
  })

  test('counts for its own image only', async () => {
    const [image, other] = [await stage.image(), await stage.image()]
    const pretended = { ...other, descriptor: image.descriptor }
    // Signed for the other one, and pushed beside this one.
    if (layout === 'tag' || layout === 'oci11') {
      const layer = await tagLayer(other, ours)
      await pushReferrer(stage.target, image.descriptor, oci11Referrer([layer]))
    } else {
      const bundle =
        layout === 'dsse' ? await dsseBundle(other, ours) : await messageBundle(other, ours)
      await pushReferrer(stage.target, pretended.descriptor, bundleReferrer(bundle, layout))
    }
    expect((await stage.verify(image, await keyAttestor())).status).toBe('rejected')
  })

  test.each([
    { name: 'what was signed', annotations: { stage: 'ci', team: 'shop' }, status: 'verified' },
    { name: 'something else', annotations: { stage: 'dev' }, status: 'rejected' },
    { name: 'nothing', annotations: undefined, status: 'rejected' },
  ] as const)('an annotation is satisfied by $name: $status', async ({ annotations, status }) => {
    const image = await stage.image()
    const attestor = await keyAttestor({ annotations: { stage: 'ci' } })
    const signed = { ...image, ...(annotations && { annotations }) }
    await signImage(stage.target, signed, [ours], layout)
    // A signature of the bare manifest can say nothing beside it.
    const expected = layout === 'message' ? 'rejected' : status
    expect((await stage.verify(image, attestor)).status).toBe(expected)
  })
})

describe('bundles of every version', () => {
  test.each(['0.1', '0.2', '0.3'] as const)(
    '%s, by key, identity and certificate',
    async (version) => {
      const image = await stage.image()
      // A bundle never brings the root.
      const byChain = certified(byLeaf, [leaf.der, middle.der])
      for (const signer of [ours, keylessSigner(world), byChain]) {
        const bundle = await dsseBundle(image, signer, version)
        await pushReferrer(stage.target, image.descriptor, bundleReferrer(bundle, 'dsse'))
      }
      const attestors = [
        await keyAttestor(),
        await identityAttestor(),
        await certificateAttestor({
          chain: version === '0.3' ? CHAIN : pemOf([ca.der]),
          trust: IGNORE,
        }),
      ]
      for (const attestor of attestors) {
        const verdict = await stage.verify(image, attestor)
        expect([verdict.status, ...detailsOf(verdict)]).toContain('verified')
      }
    },
  )
})

describe('all layouts count together', () => {
  test.each(LAYOUTS)(
    'a good signature in the layout %s is not hidden by bad ones elsewhere',
    async (good) => {
      const image = await stage.image()
      for (const layout of LAYOUTS) {
        await signImage(stage.target, image, [layout === good ? ours : theirs], layout)
      }
      expect((await stage.verify(image, await keyAttestor())).status).toBe('verified')
    },
  )
})

describe('attestations', () => {
  const PROVENANCE = 'https://slsa.dev/provenance/v1'
  const attested = { predicateType: PROVENANCE, predicate: {}, layout: 'dsse' } as const

  test.each([
    { name: 'is no signature', predicateTypes: undefined, status: 'rejected' },
    { name: 'is one when the policy says so', predicateTypes: [PROVENANCE], status: 'verified' },
    { name: 'is none of another type', predicateTypes: ['https://x.test/a'], status: 'rejected' },
  ] as const)('a provenance $name', async ({ predicateTypes, status }) => {
    const image = await stage.image()
    await attest(stage.target, image, ours, attested)
    const attestor = await keyAttestor(predicateTypes && { predicateTypes })
    expect((await stage.verify(image, attestor)).status).toBe(status)
  })

  test('that GitHub made count by their identity and type', async () => {
    const image = await stage.image()
    await attest(stage.target, image, keylessSigner(world), attested)
    const attestor = await createKeylessAttestor({
      name: 'a',
      identities: [{ issuer: ISSUER, subject: SUBJECT }],
      trust: { root },
      predicateTypes: [PROVENANCE],
    })
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('under the .att tag are no signatures, whatever the policy says', async () => {
    const image = await stage.image()
    await attest(stage.target, image, ours, { ...attested, layout: 'tag' })
    const attestor = await keyAttestor({ predicateTypes: [PROVENANCE] })
    expect((await stage.verify(image, attestor)).status).toBe('rejected')
  })
})

describe('another place for signatures', () => {
  test.each(LAYOUTS)('is where they are looked for, and nowhere else: %s', async (layout) => {
    const [here, there] = [await stage.image(), await stage.image()]
    const elsewhere = { ...stage.target, repository: 'team/signatures' }
    await signImage(stage.target, here, [ours], layout)
    await signImage(elsewhere, there, [ours], layout)
    const source = { repository: `${stage.registry.host}/team/signatures` }
    const attestor = await keyAttestor({ source })
    expect((await stage.verify(there, attestor)).status).toBe('verified')
    expect((await stage.verify(there, await keyAttestor())).status).toBe('rejected')
    const missing = await stage.verify(here, attestor)
    expect(missing).toMatchObject({
      status: 'rejected',
      reason: expect.stringContaining(`in ${stage.registry.host}/team/signatures`),
    })
  })

  test('is a tag with a prefix', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag', { tagPrefix: 'qa-' })
    const attestor = await keyAttestor({ source: { tagPrefix: 'qa-' } })
    expect((await stage.verify(image, attestor)).status).toBe('verified')
    expect((await stage.verify(image, await keyAttestor())).status).toBe('rejected')
  })
})

describe('the experimental layout of OCI 1.1', () => {
  test('is found where the registry lost its type', async () => {
    const image = await fallback.image()
    const referrer = oci11Referrer([await tagLayer(image, theirs), await tagLayer(image, ours)])
    await pushReferrer(fallback.target, image.descriptor, {
      ...referrer,
      fallbackArtifactType: null,
    })
    const verdict = await fallback.verify(image, await keyAttestor())
    expect(verdict.status).toBe('verified')
    expect(verdict.candidates.map(({ location }) => location.slice(-7))).toEqual([
      'layer 0',
      'layer 1',
    ])
  })

  test('may say its type itself', async () => {
    const image = await stage.image()
    const referrer = {
      ...oci11Referrer([await tagLayer(image, ours)]),
      artifactType: OCI11_SIGNATURE,
    }
    await pushReferrer(stage.target, image.descriptor, referrer)
    expect((await stage.verify(image, await keyAttestor())).status).toBe('verified')
  })

  test('is looked at up to a bound, beyond which nobody can tell', async () => {
    const image = await stage.image()
    const layer = await tagLayer(image, theirs)
    const layers = Array.from({ length: MAX_SIGNATURE_LAYERS }, () => layer)
    layers.push(await tagLayer(image, ours))
    await pushReferrer(stage.target, image.descriptor, oci11Referrer(layers))
    expect(await stage.verify(image, await keyAttestor())).toMatchObject({
      status: 'inconclusive',
      error: { code: 'REGISTRY_TOO_LARGE' },
    })
  })
})

describe('lists of lists', () => {
  test('are read up to a bound, beyond which nobody can tell', async () => {
    const image = await stage.image()
    const layer = { mediaType: 'text/plain', bytes: Buffer.from('none') }
    const layers = Array.from({ length: MAX_SIGNATURE_LAYERS }, () => layer)
    for (let at = 0; at < 5; at++) {
      const artifact = { ...oci11Referrer(layers), annotations: { at: String(at) } }
      await pushReferrer(stage.target, image.descriptor, artifact)
    }
    const verdict = await stage.verify(image, await keyAttestor())
    expect(verdict).toMatchObject({
      status: 'inconclusive',
      error: { code: 'REGISTRY_TOO_LARGE' },
    })
    expect(verdict.candidates.length).toBeLessThan(MAX_SIGNATURE_READS)
  })
})

describe('a key in a key service', () => {
  const { publicKey, privateKey } = keyPair('P-256', 'kms')
  /** Every answer of a KMS that holds the key. */
  const kms = (confirms: boolean) =>
    createKmsKeys({
      now: () => NOW,
      region: 'eu-west-1',
      verifyRemotely: true,
      port: {
        ...NO_KMS,
        getPublicKey: async () => ({
          spki: derOf(publicKey),
          keySpec: 'ECC_NIST_P256',
          keyUsage: 'SIGN_VERIFY',
          signingAlgorithms: ['ECDSA_SHA_256'],
        }),
        verify: async () => confirms,
      },
    })

  test.each([
    { name: 'and a log', rekor: 'v1', confirms: true, status: 'verified' },
    { name: 'without a log', rekor: 'none', confirms: true, status: 'rejected' },
    { name: 'and a log, which KMS denies', rekor: 'v1', confirms: false, status: 'rejected' },
  ] as const)('$name: $status', async ({ rekor, confirms, status }) => {
    const attestor = await createCosignKeyAttestor({
      name: 'a',
      kms: 'awskms:///alias/release',
      trust: { root },
    })
    for (const layout of LAYOUTS) {
      const image = await stage.image()
      const signer = witnessed(localSigner(privateKey), world, { rekor, timestamp: null })
      await signImage(stage.target, image, [signer], layout)
      const verdict = await stage.verify(image, attestor, { kms: kms(confirms) })
      expect([layout, verdict.status]).toEqual([layout, status])
    }
  })
})

describe('logins of the policy', () => {
  test('are used where its signatures are read, and nowhere else', async () => {
    const login = { username: 'ada', password: 'secret-word' }
    const guarded = await openStage({ auth: { kind: 'basic', ...login } })
    const target = { ...guarded.target, login }
    const descriptor = await pushImage(target, { text: 'guarded' })
    const image = { descriptor, reference: 'guarded' }
    await signImage(target, image, [ours], 'tag')
    const registry = createRegistryClient({
      fetch,
      now: () => NOW,
      credentials: async () => undefined,
      credentialsFor:
        ({ secrets }) =>
        async () =>
          secrets.includes('team') ? { kind: 'basic', ...login } : undefined,
      plainHttpHosts: [guarded.registry.host],
    })
    const verify = async (pullSecrets?: readonly string[]) => {
      const attestor = await keyAttestor(pullSecrets && { source: { pullSecrets } })
      const session = registry.session(new AbortController().signal)
      return (await guarded.verify(image, attestor, { session })).status
    }
    expect([await verify(['team']), await verify(['other']), await verify()]).toEqual([
      'verified',
      'inconclusive',
      'inconclusive',
    ])
    await guarded.close()
  })
})

describe('several attestors of one request', () => {
  test('read every manifest and blob once', async () => {
    const image = await stage.image()
    for (const layout of LAYOUTS)
      await signImage(stage.target, image, [theirs, keylessSigner(world)], layout)
    const { requests } = stage.registry
    const session = stage.session()
    requests.length = 0
    await stage.verify(image, await keyAttestor(), { session })
    const once = requests.length
    const attestors = [await identityAttestor(), await keyAttestor({ trust: { root } })]
    for (const attestor of attestors) await stage.verify(image, attestor, { session })
    expect(requests.length).toBe(once)
  })
})
