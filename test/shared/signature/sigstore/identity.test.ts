import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { type Bytes, concat, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { extensionId, identityOf } from '#shared/signature/sigstore/fulcio.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import type { Identity } from '#shared/signature/sigstore/types.ts'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import { mintSigner, uri } from '#test/fakes/fulcio.ts'
import { extension, mintRoot } from '#test/fakes/pki.ts'
import { ISSUER, SUBJECT } from '#test/fakes/sigstore.ts'

const issuer = mintRoot()
const ARC = '1.3.6.1.4.1.57264.1'
const raw = (id: number, text: string) => extension(`${ARC}.${id}`, utf8(text))
const encoded = (id: number, text: string) => extension(`${ARC}.${id}`, der.utf8String(text))
const certificateWith = (options: Partial<Parameters<typeof mintSigner>[0]> = {}) =>
  parseCertificate(mintSigner({ issuer, ...options }).der)

/** The code of what it throws, or undefined. */
function faultOf(act: () => unknown): string | undefined {
  try {
    act()
    return undefined
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return thrown.code
    throw thrown
  }
}

describe('a certificate names', () => {
  test('every subject there is, in its own order', () => {
    const other = (oid: string, value: Uint8Array) =>
      der.context(0, der.oid(oid), der.context(0, value))
    const names = concat(
      der.contextPrimitive(1, utf8('a@b.test')),
      uri('https://x.test'),
      other(`${ARC}.7`, der.utf8String('me!z')),
      other('1.2.3', der.utf8String('not Fulcio')),
      der.contextPrimitive(2, utf8('host.test')),
      der.contextPrimitive(7, Uint8Array.of(127, 0, 0, 1)),
      uri('https://y.test'),
    )
    expect(identityOf(certificateWith({ names })).names).toEqual([
      'a@b.test',
      'https://x.test',
      'me!z',
      'host.test',
      'https://y.test',
    ])
  })

  test.each([
    { name: 'none', more: [], expected: undefined },
    { name: 'that of the first version', more: [raw(1, ISSUER)], expected: ISSUER },
    { name: 'that of the second', more: [encoded(8, ISSUER)], expected: ISSUER },
    {
      name: 'that of both when they agree',
      more: [raw(1, ISSUER), encoded(8, ISSUER)],
      expected: ISSUER,
    },
  ])('its issuer: $name', ({ more, expected }) => {
    expect(identityOf(certificateWith({ oidcIssuer: null, more })).issuer).toBe(expected)
  })

  test.each([
    { name: 'two issuers that differ', more: [raw(1, 'https://elsewhere.test')] },
    { name: 'an issuer that is not UTF-8', more: [extension(`${ARC}.1`, Uint8Array.of(0xff))] },
    {
      name: 'another name that is no text',
      names: der.context(0, der.oid(`${ARC}.7`), der.context(0, der.integer(Uint8Array.of(1)))),
    },
    {
      name: 'another name with two values',
      names: der.context(
        0,
        der.oid(`${ARC}.7`),
        der.context(0, der.utf8String('a')),
        der.context(0, der.utf8String('b')),
      ),
    },
  ])('nobody with $name', (options) => {
    expect(faultOf(() => identityOf(certificateWith(options)))).toBe('SIGNATURE_MALFORMED')
  })

  test('somebody or nobody, whatever is in its names', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (names) =>
        [undefined, 'SIGNATURE_MALFORMED'].includes(
          faultOf(() => identityOf(certificateWith({ names: names as Bytes }))),
        ),
      ),
      { numRuns: 200 },
    )
  })
})

describe('an extension of Fulcio', () => {
  test.each([
    ['githubWorkflowRepository', 5],
    ['githubWorkflowSha', 3],
    ['githubWorkflowSHA', 3],
    ['oidcIssuer', 1],
    ['issuer', 8],
    ['buildSignerURI', 9],
    ['sourceRepositoryURI', 12],
    ['sourceRepositoryVisibilityAtSigning', 22],
    ['deploymentEnvironment', 23],
    ['tokenSubject', 24],
    [`${ARC}.12`, 12],
    [`${ARC}.99`, 99],
  ] as const)('called %s is number %i', (name, id) => {
    expect(extensionId(name)).toBe(`${ARC}.${id}`)
  })

  test.each([
    '',
    'x',
    'sourceRepository',
    `${ARC}.`,
    `${ARC}.0`,
    `${ARC}.1.2`,
    `${ARC}.x`,
    '1.2.3',
    'constructor',
  ])('is none called %j', (name) => {
    expect(extensionId(name)).toBeUndefined()
  })
})

describe('an identity with extensions', () => {
  const certificate = certificateWith({
    more: [
      raw(5, 'shop/api'),
      encoded(12, 'https://git.test/shop/api'),
      encoded(11, 'self-hosted'),
    ],
  })
  const matches = async (extensions: Record<string, string>) => {
    const matcher = await createIdentityMatcher([{ issuer: ISSUER, subject: SUBJECT, extensions }])
    return matcher(identityOf(certificate))
  }

  test.each<[Record<string, string>, boolean]>([
    [{}, true],
    [{ githubWorkflowRepository: 'shop/api' }, true],
    [{ sourceRepositoryURI: 'https://git.test/shop/api', runnerEnvironment: 'self-hosted' }, true],
    [{ [`${ARC}.12`]: 'https://git.test/shop/api' }, true],
    [{ githubWorkflowRepository: 'shop/ap' }, false],
    [{ githubWorkflowRepository: 'shop/.*' }, false],
    [{ githubWorkflowRepository: '' }, false],
    [{ githubWorkflowRepository: 'shop/api', runnerEnvironment: 'github-hosted' }, false],
    [{ buildTrigger: 'push' }, false],
    [{ buildTrigger: '' }, false],
  ])('%j is the certificate’s: %s', async (extensions, expected) => {
    expect(await matches(extensions)).toBe(expected)
  })

  test('is none where the certificate’s is not what its number says', async () => {
    const broken = certificateWith({ more: [raw(12, 'https://git.test/shop/api')] })
    const matcher = await createIdentityMatcher([
      {
        issuer: ISSUER,
        subject: SUBJECT,
        extensions: { sourceRepositoryURI: 'https://git.test/shop/api' },
      },
    ])
    expect(faultOf(() => matcher(identityOf(broken)))).toBe('SIGNATURE_MALFORMED')
  })

  test.each(['sourceRepository', '1.2.3'])('cannot ask for %j', async (name) => {
    const identity: Identity = { issuer: ISSUER, subject: SUBJECT, extensions: { [name]: 'x' } }
    await expect(createIdentityMatcher([identity])).rejects.toMatchObject({
      code: 'POLICY_INVALID',
      message: `identity: ${JSON.stringify(name)} is no extension of Fulcio`,
    })
  })
})
