import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { concat } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_CRL_BYTES } from '#shared/limits.ts'
import { readCrl } from '#shared/signature/revocation/crl.ts'
import type { Finding } from '#shared/signature/revocation/types.ts'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import {
  askAt,
  CRL_SIGN,
  extension,
  KEY_CERT_SIGN,
  type KeySpec,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
  NOTARY_NAME,
} from '#test/fakes/pki.ts'
import { type CrlOptions, CURRENT, crlEntry, mintCrl } from '#test/fakes/revocation.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const [FROM, UNTIL] = CURRENT.map(Number) as [number, number]
const URL = 'http://crl.example.com/a.crl'

const usages = [KEY_CERT_SIGN, CRL_SIGN]
const issuer = mintRoot({ usages })
const leaf = mint({ issuer, extra: askAt({ crl: ['http://crl.example.com/b.crl', URL] }) })
const other = mint({ issuer, keyName: 'other' })
const middle = mintIntermediate(issuer, { extra: askAt({ crl: [URL] }) })
const stranger = mintRoot({ keyName: 'stranger', subject: NOTARY_NAME('stranger'), usages })

const read = ({ der: bytes }: Minted) => parseCertificate(bytes)

interface Asked {
  now?: number
  issuer?: Minted
  certificate?: Minted
  /** What is where a delta CRL should be, by its URL. */
  delta?: (urls: readonly string[]) => Uint8Array
}

function ask(bytes: Uint8Array, asked: Asked = {}): Promise<Finding> {
  const { certificate = leaf, now = NOW, delta } = asked
  return readCrl(new Uint8Array(bytes), {
    certificate: read(certificate),
    issuer: read(asked.issuer ?? issuer),
    now,
    fetchDelta: async (urls) => {
      if (delta === undefined) throw new AdmissionError('REVOCATION_UNKNOWN', 'it is gone')
      return new Uint8Array(delta(urls))
    },
  })
}

const list = (options: Partial<CrlOptions> = {}, asked: Asked = {}) =>
  ask(mintCrl({ issuer, ...options }), asked)

const said = (found: Finding) => (found.status === 'unknown' ? found.detail : found.status)

describe('a list', () => {
  test.each<{ name: string; options: Partial<CrlOptions>; finding: Finding }>([
    { name: 'of nobody', options: {}, finding: { status: 'good', until: UNTIL } },
    {
      name: 'of nobody, written as an empty one',
      options: { entries: der.sequence() },
      finding: { status: 'good', until: UNTIL },
    },
    {
      name: 'of others',
      options: { revoked: [{ certificate: other, reason: 1 }] },
      finding: { status: 'good', until: UNTIL },
    },
    {
      name: 'with the certificate',
      options: { revoked: [{ certificate: other }, { certificate: leaf }] },
      finding: { status: 'revoked', reason: 'unspecified', until: UNTIL },
    },
    {
      name: 'with the certificate, for a compromise',
      options: { revoked: [{ certificate: leaf, reason: 1 }, { certificate: other }] },
      finding: { status: 'revoked', reason: 'keyCompromise', until: UNTIL },
    },
    {
      name: 'with the certificate on hold',
      options: { revoked: [{ certificate: leaf, reason: 6 }] },
      finding: { status: 'revoked', reason: 'certificateHold', until: UNTIL },
    },
    {
      name: 'with the date the certificate became invalid',
      options: {
        revoked: [{ certificate: leaf, reason: 4, invalidFrom: new Date('2026-03-01T00:00:00Z') }],
      },
      finding: {
        status: 'revoked',
        reason: 'superseded',
        invalidFrom: Date.parse('2026-03-01T00:00:00Z'),
        until: UNTIL,
      },
    },
  ])('$name', async ({ options, finding }) => {
    expect(await list(options)).toEqual(finding)
  })

  test.each<KeySpec>(['P-256', 'P-384', 'P-521', 'RSA 2048', 'Ed25519'])(
    'may be signed by a key of kind %s',
    async (spec) => {
      const root = mintRoot({ spec, usages })
      const asked = { issuer: root, certificate: mint({ issuer: root }) }
      expect(said(await list({ issuer: root }, asked))).toBe('good')
      expect(said(await list({ issuer: root, touchSignature: true }, asked))).toBe(
        'the CRL is not signed by the issuer',
      )
    },
  )
})

describe('a list says nothing', () => {
  const critical = extension('1.2.3.4', Uint8Array.of(5, 0), true)
  test.each<{ name: string; options: Partial<CrlOptions>; asked?: Asked; detail: string }>([
    {
      name: 'of another issuer',
      options: { issuer: stranger },
      detail: 'the CRL is not signed by the issuer',
    },
    {
      name: 'in the name of the issuer by somebody else',
      options: { signer: stranger },
      detail: 'the CRL is not signed by the issuer',
    },
    {
      name: 'by the issuer in the name of somebody else',
      options: { issuer: stranger, signer: issuer },
      detail: 'the CRL is of another issuer',
    },
    {
      name: 'with a broken signature',
      options: { touchSignature: true },
      detail: 'the CRL is not signed by the issuer',
    },
    {
      name: 'with a SHA-1 signature',
      options: { signHash: 'sha1' },
      detail: 'the CRL is not signed by the issuer',
    },
    {
      name: 'by an issuer whose certificate is not for CRLs',
      options: {},
      asked: { issuer: mintRoot() },
      detail: 'the CRL is by an issuer that may sign none',
    },
    {
      name: 'with a critical extension nobody knows',
      options: { extensions: [critical] },
      detail: 'the CRL has extension 1.2.3.4, not supported',
    },
    {
      name: 'that is a delta CRL',
      options: { extensions: [extension('2.5.29.27', der.integer(Uint8Array.of(1)), true)] },
      detail: 'the CRL has extension 2.5.29.27, not supported',
    },
  ])('$name', async ({ options, asked, detail }) => {
    expect(await list(options, asked)).toEqual({ status: 'unknown', detail })
  })
})

describe('a delta CRL', () => {
  const at = 'http://crl.example.com/delta.crl'
  const freshest = (url = at) =>
    extension(
      '2.5.29.46',
      der.sequence(
        der.sequence(
          der.context(0, der.context(0, der.contextPrimitive(6, new TextEncoder().encode(url)))),
        ),
      ),
    )
  const from = (number: number) => extension('2.5.29.27', der.integer(Uint8Array.of(number)), true)
  const scope = extension(
    '2.5.29.28',
    der.sequence(der.contextPrimitive(1, Uint8Array.of(0xff))),
    true,
  )
  /** The base has number 5, the delta 7. */
  const base = (options: Partial<CrlOptions> = {}) => ({
    number: 5,
    ...options,
    extensions: [freshest(), ...(options.extensions ?? [])],
  })
  const delta = (options: Partial<CrlOptions> = {}) =>
    mintCrl({ issuer, number: 7, extensions: [from(5)], ...options })
  const held = { revoked: [{ certificate: leaf, reason: 6 }] }
  const gone = { revoked: [{ certificate: leaf, reason: 1 }] }
  const removed = { revoked: [{ certificate: leaf, reason: 8 }] }
  const soon: [Date, Date] = [CURRENT[0], new Date(NOW + 1000)]

  test.each<{
    name: string
    options?: Partial<CrlOptions>
    delta?: Uint8Array
    said: string
    until?: number
  }>([
    { name: 'adds nothing to a clean list', delta: delta(), said: 'good' },
    { name: 'ends what both say', delta: delta({ update: soon }), said: 'good', until: NOW + 1000 },
    { name: 'revokes', delta: delta(gone), said: 'keyCompromise' },
    { name: 'holds', delta: delta(held), said: 'certificateHold' },
    { name: 'leaves a hold as it is', options: held, delta: delta(), said: 'certificateHold' },
    { name: 'lifts a hold', options: held, delta: delta(removed), said: 'good' },
    {
      name: 'turns a hold into a compromise',
      options: held,
      delta: delta(gone),
      said: 'keyCompromise',
    },
    { name: 'is not asked about what is revoked', options: gone, said: 'keyCompromise' },
    { name: 'that is gone leaves a clean list open', said: 'it is gone' },
    { name: 'that is gone leaves a hold as it is', options: held, said: 'certificateHold' },
    {
      name: 'that has expired leaves it open',
      delta: delta({ update: [CURRENT[0], new Date(NOW - 1000)] }),
      said: 'the CRL has expired',
    },
    {
      name: 'that has expired still revokes',
      delta: delta({ ...gone, update: [CURRENT[0], new Date(NOW - 1000)] }),
      said: 'keyCompromise',
    },
    {
      name: 'by somebody else leaves it open',
      delta: delta({ signer: stranger }),
      said: 'the delta CRL is not signed by the issuer',
    },
    {
      name: 'that goes on from a later list leaves it open',
      delta: delta({ extensions: [from(6)] }),
      said: 'the delta CRL does not go on from the CRL',
    },
    {
      name: 'that goes on from an earlier list counts',
      delta: delta({ ...gone, extensions: [from(3)] }),
      said: 'keyCompromise',
    },
    {
      name: 'that is older than the list adds nothing',
      delta: delta({ ...gone, number: 4, extensions: [from(3)] }),
      said: 'good',
    },
    {
      name: 'of another scope leaves it open',
      delta: delta({ extensions: [from(5), scope] }),
      said: 'the delta CRL does not go on from the CRL',
    },
    {
      name: 'of the same scope counts',
      options: { extensions: [scope] },
      delta: delta({ ...gone, extensions: [from(5), scope] }),
      said: 'keyCompromise',
    },
    {
      name: 'that is a complete one leaves it open',
      delta: mintCrl({ issuer, number: 7 }),
      said: 'the delta CRL is none',
    },
    {
      name: 'that cannot be read leaves it open',
      delta: Uint8Array.of(1),
      said: 'CRL is not strict DER',
    },
    {
      name: 'without a number leaves it open',
      delta: delta({ number: null }),
      said: 'the delta CRL does not go on from the CRL',
    },
    {
      name: 'of a list without a number leaves it open',
      options: { number: null },
      delta: delta(),
      said: 'the delta CRL does not go on from the CRL',
    },
  ])('$name', async ({ options, delta: there, said: expected, until = UNTIL }) => {
    const found = await list(base(options), there ? { delta: () => there } : {})
    const reason = found.status === 'revoked' ? found.reason : said(found)
    expect(reason).toBe(expected)
    // What was said of the delta CRL alone ends with it.
    if (found.status === 'good') expect(found.until).toBe(until)
  })

  test('is asked for where the list says it is', async () => {
    const asked: string[][] = []
    const ask = (urls: readonly string[]) => {
      asked.push([...urls])
      return delta()
    }
    await list(base(), { delta: ask })
    expect(asked).toEqual([[at]])
  })
})

describe('the scope of a list', () => {
  const scope = (...members: Uint8Array[]) => [
    extension('2.5.29.28', der.sequence(...members), true),
  ]
  const yes = Uint8Array.of(0xff)
  const flag = (number: number) => der.contextPrimitive(number, yes)
  const at = (url: string) =>
    der.context(0, der.context(0, der.contextPrimitive(6, new TextEncoder().encode(url))))
  const kind = 'the CRL is for another kind of certificates'
  const place = 'the CRL is for another distribution point'
  test.each<{ name: string; members: Uint8Array[]; leaf: string; authority: string }>([
    { name: 'everything', members: [], leaf: 'good', authority: 'good' },
    { name: 'a place both name', members: [at(URL)], leaf: 'good', authority: 'good' },
    {
      name: 'a place only one names',
      members: [at('http://crl.example.com/b.crl')],
      leaf: 'good',
      authority: place,
    },
    {
      name: 'a place nobody names',
      members: [at('http://crl.example.com/c.crl')],
      leaf: place,
      authority: place,
    },
    {
      name: 'a place without a URL',
      members: [der.context(0, der.context(1, new Uint8Array()))],
      leaf: place,
      authority: place,
    },
    { name: 'end entities', members: [flag(1)], leaf: 'good', authority: kind },
    { name: 'authorities', members: [flag(2)], leaf: kind, authority: 'good' },
    { name: 'attribute certificates', members: [flag(5)], leaf: kind, authority: kind },
    {
      name: 'some reasons',
      members: [der.contextPrimitive(3, Uint8Array.of(1, 0x40))],
      leaf: 'the CRL is for some reasons only',
      authority: 'the CRL is for some reasons only',
    },
    {
      name: 'other issuers',
      members: [flag(4)],
      leaf: 'the CRL is an indirect one',
      authority: 'the CRL is an indirect one',
    },
  ])('is $name: $leaf for a signer, $authority for an authority', async (row) => {
    const extensions = scope(...row.members)
    expect(said(await list({ extensions }))).toBe(row.leaf)
    expect(said(await list({ extensions }, { certificate: middle }))).toBe(row.authority)
  })

  test.each([
    { name: 'a flag that is no boolean', members: [der.contextPrimitive(1, Uint8Array.of(1))] },
    { name: 'members out of order', members: [flag(2), flag(1)] },
  ])('with $name is malformed', async ({ members }) => {
    await expect(list({ extensions: scope(...members) })).rejects.toThrow(
      expect.objectContaining({ code: 'SIGNATURE_MALFORMED' }),
    )
  })
})

describe('time', () => {
  test.each([
    { name: 'in its first instant', now: FROM, good: 'good', revoked: 'revoked', held: 'revoked' },
    {
      name: 'five seconds before it, as clocks differ',
      now: FROM - 5000,
      good: 'good',
      revoked: 'revoked',
      held: 'revoked',
    },
    {
      name: 'earlier',
      now: FROM - 5001,
      good: 'the CRL is not valid yet',
      revoked: 'the CRL is not valid yet',
      held: 'the CRL is not valid yet',
    },
    { name: 'in its last instant', now: UNTIL, good: 'good', revoked: 'revoked', held: 'revoked' },
    {
      name: 'a millisecond later, when only a hold may have been lifted',
      now: UNTIL + 1,
      good: 'the CRL has expired',
      revoked: 'revoked',
      held: 'the CRL has expired',
    },
  ])('a list $name', async ({ now, good, revoked, held }) => {
    expect(said(await list({}, { now }))).toBe(good)
    expect(said(await list({ revoked: [{ certificate: leaf }] }, { now }))).toBe(revoked)
    expect(said(await list({ revoked: [{ certificate: leaf, reason: 6 }] }, { now }))).toBe(held)
  })
})

describe('bytes that are no list', () => {
  const good = mintCrl({ issuer, revoked: [{ certificate: other, reason: 1 }] })
  const entry = crlEntry({ certificate: other, reason: 1 })
  const strange = extension('1.2.3.4', Uint8Array.of(5, 0), true)
  const nested = Array.from({ length: 5000 }).reduce<Uint8Array>(
    (inner) => der.sequence(inner),
    new Uint8Array(),
  )
  const time = der.time(CURRENT[0])
  const number = der.integer(Uint8Array.of(7))
  test.each<{ name: string; bytes: Uint8Array }>([
    { name: 'nothing', bytes: new Uint8Array() },
    { name: 'a page', bytes: new TextEncoder().encode('<html>') },
    { name: 'PEM', bytes: new TextEncoder().encode('-----BEGIN X509 CRL-----') },
    { name: 'the first half', bytes: good.subarray(0, good.length / 2) },
    { name: 'one byte more', bytes: Uint8Array.of(...good, 0) },
    { name: 'nothing but nesting', bytes: nested },
    { name: 'a list without an end', bytes: mintCrl({ issuer, update: [CURRENT[0]] }) },
    {
      name: 'an end before its beginning',
      bytes: mintCrl({ issuer, update: [CURRENT[1], CURRENT[0]] }),
    },
    {
      name: 'another version',
      bytes: mintCrl({ issuer, change: ([, ...m]) => [der.integer(Uint8Array.of(2)), ...m] }),
    },
    {
      name: 'version 1 with extensions',
      bytes: mintCrl({ issuer, change: ([, ...members]) => members }),
    },
    {
      name: 'two algorithms',
      bytes: mintCrl({
        issuer,
        change: ([version, , ...members]) => [
          version!,
          der.sequence(der.oid('1.2.840.10045.4.3.3')),
          ...members,
        ],
      }),
    },
    {
      name: 'an entry of another certificate with a critical extension nobody knows',
      bytes: mintCrl({ issuer, revoked: [{ certificate: other, extra: [strange] }] }),
    },
    {
      name: 'an entry of another issuer',
      bytes: mintCrl({
        issuer,
        revoked: [{ certificate: other, extra: [extension('2.5.29.29', der.sequence(), true)] }],
      }),
    },
    {
      name: 'an entry that only a delta CRL has',
      bytes: mintCrl({ issuer, revoked: [{ certificate: leaf, reason: 8 }] }),
    },
    ...[
      { name: 'an entry that is no sequence', entries: der.sequence(der.boolean(true)) },
      { name: 'an entry without a number', entries: der.sequence(der.sequence(time)) },
      { name: 'an entry without a time', entries: der.sequence(der.sequence(number)) },
      {
        name: 'an entry whose number reaches beyond it',
        entries: der.sequence(Uint8Array.of(0x30, 3, 2, 9, 1), time),
      },
      {
        name: 'an entry with a member more',
        entries: der.sequence(der.sequence(number, time, der.sequence(), der.boolean(true))),
      },
      {
        name: 'an entry cut off',
        entries: der.sequence(entry, entry.subarray(0, entry.length - 3)),
      },
    ].map(({ name, entries }) => ({ name, bytes: mintCrl({ issuer, entries }) })),
  ])('$name', async ({ bytes }) => {
    await expect(ask(bytes)).rejects.toThrow(
      expect.objectContaining({ code: 'SIGNATURE_MALFORMED' }),
    )
  })

  test('no bit of one can be changed and make it say more', async () => {
    const revoked = mintCrl({ issuer, revoked: [{ certificate: leaf, reason: 1 }] })
    const original = await ask(revoked)
    for (let bit = 0; bit < 8 * revoked.length; bit++) {
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

  test('signed entries of any bytes are refused with a code, or say nothing of the certificate', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), async (bytes) => {
        const found = await list({ entries: der.sequence(bytes) }).catch(
          (thrown: unknown) => thrown,
        )
        if (!(found instanceof AdmissionError))
          expect(found).toEqual({ status: 'good', until: UNTIL })
      }),
      { numRuns: 200 },
    )
  })
})

describe('a list as long as one may be', () => {
  const entries = (last: Uint8Array[]) => {
    const entry = crlEntry({ certificate: other, reason: 1 })
    const count = Math.floor((MAX_CRL_BYTES - 1000) / entry.length)
    const all = new Uint8Array(count * entry.length)
    for (let i = 0; i < count; i++) all.set(entry, i * entry.length)
    return { count, entries: der.sequence(concat(all, ...last)) }
  }

  test('is gone through in bounded time and memory', async () => {
    const { count, entries: long } = entries([crlEntry({ certificate: leaf, reason: 1 })])
    expect(count).toBeGreaterThan(80_000)
    const bytes = mintCrl({ issuer, entries: long })
    const [certificate, signer] = [read(leaf), read(issuer)]
    const before = process.memoryUsage().arrayBuffers
    const started = performance.now()
    const fetchDelta = () => Promise.reject(new TypeError('asked for a delta CRL'))
    const found = await readCrl(bytes, { certificate, issuer: signer, now: NOW, fetchDelta })
    expect(performance.now() - started).toBeLessThan(2000)
    // Nothing of it is copied.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 * MAX_CRL_BYTES)
    expect(said(found)).toBe('revoked')
  })

  test('costs a hash when nobody signed it', async () => {
    const { entries: long } = entries([])
    const bytes = mintCrl({ issuer, entries: long, touchSignature: true })
    expect(said(await ask(bytes))).toBe('the CRL is not signed by the issuer')
  })
})
