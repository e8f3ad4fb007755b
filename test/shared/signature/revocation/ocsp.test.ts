import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { AdmissionError } from '#shared/errors.ts'
import { encodeRequest, readOcsp } from '#shared/signature/revocation/ocsp.ts'
import type { Finding } from '#shared/signature/revocation/types.ts'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import {
  CODE_SIGNING,
  CRL_SIGN,
  extension,
  KEY_CERT_SIGN,
  type KeySpec,
  type Minted,
  mint,
  mintRoot,
  NOTARY_NAME,
} from '#test/fakes/pki.ts'
import {
  CURRENT,
  mintOcsp,
  mintResponder,
  NO_CHECK,
  OCSP_SIGNING,
  type OcspOptions,
  singleResponse,
} from '#test/fakes/revocation.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const [FROM, UNTIL] = CURRENT.map(Number) as [number, number]

const issuer = mintRoot()
const leaf = mint({ issuer })
const other = mint({ issuer, keyName: 'other' })
const stranger = mintRoot({ keyName: 'stranger', subject: NOTARY_NAME('stranger') })
/** The issuer's name with another key. */
const impostor = mintRoot({ keyName: 'impostor' })
const responder = mintResponder(issuer)

const read = ({ der: bytes }: Minted) => parseCertificate(bytes)

interface Asked {
  now?: number
  isGood?: () => Promise<boolean>
  issuer?: Minted
  certificate?: Minted
}

function ask(bytes: Uint8Array, asked: Asked = {}): Promise<Finding> {
  return readOcsp(new Uint8Array(bytes), {
    certificate: read(asked.certificate ?? leaf),
    issuer: read(asked.issuer ?? issuer),
    now: asked.now ?? NOW,
    isGood: asked.isGood ?? (() => Promise.reject(new TypeError('asked about the responder'))),
  })
}

const respond = (options: Partial<OcspOptions> = {}, asked: Asked = {}) =>
  ask(mintOcsp({ certificate: leaf, issuer, ...options }), asked)

const said = (found: Finding) => (found.status === 'unknown' ? found.detail : found.status)

describe('a response', () => {
  test.each<{ name: string; options: Partial<OcspOptions>; finding: Finding }>([
    { name: 'good', options: {}, finding: { status: 'good', until: UNTIL } },
    {
      name: 'revoked without a reason',
      options: { status: {} },
      finding: { status: 'revoked', reason: 'unspecified', until: UNTIL },
    },
    {
      name: 'revoked for a compromise',
      options: { status: { reason: 1 } },
      finding: { status: 'revoked', reason: 'keyCompromise', until: UNTIL },
    },
    {
      name: 'on hold',
      options: { status: { reason: 6 } },
      finding: { status: 'revoked', reason: 'certificateHold', until: UNTIL },
    },
    {
      name: 'revoked with the date it became invalid',
      options: { status: { reason: 4, invalidFrom: new Date('2026-03-01T00:00:00Z') } },
      finding: {
        status: 'revoked',
        reason: 'superseded',
        invalidFrom: Date.parse('2026-03-01T00:00:00Z'),
        until: UNTIL,
      },
    },
    {
      name: 'that does not know the certificate',
      options: { status: 'unknown' },
      finding: { status: 'unknown', detail: 'the responder does not know the certificate' },
    },
  ])('$name', async ({ options, finding }) => {
    expect(await respond(options)).toEqual(finding)
  })

  test.each(['sha1', 'sha256', 'sha384', 'sha512'] as const)(
    'may name the certificate by %s',
    async (hash) => {
      expect(said(await respond({ hash }))).toBe('good')
    },
  )

  test.each<KeySpec>(['P-256', 'P-384', 'RSA 2048', 'Ed25519'])(
    'may be signed by a key of kind %s',
    async (spec) => {
      const root = mintRoot({ spec })
      const certificate = mint({ issuer: root })
      const asked = { issuer: root, certificate }
      expect(said(await respond({ issuer: root, certificate }, asked))).toBe('good')
      expect(said(await respond({ issuer: root, certificate, touchSignature: true }, asked))).toBe(
        'the OCSP response is not signed by who it says',
      )
    },
  )

  test('may have others beside it', async () => {
    const others = [singleResponse({ certificate: other, issuer, status: {} })]
    expect(said(await respond({ others }))).toBe('good')
  })

  test.each(['malformedRequest', 'internalError', 'tryLater', '4', 'sigRequired', 'unauthorized'])(
    'that is the refusal %s says nothing',
    async (refusal) => {
      const names = ['malformedRequest', 'internalError', 'tryLater', '4', 'sigRequired']
      const at = names.indexOf(refusal)
      const responseStatus = at < 0 ? 6 : at + 1
      expect(said(await respond({ responseStatus }))).toBe(`the responder answers ${refusal}`)
    },
  )
})

describe('a response says nothing', () => {
  const critical = extension('1.2.3.4', Uint8Array.of(5, 0), true)
  test.each<{ name: string; options: Partial<OcspOptions>; detail: string }>([
    {
      name: 'about another certificate of the issuer',
      options: { certificate: other },
      detail: 'the OCSP response is about other certificates',
    },
    {
      name: 'about a certificate of another issuer with the same number',
      options: { issuer: stranger, signer: issuer, certificates: [] },
      detail: 'the OCSP response is about other certificates',
    },
    {
      name: 'about the issuer’s name under another key',
      options: { issuer: impostor, signer: issuer, certificates: [] },
      detail: 'the OCSP response is about other certificates',
    },
    {
      name: 'with a broken signature',
      options: { touchSignature: true },
      detail: 'the OCSP response is not signed by who it says',
    },
    {
      name: 'with a SHA-1 signature',
      options: { signHash: 'sha1' },
      detail: 'the OCSP response is not signed by who it says',
    },
    {
      name: 'by somebody with the issuer’s name',
      options: { signer: impostor, certificates: [impostor] },
      detail: 'the responder is not for OCSP',
    },
    {
      name: 'by somebody whose certificate is not inside',
      options: { signer: responder, certificates: [] },
      detail: 'the OCSP response is signed by another responder',
    },
    {
      name: 'by another than it names',
      options: { signer: responder, named: issuer, certificates: [responder] },
      detail: 'the OCSP response is not signed by who it says',
    },
    {
      name: 'without an end',
      options: { update: [CURRENT[0]] },
      detail: 'the OCSP response does not say until when it counts',
    },
    {
      name: 'of another type',
      options: { responseType: '1.2.3' },
      detail: 'the OCSP response is not a basic one',
    },
    {
      name: 'with a critical extension nobody knows',
      options: { extensions: [critical] },
      detail: 'OCSP has extension 1.2.3.4, not supported',
    },
    {
      name: 'with one for the certificate',
      options: { single: [critical] },
      detail: 'OCSP has extension 1.2.3.4, not supported',
    },
  ])('$name', async ({ options, detail }) => {
    expect(await respond(options)).toEqual({ status: 'unknown', detail })
  })

  test('and an extension nobody knows that is not critical changes nothing', async () => {
    const harmless = extension('1.2.3.4', Uint8Array.of(5, 0))
    expect(said(await respond({ extensions: [harmless], single: [harmless] }))).toBe('good')
  })
})

describe('time', () => {
  test.each([
    { name: 'in its first instant', now: FROM, said: 'good' },
    { name: 'five seconds before it, as clocks differ', now: FROM - 5000, said: 'good' },
    { name: 'earlier', now: FROM - 5001, said: 'the OCSP response is not valid yet' },
    { name: 'in its last instant', now: UNTIL, said: 'good' },
    { name: 'a millisecond later', now: UNTIL + 1, said: 'the OCSP response has expired' },
  ])('a response $name: $said', async ({ now, said: expected }) => {
    expect(said(await respond({}, { now }))).toBe(expected)
    expect(said(await respond({ status: {} }, { now }))).toBe(
      expected === 'good' ? 'revoked' : expected,
    )
  })
})

describe('a delegated responder', () => {
  const by = (signer: Minted, asked: Asked = {}, options: Partial<OcspOptions> = {}) =>
    respond({ signer, ...options }, asked)

  test.each([false, true])('counts, named by its key: %s', async (byKey) => {
    expect(said(await by(responder, {}, { byKey }))).toBe('good')
    expect(said(await respond({ byKey }))).toBe('good')
  })

  test('is found among other certificates', async () => {
    const certificates = [other, mintResponder(issuer, { keyName: 'second' }), responder]
    expect(said(await by(responder, {}, { certificates }))).toBe('good')
  })

  test.each<{ name: string; signer: Minted; now?: number; detail: string }>([
    {
      name: 'of another issuer',
      signer: mintResponder(stranger),
      detail: 'is not of the issuer',
    },
    {
      name: 'of the issuer’s name under another key',
      signer: mintResponder(impostor),
      detail: 'is not of the issuer',
    },
    {
      name: 'without a purpose',
      signer: mintResponder(issuer, { purposes: null }),
      detail: 'is not for OCSP',
    },
    {
      name: 'for code only, such as the one that is asked about',
      signer: mintResponder(issuer, { purposes: [CODE_SIGNING] }),
      detail: 'is not for OCSP',
    },
    {
      name: 'for all purposes',
      signer: mintResponder(issuer, { purposes: ['2.5.29.37.0'] }),
      detail: 'is not for OCSP',
    },
    {
      name: 'that may not sign',
      signer: mintResponder(issuer, { usages: [KEY_CERT_SIGN, CRL_SIGN] }),
      detail: 'is not for signatures',
    },
    {
      name: 'with a critical extension nobody knows',
      signer: mintResponder(issuer, {
        extra: [NO_CHECK, extension('1.2.3.4', Uint8Array.of(5, 0), true)],
      }),
      detail: 'has extension 1.2.3.4, not supported',
    },
    {
      name: 'whose certificate has ended',
      signer: mintResponder(issuer, {
        validity: [new Date('2026-01-01T00:00:00Z'), new Date(NOW - 1000)],
      }),
      detail: 'has a certificate that is not valid now',
    },
    {
      name: 'whose certificate begins later',
      signer: mintResponder(issuer, {
        validity: [new Date(NOW + 1000), new Date('2027-01-01T00:00:00Z')],
      }),
      detail: 'has a certificate that is not valid now',
    },
  ])('$name does not count', async ({ signer, detail }) => {
    const expected = { status: 'unknown', detail: `the responder ${detail}` }
    expect(await by(signer)).toEqual(expected)
    expect(await by(signer, {}, { status: {} })).toEqual(expected)
  })

  test('counts in the last instant of its certificate', async () => {
    const validity = [new Date('2026-01-01T00:00:00Z'), new Date(NOW)] as const
    expect(said(await by(mintResponder(issuer, { validity })))).toBe('good')
  })

  test('without the word that nobody has to ask about it is asked about', async () => {
    const revocable = mintResponder(issuer, { extra: [] })
    expect(said(await by(revocable, { isGood: async () => true }))).toBe('good')
    expect(said(await by(revocable, { isGood: async () => false }))).toBe(
      'the responder may be revoked itself',
    )
  })

  test('is never asked about when it is the issuer itself', async () => {
    const purposes = [OCSP_SIGNING]
    expect(said(await respond({}, { issuer: mintRoot({ purposes }) }))).toBe('good')
  })
})

describe('bytes that are no response', () => {
  const good = mintOcsp({ certificate: leaf, issuer })
  const nested = (depth: number) =>
    Array.from({ length: depth }).reduce<Uint8Array>(
      (inner) => der.sequence(inner),
      new Uint8Array(),
    )
  test.each<{ name: string; bytes: Uint8Array }>([
    { name: 'nothing', bytes: new Uint8Array() },
    { name: 'a page', bytes: new TextEncoder().encode('<html>') },
    { name: 'the first half', bytes: good.subarray(0, good.length / 2) },
    { name: 'one byte more', bytes: Uint8Array.of(...good, 0) },
    { name: 'nothing but nesting', bytes: nested(5000) },
    { name: 'an indefinite length', bytes: Uint8Array.of(0x30, 0x80, 0x0a, 1, 0, 0, 0) },
    { name: 'a status without the rest', bytes: der.sequence(der.element(0x0a, Uint8Array.of(0))) },
    {
      name: 'more certificates than a chain has',
      bytes: mintOcsp({
        certificate: leaf,
        issuer,
        signer: responder,
        certificates: Array(11).fill(responder),
      }),
    },
    {
      name: 'an end before its beginning',
      bytes: mintOcsp({ certificate: leaf, issuer, update: [CURRENT[1], CURRENT[0]] }),
    },
    {
      name: 'a reason that does not exist',
      bytes: mintOcsp({ certificate: leaf, issuer, status: { reason: 7 } }),
    },
    {
      name: 'an extension twice',
      bytes: mintOcsp({ certificate: leaf, issuer, single: [NO_CHECK, NO_CHECK] }),
    },
    {
      name: 'a member more',
      bytes: mintOcsp({
        certificate: leaf,
        issuer,
        change: (members) => [...members, der.boolean(true)],
      }),
    },
  ])('$name', async ({ bytes }) => {
    await expect(ask(bytes)).rejects.toThrow(
      expect.objectContaining({ code: 'SIGNATURE_MALFORMED' }),
    )
  })

  test('no bit of one can be changed and make it say more', async () => {
    const revoked = mintOcsp({
      certificate: leaf,
      issuer,
      status: { reason: 1 },
      signer: responder,
    })
    const original = await ask(revoked)
    for (let bit = 0; bit < 8 * revoked.length; bit += 5) {
      const touched = revoked.slice()
      touched[bit >> 3]! ^= 1 << (bit & 7)
      const found = await ask(touched).catch((error: unknown) => {
        expect(error).toBeInstanceOf(AdmissionError)
        return undefined
      })
      if (found !== undefined && found.status !== 'unknown') expect(found).toEqual(original)
    }
  })

  test('any bytes are refused with a code', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        const error = await ask(bytes).catch((thrown: unknown) => thrown)
        expect(error).toBeInstanceOf(AdmissionError)
      }),
    )
  })
})

test('a request names the certificate by SHA-1 and fits into a URL', async () => {
  const request = await encodeRequest(read(leaf), read(issuer))
  const id = singleResponse({ certificate: leaf, issuer }).subarray(2)
  const length = 2 + id[1]!
  expect(Buffer.from(request).subarray(-length)).toEqual(Buffer.from(id.subarray(0, length)))
  expect([...request.subarray(0, 8)]).toEqual([
    ...[0x30, request.length - 2, 0x30, request.length - 4],
    ...[0x30, request.length - 6, 0x30, request.length - 8],
  ])
  const longest = mint({ issuer, serial: new Uint8Array(20).fill(0xff) })
  expect((await encodeRequest(read(longest), read(issuer))).length).toBeLessThanOrEqual(91)
})
