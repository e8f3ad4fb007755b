import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { toBase64, utf8 } from '#shared/bytes.ts'
import { authorityOf, mintSigner, type SignerOptions, SignerWorld } from '#test/fakes/fulcio.ts'
import {
  type CertificateOptions,
  CODE_SIGNING,
  extension,
  type Minted,
  mintIntermediate,
  mintRoot,
  NOTARY_NAME,
} from '#test/fakes/pki.ts'
import type { Json } from '#test/fakes/sigstore.ts'
import { AT, judgeBundle, refused } from './setup.ts'

const day = (text: string) => new Date(`${text}T00:00:00Z`)
const secondsOf = (shift: number) => new Date(AT + shift * 1000)
const NO_SCT = { thresholds: { certificateLogs: 0 } }
const NOBODY = refused('certificate is not trusted: no trusted authority issued it')
const UNTIMELY = refused(
  'certificate is not trusted: its authority was not valid when the signature was made',
)

interface Shape {
  root?: CertificateOptions
  intermediate?: CertificateOptions
  signer?: Partial<SignerOptions>
}

/** A signer under an intermediate under a root. */
function threeOf({ root, intermediate, signer }: Shape = {}) {
  const anchor = mintRoot(root)
  const middle = mintIntermediate(anchor, intermediate)
  const world = new SignerWorld(mintSigner({ issuer: middle, ...signer }))
  return { anchor, middle, world }
}

const judge = (shape: Shape) => {
  const { anchor, middle, world } = threeOf(shape)
  return judgeBundle(world.bundle(), world.rootWith([middle, anchor]), NO_SCT)
}

describe('a chain holds', () => {
  test.each<{ name: string; shape: Shape }>([
    { name: 'through an intermediate', shape: {} },
    {
      name: 'of P-384 and SHA-384, as Fulcio has it',
      shape: {
        root: { spec: 'P-384', hash: 'sha384' },
        intermediate: {
          spec: 'P-384',
          hash: 'sha384',
          purposes: [CODE_SIGNING],
          ca: { pathLength: 0 },
        },
        signer: { hash: 'sha384' },
      },
    },
    {
      name: 'of P-521 and SHA-512',
      shape: {
        root: { spec: 'P-521', hash: 'sha512' },
        intermediate: { spec: 'P-521', hash: 'sha512' },
        signer: { hash: 'sha512' },
      },
    },
    {
      name: 'of RSA with PKCS#1',
      shape: { root: { spec: 'RSA 2048' }, intermediate: { spec: 'RSA 3072' } },
    },
    {
      name: 'of RSA with PSS',
      shape: {
        root: { spec: 'RSA 2048' },
        intermediate: { spec: 'RSA 2048', pss: true },
        signer: { pss: true },
      },
    },
    { name: 'of Ed25519', shape: { root: { spec: 'Ed25519' }, intermediate: { spec: 'Ed25519' } } },
    {
      name: 'with path lengths that just suffice',
      shape: { root: { ca: { pathLength: 1 } }, intermediate: { ca: { pathLength: 0 } } },
    },
    {
      name: 'to the second the intermediate begins',
      shape: { intermediate: { validity: [secondsOf(0), day('2027-01-01')] } },
    },
    {
      name: 'to the second the intermediate ends',
      shape: { intermediate: { validity: [day('2025-01-01'), secondsOf(0)] } },
    },
    {
      name: 'to the second the signer begins',
      shape: { signer: { validity: [secondsOf(0), secondsOf(600)] } },
    },
    {
      name: 'to the second the signer ends',
      shape: { signer: { validity: [secondsOf(-600), secondsOf(0)] } },
    },
  ])('$name', async ({ shape }) => {
    expect(await judge(shape)).toMatchObject({ status: 'verified' })
  })

  test('for a signer of the root itself, which is another authority of the chain', async () => {
    const { anchor, middle } = threeOf()
    const world = new SignerWorld(mintSigner({ issuer: anchor }))
    expect(
      await judgeBundle(world.bundle(), world.rootWith([middle, anchor]), NO_SCT),
    ).toMatchObject({ status: 'verified' })
  })

  test('through an intermediate that the bundle brings', async () => {
    const { anchor, middle, world } = threeOf()
    const bundle = bringing(world.bundle({ mediaType: V02 }), [middle])
    expect(await judgeBundle(bundle, world.rootWith([anchor]), NO_SCT)).toMatchObject({
      status: 'verified',
    })
  })

  test('by the one of two authorities of a name that counted then', async () => {
    const { anchor, middle, world } = threeOf()
    const other = mintRoot({ keyName: 'older' })
    const older = mintIntermediate(other, { keyName: 'older intermediate' })
    const root = world.rootWith([older, other], [middle, anchor])
    root.certificateAuthorities[0].validFor.end = secondsOf(-1).toISOString()
    expect(await judgeBundle(world.bundle(), root, NO_SCT)).toMatchObject({ status: 'verified' })
  })

  test.each([
    { name: 'begins', validFor: { start: secondsOf(0).toISOString() } },
    { name: 'ends', validFor: { start: '2025-01-01T00:00:00Z', end: secondsOf(0).toISOString() } },
  ])('to the second the authority $name', async ({ validFor }) => {
    const { anchor, middle, world } = threeOf()
    const root = world.rootWith()
    root.certificateAuthorities = [authorityOf([middle, anchor], validFor)]
    expect(await judgeBundle(world.bundle(), root, NO_SCT)).toMatchObject({ status: 'verified' })
  })
})

describe('a chain does not hold', () => {
  const constraint = (critical: boolean) =>
    extension(
      '2.5.29.30',
      der.sequence(der.context(0, der.sequence(der.contextPrimitive(2, utf8('example.com'))))),
      critical,
    )
  test.each<{ name: string; shape: Shape; verdict?: Json }>([
    { name: 'an intermediate that is no authority', shape: { intermediate: { ca: null } } },
    {
      name: 'an intermediate that may not sign certificates',
      shape: { intermediate: { usages: [6] } },
    },
    {
      name: 'an intermediate for web servers',
      shape: { intermediate: { purposes: ['1.3.6.1.5.5.7.3.1'] } },
    },
    { name: 'a root for web servers', shape: { root: { purposes: ['1.3.6.1.5.5.7.3.1'] } } },
    { name: 'a root that allows no path this long', shape: { root: { ca: { pathLength: 0 } } } },
    {
      name: 'name constraints, which are not judged',
      shape: { intermediate: { extra: [constraint(true)] } },
    },
    {
      name: 'name constraints that are not critical',
      shape: { root: { extra: [constraint(false)] } },
    },
    {
      name: 'a critical extension nobody knows on the root',
      shape: { root: { extra: [extension('1.2.3', utf8('x'), true)] } },
    },
    { name: 'an intermediate signed with SHA-1', shape: { intermediate: { hash: 'sha1' } } },
    { name: 'a signer signed with SHA-1', shape: { signer: { hash: 'sha1' } } },
    { name: 'a root with a key too short', shape: { root: { spec: 'RSA 1024' } } },
    {
      name: 'an intermediate that began a second later',
      shape: { intermediate: { validity: [secondsOf(1), day('2027-01-01')] } },
      verdict: UNTIMELY,
    },
    {
      name: 'an intermediate that ended a second before',
      shape: { intermediate: { validity: [day('2025-01-01'), secondsOf(-1)] } },
      verdict: UNTIMELY,
    },
    {
      name: 'a root that ended a second before',
      shape: { root: { validity: [day('2025-01-01'), secondsOf(-1)] } },
      verdict: UNTIMELY,
    },
    {
      name: 'a signer with a critical extension nobody knows',
      shape: {
        signer: { more: [extension('1.3.6.1.4.1.11129.2.4.3', Uint8Array.of(5, 0), true)] },
      },
      verdict: refused('certificate has extension 1.3.6.1.4.1.11129.2.4.3, not supported'),
    },
    {
      name: 'a signer for everything',
      shape: { signer: { purposes: ['2.5.29.37.0'] } },
      verdict: refused('certificate is not for code signing'),
    },
    {
      name: 'a signer whose key is too short',
      shape: { signer: { spec: 'RSA 1024' } },
      verdict: refused(
        'certificate: public key: found an RSA key of 1024 bits, expected 2048 to 8192',
      ),
    },
  ])('$name', async ({ shape, verdict = NOBODY }) => {
    expect(await judge(shape)).toEqual(verdict)
  })

  test('from a signer of another authority of that name', async () => {
    const { anchor, middle, world } = threeOf()
    const forged = new SignerWorld(
      mintSigner({ issuer: mintIntermediate(anchor, { keyName: 'forger' }) }),
    )
    const root = world.rootWith([middle, anchor])
    root.tlogs = forged.trustedRoot().tlogs
    expect(await judgeBundle(forged.bundle(), root, NO_SCT)).toEqual(NOBODY)
  })

  test('with a signer as authority of another', async () => {
    const { anchor, middle } = threeOf()
    const signer = mintSigner({ issuer: middle, subject: NOTARY_NAME('signer'), keyName: 'first' })
    const world = new SignerWorld(mintSigner({ issuer: signer, subject: NOTARY_NAME('second') }))
    const bundle = bringing(world.bundle({ mediaType: V02 }), [signer])
    expect(await judgeBundle(bundle, world.rootWith([middle, anchor]), NO_SCT)).toEqual(NOBODY)
  })

  test('through a broken chain of the root: what is above the break still counts', async () => {
    const { anchor, middle, world } = threeOf()
    const stranger = mintRoot({ subject: NOTARY_NAME('stranger'), keyName: 'stranger' })
    expect(await judgeBundle(world.bundle(), world.rootWith([middle, stranger]), NO_SCT)).toEqual(
      NOBODY,
    )
    const direct = new SignerWorld(mintSigner({ issuer: anchor }))
    const root = direct.rootWith([mintIntermediate(stranger), anchor])
    expect(await judgeBundle(direct.bundle(), root, NO_SCT)).toMatchObject({ status: 'verified' })
  })

  test('through an intermediate that is brought with a key nobody takes', async () => {
    const { anchor, world } = threeOf()
    const weak = mintIntermediate(anchor, { spec: 'RSA 1024', keyName: 'weak' })
    const forged = new SignerWorld(mintSigner({ issuer: weak }))
    const root = world.rootWith([anchor])
    root.tlogs = forged.trustedRoot().tlogs
    const bundle = bringing(forged.bundle({ mediaType: V02 }), [weak])
    expect(await judgeBundle(bundle, root, NO_SCT)).toMatchObject({ status: 'rejected' })
  })

  test.each([
    { name: 'before the authority counts', validFor: { start: secondsOf(1).toISOString() } },
    {
      name: 'after the authority counted',
      validFor: { start: '2025-01-01T00:00:00Z', end: secondsOf(-1).toISOString() },
    },
  ])('a second $name', async ({ validFor }) => {
    const { anchor, middle, world } = threeOf()
    const root = world.rootWith()
    root.certificateAuthorities = [authorityOf([middle, anchor], validFor)]
    expect(await judgeBundle(world.bundle(), root, NO_SCT)).toEqual(UNTIMELY)
  })

  test('through an intermediate that is brought and ended a second before', async () => {
    const { anchor, middle, world } = threeOf({
      intermediate: { validity: [day('2025-01-01'), secondsOf(-1)] },
    })
    const bundle = bringing(world.bundle({ mediaType: V02 }), [middle])
    expect(await judgeBundle(bundle, world.rootWith([anchor]), NO_SCT)).toEqual(NOBODY)
  })

  test('at one of several times', async () => {
    const { anchor, middle, world } = threeOf({
      intermediate: { validity: [day('2025-01-01'), secondsOf(0)] },
    })
    const bundle = world.bundle({ timestamps: [AT / 1000 + 1] })
    expect(await judgeBundle(bundle, world.rootWith([middle, anchor]), NO_SCT)).toEqual(UNTIMELY)
  })
})

const V02 = 'application/vnd.dev.sigstore.bundle+json;version=0.2'

/** The bundle with these certificates behind the signer's. */
function bringing(bundle: Json, more: readonly Minted[]): Json {
  const { certificate, ...rest } = bundle.verificationMaterial
  const certificates = [certificate, ...more.map((each) => ({ rawBytes: toBase64(each.der) }))]
  return { ...bundle, verificationMaterial: { ...rest, x509CertificateChain: { certificates } } }
}
