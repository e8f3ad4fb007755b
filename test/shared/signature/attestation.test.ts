import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keylessSigner } from '#functions/local/evidence.ts'
import { pushReferrer } from '#functions/local/push.ts'
import {
  type Attested,
  attest,
  attestationLayer,
  bundleReferrer,
  envelopeBundle,
  pushAttestationTag,
  type SignedImage,
  signImage,
} from '#functions/local/sign.ts'
import { localSigner } from '#functions/local/signer.ts'
import { toHex, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { FACT_TTL_MS, REJECTION_TTL_MS } from '#shared/limits.ts'
import { AttestationCache } from '#shared/signature/attestation-cache.ts'
import { createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import { createKeylessAttestor } from '#shared/signature/sigstore/attestor.ts'
import { SIGN_PREDICATE } from '#shared/signature/statement.ts'
import type { Attestation, AttestationVerification, Attestor } from '#shared/signature/types.ts'
import { createVerifier, type VerifierOptions } from '#shared/signature/verify.ts'
import { ISSUER, SIGNED_AT, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'
import { attestorOf, keyPair, NO_KMS, NOW, never, openStage, pemOf, type Stage } from './setup.ts'

const SLSA = 'https://slsa.dev/provenance/v1'
const WANTED: Attestation = { name: 'slsa', intoto: SLSA }
const PROVENANCE: Attested = { predicateType: SLSA, predicate: { runs: 1 }, layout: 'tag' }

const ours = localSigner(keyPair('P-256').privateKey)
const theirs = localSigner(keyPair('P-256', 'theirs').privateKey)

function verifierOf(options: Partial<VerifierOptions> = {}) {
  const kms = createKmsKeys({ port: NO_KMS, now: () => NOW })
  return createVerifier({ now: () => NOW, kms, ...options })
}

const textOf = (found: AttestationVerification) =>
  found.status === 'verified' ? JSON.parse(new TextDecoder().decode(found.payload.bytes)) : found

describe.each([
  { name: 'with the referrers API', options: {} },
  { name: 'without the referrers API', options: { referrersApi: false } },
])('a registry $name', ({ options }) => {
  let stage: Stage
  let attestor: Attestor
  beforeAll(async () => {
    stage = await openStage(options)
    attestor = await attestorOf(keyPair('P-256').publicKey)
  })
  afterAll(() => stage.close())

  const verify = (
    image: SignedImage,
    by: Attestor = attestor,
    verifier = verifierOf(),
    attestation: Attestation = WANTED,
  ) =>
    verifier.verifyAttestation(stage.resolved(image), attestation, by, {
      cluster: 'prod',
      registry: stage.session(),
      signal: never(),
    })

  test.each(['tag', 'dsse'] as const)('holds an attestation (%s)', async (layout) => {
    const image = await stage.image()
    await attest(stage.target, image, ours, { ...PROVENANCE, layout })
    const found = await verify(image)
    expect(found).toMatchObject({
      status: 'verified',
      signer: expect.stringMatching(/^ECDSA P-256 key sha256:/),
      candidates: [{ source: layout === 'tag' ? 'tag' : 'bundle', verified: true }],
    })
    expect(textOf(found)).toMatchObject({ predicateType: SLSA, predicate: { runs: 1 } })
    expect(found).not.toHaveProperty('unread')
  })

  test('holds statements of signatures, too, but no signature of the manifest is one', async () => {
    const image = await stage.image()
    const signature = { name: 'signature', intoto: SIGN_PREDICATE }
    await signImage(stage.target, image, [ours], 'message')
    expect((await verify(image, attestor, verifierOf(), signature)).status).toBe('rejected')
    await signImage(stage.target, image, [ours], 'dsse')
    await signImage(stage.target, image, [ours], 'message')
    const found = await verify(image, attestor, verifierOf(), signature)
    expect(textOf(found)).toMatchObject({ predicateType: SIGN_PREDICATE })
  })

  test('gives the whole statement, as it was signed', async () => {
    const image = await stage.image()
    const layer = await attestationLayer(image, ours, PROVENANCE)
    await pushAttestationTag(stage.target, image.descriptor.digest, [layer])
    const found = await verify(image)
    expect(textOf(found)).toEqual({
      _type: 'https://in-toto.io/Statement/v0.1',
      predicateType: SLSA,
      subject: [{ name: 'image', digest: { sha256: image.descriptor.digest.slice(7) } }],
      predicate: { runs: 1 },
    })
    expect(found).toMatchObject({ payload: { blob: { size: layer.bytes.length } } })
  })

  test.each(['P-384', 'RSA 2048', 'Ed25519'] as const)('holds one by a key of %s', async (kind) => {
    const image = await stage.image()
    await attest(stage.target, image, localSigner(keyPair(kind).privateKey), PROVENANCE)
    const by = await attestorOf(keyPair(kind).publicKey)
    expect((await verify(image, by)).status).toBe('verified')
    expect((await verify(image)).status).toBe('rejected')
  })

  test.each([
    { name: 'the right signed annotations', annotations: { stage: 'ci' }, verified: true },
    { name: 'other signed annotations', annotations: { stage: 'dev' }, verified: false },
    { name: 'none', annotations: undefined, verified: false },
  ])('holds one with $name: $verified', async ({ annotations, verified }) => {
    const image = await stage.image()
    const hex = image.descriptor.digest.slice(7)
    const statement = { subject: [{ name: 'x', digest: { sha256: hex }, annotations }] }
    const layer = await attestationLayer(image, ours, { ...PROVENANCE, statement })
    // What stands beside the signature is anybody's who may push.
    const layerAnnotations = { ...layer.annotations, stage: 'ci' }
    await pushAttestationTag(stage.target, image.descriptor.digest, [
      { ...layer, annotations: layerAnnotations },
    ])
    const data = pemOf(keyPair('P-256').publicKey)
    const by = await createCosignKeyAttestor({ name: 'a', data, annotations: { stage: 'ci' } })
    expect((await verify(image, by)).status).toBe(verified ? 'verified' : 'rejected')
  })

  test('holds them in another repository, under a prefix', async () => {
    const image = await stage.image()
    const store = { ...stage.target, repository: `store/${image.descriptor.digest.slice(7, 20)}` }
    const data = pemOf(keyPair('P-256').publicKey)
    const repository = `${stage.registry.host}/${store.repository}`
    const source = { repository, tagPrefix: 'prod-' }
    const by = await createCosignKeyAttestor({ name: 'a', data, source })
    expect((await verify(image, by)).status).toBe('rejected')
    const layer = await attestationLayer(image, ours, PROVENANCE)
    await pushAttestationTag(store, image.descriptor.digest, [layer], 'prod-')
    const verifier = verifierOf()
    const found = await verify(image, by, verifier)
    expect(found.status).toBe('verified')
    expect((await verify(image)).status).toBe('rejected')
    if (found.status !== 'verified') return
    const reference = { ...stage.resolved(image).reference, digest: image.descriptor.digest }
    const { blob, bytes } = found.payload
    const read = await verifier.readPayload(reference, WANTED, by, blob, stage.session())
    expect(toHex(read)).toBe(toHex(bytes))
    await expect(
      verifier.readPayload(reference, WANTED, attestor, blob, stage.session()),
    ).rejects.toMatchObject({ code: 'REGISTRY_NOT_FOUND' })
  })

  test('holds one for an identity, in either layout', async () => {
    const sigstore = new SigstoreWorld()
    const by = await createKeylessAttestor({
      name: 'ci',
      identities: [{ issuer: ISSUER, subject: SUBJECT }],
      trust: { root: JSON.stringify(sigstore.trustedRoot()) },
    })
    const now = () => SIGNED_AT * 1000
    for (const layout of ['tag', 'dsse'] as const) {
      const image = await stage.image()
      await attest(stage.target, image, keylessSigner(sigstore), { ...PROVENANCE, layout })
      expect(await verify(image, by, verifierOf({ now }))).toMatchObject({
        status: 'verified',
        signer: `${SUBJECT} (${ISSUER})`,
      })
      const other = await stage.image()
      const leaf = { names: { uri: ['https://evil.test'] } }
      const signer = keylessSigner(sigstore, { leaf })
      await attest(stage.target, other, signer, { ...PROVENANCE, layout })
      expect((await verify(other, by, verifierOf({ now }))).status).toBe('rejected')
    }
  })

  test('holds one of a large predicate', async () => {
    const image = await stage.image()
    const predicate = { text: 'x'.repeat(3_000_000) }
    await attest(stage.target, image, ours, { ...PROVENANCE, predicate })
    expect((await verify(image)).status).toBe('verified')
  })

  test('holds a bundle that says beside it that it is of another type', async () => {
    const image = await stage.image()
    const statement = { _type: 'https://in-toto.io/Statement/v1', predicateType: SLSA }
    const bundle = await envelopeBundle(utf8(JSON.stringify(statement)), ours)
    const referrer = bundleReferrer(bundle, 'dsse', 'https://example.com/other')
    await pushReferrer(stage.target, image.descriptor, referrer)
    expect(await verify(image)).toMatchObject({
      status: 'rejected',
      reason: expect.stringContaining('found ["https://example.com/other"]'),
    })
  })

  test('is asked nothing when the attestor cannot attest this way', async () => {
    const image = await stage.image()
    stage.registry.requests.length = 0
    const found = await verify(image, attestor, verifierOf(), { name: 'a', referrer: 'sbom' })
    expect(found).toEqual({
      status: 'rejected',
      reason: 'cosign verifier only supports intoto referrers as attestations',
      candidates: [],
    })
    const notary: Attestor = { kind: 'notary', name: 'n', certs: '', hash: 'n' }
    expect(await verify(image, notary)).toMatchObject({
      status: 'inconclusive',
      error: {
        code: 'POLICY_UNSUPPORTED',
        message: 'notary verifier only supports oci 1.1 referrers as attestations',
      },
    })
    expect(stage.registry.requests).toEqual([])
  })

  describe('recall', () => {
    test('gives the verdict with its payload for as long as signatures have it', async () => {
      const image = await stage.image()
      await attest(stage.target, image, ours, PROVENANCE)
      let now = NOW
      const verifier = verifierOf({ now: () => now })
      const reference = { ...stage.resolved(image).reference, digest: image.descriptor.digest }
      const recall = (
        attestation: Attestation = WANTED,
        by = attestor,
        cluster = 'prod',
        of = reference,
      ) => verifier.recallAttestation(of, attestation, by, cluster)?.status
      expect(recall()).toBeUndefined()
      await verify(image, attestor, verifier)
      expect(recall()).toBe('verified')
      expect(recall({ ...WANTED, name: 'provenance' })).toBe('verified')
      expect(recall({ name: 'slsa', intoto: `${SLSA}#` })).toBeUndefined()
      expect(recall({ name: 'slsa', referrer: SLSA })).toBeUndefined()
      expect(recall(WANTED, { ...attestor, hash: 'another' })).toBeUndefined()
      expect(recall(WANTED, attestor, 'staging')).toBeUndefined()
      expect(
        recall(WANTED, attestor, 'prod', { ...reference, repository: 'other' }),
      ).toBeUndefined()
      const tagged = stage.resolved(image).reference
      expect(verifier.recallAttestation(tagged, WANTED, attestor, 'prod')).toBeUndefined()
      now = NOW + FACT_TTL_MS
      expect(recall()).toBeUndefined()
    })

    test('forgets a no soon, and an outage at once', async () => {
      const image = await stage.image()
      let now = NOW
      const verifier = verifierOf({ now: () => now })
      const reference = { ...stage.resolved(image).reference, digest: image.descriptor.digest }
      const recall = () => verifier.recallAttestation(reference, WANTED, attestor, 'prod')?.status
      const heal = stage.registry.faults.add({ kind: 'down' })
      expect((await verify(image, attestor, verifier)).status).toBe('inconclusive')
      expect(recall()).toBeUndefined()
      heal()
      expect((await verify(image, attestor, verifier)).status).toBe('rejected')
      expect(recall()).toBe('rejected')
      now += REJECTION_TTL_MS
      expect(recall()).toBeUndefined()
    })

    test('keeps no yes whose payload is not surely the right one', async () => {
      const image = await stage.image()
      await attest(stage.target, image, ours, PROVENANCE)
      const verifier = verifierOf()
      const heal = stage.registry.faults.add(
        { kind: 'status', status: 500 },
        { on: /referrers|manifests\/sha256-[0-9a-f]+$/ },
      )
      expect(await verify(image, attestor, verifier)).toMatchObject({
        status: 'verified',
        unread: { code: 'REGISTRY_UNREACHABLE' },
      })
      heal()
      expect(await verify(image, attestor, verifier)).not.toHaveProperty('unread')
    })
  })

  test.each([
    { name: 'no envelope', content: '{}', code: 'SIGNATURE_MALFORMED' },
    { name: 'no JSON', content: 'x', code: 'JSON_INVALID' },
  ])('a blob with $name has no payload', async ({ content, code }) => {
    const image = await stage.image()
    const bytes = utf8(content)
    const layer = { mediaType: 'application/json', bytes }
    const referrer = { artifactType: 'x', layers: [layer] }
    const { digest } = await pushReferrer(stage.target, image.descriptor, referrer)
    const manifest = stage.registry.repositories.get('app')?.manifest(digest)
    const [blob] = JSON.parse(manifest!.bytes.toString()).layers
    const { reference } = stage.resolved(image)
    const read = (attestation: Attestation) =>
      verifierOf().readPayload(reference, attestation, attestor, blob, stage.session())
    await expect(read(WANTED)).rejects.toMatchObject({ code })
    await expect(read({ name: 'a', referrer: 'x' })).resolves.toEqual(bytes)
    await expect(
      verifierOf().readPayload(
        reference,
        WANTED,
        attestor,
        { ...blob, size: blob.size + 1 },
        stage.session(),
      ),
    ).rejects.toBeInstanceOf(AdmissionError)
  })

  test('one that is not by us beside others of other types is told with its place', async () => {
    const image = await stage.image()
    const layers = [
      await attestationLayer(image, theirs, PROVENANCE),
      await attestationLayer(image, ours, { ...PROVENANCE, predicateType: 'https://a.test/b' }),
    ]
    const { digest } = await pushAttestationTag(stage.target, image.descriptor.digest, layers)
    expect(await verify(image)).toMatchObject({
      status: 'rejected',
      reason: `none of 1 attestations of predicate type ${SLSA} of ${stage.registry.host}/app@${image.descriptor.digest} counts: ${digest} layer 0: signature is not by this ECDSA P-256 key`,
    })
  })
})

describe('the cache of attestations', () => {
  const verified = (bytes: number): AttestationVerification => ({
    status: 'verified',
    signer: 'somebody',
    payload: { bytes: new Uint8Array(bytes), blob: { digest: '', size: bytes } },
    candidates: [],
  })
  const kept = (cache: AttestationCache, ...keys: string[]) =>
    keys.filter((key) => cache.get(key, 0) !== undefined)

  test('keeps as many bytes as it may, the newest', () => {
    const cache = new AttestationCache(100)
    for (const key of ['a', 'b', 'c', 'd', 'e']) cache.set(key, verified(25), 1)
    expect(kept(cache, 'a', 'b', 'c', 'd', 'e')).toEqual(['b', 'c', 'd', 'e'])
    cache.set('b', verified(1), 1)
    cache.set('f', verified(24), 1)
    expect(kept(cache, 'b', 'c', 'd', 'e', 'f')).toEqual(['b', 'c', 'd', 'e', 'f'])
  })

  test('keeps no payload that would push out most others', () => {
    const cache = new AttestationCache(100)
    cache.set('a', verified(25), 1)
    cache.set('b', verified(26), 1)
    expect(kept(cache, 'a', 'b')).toEqual(['a'])
  })

  test('counts nothing for a no', () => {
    const cache = new AttestationCache(4)
    cache.set('a', verified(1), 1)
    cache.set('b', { status: 'rejected', reason: '', candidates: [] }, 1)
    expect(kept(cache, 'a', 'b')).toEqual(['a', 'b'])
    cache.set('a', { status: 'rejected', reason: '', candidates: [] }, 1)
    expect(cache.get('a', 0)?.status).toBe('rejected')
    expect(cache.get('a', 1)).toBeUndefined()
  })
})
