import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { type Bytes, concat, toBase64, utf8 } from '#shared/bytes.ts'
import { readStamp } from '#shared/signature/sigstore/stamp.ts'
import { createTrust } from '#shared/signature/sigstore/trust.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import { authorityOf } from '#test/fakes/fulcio.ts'
import {
  DIGITAL_SIGNATURE,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
  NOTARY_NAME,
  pemOf,
  TIME_STAMPING,
} from '#test/fakes/pki.ts'
import { type BundleOptions, type Json, SigstoreWorld } from '#test/fakes/sigstore.ts'
import { mintToken, mintTsa, type TokenOptions } from '#test/fakes/tsa.ts'
import { AT, judgeBundle, refused } from './setup.ts'

/** What is stamped, and when. */
const SIGNATURE = utf8('a signature') as Bytes
const digits = (ms: number) =>
  `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
const iso = (ms: number) => new Date(ms).toISOString()

const response = (token: Uint8Array, status = 0) =>
  concat(der.sequence(der.sequence(der.integer(Uint8Array.of(status))), token)) as Bytes

const usual = mintTsa()
const middleRoot = mintRoot({ subject: NOTARY_NAME('tsa root'), keyName: 'tsa root' })
const middle = mintIntermediate(middleRoot, { purposes: [TIME_STAMPING] })
const below = mint({
  subject: NOTARY_NAME('tsa'),
  keyName: 'tsa',
  issuer: middle,
  purposes: [TIME_STAMPING],
  purposesCritical: true,
})

const name = (cn: string) => `C=US, ST=WA, O=Example, CN=${cn}`
const unfit = `${name('tsa')} is not for timestamps only`
const pems = (chain: readonly Minted[]) => chain.map(pemOf).join('')

interface Setup {
  token?: Partial<TokenOptions>
  /** Of the trusted root, from the authority's own to the anchor; without the first one tokens have to bring it. */
  trusted?: readonly Minted[]
  validFor?: Json
  status?: number
  message?: Bytes
}

async function stamp({
  token = {},
  trusted = usual.chain,
  validFor,
  status,
  message = SIGNATURE,
}: Setup) {
  const root = new SigstoreWorld().trustedRoot()
  root.timestampAuthorities = [authorityOf(trusted, validFor)]
  const { stampAuthorities } = await loadTrustedRoot(utf8(JSON.stringify(root)))
  const made = mintToken({ message, chain: usual.chain, genTime: digits(AT), ...token })
  return readStamp(response(made, status), SIGNATURE, stampAuthorities)
}

describe('a timestamp counts', () => {
  const rsa = mintTsa({ spec: 'RSA 2048' }, { spec: 'RSA 2048' })
  const pss = mintTsa({ spec: 'RSA 2048', pss: true }, { spec: 'RSA 2048', pss: true })
  const p384 = mintTsa({ spec: 'P-384', hash: 'sha384' }, { spec: 'P-384' })
  const chain = [below, middle, middleRoot]
  test.each<{ name: string } & Setup>([
    { name: 'by the pinned authority, whose certificate is in it', token: {} },
    {
      name: 'by the pinned authority, whose certificate is not in it',
      token: { certificates: [] },
    },
    {
      name: 'by the pinned authority, which does not name its certificate',
      token: { attributes: (all) => all.slice(0, 2) },
    },
    {
      name: 'by a pinned authority with an RSA key',
      token: { chain: rsa.chain },
      trusted: rsa.chain,
    },
    {
      name: 'by a pinned authority with an RSA key and plain rsaEncryption',
      token: { chain: rsa.chain, plainRsa: true, certificates: [] },
      trusted: rsa.chain,
    },
    {
      name: 'by a pinned authority with an RSA key and PSS',
      token: { chain: pss.chain, pss: true },
      trusted: pss.chain,
    },
    {
      name: 'by a pinned authority with a P-384 key',
      token: { chain: p384.chain, digestHash: 'sha384', imprintHash: 'sha512' },
      trusted: p384.chain,
    },
    { name: 'by an authority under an intermediate', token: { chain }, trusted: chain },
    { name: 'by an authority that is in it alone, under a root', token: {}, trusted: [usual.root] },
    {
      name: 'by an authority that is in it alone, under an intermediate of the root',
      token: { chain, certificates: [below] },
      trusted: [middle, middleRoot],
    },
    {
      name: 'by an authority that is in it with its intermediate',
      token: { chain, certificates: [below, middle] },
      trusted: [middleRoot],
    },
    { name: 'granted with modifications', token: {}, status: 1 },
    {
      name: 'to the second the authority begins to count',
      token: {},
      validFor: { start: iso(AT) },
    },
    {
      name: 'to the second the authority ends to count',
      token: {},
      validFor: { start: '2025-01-01T00:00:00Z', end: iso(AT) },
    },
    {
      name: 'whose accuracy reaches beyond all of that',
      token: { accuracy: [der.integer(Uint8Array.of(60))] },
      validFor: { start: iso(AT), end: iso(AT) },
    },
  ])('$name', async (setup) => {
    expect(await stamp(setup)).toMatchObject({ time: AT })
  })

  test.each(['begins', 'ends'] as const)('to the second its certificate %s', async (end) => {
    const validity =
      end === 'begins'
        ? ([new Date(AT), new Date(AT + 5000)] as const)
        : ([new Date(AT - 5000), new Date(AT)] as const)
    const tsa = mintTsa({ validity })
    expect(await stamp({ token: { chain: tsa.chain }, trusted: tsa.chain })).toMatchObject({
      time: AT,
    })
  })

  test('at a fraction of a second', async () => {
    expect(await stamp({ token: { genTime: digits(AT).replace('Z', '.25Z') } })).toMatchObject({
      time: AT + 250,
    })
  })
})

describe('a timestamp does not count', () => {
  const stranger = mintTsa({ keyName: 'stranger' }, { keyName: 'strange root' })
  const twin = mintTsa({ keyName: 'twin' })
  const late = mintTsa({ validity: [new Date(AT + 1000), new Date(AT + 9000)] })
  const early = mintTsa({ validity: [new Date(AT - 9000), new Date(AT - 1000)] })
  const agedRoot = mintTsa({}, { validity: [new Date(AT - 9000), new Date(AT - 1000)] })
  const weak = mintTsa({ spec: 'RSA 1024' })
  test.each<{ name: string; why: string } & Setup>([
    {
      name: 'over another signature',
      message: utf8('another') as Bytes,
      why: 'it is about other bytes',
    },
    {
      name: 'by a stranger with a certificate of its own',
      token: { chain: stranger.chain },
      why: 'its signer is another',
    },
    {
      name: 'by another certificate of the pinned authority',
      token: { chain: twin.chain },
      why: 'its signer is another',
    },
    {
      name: 'by a stranger, where tokens bring their certificate',
      token: { chain: stranger.chain },
      trusted: [usual.root],
      why: 'its authority does not chain to a trusted certificate',
    },
    {
      name: 'without a certificate, where tokens have to bring it',
      token: { certificates: [] },
      trusted: [usual.root],
      why: 'the certificate of its signer is not in it',
    },
    {
      name: 'without saying which certificate signed, where tokens bring it',
      token: { attributes: (all) => all.slice(0, 2) },
      trusted: [usual.root],
      why: 'its signed attributes do not name the certificate of its signer',
    },
    {
      name: 'that names another certificate than the pinned one',
      token: { named: stranger.signer },
      why: 'its signed attributes do not name the certificate of its signer',
    },
    {
      name: 'whose signature was touched',
      token: { touchSignature: true },
      why: 'its signature is not by the certificate of its signer',
    },
    {
      name: 'with SHA-1',
      token: { digestHash: 'sha1' },
      why: 'its hash is not SHA-256, SHA-384 or SHA-512',
    },
    {
      name: 'over SHA-1',
      token: { imprintHash: 'sha1' },
      why: 'its imprint is not SHA-256, SHA-384 or SHA-512',
    },
    {
      name: 'of other content than it signed',
      token: { digestOf: utf8('x') },
      why: 'its message digest is not that of its content',
    },
    { name: 'that was not granted', status: 2, why: 'timestamp response does not grant one' },
    {
      name: 'a second before its authority counts',
      validFor: { start: iso(AT + 1000) },
      why: 'its authority does not count at its time',
    },
    {
      name: 'a second after its authority counted',
      validFor: { start: '2025-01-01T00:00:00Z', end: iso(AT - 1000) },
      why: 'its authority does not count at its time',
    },
    {
      name: 'a second before its certificate',
      token: { chain: late.chain },
      trusted: late.chain,
      why: 'a certificate of its authority was not valid at its time',
    },
    {
      name: 'a second after its certificate',
      token: { chain: early.chain },
      trusted: early.chain,
      why: 'a certificate of its authority was not valid at its time',
    },
    {
      name: 'a second after the root of its certificate',
      token: { chain: agedRoot.chain },
      trusted: agedRoot.chain,
      why: 'a certificate of its authority was not valid at its time',
    },
    {
      name: 'by a brought certificate whose key is too short',
      token: { chain: weak.chain },
      trusted: [weak.root],
      why: 'public key: found an RSA key of 1024 bits, expected 2048 to 8192',
    },
    {
      name: 'by an authority for everything',
      ...byUnfit({ purposes: [TIME_STAMPING, '2.5.29.37.0'] }),
      why: unfit,
    },
    {
      name: 'by an authority not critically for timestamps',
      ...byUnfit({ purposesCritical: false }),
      why: unfit,
    },
    {
      name: 'by an authority that may not sign',
      ...byUnfit({ usages: [1] }),
      why: `${name('tsa')} is not for signatures`,
    },
    {
      name: 'by an authority that is one for certificates',
      ...byUnfit({ usages: [DIGITAL_SIGNATURE, 5] }),
      why: `${name('tsa')} has key usage keyCertSign`,
    },
  ])('$name', async ({ name: _, why, ...setup }) => {
    expect(await stamp(setup)).toEqual({ refused: `timestamp: ${why}` })
  })

  test('where nobody stamps', async () => {
    const token = mintToken({ message: SIGNATURE, chain: usual.chain, genTime: digits(AT) })
    expect(await readStamp(response(token), SIGNATURE, [])).toEqual({
      refused: 'timestamp by no trusted authority',
    })
  })

  test('by an authority of the root whose certificates are no chain: it is none', async () => {
    expect(await stamp({ trusted: [usual.signer, stranger.root] })).toEqual({
      refused: 'timestamp by no trusted authority',
    })
  })

  test('whatever bytes it is made of', async () => {
    const { stampAuthorities } = await createTrust({
      tsaCertChain: pems(usual.chain),
      ignoreTlog: true,
    })
    const whole = response(
      mintToken({ message: SIGNATURE, chain: usual.chain, genTime: digits(AT) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(255), async (at, value) => {
        const changed = whole.slice()
        changed[at] = value
        const read = await readStamp(changed, SIGNATURE, stampAuthorities)
        const cut = await readStamp(whole.subarray(0, at), SIGNATURE, stampAuthorities)
        // A digest algorithm's NULL, the certificate that is pinned anyway, and unsigned parts may change without harm.
        return 'refused' in cut && ('refused' in read || read.time === AT)
      }),
      { numRuns: 300 },
    )
  })
})

describe('thresholds of times', () => {
  const world = new SigstoreWorld()
  const other = mintTsa({ keyName: 'second tsa' }, { keyName: 'second root' })
  /** GitHub's kind of root: no logs, several authorities. */
  const github = () => {
    const root = world.trustedRoot()
    Object.assign(root, { tlogs: [], ctlogs: [] })
    root.timestampAuthorities.push(authorityOf(other.chain))
    return root
  }
  const GITHUB: BundleOptions = { rekor: 'none', leaf: { sct: 'none' } }
  const stamps = (bundle: Json): Json[] =>
    bundle.verificationMaterial.timestampVerificationData.rfc3161Timestamps
  const signatureOf = (bundle: Json) => Buffer.from(bundle.messageSignature.signature, 'base64')
  const byOther = (bundle: Json) => {
    const token = mintToken({
      message: signatureOf(bundle),
      chain: other.chain,
      genTime: digits(AT),
    })
    stamps(bundle).push({ signedTimestamp: toBase64(response(token)) })
    return bundle
  }

  test('one is enough for a root without logs', async () => {
    expect(await judgeBundle(world.bundle(GITHUB), github())).toMatchObject({
      status: 'verified',
      times: [AT],
    })
  })

  test('none is not', async () => {
    const bundle = world.bundle({ ...GITHUB, timestamps: [] })
    expect(await judgeBundle(bundle, github())).toEqual(
      refused('times by 0 trusted witnesses, expected 1'),
    )
  })

  test('two authorities are two', async () => {
    const bundle = byOther(world.bundle(GITHUB))
    expect(await judgeBundle(bundle, github(), { thresholds: { times: 2 } })).toMatchObject({
      status: 'verified',
    })
  })

  test('one authority twice is one', async () => {
    const bundle = world.bundle({ ...GITHUB, timestamps: [AT / 1000, AT / 1000 + 1] })
    expect(await judgeBundle(bundle, github(), { thresholds: { times: 2 } })).toEqual(
      refused('times by 1 trusted witnesses, expected 2'),
    )
  })

  test('a log and an authority are two', async () => {
    const bundle = world.bundle({ timestamps: [AT / 1000] })
    expect(
      await judgeBundle(bundle, world.trustedRoot(), { thresholds: { times: 2 } }),
    ).toMatchObject({ status: 'verified' })
  })

  test('a timestamp that does not count beside one that does is nothing', async () => {
    const bundle = byOther(world.bundle(GITHUB))
    expect(
      await judgeBundle(bundle, { ...world.trustedRoot(), tlogs: [], ctlogs: [] }),
    ).toMatchObject({ status: 'verified' })
  })
})

function byUnfit(options: Parameters<typeof mintTsa>[0]): Setup {
  const { chain } = mintTsa(options)
  return { token: { chain }, trusted: chain }
}
