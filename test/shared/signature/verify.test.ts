import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { pushMultiArchImage } from '#functions/local/image.ts'
import { pushReferrer } from '#functions/local/push.ts'
import {
  bundleReferrer,
  dsseBundle,
  messageBundle,
  pushSignatureTag,
  type SignatureLayout,
  type SignedImage,
  signImage,
  tagLayer,
} from '#functions/local/sign.ts'
import { localSigner } from '#functions/local/signer.ts'
import { Cache } from '#shared/cache.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { ImageReference } from '#shared/image/types.ts'
import { FACT_TTL_MS, REJECTION_TTL_MS } from '#shared/limits.ts'
import type { RegistrySession } from '#shared/registry/types.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import type { CosignKeyAttestor, HashAlgorithm, Verification } from '#shared/signature/types.ts'
import { createVerifier } from '#shared/signature/verify.ts'
import {
  attestorOf,
  detailsOf,
  type KeyKind,
  keyPair,
  NO_KMS,
  NOW,
  never,
  openStage,
  type Stage,
} from './setup.ts'

const ours = localSigner(keyPair('P-256').privateKey)
const theirs = localSigner(keyPair('P-256', 'theirs').privateKey)

let stage: Stage
let attestor: CosignKeyAttestor
beforeAll(async () => {
  stage = await openStage()
  attestor = await attestorOf(keyPair('P-256').publicKey)
})
afterEach(() => stage.registry.faults.clear())
afterAll(() => stage.close())

const codeOf = (verification: Verification) =>
  verification.status === 'inconclusive' ? verification.error.code : verification.status

describe('every kind of key verifies what it signed, in every layout', () => {
  const hashes: HashAlgorithm[] = ['sha256', 'sha384', 'sha512']
  const rows = (['P-256', 'P-384', 'P-521', 'RSA 2048', 'RSA 3072'] as KeyKind[]).flatMap((kind) =>
    hashes.map((hash) => ({ kind, hash })),
  )
  test.each<{ kind: KeyKind; hash: HashAlgorithm }>([...rows, { kind: 'Ed25519', hash: 'sha256' }])(
    '$kind with $hash',
    async ({ kind, hash }) => {
      const signer = localSigner(keyPair(kind).privateKey, hash)
      const named = await attestorOf(keyPair(kind).publicKey, hash)
      const foreign = await attestorOf(keyPair(kind, 'theirs').publicKey, hash)
      for (const layout of ['tag', 'dsse', 'message'] satisfies SignatureLayout[]) {
        const image = await stage.image()
        await signImage(stage.target, image, [signer], layout)
        expect((await stage.verify(image, named)).status).toBe('verified')
        expect((await stage.verify(image, foreign)).status).toBe('rejected')
      }
    },
  )
})

describe('both layouts are looked at', () => {
  test('so a foreign bundle does not hide a good tag signature', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    await signImage(stage.target, image, [theirs], 'dsse')
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('so a foreign tag signature does not hide a good bundle', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [theirs], 'tag')
    await signImage(stage.target, image, [ours], 'dsse')
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('so many foreign bundles do not hide a good one within the bound', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, Array(12).fill(theirs), 'dsse')
    const unrelated = bundleReferrer({ mediaType: 'junk' }, 'dsse')
    await pushReferrer(stage.target, image.descriptor, unrelated)
    await signImage(stage.target, image, [ours], 'dsse')
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('and one that does not answer does not hold up the other', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    stage.registry.faults.add({ kind: 'stall' }, { on: /referrers/ })
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })

  test('and both are explained when somebody wants to know all', async () => {
    const image = await stage.image()
    const layers = await Promise.all([ours, theirs].map((signer) => tagLayer(image, signer)))
    await pushSignatureTag(stage.target, image.descriptor.digest, layers)
    await signImage(stage.target, image, [theirs, ours], 'dsse')
    const { candidates } = await stage.verify(image, attestor, { thorough: true })
    const said = candidates.map(({ source, verified }) => `${source} ${verified}`)
    expect(said.sort()).toEqual(['bundle false', 'bundle true', 'tag false', 'tag true'])
  })

  test('in a registry without the referrers API too', async () => {
    const old = await openStage({ referrersApi: false })
    try {
      const image = await old.image()
      await signImage(old.target, image, [ours], 'dsse')
      expect((await old.verify(image, attestor)).status).toBe('verified')
    } finally {
      await old.close()
    }
  })
})

describe('an image is rejected', () => {
  test('when nobody signed it, and the reason names the digest that was looked up', async () => {
    const image = await stage.image()
    const { digest } = image.descriptor
    expect(await stage.verify(image, attestor)).toEqual({
      status: 'rejected',
      reason: `no signature found for ${stage.registry.host}/app@${digest}: neither tag ${digest.replace(':', '-')}.sig nor a Sigstore bundle among its referrers`,
      candidates: [],
    })
  })

  test('when only its index is signed, and the other way round', async () => {
    const { index, platforms } = await pushMultiArchImage(stage.target, { text: 'multi-arch' })
    const of = (descriptor: SignedImage['descriptor']) => ({ descriptor, reference: 'app' })
    await signImage(stage.target, of(index), [ours], 'dsse')
    await signImage(stage.target, of(platforms.arm64), [ours], 'tag')
    expect((await stage.verify(of(index), attestor)).status).toBe('verified')
    expect((await stage.verify(of(platforms.amd64), attestor)).status).toBe('rejected')
    expect((await stage.verify(of(platforms.arm64), attestor)).status).toBe('verified')
  })

  test('when its message signature is over a manifest that is not its own', async () => {
    const image = await stage.image()
    const other = await stage.image()
    const bundle = await messageBundle(other, ours)
    await pushReferrer(stage.target, image.descriptor, bundleReferrer(bundle, 'message'))
    const session = stage.session()
    // A session that breaks its contract: the image's digest gives the other manifest.
    const registry: RegistrySession = {
      ...session,
      calls: 0,
      blob: (...args) => session.blob(...args),
      referrers: (...args) => session.referrers(...args),
      manifest: (repository, wanted) =>
        session.manifest(
          repository,
          wanted === image.descriptor.digest ? other.descriptor.digest : wanted,
        ),
    }
    const kms = createKmsKeys({ port: NO_KMS, now: () => NOW })
    const verifier = createVerifier({ now: () => NOW, kms })
    const context = { cluster: 'prod', registry, signal: never() }
    const verification = await verifier.verifyImage(stage.resolved(image), attestor, context)
    expect(verification.status).toBe('rejected')
    expect(detailsOf(verification)).toEqual([`manifest ${image.descriptor.digest} is gone`])
  })

  test('when its signature is under the tag of another digest', async () => {
    const image = await stage.image()
    const other = await stage.image()
    await pushSignatureTag(stage.target, image.descriptor.digest, [await tagLayer(other, ours)])
    expect((await stage.verify(image, attestor)).status).toBe('rejected')
    expect((await stage.verify(other, attestor)).status).toBe('rejected')
  })

  test('when the policy names another hash than the one it was signed with', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    const named = await attestorOf(keyPair('P-256').publicKey, 'sha512')
    expect((await stage.verify(image, named)).status).toBe('rejected')
  })
})

describe('the verifier cannot tell', () => {
  test.each([
    { name: 'signatures by other keys', layout: 'dsse', count: 52, examined: 50, omitted: 2 },
    { name: 'referrers of any kind', layout: 'dsse', count: 65, examined: 50, omitted: 15 },
    { name: 'layers of the signature tag', layout: 'tag', count: 51, examined: 50, omitted: 1 },
  ] as const)(
    'when there are more $name than it looks at, and remembers that for a moment',
    async ({ layout, count, examined, omitted }) => {
      const image = await stage.image()
      await signImage(stage.target, image, Array(count).fill(theirs), layout)
      const cache = new Cache<Verification>()
      const verification = await stage.verify(image, attestor, { cache })
      expect(codeOf(verification)).toBe('REGISTRY_TOO_LARGE')
      expect(verification).toMatchObject({
        error: {
          message: expect.stringMatching(
            new RegExp(
              `^none of ${examined} signatures of .*; at least ${omitted} beyond the bound were not looked at$`,
            ),
          ),
        },
      })
      stage.registry.requests.length = 0
      expect(codeOf(await stage.verify(image, attestor, { cache }))).toBe('REGISTRY_TOO_LARGE')
      expect(stage.registry.requests).toEqual([])
    },
  )

  test.each([
    {
      name: 'when the registry is down',
      fault: { kind: 'down' },
      on: /./,
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'when the signature tag cannot be read',
      fault: { kind: 'status', status: 503 },
      on: /manifests\/sha256-/,
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'when the referrers cannot be listed',
      fault: { kind: 'status', status: 500 },
      on: /referrers/,
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'when the registry throttles',
      fault: { kind: 'status', status: 429 },
      on: /referrers/,
      code: 'REGISTRY_THROTTLED',
    },
    {
      name: 'when the registry wants a login',
      fault: { kind: 'status', status: 403 },
      on: /referrers/,
      code: 'REGISTRY_UNAUTHORIZED',
    },
    {
      name: 'when the signature tag is answered with a status of a proxy',
      fault: { kind: 'status', status: 408 },
      on: /manifests\/sha256-/,
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'when the referrers lead in a circle',
      fault: { kind: 'redirect-loop' },
      on: /referrers/,
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'when a payload has other bytes than its digest says',
      fault: { kind: 'wrong-bytes' },
      on: /blobs/,
      code: 'REGISTRY_DIGEST_MISMATCH',
    },
    {
      name: 'when a payload cannot be read',
      fault: { kind: 'down' },
      on: /blobs/,
      code: 'REGISTRY_UNREACHABLE',
    },
  ] as const)('$name', async ({ fault, on, code }) => {
    const image = await stage.image()
    await signImage(stage.target, image, [theirs], 'tag')
    stage.registry.faults.add(fault, { on })
    const verification = await stage.verify(image, attestor)
    expect(codeOf(verification)).toBe(code)
    expect(detailsOf(verification)).toContainEqual(expect.stringMatching(new RegExp(`^${code}: `)))
  })

  test('when its time is up', async () => {
    const image = await stage.image()
    const controller = new AbortController()
    stage.registry.faults.add({ kind: 'stall' })
    const verifying = stage.verify(image, attestor, { signal: controller.signal })
    controller.abort()
    expect(codeOf(await verifying)).toBe('DEADLINE_EXCEEDED')
  })

  test('when the image has no usable digest', async () => {
    const image = await stage.image()
    const odd = { ...image, descriptor: { ...image.descriptor, digest: 'sha512:00' } }
    expect(codeOf(await stage.verify(odd, attestor))).toBe('REGISTRY_RESPONSE_INVALID')
  })

  test('when its registry breaks the contract, instead of throwing', async () => {
    const image = await stage.image()
    const kms = createKmsKeys({ port: NO_KMS, now: () => NOW })
    const broken = () => {
      throw new TypeError('broken')
    }
    const registry = { ...stage.session(), manifest: broken, referrers: broken }
    const verifier = createVerifier({ now: () => NOW, kms })
    const context = { cluster: 'prod', registry, signal: never() }
    expect(codeOf(await verifier.verifyImage(stage.resolved(image), attestor, context))).toBe(
      'INTERNAL',
    )
  })

  test('but it can when the other layout holds a good signature', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'dsse')
    stage.registry.faults.add({ kind: 'status', status: 503 }, { on: /\.sig/ })
    expect((await stage.verify(image, attestor)).status).toBe('verified')
  })
})

describe('verdicts are remembered', () => {
  function verifierAt(clock: { now: number }) {
    const kms = createKmsKeys({ port: NO_KMS, now: () => clock.now })
    const cache = new Cache<Verification>()
    const verifier = createVerifier({ now: () => clock.now, kms, cache })
    return async (
      image: SignedImage,
      { cluster = 'prod', by = attestor, repository = 'app' } = {},
    ) => {
      const registry = stage.session()
      const context = { cluster, registry, signal: never() }
      const verification = await verifier.verifyImage(
        stage.resolved(image, repository),
        by,
        context,
      )
      return { status: verification.status, asked: registry.calls > 0 }
    }
  }

  test('a yes for as long as a fact lives', async () => {
    const clock = { now: NOW }
    const ask = verifierAt(clock)
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    expect(await ask(image)).toEqual({ status: 'verified', asked: true })
    clock.now += FACT_TTL_MS - 1
    expect(await ask(image)).toEqual({ status: 'verified', asked: false })
    clock.now += 1
    expect(await ask(image)).toEqual({ status: 'verified', asked: true })
  })

  test('a no for a moment, because the signature may be pushed next', async () => {
    const clock = { now: NOW }
    const ask = verifierAt(clock)
    const image = await stage.image()
    expect(await ask(image)).toEqual({ status: 'rejected', asked: true })
    await signImage(stage.target, image, [ours], 'tag')
    clock.now += REJECTION_TTL_MS - 1
    expect(await ask(image)).toEqual({ status: 'rejected', asked: false })
    clock.now += 1
    expect(await ask(image)).toEqual({ status: 'verified', asked: true })
  })

  test('"could not tell" not at all', async () => {
    const ask = verifierAt({ now: NOW })
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    const heal = stage.registry.faults.add({ kind: 'down' })
    expect((await ask(image)).status).toBe('inconclusive')
    heal()
    expect(await ask(image)).toEqual({ status: 'verified', asked: true })
  })

  test('for one cluster, one repository, one image and one key only', async () => {
    const ask = verifierAt({ now: NOW })
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    expect(await ask(image)).toEqual({ status: 'verified', asked: true })
    expect(await ask(image, { cluster: 'test' })).toEqual({ status: 'verified', asked: true })
    expect(await ask(image, { repository: 'other' })).toEqual({ status: 'rejected', asked: true })
    expect(await ask(await stage.image())).toEqual({ status: 'rejected', asked: true })
    const by = await attestorOf(keyPair('P-256', 'theirs').publicKey)
    expect(await ask(image, { by })).toEqual({ status: 'rejected', asked: true })
    expect(await ask(image)).toEqual({ status: 'verified', asked: false })
  })

  test('with a few of their candidates, however many there were', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, Array(12).fill(theirs), 'dsse')
    const cache = new Cache<Verification>()
    const first = await stage.verify(image, attestor, { cache })
    const second = await stage.verify(image, attestor, { cache })
    expect(first.candidates).toHaveLength(12)
    expect(second).toEqual({ ...first, candidates: first.candidates.slice(0, 10) })
  })
})

describe('verifyImage', () => {
  test('works on the image as it was when it was asked', async () => {
    const image = await stage.image()
    const unsigned = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    const resolved = stage.resolved(unsigned)
    const kms = createKmsKeys({ port: NO_KMS, now: () => NOW })
    const verifier = createVerifier({ now: () => NOW, kms })
    const context = { cluster: 'prod', registry: stage.session(), signal: never() }
    const verifying = verifier.verifyImage(resolved, attestor, context)
    resolved.descriptor = image.descriptor
    expect((await verifying).status).toBe('rejected')
  })

  test('asks KMS nothing about an image without a signature worth checking', async () => {
    const asked: string[] = []
    const port = {
      ...NO_KMS,
      getPublicKey: () => {
        asked.push('key')
        return Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'down'))
      },
    }
    const kms = createKmsKeys({ port, now: () => NOW, region: 'eu-central-1' })
    const image = await stage.image()
    const other = await stage.image()
    await pushSignatureTag(stage.target, image.descriptor.digest, [await tagLayer(other, ours)])
    const byKms: CosignKeyAttestor = {
      kind: 'cosign-key',
      name: 'release',
      key: { kms: 'awskms:///alias/a' },
      hash: 'a',
    }
    expect((await stage.verify(image, byKms, { kms })).status).toBe('rejected')
    expect(asked).toEqual([])
    await pushReferrer(
      stage.target,
      image.descriptor,
      bundleReferrer(await dsseBundle(image, ours), 'dsse'),
    )
    expect(codeOf(await stage.verify(image, byKms, { kms }))).toBe('KMS_UNAVAILABLE')
    expect(asked).toEqual(['key'])
  })
})

describe('recall', () => {
  test('gives the verdict on a digest in its repository, and asks nobody', async () => {
    const image = await stage.image()
    await signImage(stage.target, image, [ours], 'tag')
    const kms = createKmsKeys({ port: NO_KMS, now: () => NOW })
    let now = NOW
    const verifier = createVerifier({ now: () => now, kms })
    const resolved = stage.resolved(image)
    const { digest } = image.descriptor
    const written: ImageReference = { ...resolved.reference, digest }
    const recalled = (reference = written, named = attestor, cluster = 'prod') =>
      verifier.recall(reference, named, cluster)?.status
    expect(recalled()).toBeUndefined()
    const context = { cluster: 'prod', registry: stage.session(), signal: never() }
    await verifier.verifyImage(resolved, attestor, context)
    expect(recalled()).toBe('verified')
    expect(recalled({ ...written, tag: 'v1', text: 'another text' })).toBe('verified')
    expect(recalled({ ...written, registry: written.registry.toUpperCase() })).toBe('verified')
    expect(recalled(resolved.reference)).toBeUndefined()
    expect(recalled({ ...written, repository: 'other' })).toBeUndefined()
    expect(recalled({ ...written, registry: 'registry.example' })).toBeUndefined()
    expect(recalled(written, { ...attestor, hash: 'another' })).toBeUndefined()
    expect(recalled(written, attestor, 'staging')).toBeUndefined()
    now = NOW + FACT_TTL_MS
    expect(recalled()).toBeUndefined()
  })
})
