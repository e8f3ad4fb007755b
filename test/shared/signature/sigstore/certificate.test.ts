import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { type Bytes, concat, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { CODE_SIGNING, readCertificate } from '#shared/signature/sigstore/certificate.ts'
import { ISSUER, pairOf, SIGNED_AT, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'

const world = new SigstoreWorld()
const key = pairOf('P-256')
const leaf = world.leaf(key) as Bytes

/** What reading the bytes gives: the code of its fault, or undefined when it is a certificate. */
function faultOf(bytes: Uint8Array): string | undefined {
  try {
    readCertificate(bytes as Bytes)
    return undefined
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return thrown.code
    throw thrown
  }
}

describe('a certificate', () => {
  test('says who it is for, when and by whom', () => {
    const { der: whole, publicKey, ...rest } = readCertificate(leaf)
    expect(whole).toBe(leaf)
    expect(Buffer.from(publicKey)).toEqual(key.publicKey.export({ type: 'spki', format: 'der' }))
    expect(rest).toEqual({
      isSelfIssued: false,
      notBefore: (SIGNED_AT - 300) * 1000,
      notAfter: (SIGNED_AT + 300) * 1000,
      names: [SUBJECT],
      usages: [CODE_SIGNING],
      isUsageCritical: false,
      maySign: true,
      isAuthority: false,
      oidcIssuer: ISSUER,
    })
  })

  test('of a root says so', () => {
    const { isSelfIssued, isAuthority, maySign } = readCertificate(world.caCertificate as Bytes)
    expect({ isSelfIssued, isAuthority, maySign }).toEqual({
      isSelfIssued: true,
      isAuthority: true,
      maySign: false,
    })
  })

  test('has every name, in its own order', () => {
    const names = {
      email: ['a@b.test'],
      uri: ['https://x.test', 'https://y.test'],
      other: ['me!z'],
    }
    const bytes = world.leaf(key, { names }) as Bytes
    expect(readCertificate(bytes).names).toEqual([
      'a@b.test',
      'https://x.test',
      'https://y.test',
      'me!z',
    ])
  })

  test.each([
    { name: 'nothing', bytes: new Uint8Array() },
    { name: 'something behind it', bytes: concat(leaf, Uint8Array.of(0)) },
    { name: 'half of it', bytes: leaf.subarray(0, leaf.length >> 1) },
    { name: 'too much of it', bytes: der.sequence(new Uint8Array(33 * 1024)) },
    { name: 'a year that is none', bytes: edited(leaf, /\d{6}(?=\d{6}Z)/, '259999') },
    { name: 'a name that is not UTF-8', bytes: edited(leaf, /https:\/\/ci/, '\xff\xfetps://ci') },
  ])('is not $name', ({ bytes }) => {
    expect(faultOf(bytes)).toBe('SIGNATURE_MALFORMED')
  })

  test('is read or refused, whatever is changed in it', () => {
    fc.assert(
      fc.property(fc.nat(leaf.length - 1), fc.nat(255), (at, value) => {
        const changed = leaf.slice()
        changed[at] = value
        return [undefined, 'SIGNATURE_MALFORMED'].includes(faultOf(changed))
      }),
      { numRuns: 2000 },
    )
  })
})

/** The bytes with the first match replaced by as many others. */
function edited(bytes: Uint8Array, pattern: RegExp, by: string): Uint8Array {
  const text = Buffer.from(bytes).toString('latin1')
  return new Uint8Array(Buffer.from(text.replace(pattern, by), 'latin1'))
}

test('extensions of any length are bounded by the certificate', () => {
  const extra = [der.sequence(der.oid('1.2.3'), der.octets(utf8('x'.repeat(40_000))))]
  expect(faultOf(world.leaf(key, { extra }))).toBe('SIGNATURE_MALFORMED')
})
