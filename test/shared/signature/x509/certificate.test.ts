import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { type Bytes, concat, utf8 } from '#shared/bytes.ts'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import { isIssuedBy } from '#shared/signature/x509/chain.ts'
import { printName } from '#shared/signature/x509/name.ts'
import { certificatesFromPem } from '#shared/signature/x509/pem.ts'
import {
  algorithm,
  type CertificateOptions,
  extension,
  type KeySpec,
  mint,
  mintRoot,
  NULL,
  pemOf,
  VALID,
} from '#test/fakes/pki.ts'

describe('parseCertificate', () => {
  test('gives what the certificate says', () => {
    const uri = (text: string) => der.contextPrimitive(6, utf8(text))
    const crl = der.sequence(der.context(0, der.context(0, uri('http://crl.test/a'))))
    const ocsp = der.sequence(der.oid('1.3.6.1.5.5.7.48.1'), uri('http://ocsp.test/'))
    const issuer = der.sequence(der.oid('1.3.6.1.5.5.7.48.2'), uri('http://ca.test/'))
    const names = der.sequence(
      uri('spiffe://a'),
      der.contextPrimitive(1, utf8('a@test')),
      der.contextPrimitive(2, utf8('host.test')),
      der.contextPrimitive(7, Uint8Array.of(1, 2, 3, 4)),
    )
    const minted = mint({
      usages: [0, 8],
      ca: { pathLength: 3 },
      extra: [
        extension('2.5.29.17', names),
        extension('2.5.29.31', der.sequence(crl)),
        extension('1.3.6.1.5.5.7.1.1', der.sequence(ocsp, issuer)),
        extension('2.5.29.14', der.octets(Uint8Array.of(1))),
        extension('2.5.29.35', der.sequence(der.contextPrimitive(0, Uint8Array.of(2)))),
        extension('2.5.29.32', der.sequence(), true),
        extension('1.2.3', new Uint8Array(), true),
      ],
    })
    const parsed = parseCertificate(minted.der)
    expect(parsed).toMatchObject({
      notBefore: VALID[0].getTime(),
      notAfter: VALID[1].getTime(),
      basicConstraints: { critical: true, ca: true, pathLength: 3 },
      keyUsage: { critical: true, usages: new Set(['digitalSignature', 'decipherOnly']) },
      extendedKeyUsage: { critical: false, purposes: ['1.3.6.1.5.5.7.3.3'] },
      subjectAltNames: [
        { kind: 'uri', value: 'spiffe://a' },
        { kind: 'email', value: 'a@test' },
        { kind: 'dns', value: 'host.test' },
        { kind: 'other', value: '' },
      ],
      crlUrls: ['http://crl.test/a'],
      ocspUrls: ['http://ocsp.test/'],
      issuerUrls: ['http://ca.test/'],
      subjectKeyId: Uint8Array.of(1),
      authorityKeyId: Uint8Array.of(2),
      unhandled: ['1.2.3'],
    })
    expect(printName(parsed.subject)).toBe('C=US, ST=WA, O=Example, CN=signer')
  })

  const changed = (index: number, member: Uint8Array): CertificateOptions => ({
    change: (members) => members.with(index, member),
  })
  const time = (text: string, tag = 0x17) => der.element(tag, utf8(text))
  const validity = (...times: Uint8Array[]) => changed(4, der.sequence(...times))
  const good = time('260101000000Z')
  test.each<{ name: string; options: CertificateOptions; message: string }>([
    {
      name: 'of an unknown version',
      options: changed(0, der.context(0, der.integer(Uint8Array.of(3)))),
      message: 'a certificate has an unknown version',
    },
    {
      name: 'with extensions in version 1',
      options: { change: (all) => all.slice(1) },
      message: 'extensions need a version 3 certificate',
    },
    {
      name: 'with a long serial number',
      options: changed(1, der.element(2, new Uint8Array(22).fill(1))),
      message: 'a serial number is too long',
    },
    {
      name: 'with two algorithms',
      options: changed(2, algorithm('1.2.840.10045.4.3.3')),
      message: 'a certificate names two signature algorithms',
    },
    {
      name: 'with a member too much',
      options: { change: (all) => [...all, NULL] },
      message: 'certificate has more elements than expected',
    },
    {
      name: 'with a time with a zone',
      options: validity(good, time('260101000000+0100')),
      message: 'notAfter is not a time',
    },
    {
      name: 'with a time without seconds',
      options: validity(time('2601010000Z'), good),
      message: 'notBefore is not a time',
    },
    {
      name: 'with a time with a fraction',
      options: validity(good, time('20260101000000.5Z', 0x18)),
      message: 'notAfter is not a time',
    },
    {
      name: 'with the 30th of February',
      options: validity(good, time('260230000000Z')),
      message: 'notAfter is a time that does not exist',
    },
    { name: 'with one time', options: validity(good), message: 'validity is broken' },
    {
      name: 'with an extension twice',
      options: { extra: [extension('2.5.29.37', der.sequence(der.oid('1.2.3')))] },
      message: 'extension 2.5.29.37 occurs twice',
    },
    {
      name: 'with too many extensions',
      options: { extra: Array.from({ length: 64 }, (_, i) => extension(`1.2.3.${i}`, NULL)) },
      message: 'a certificate has too many extensions',
    },
    {
      name: 'with key usage without a bit',
      options: { usages: null, extra: [extension('2.5.29.15', der.bits(Uint8Array.of(0)))] },
      message: 'keyUsage names no usage',
    },
    {
      name: 'with purposes without a purpose',
      options: { purposes: [] },
      message: 'extKeyUsage is broken',
    },
    {
      name: 'with a path length of no authority',
      options: { extra: [extension('2.5.29.19', der.sequence(der.integer(Uint8Array.of(1))))] },
      message: 'a path length without cA',
    },
    {
      name: 'with a boolean that is neither',
      options: { extra: [extension('2.5.29.19', der.sequence(der.element(1, Uint8Array.of(1))))] },
      message: 'basicConstraints.cA is not a DER boolean',
    },
    {
      name: 'with bytes after a value',
      options: { extra: [extension('2.5.29.14', concat(der.octets(Uint8Array.of(1)), NULL))] },
      message: 'subjectKeyIdentifier has more elements than expected',
    },
    {
      name: 'with an object identifier that is not minimal',
      options: { extra: [der.sequence(Uint8Array.of(6, 2, 0x80, 1), der.octets(NULL))] },
      message: 'an object identifier is not minimal',
    },
    {
      name: 'with a name of broken UTF-8',
      options: changed(
        5,
        der.sequence(
          der.set(der.sequence(der.oid('2.5.4.3'), der.element(0x0c, Uint8Array.of(0xff)))),
        ),
      ),
      message: 'subject has text that is not UTF-8',
    },
  ])('refuses one $name', ({ options, message }) => {
    expect(() => parseCertificate(mint(options).der)).toThrow(
      expect.objectContaining({ code: 'SIGNATURE_MALFORMED', message }),
    )
  })

  test('refuses one with bytes after it, and one that is too long', () => {
    const { der: bytes } = mint()
    for (const each of [concat(bytes, NULL), new Uint8Array(17_000), bytes.slice(0, -1)]) {
      expect(() => parseCertificate(each)).toThrow(
        expect.objectContaining({ code: 'SIGNATURE_MALFORMED' }),
      )
    }
  })

  test('throws nothing but its code, whatever the bytes', () => {
    const { der: bytes } = mint({ ca: {} })
    const edits = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 4 })
    fc.assert(
      fc.property(edits, fc.nat(bytes.length), (changes, length) => {
        const touched = bytes.slice(0, length % 2 ? length : bytes.length)
        for (const [at, value] of changes) if (at < touched.length) touched[at] = value
        try {
          parseCertificate(touched)
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'SIGNATURE_MALFORMED' })
        }
      }),
      { numRuns: 2000 },
    )
  })
})

describe('isIssuedBy', () => {
  const SPECS: readonly KeySpec[] = ['RSA 2048', 'P-256', 'P-384', 'P-521', 'Ed25519']
  const rows = SPECS.flatMap((spec) =>
    (['sha256', 'sha384', 'sha512'] as const).map((hash) => ({ spec, hash })),
  )
  test.each(rows)('a $spec issuer with $hash', async ({ spec, hash }) => {
    const root = mintRoot({ spec, hash })
    const [issuer, issued] = [root, mint({ issuer: root, hash })].map((each) =>
      parseCertificate(each.der),
    )
    expect(await isIssuedBy(issued!, issuer!)).toBe(true)
    expect(await isIssuedBy(issuer!, issuer!)).toBe(true)
    expect(await isIssuedBy(issuer!, issued!)).toBe(false)
    const touched: Bytes = issued!.tbs.slice()
    touched[touched.length - 1]! ^= 1
    expect(await isIssuedBy({ ...issued!, tbs: touched }, issuer!)).toBe(false)
  })

  test('an RSA issuer with RSASSA-PSS', async () => {
    const root = parseCertificate(mintRoot({ spec: 'RSA 2048', pss: true }).der)
    expect(await isIssuedBy(root, root)).toBe(true)
  })

  test('never with SHA-1', async () => {
    for (const spec of ['RSA 2048', 'P-256'] as const) {
      const root = parseCertificate(mintRoot({ spec, hash: 'sha1' }).der)
      expect(await isIssuedBy(root, root)).toBe(false)
    }
  })

  test('never by another key of the same name', async () => {
    const root = mintRoot()
    const other = parseCertificate(mintRoot({ keyName: 'other' }).der)
    expect(await isIssuedBy(parseCertificate(mint({ issuer: root }).der), other)).toBe(false)
  })
})

describe('certificatesFromPem', () => {
  const a = mint({ keyName: 'a' })
  const b = mint({ keyName: 'b' })

  test('gives all certificates in order, comments between them left alone', () => {
    const found = certificatesFromPem(`subject=a\n${pemOf(a)}\nsubject=b\n${pemOf(b)}`)
    expect(found.map((each) => each.der)).toEqual([a.der, b.der])
    expect(certificatesFromPem('')).toEqual([])
  })

  test.each([
    [
      'a private key',
      '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
      'a PEM block that is not a certificate',
    ],
    ['a block without its end', pemOf(a).slice(0, -10), 'a damaged PEM block'],
    [
      'a block of two kinds',
      pemOf(a).replace('END CERTIFICATE', 'END KEY'),
      'a PEM block that is not a certificate',
    ],
    [
      'loose base64',
      '-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----',
      'certificate 1 is not base64',
    ],
    [
      'something else',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
      'certificate 1: certificate is not strict DER',
    ],
    ['too many', pemOf(a).repeat(201), '201 certificates'],
    ['too much', ' '.repeat(2_000_000), '2000000 characters, at most 1048576 are read'],
  ])('refuses %s', (_name, text, found) => {
    expect(() => certificatesFromPem(text)).toThrow(
      expect.objectContaining({ code: 'KEY_INVALID', message: `certificates: found ${found}` }),
    )
  })
})
