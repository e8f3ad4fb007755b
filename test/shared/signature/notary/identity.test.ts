import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isTrustedIdentity, parseIdentities } from '#shared/signature/notary/identity.ts'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import { type Attributes, mint } from '#test/fakes/pki.ts'

const subjectOf = (subject: Attributes) => parseCertificate(mint({ subject }).der).subject
const BASE: Attributes = [
  ['2.5.4.6', 'US'],
  ['2.5.4.8', 'WA'],
  ['2.5.4.10', 'Exa, mple'],
  ['2.5.4.3', 'release'],
]

describe('trusted identities', () => {
  test.each([
    ['x509.subject: C=US, ST=WA, O=Exa\\, mple', true],
    ['x509.subject:C=US,ST=WA,O=Exa\\2c mple,CN=release', true],
    ['x509.subject: c=US, s=WA, o=Exa\\, mple', true],
    ['x509.subject: CN=release, O=Exa\\, mple, ST=WA, C=US', true],
    ['x509.subject: C=US, ST=WA, O=exa\\, mple', false],
    ['x509.subject: C=US, ST=WA, O=Exa\\, mple, CN=rel', false],
    ['x509.subject: C=US, ST=WA, O=Exa\\, mple, OU=any', false],
  ])('%s matches: %s', (identity, expected) => {
    expect(isTrustedIdentity(subjectOf(BASE), parseIdentities([identity]))).toBe(expected)
  })

  test('* is anybody', () => {
    expect(isTrustedIdentity(subjectOf([]), parseIdentities(['*']))).toBe(true)
  })

  test.each([
    { texts: [], message: '1 to 100 are needed' },
    {
      texts: ['*', 'x509.subject: C=US, ST=WA, O=A'],
      message: '* stands for everybody and must be alone',
    },
    { texts: ['C=US, ST=WA, O=A'], message: 'expected * or x509.subject: …' },
    { texts: [''], message: 'expected * or x509.subject: …' },
    { texts: ['x509.subject: C=US, O=A'], message: 'C, ST, O are needed' },
    { texts: ['x509.subject:'], message: 'C, ST, O are needed' },
    { texts: ['x509.subject: C=US, ST=WA, O=A, O=B'], message: 'O occurs twice' },
    { texts: ['x509.subject: C=US, ST=WA, S=WA, O=A'], message: 'ST occurs twice' },
    {
      texts: ['x509.subject: C=US, ST=WA, O=A+CN=b'],
      message: 'a value has a character that needs an escape',
    },
    {
      texts: ['x509.subject: C=US, ST=WA, O="A"'],
      message: 'a value has a character that needs an escape',
    },
    { texts: ['x509.subject: C=US, ST=WA, O='], message: 'a value is empty or hexadecimal' },
    { texts: ['x509.subject: C=US, ST=WA, O=#0401'], message: 'a value is empty or hexadecimal' },
    {
      texts: ['x509.subject: C=US, ST=WA, O=A\\'],
      message: 'a part is empty or ends with a backslash',
    },
    {
      texts: ['x509.subject: C=US,, ST=WA, O=A'],
      message: 'a part is empty or ends with a backslash',
    },
    { texts: ['x509.subject: C=US, ST=WA, O=A\\q'], message: 'a value has a broken escape' },
    {
      texts: ['x509.subject: C=US, ST=WA, O=A\\ff'],
      message: 'a value has an escape that is not UTF-8',
    },
    {
      texts: ['x509.subject: C=US, ST=WA, X=A'],
      message: 'a part is not a known attribute and a value',
    },
    { texts: [`x509.subject: ${'a'.repeat(2048)}`], message: 'more than 2048 characters' },
  ])('$texts is refused: $message', ({ texts, message }) => {
    expect(() => parseIdentities(texts)).toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        message: `trusted identities: ${message}`,
      }),
    )
  })

  test('throws nothing but its code, whatever the text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseIdentities([`x509.subject: C=US, ST=WA, O=${text}`])
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'POLICY_INVALID' })
        }
      }),
    )
  })

  test('a value that is escaped matches itself and nothing else', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (raw) => {
        const value = raw.replace(/^[ #]+| +$/g, '_')
        const escaped = value.replace(/[\\,+"<>;=]/g, '\\$&')
        const [, , , cn] = BASE
        const subject = subjectOf([...BASE.slice(0, 2), ['2.5.4.10', value], cn!])
        const identities = parseIdentities([`x509.subject: C=US, ST=WA, O=${escaped}`])
        expect(isTrustedIdentity(subject, identities)).toBe(true)
        const other = subjectOf([...BASE.slice(0, 2), ['2.5.4.10', `${value}x`], cn!])
        expect(isTrustedIdentity(other, identities)).toBe(false)
      }),
      { numRuns: 50 },
    )
  })
})
