import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PushedReferrer, pushManifest, pushReferrer } from '#functions/local/push.ts'
import type { SignedImage } from '#functions/local/sign.ts'
import { Cache } from '#shared/cache.ts'
import { MAX_DETAIL_CHARS } from '#shared/limits.ts'
import { createNotaryAttestor } from '#shared/signature/notary/attestor.ts'
import type { RevocationMode } from '#shared/signature/revocation/types.ts'
import type { NotaryAttestor, Verification } from '#shared/signature/types.ts'
import { type EnvelopeOptions, mintEnvelope } from '#test/fakes/notary.ts'
import {
  askAt,
  CRL_SIGN,
  KEY_CERT_SIGN,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
  pemOf,
} from '#test/fakes/pki.ts'
import { mintCrl } from '#test/fakes/revocation.ts'
import { mintToken, mintTsa } from '#test/fakes/tsa.ts'
import { NOW, openStage, type Stage } from '../setup.ts'

const NOTARY_TYPE = 'application/vnd.cncf.notary.signature'
const DAY = 86_400_000
const validity = [new Date(NOW - DAY), new Date(NOW + DAY)] as const

const root = mintRoot({ validity })
const middle = mintIntermediate(root, { validity })
const CHAIN = [mint({ issuer: middle, validity }), middle, root]
const stranger = mintRoot({ validity, keyName: 'stranger' })
const tsa = mintTsa({ validity }, { validity })

const attestorOf = (certs: readonly Minted[], tsaCerts?: readonly Minted[]) =>
  createNotaryAttestor({
    name: 'notary',
    certs: certs.map(pemOf).join(''),
    ...(tsaCerts && { tsaCerts: tsaCerts.map(pemOf).join('') }),
  })

/** A referrer that holds a signature of the image. */
function referrerOf(
  { descriptor }: SignedImage,
  options: Partial<EnvelopeOptions> = {},
): PushedReferrer {
  const { envelope, mediaType } = mintEnvelope({
    format: 'JWS',
    chain: CHAIN,
    payload: { targetArtifact: descriptor },
    ...options,
  })
  return { artifactType: NOTARY_TYPE, layers: [{ mediaType, bytes: envelope }] }
}

function verdict(found: Verification): string {
  if (found.status === 'verified') return `verified by ${found.signer}`
  return found.status === 'rejected' ? 'rejected' : `inconclusive: ${found.error.code}`
}

const details = ({ candidates }: Verification) => candidates.map(({ detail }) => detail)
const VERIFIED = 'verified by C=US, ST=WA, O=Example, CN=signer'

describe.each([
  { name: 'with the referrers API', options: {} },
  { name: 'without the referrers API', options: { referrersApi: false } },
])('a registry $name', ({ options }) => {
  let stage: Stage
  let attestor: NotaryAttestor
  beforeAll(async () => {
    stage = await openStage(options)
    attestor = await attestorOf([root])
  })
  afterAll(() => stage.close())

  const push = (image: SignedImage, referrer: PushedReferrer) =>
    pushReferrer(stage.target, image.descriptor, referrer)

  test.each(['JWS', 'COSE'] as const)('holds a %s signature that verifies', async (format) => {
    const image = await stage.image()
    await push(image, referrerOf(image, { format }))
    const found = await stage.verify(image, attestor)
    expect(verdict(found)).toBe(VERIFIED)
    expect(found.candidates).toEqual([
      expect.objectContaining({ source: 'notary', verified: true }),
    ])
    expect(verdict(await stage.verify(image, await attestorOf([stranger])))).toBe('rejected')
  })

  test('holds nothing, which is refused', async () => {
    const image = await stage.image()
    const found = await stage.verify(image, attestor)
    expect(found).toEqual({
      status: 'rejected',
      reason: `no signature found for ${stage.registry.host}/app@${image.descriptor.digest}: no Notary Project signature among its referrers`,
      candidates: [],
    })
  })

  test('demands a timestamp once its authorities are configured', async () => {
    const image = await stage.image()
    const withTsa = await attestorOf([root], [tsa.root])
    await push(image, referrerOf(image))
    expect(details(await stage.verify(image, withTsa))).toEqual(['there is no timestamp'])
    const genTime = `${new Date(NOW).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
    const token = (message: Uint8Array) => mintToken({ message, chain: tsa.chain, genTime })
    await push(image, referrerOf(image, { token }))
    expect(verdict(await stage.verify(image, withTsa))).toBe(VERIFIED)
  })

  test('holds a signature of another image', async () => {
    const [image, other] = [await stage.image(), await stage.image()]
    await push(image, referrerOf(other))
    const found = await stage.verify(image, attestor)
    expect(verdict(found)).toBe('rejected')
    expect(details(found)[0]).toMatch(/^it is about another artifact: digest/)
  })

  test('holds a bad signature beside a good one, which is found', async () => {
    const image = await stage.image()
    await push(image, referrerOf(image, { touchSignature: true }))
    await push(image, { artifactType: NOTARY_TYPE, layers: [] })
    await push(image, referrerOf(image))
    expect(verdict(await stage.verify(image, attestor))).toBe(VERIFIED)
  })

  test.each<{ name: string; referrer: (image: SignedImage) => PushedReferrer; detail: string[] }>([
    {
      name: 'an envelope that cannot be read',
      referrer: () => ({
        artifactType: NOTARY_TYPE,
        layers: [{ mediaType: 'application/cose', bytes: Uint8Array.of(1) }],
      }),
      detail: ['COSE is not a tagged COSE_Sign1'],
    },
    {
      name: 'a key that is too short',
      referrer: (image) => {
        const weak = mint({ issuer: middle, validity, spec: 'RSA 1024' })
        return referrerOf(image, { chain: [weak, middle, root] })
      },
      detail: ['public key: found an RSA key of 1024 bits, expected 2048 to 8192'],
    },
    {
      name: 'two layers',
      referrer: (image) => {
        const { artifactType, layers } = referrerOf(image)
        return { artifactType, layers: [...layers, ...layers] }
      },
      detail: ['signature manifest does not have exactly one layer'],
    },
    {
      name: 'another artifact type',
      referrer: (image) => ({ ...referrerOf(image), artifactType: 'application/vnd.other' }),
      detail: [],
    },
  ])('holds $name, which is a no and no outage', async ({ referrer, detail }) => {
    const image = await stage.image()
    await push(image, referrer(image))
    const found = await stage.verify(image, attestor)
    expect(found.status).toBe('rejected')
    expect(details(found)).toEqual(detail)
  })

  test('holds more than ten signatures, so that it cannot tell', async () => {
    const image = await stage.image()
    for (let i = 0; i < 11; i++) {
      const note = { 'com.example.note': `${i}` }
      await push(image, referrerOf(image, { touchSignature: true, signed: note }))
    }
    expect(verdict(await stage.verify(image, attestor))).toBe('inconclusive: REGISTRY_TOO_LARGE')
  })
})

describe('a signature', () => {
  let stage: Stage
  let attestor: NotaryAttestor
  beforeAll(async () => {
    stage = await openStage({ referrersApi: false })
    attestor = await attestorOf([root])
  })
  afterAll(() => stage.close())

  test('whose manifest is about another image is refused although it is listed', async () => {
    const [image, other] = [await stage.image(), await stage.image()]
    const signature = await pushReferrer(stage.target, other.descriptor, referrerOf(image))
    await pushManifest(
      stage.target,
      {
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.index.v1+json',
        manifests: [{ ...signature, artifactType: NOTARY_TYPE }],
      },
      {
        tag: image.descriptor.digest.replace(':', '-'),
        mediaType: 'application/vnd.oci.image.index.v1+json',
      },
    )
    const found = await stage.verify(image, attestor)
    expect(verdict(found)).toBe('rejected')
    expect(details(found)).toEqual([
      `referrer is about "${other.descriptor.digest}", expected ${image.descriptor.digest}`,
    ])
  })

  test('listed without its type is found, also one that says it with its config', async () => {
    for (const config of [
      undefined,
      { mediaType: NOTARY_TYPE, bytes: new TextEncoder().encode('{}') },
    ]) {
      const image = await stage.image()
      await pushReferrer(stage.target, image.descriptor, {
        ...referrerOf(image),
        ...(config && { config }),
        fallbackArtifactType: null,
      })
      expect(verdict(await stage.verify(image, attestor))).toBe(VERIFIED)
    }
  })

  test('is not looked for when the request has ended', async () => {
    const image = await stage.image()
    const signal = AbortSignal.abort()
    expect((await stage.verify(image, attestor, { signal })).status).toBe('inconclusive')
  })
})

describe('revocation', () => {
  const signers = mintRoot({ validity, keyName: 'signers', usages: [KEY_CERT_SIGN, CRL_SIGN] })
  const leafAt = (host: string) =>
    mint({ issuer: signers, validity, keyName: host, extra: askAt({ crl: [`http://${host}/`] }) })
  const clean = leafAt('clean.example.com')
  const revoked = leafAt('revoked.example.com')
  const lost = leafAt('lost.example.com')
  const list = mintCrl({ issuer: signers, revoked: [{ certificate: revoked }], update: validity })

  /** Answers for the hosts above, but for the one that is lost. */
  function outside() {
    const hosts: string[] = []
    const answer = async (url: string) => {
      const { host } = new URL(url)
      hosts.push(host)
      return host.startsWith('lost') ? new Response('', { status: 404 }) : new Response(list)
    }
    return { hosts, revocation: { fetch: answer } }
  }

  let stage: Stage
  beforeAll(async () => {
    stage = await openStage()
  })
  afterAll(() => stage.close())

  const attestorFor = (revocation: RevocationMode) =>
    createNotaryAttestor({ name: 'notary', certs: pemOf(signers), revocation })
  async function signedBy(...leaves: Minted[]): Promise<SignedImage> {
    const image = await stage.image()
    for (const leaf of leaves) {
      await pushReferrer(
        stage.target,
        image.descriptor,
        referrerOf(image, { chain: [leaf, signers] }),
      )
    }
    return image
  }

  const unknown = 'inconclusive: REVOCATION_UNKNOWN'
  test.each<{ mode: RevocationMode; of: string; leaf: Minted; is: string; asked: number }>([
    { mode: 'skip', of: 'a revoked signer', leaf: revoked, is: VERIFIED, asked: 0 },
    { mode: 'softfail', of: 'a clean signer', leaf: clean, is: VERIFIED, asked: 1 },
    { mode: 'softfail', of: 'a revoked signer', leaf: revoked, is: 'rejected', asked: 1 },
    { mode: 'softfail', of: 'a signer nobody knows about', leaf: lost, is: VERIFIED, asked: 1 },
    { mode: 'strict', of: 'a clean signer', leaf: clean, is: VERIFIED, asked: 1 },
    { mode: 'strict', of: 'a revoked signer', leaf: revoked, is: 'rejected', asked: 1 },
    { mode: 'strict', of: 'a signer nobody knows about', leaf: lost, is: unknown, asked: 1 },
  ])('$mode: a signature by $of is $is', async ({ mode, leaf, is, asked }) => {
    const { hosts, revocation } = outside()
    const image = await signedBy(leaf)
    expect(verdict(await stage.verify(image, await attestorFor(mode), { revocation }))).toBe(is)
    expect(hosts).toHaveLength(asked)
  })

  test('strict: a signature nobody knows about does not hide a good one', async () => {
    const { revocation } = outside()
    const image = await signedBy(lost, revoked, clean)
    const found = await stage.verify(image, await attestorFor('strict'), { revocation })
    expect(verdict(found)).toBe(VERIFIED)
  })

  test('strict: many signatures by one certificate are one question', async () => {
    const { hosts, revocation } = outside()
    const image = await stage.image()
    for (let i = 0; i < 4; i++) {
      const signed = { 'com.example.note': `${i}` }
      const chain = [revoked, signers]
      await pushReferrer(stage.target, image.descriptor, referrerOf(image, { chain, signed }))
    }
    const found = await stage.verify(image, await attestorFor('strict'), { revocation })
    expect(found).toMatchObject({ status: 'rejected' })
    expect(details(found)).toHaveLength(4)
    expect(hosts).toHaveLength(1)
  })

  test('strict: a signer nobody trusts is not asked about', async () => {
    const { hosts, revocation } = outside()
    const other = await createNotaryAttestor({
      name: 'notary',
      certs: pemOf(root),
      revocation: 'strict',
    })
    const image = await signedBy(clean)
    expect(verdict(await stage.verify(image, other, { revocation }))).toBe('rejected')
    expect(hosts).toEqual([])
  })

  test('what was found out under one mode says nothing under another', async () => {
    const { revocation } = outside()
    const image = await signedBy(revoked)
    const cache = new Cache<Verification>()
    const ask = async (mode: RevocationMode) =>
      verdict(await stage.verify(image, await attestorFor(mode), { revocation, cache }))
    expect([await ask('skip'), await ask('strict'), await ask('skip')]).toEqual([
      VERIFIED,
      'rejected',
      VERIFIED,
    ])
  })

  test.each(['softfail', 'strict'] as const)(
    '%s: cannot tell where there is nobody to ask',
    async (mode) => {
      const image = await signedBy(clean)
      const found = await stage.verify(image, await attestorFor(mode))
      expect(verdict(found)).toBe('inconclusive: CONFIG_INVALID')
    },
  )
})

test('a name without an end in a certificate is told by its beginning', async () => {
  const stage = await openStage()
  const image = await stage.image()
  const names = [['2.5.4.3', 'x'.repeat(10_000)]] as [string, string][]
  const leaf = mint({ issuer: stranger, subject: names, usages: [5], validity })
  await pushReferrer(stage.target, image.descriptor, referrerOf(image, { chain: [leaf, root] }))
  const found = await stage.verify(image, await attestorOf([root]), { thorough: true })
  await stage.close()
  const told = found.candidates.flatMap(({ detail, checks = [] }) => [
    detail,
    ...checks.map((each) => each.detail),
  ])
  expect(told.some((detail) => detail.startsWith('CN=xxx'))).toBe(true)
  expect(Math.max(...told.map(({ length }) => length))).toBe(MAX_DETAIL_CHARS + 1)
})

describe('createNotaryAttestor', () => {
  test('gives one hash to the same certificates, whatever the name', async () => {
    const [a, b, c] = await Promise.all([
      createNotaryAttestor({ name: 'a', certs: pemOf(root) }),
      createNotaryAttestor({ name: 'b', certs: pemOf(root) }),
      createNotaryAttestor({ name: 'a', certs: pemOf(root), tsaCerts: pemOf(root) }),
    ])
    expect(a.hash).toBe(b.hash)
    expect(a.hash).not.toBe(c.hash)
  })

  test.each([
    [{ certs: '' }, 'notary.certs: found no certificate in PEM'],
    [{ certs: pemOf(root), tsaCerts: 'x' }, 'notary.tsaCerts: found no certificate in PEM'],
    [{ certs: pemOf(root).slice(0, -9) }, 'certificates: found a damaged PEM block'],
  ])('refuses %o', async (fields, message) => {
    await expect(createNotaryAttestor({ name: 'a', ...fields })).rejects.toMatchObject({
      code: 'KEY_INVALID',
      message,
    })
  })
})
