import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import { parseIdentities } from '#shared/signature/notary/identity.ts'
import type { NotaryPolicy, NotaryVerification } from '#shared/signature/notary/types.ts'
import { verifyNotary } from '#shared/signature/notary/verify.ts'
import type { RevocationStatus } from '#shared/signature/revocation/types.ts'
import { type Certificate, parseCertificate } from '#shared/signature/x509/certificate.ts'
import { ARTIFACT, type EnvelopeOptions, mintEnvelope } from '#test/fakes/notary.ts'
import {
  type CertificateOptions,
  extension,
  type KeySpec,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
  NOTARY_NAME,
} from '#test/fakes/pki.ts'
import { mintToken, mintTsa } from '#test/fakes/tsa.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const AFTER = Date.parse('2030-01-01T00:00:00Z')

const root = mintRoot()
const intermediate = mintIntermediate(root)
const leaf = mint({ issuer: intermediate })
const CHAIN = [leaf, intermediate, root]
const tsa = mintTsa()

/** A source that says no. */
const REVOKING = { status: async () => ({ status: 'revoked', detail: 'it is revoked' }) }

const read = ({ der }: Minted) => parseCertificate(der)

interface Rules {
  level?: NotaryPolicy['level']
  ca?: readonly Minted[]
  authority?: readonly Minted[]
  tsa?: readonly Minted[]
  identities?: readonly string[]
  verifyTimestamp?: 'always' | 'afterCertExpiry'
  revocation?: NotaryPolicy['revocation']
}

function policyOf(rules: Rules = {}): NotaryPolicy {
  const { ca = [root], authority = [], verifyTimestamp } = rules
  return {
    level: rules.level ?? 'strict',
    trustStores: {
      ca: ca.map(read),
      signingAuthority: authority.map(read),
      ...(rules.tsa && { tsa: rules.tsa.map(read) }),
    },
    trustedIdentities: parseIdentities(rules.identities ?? ['*']),
    ...(verifyTimestamp && { verifyTimestamp }),
    revocation: rules.revocation ?? { mode: 'skip' },
  }
}

async function verify(
  options: Partial<EnvelopeOptions> = {},
  rules: Rules = {},
  now = NOW,
  artifact = ARTIFACT,
): Promise<NotaryVerification> {
  const minted = mintEnvelope({ format: 'JWS', chain: CHAIN, ...options })
  return verifyNotary({ ...minted, artifact }, policyOf(rules), now)
}

/** The verdict in one line. */
function verdict(found: NotaryVerification): string {
  switch (found.status) {
    case 'rejected':
      return `rejected: ${found.reason}`
    case 'inconclusive':
      return `inconclusive: ${found.error.code}: ${found.error.message}`
    default:
      return found.status
  }
}

const FORMATS = ['JWS', 'COSE'] as const
const SPECS: readonly KeySpec[] = ['RSA 2048', 'RSA 3072', 'RSA 4096', 'P-256', 'P-384', 'P-521']

const stamped =
  (options: Partial<Parameters<typeof mintToken>[0]> = {}) =>
  (message: Uint8Array) =>
    mintToken({ message, chain: tsa.chain, ...options })

describe('a Notary Project signature', () => {
  test.each(SPECS.flatMap((spec) => FORMATS.map((format) => ({ spec, format }))))(
    'by a key of kind $spec in $format verifies',
    async ({ spec, format }) => {
      const chain = [mint({ spec, issuer: intermediate }), intermediate, root]
      const found = await verify({ format, chain })
      expect(verdict(found)).toBe('verified')
      expect(found).toMatchObject({ signer: 'C=US, ST=WA, O=Example, CN=signer' })
      const touched = await verify({ format, chain, touchSignature: true })
      expect(verdict(touched)).toBe(
        'rejected: the signature is not by the certificate in the envelope',
      )
    },
  )

  test.each(FORMATS)('by one self-signed certificate in %s verifies', async (format) => {
    const alone = mint()
    expect(verdict(await verify({ format, chain: [alone] }, { ca: [alone] }))).toBe('verified')
  })
})

describe.each(FORMATS)('in %s', (format) => {
  const SCHEME = 'io.cncf.notary.signingScheme'
  const TIME = 'io.cncf.notary.signingTime'
  const AUTHENTIC = 'io.cncf.notary.authenticSigningTime'
  const EXPIRY = 'io.cncf.notary.expiry'
  const malformed = (message: string) => `inconclusive: SIGNATURE_MALFORMED: ${message}`
  const authority = {
    crit: [SCHEME, AUTHENTIC],
    [SCHEME]: 'notary.x509.signingAuthority',
    [TIME]: undefined,
    [AUTHENTIC]: { time: '2026-01-01T00:00:00Z' },
  }

  test.each<{ name: string; signed: EnvelopeOptions['signed']; expected: string }>([
    {
      name: 'a critical attribute nobody knows is refused',
      signed: { crit: [SCHEME, 'com.example.new'], 'com.example.new': 'x' },
      expected: malformed('critical attribute "com.example.new" is not supported'),
    },
    {
      name: 'a critical attribute that is not there is refused',
      signed: { crit: [SCHEME, EXPIRY] },
      expected: malformed(`critical attribute ${EXPIRY} is missing`),
    },
    {
      name: 'a critical attribute named twice is refused',
      signed: { crit: [SCHEME, SCHEME] },
      expected: malformed(`attribute ${SCHEME} is marked critical twice`),
    },
    {
      name: 'a critical verification plugin is refused',
      signed: {
        crit: [SCHEME, 'io.cncf.notary.verificationPlugin'],
        'io.cncf.notary.verificationPlugin': 'com.example.plugin',
      },
      expected: malformed('it demands a verification plugin, not supported'),
    },
    {
      name: 'a verification plugin that is not critical is refused as well',
      signed: { 'io.cncf.notary.verificationPlugin': 'com.example.plugin' },
      expected: malformed('it demands a verification plugin, not supported'),
    },
    {
      name: 'a signing scheme that is not critical is refused',
      signed: { crit: [EXPIRY], [EXPIRY]: { time: '2027-01-01T00:00:00Z' } },
      expected: malformed(`attribute ${SCHEME} is not marked critical`),
    },
    {
      name: 'an unknown signing scheme is refused',
      signed: { [SCHEME]: 'notary.other' },
      expected: malformed('the signing scheme is not supported'),
    },
    {
      name: 'no critical attributes are refused',
      signed: { crit: [] },
      expected: malformed(`${format} has no crit`),
    },
    {
      name: 'another payload type is refused',
      signed: { cty: 'text/plain' },
      expected: malformed('the payload type is not application/vnd.cncf.notary.payload.v1+json'),
    },
    {
      name: 'an algorithm outside the six is refused',
      signed: { alg: 'RS256' },
      expected: malformed(`${format} algorithm is not supported`),
    },
    {
      name: 'an algorithm that is not the key’s is refused',
      signed: { alg: 'ES384' },
      expected: 'rejected: the algorithm is ES384, the key is ECDSA P-256',
    },
    {
      name: 'a signature without a signing time is refused',
      signed: { [TIME]: undefined },
      expected: malformed(
        `attribute ${TIME} is not an ${format === 'JWS' ? 'RFC 3339' : 'epoch'} time`,
      ),
    },
    {
      name: 'a signing time that is no time is refused',
      signed: { [TIME]: 'yesterday' },
      expected: malformed(
        `attribute ${TIME} is not an ${format === 'JWS' ? 'RFC 3339' : 'epoch'} time`,
      ),
    },
    {
      name: 'the time of a signing authority in the other scheme is refused',
      signed: { [AUTHENTIC]: { time: '2026-01-01T00:00:00Z' } },
      expected: malformed(`attribute ${AUTHENTIC} is not for scheme notary.x509`),
    },
    {
      name: 'the time of a signing authority that is not critical is refused',
      signed: { ...authority, crit: [SCHEME] },
      expected: malformed(`attribute ${AUTHENTIC} is not marked critical`),
    },
    {
      name: 'an expiry that is not critical is refused',
      signed: { [EXPIRY]: { time: '2027-01-01T00:00:00Z' } },
      expected: malformed(`attribute ${EXPIRY} is not marked critical`),
    },
    {
      name: 'an expiry before the signing time is refused',
      signed: { crit: [SCHEME, EXPIRY], [EXPIRY]: { time: '2025-12-31T00:00:00Z' } },
      expected: malformed('it expires before it was signed'),
    },
    {
      name: 'a signature that expired is refused',
      signed: { crit: [SCHEME, EXPIRY], [EXPIRY]: { time: '2026-05-31T23:59:59Z' } },
      expected: 'rejected: it expired 2026-05-31T23:59:59.000Z',
    },
    {
      name: 'a signature is valid in the last instant before it expires',
      signed: { crit: [SCHEME, EXPIRY], [EXPIRY]: { time: '2026-06-01T00:00:00Z' } },
      expected: 'verified',
    },
    {
      name: 'a signing authority that only the other store trusts is refused',
      signed: authority,
      expected: 'rejected: no certificate of the chain is in the signingAuthority store',
    },
    {
      name: 'an unknown attribute that is not critical is left alone',
      signed: { 'com.example.note': 'x' },
      expected: 'verified',
    },
  ])('$name', async ({ signed, expected }) => {
    expect(verdict(await verify({ format, ...(signed && { signed }) }))).toBe(expected)
  })

  test.each([
    {
      name: 'in its time verifies, long after',
      time: '2026-01-01T00:00:00Z',
      expected: 'verified',
    },
    {
      name: 'before a certificate was valid is refused',
      time: '2024-12-31T23:59:59Z',
      expected: 'rejected: a certificate was not valid at the time the signing authority gives',
    },
    {
      name: 'in the first instant of the certificates verifies',
      time: '2025-01-01T00:00:00Z',
      expected: 'verified',
    },
    {
      name: 'in the last instant of the certificates verifies',
      time: '2027-01-01T00:00:00Z',
      expected: 'verified',
    },
  ])('a signing authority’s signature made $name', async ({ time, expected }) => {
    const signed = { ...authority, [AUTHENTIC]: { time } }
    const rules = { ca: [], authority: [root] }
    expect(verdict(await verify({ format, signed }, rules, AFTER))).toBe(expected)
  })

  test.each<{ name: string; payload: unknown; expected: string }>([
    {
      name: 'another digest',
      payload: { targetArtifact: { ...ARTIFACT, digest: `sha256:${'00'.repeat(32)}` } },
      expected: `rejected: it is about another artifact: digest "sha256:${'00'.repeat(32)}", expected ${ARTIFACT.digest}`,
    },
    {
      name: 'another size',
      payload: { targetArtifact: { ...ARTIFACT, size: 1 } },
      expected: 'rejected: it is about another artifact: size 1, expected 1234',
    },
    {
      name: 'a size as text',
      payload: { targetArtifact: { ...ARTIFACT, size: '1234' } },
      expected: 'rejected: it is about another artifact: size "1234", expected 1234',
    },
    {
      name: 'another media type',
      payload: { targetArtifact: { ...ARTIFACT, mediaType: 'text/plain' } },
      expected: `rejected: it is about another artifact: mediaType "text/plain", expected ${ARTIFACT.mediaType}`,
    },
    { name: 'nothing', payload: {}, expected: malformed('the payload has no target artifact') },
    { name: 'a list', payload: [], expected: malformed('the payload is not a JSON object') },
    {
      name: 'its annotations too',
      payload: { targetArtifact: { ...ARTIFACT, annotations: { a: 'b' } } },
      expected: 'verified',
    },
  ])('a payload about $name', async ({ payload, expected }) => {
    expect(verdict(await verify({ format, payload }))).toBe(expected)
  })

  test('a digest named twice in the payload cannot be told', async () => {
    const payload = `{"targetArtifact":{"digest":"${ARTIFACT.digest}","digest":"x"}}`
    expect(verdict(await verify({ format, payload }))).toMatch(/^inconclusive: SIGNATURE_MALFORMED/)
  })

  test('an unprotected header that belongs to the signed ones is refused', async () => {
    for (const header of [{ alg: 'ES256' }, { [TIME]: { time: '2026-01-01T00:00:00Z' } }]) {
      expect(verdict(await verify({ format, header }))).toBe(
        malformed(`${format} has an unprotected header that must be protected`),
      )
    }
  })

  test('no certificate, too many and broken ones cannot be told', async () => {
    for (const x5c of [
      undefined,
      [],
      CHAIN.slice(0, 1).map(({ der }) => der.slice(1)),
      Array(11).fill(leaf.der),
    ]) {
      expect(verdict(await verify({ format, header: { x5c } }))).toMatch(
        /^inconclusive: SIGNATURE_MALFORMED/,
      )
    }
  })

  test('no bit can be changed without a refusal', async () => {
    const { envelope, mediaType } = mintEnvelope({ format, chain: CHAIN })
    const policy = policyOf()
    for (let at = 0; at < envelope.length; at += 11) {
      const touched = envelope.slice()
      touched[at]! ^= 1 << (at % 8)
      const found = await verifyNotary(
        { envelope: touched, mediaType, artifact: ARTIFACT },
        policy,
        NOW,
      )
      expect([at, found.status]).not.toEqual([at, 'verified'])
    }
  })

  test('whatever bytes it is made of, the answer is a verdict', async () => {
    const { envelope, mediaType } = mintEnvelope({ format, chain: CHAIN })
    const edit = fc.record({
      at: fc.nat(envelope.length - 1),
      bytes: fc.uint8Array({ maxLength: 8 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array(), edit), async (input) => {
        const bytes = input instanceof Uint8Array ? input.slice() : envelope.slice()
        if (!(input instanceof Uint8Array))
          bytes.set(input.bytes.slice(0, bytes.length - input.at), input.at)
        const found = await verifyNotary(
          { envelope: bytes as typeof envelope, mediaType, artifact: ARTIFACT },
          policyOf(),
          NOW,
        )
        if (found.status === 'inconclusive')
          expect(['SIGNATURE_MALFORMED', 'KEY_INVALID']).toContain(found.error.code)
      }),
      { numRuns: 150 },
    )
  })
})

describe('the chain', () => {
  const issued = (options: CertificateOptions) => [
    mint({ issuer: intermediate, ...options }),
    intermediate,
    root,
  ]
  const signer = 'C=US, ST=WA, O=Example, CN=signer'
  const middle = 'C=US, ST=WA, O=Example, CN=intermediate'
  const under = (options: CertificateOptions) => {
    const authority = mintIntermediate(root, options)
    return [mint({ issuer: authority }), authority, root]
  }

  test.each<{ name: string; chain: () => readonly Minted[]; expected: string }>([
    {
      name: 'without its root is refused',
      chain: () => [leaf, intermediate],
      expected: `rejected: the chain ends with ${middle}, which is not self-signed`,
    },
    {
      name: 'without its middle is refused',
      chain: () => [leaf, root],
      expected: `rejected: ${signer} is not issued by C=US, ST=WA, O=Example, CN=root`,
    },
    {
      name: 'with its root twice is refused',
      chain: () => [...CHAIN, root],
      expected:
        'rejected: C=US, ST=WA, O=Example, CN=root is self-signed but not the end of the chain',
    },
    {
      name: 'of another order is refused',
      chain: () => [leaf, root, intermediate],
      expected: `rejected: the chain ends with ${middle}, which is not self-signed`,
    },
    {
      name: 'with a leaf signed with SHA-1 is refused',
      chain: () => issued({ hash: 'sha1' }),
      expected: `rejected: ${signer} is not issued by ${middle}`,
    },
    {
      name: 'with a leaf that is an authority is refused',
      chain: () => issued({ ca: {} }),
      expected: `rejected: ${signer} is a certificate authority`,
    },
    {
      name: 'with a leaf without key usage is refused',
      chain: () => issued({ usages: null }),
      expected: `rejected: ${signer} has no key usage`,
    },
    {
      name: 'with a leaf for certificates is refused',
      chain: () => issued({ usages: [0, 5] }),
      expected: `rejected: ${signer} has key usage keyCertSign`,
    },
    {
      name: 'with a leaf for encryption is refused',
      chain: () => issued({ usages: [2] }),
      expected: `rejected: ${signer} is not for signatures`,
    },
    {
      name: 'with a leaf that decipherOnly marks is refused',
      chain: () => issued({ usages: [0, 8] }),
      expected: `rejected: ${signer} has key usage decipherOnly`,
    },
    {
      name: 'with a leaf whose key usage is not critical is refused',
      chain: () => issued({ usageCritical: false }),
      expected: `rejected: the key usage of ${signer} is not critical`,
    },
    {
      name: 'with a leaf for every purpose is refused',
      chain: () => issued({ purposes: ['2.5.29.37.0'] }),
      expected: `rejected: ${signer} has extended key usage 2.5.29.37.0`,
    },
    {
      name: 'with a leaf for servers too is refused',
      chain: () => issued({ purposes: ['1.3.6.1.5.5.7.3.3', '1.3.6.1.5.5.7.3.1'] }),
      expected: `rejected: ${signer} has extended key usage 1.3.6.1.5.5.7.3.1`,
    },
    {
      name: 'with a leaf for timestamps is refused',
      chain: () => issued({ purposes: ['1.3.6.1.5.5.7.3.8'] }),
      expected: `rejected: ${signer} has extended key usage 1.3.6.1.5.5.7.3.8`,
    },
    {
      name: 'with a leaf without purposes verifies',
      chain: () => issued({ purposes: null }),
      expected: 'verified',
    },
    {
      name: 'with a leaf for content commitment too verifies',
      chain: () => issued({ usages: [0, 1] }),
      expected: 'verified',
    },
    {
      name: 'with an unknown critical extension is refused',
      chain: () => issued({ extra: [extension('1.2.3', new Uint8Array(), true)] }),
      expected: `rejected: ${signer} has extension 1.2.3, not supported`,
    },
    {
      name: 'with an unknown extension verifies',
      chain: () => issued({ extra: [extension('1.2.3', new Uint8Array())] }),
      expected: 'verified',
    },
    {
      name: 'with an RSA key that is too short cannot be told',
      chain: () => issued({ spec: 'RSA 1024' }),
      expected:
        'inconclusive: KEY_INVALID: public key: found an RSA key of 1024 bits, expected 2048 to 8192',
    },
    {
      name: 'with an authority that is none is refused',
      chain: () => under({ ca: null }),
      expected: `rejected: ${middle} is not a certificate authority`,
    },
    {
      name: 'with an authority whose constraints are not critical is refused',
      chain: () => under({ ca: { critical: false } }),
      expected: `rejected: the basic constraints of ${middle} are not critical`,
    },
    {
      name: 'with an authority that may not sign certificates is refused',
      chain: () => under({ usages: [6] }),
      expected: `rejected: ${middle} may not sign certificates`,
    },
    {
      name: 'with an authority without key usage is refused',
      chain: () => under({ usages: null }),
      expected: `rejected: the key usage of ${middle} is not critical`,
    },
    {
      name: 'with name constraints is refused',
      chain: () => under({ extra: [extension('2.5.29.30', new Uint8Array())] }),
      expected: `rejected: ${middle} has extension 2.5.29.30, not supported`,
    },
  ])('$name', async ({ chain, expected }) => {
    const rules = { ca: [root, intermediate] }
    expect(verdict(await verify({ chain: chain() }, rules))).toBe(expected)
  })

  test('longer than its root allows is refused', async () => {
    const short = mintRoot({ ca: { pathLength: 0 } })
    const middleOne = mintIntermediate(short)
    const chain = [mint({ issuer: middleOne }), middleOne, short]
    expect(verdict(await verify({ chain }, { ca: [short] }))).toBe(
      'rejected: C=US, ST=WA, O=Example, CN=root allows no path this long',
    )
  })

  test('with a middle of the same name but another key is refused', async () => {
    const impostor = mintIntermediate(root, { keyName: 'impostor' })
    const chain = [leaf, impostor, root]
    expect(verdict(await verify({ chain }))).toBe(`rejected: ${signer} is not issued by ${middle}`)
  })
})

describe('trust', () => {
  const stranger = mintRoot({ keyName: 'stranger' })
  test.each<{ name: string; rules: Rules; expected: string }>([
    { name: 'in the root verifies', rules: { ca: [root] }, expected: 'verified' },
    { name: 'in the middle verifies', rules: { ca: [intermediate] }, expected: 'verified' },
    { name: 'in the leaf verifies', rules: { ca: [stranger, leaf] }, expected: 'verified' },
    {
      name: 'in a root of the same name is refused',
      rules: { ca: [stranger] },
      expected: 'rejected: no certificate of the chain is in the ca store',
    },
    {
      name: 'in nobody is refused',
      rules: { ca: [] },
      expected: 'rejected: no certificate of the chain is in the ca store',
    },
    {
      name: 'in the other scheme is refused',
      rules: { ca: [], authority: [root] },
      expected: 'rejected: no certificate of the chain is in the ca store',
    },
    {
      name: 'in the signer’s name verifies',
      rules: { identities: ['x509.subject: C=US, ST=WA, O=Example'] },
      expected: 'verified',
    },
    {
      name: 'in another common name is refused',
      rules: { identities: ['x509.subject: C=US, ST=WA, O=Example, CN=other'] },
      expected: 'rejected: C=US, ST=WA, O=Example, CN=signer is not a trusted identity',
    },
    {
      name: 'in one of two names verifies',
      rules: {
        identities: [
          'x509.subject: C=US, ST=WA, O=Other',
          'x509.subject: CN=signer, O=Example, ST=WA, C=US',
        ],
      },
      expected: 'verified',
    },
  ])('$name', async ({ rules, expected }) => {
    expect(verdict(await verify({}, rules))).toBe(expected)
  })

  test('a name that the subject has twice matches nobody', async () => {
    const chain = [
      mint({ issuer: intermediate, subject: [...NOTARY_NAME('signer'), ['2.5.4.10', 'Evil']] }),
      intermediate,
      root,
    ]
    const identities = ['x509.subject: C=US, ST=WA, O=Example']
    expect(verdict(await verify({ chain }, { identities }))).toMatch(/is not a trusted identity$/)
  })
})

test('a chain that nobody trusts is refused before its signatures are checked', async () => {
  const found = await verify({ touchSignature: true }, { ca: [] })
  const detail = 'no certificate of the chain is in the ca store'
  expect(found).toEqual({
    status: 'rejected',
    reason: detail,
    outcomes: [{ check: 'authenticity', action: 'enforce', passed: false, detail }],
  })
})

describe('time', () => {
  const withTsa = { tsa: [tsa.root] }
  const notNow = 'rejected: a certificate is not valid now, and no timestamp says it was'
  test.each<{
    name: string
    token?: EnvelopeOptions['token']
    rules?: Rules
    now?: number
    expected: string
  }>([
    {
      name: 'without a timestamp authority, after the certificates is refused',
      now: AFTER,
      expected: notNow,
    },
    {
      name: 'without a timestamp authority, before the certificates is refused',
      now: Date.parse('2024-12-31T23:59:59.999Z'),
      expected: notNow,
    },
    {
      name: 'without a timestamp authority, in the last instant verifies',
      now: Date.parse('2027-01-01T00:00:00Z'),
      expected: 'verified',
    },
    {
      name: 'without a timestamp authority, a timestamp does not help',
      token: stamped(),
      now: AFTER,
      expected: notNow,
    },
    {
      name: 'with a timestamp authority and no timestamp is refused',
      rules: withTsa,
      expected: 'rejected: there is no timestamp',
    },
    { name: 'with a timestamp verifies', token: stamped(), rules: withTsa, expected: 'verified' },
    {
      name: 'with a timestamp verifies after the certificates',
      token: stamped(),
      rules: withTsa,
      now: AFTER,
      expected: 'verified',
    },
    {
      name: 'with a timestamp nobody trusts is refused',
      token: stamped(),
      rules: { tsa: [] },
      expected: 'rejected: the timestamp: its authority does not chain to a trusted certificate',
    },
    {
      name: 'with a timestamp of the payload is refused',
      token: () => mintToken({ message: new Uint8Array(3), chain: tsa.chain }),
      rules: withTsa,
      expected: 'rejected: the timestamp: it is about other bytes',
    },
    {
      name: 'with a broken timestamp cannot be told',
      token: () => Uint8Array.of(0x30, 0x01),
      rules: withTsa,
      expected: 'inconclusive: SIGNATURE_MALFORMED: CMS is not strict DER',
    },
    {
      name: 'on demand, valid now, needs no timestamp',
      rules: { ...withTsa, verifyTimestamp: 'afterCertExpiry' },
      expected: 'verified',
    },
    {
      name: 'on demand, not valid now, needs one',
      rules: { ...withTsa, verifyTimestamp: 'afterCertExpiry' },
      now: AFTER,
      expected: 'rejected: there is no timestamp',
    },
  ])('$name', async ({ token, rules, now, expected }) => {
    expect(verdict(await verify({ ...(token && { token }) }, rules, now))).toBe(expected)
  })

  const outside = 'rejected: a certificate was not valid at the time of the timestamp'
  test.each([
    { name: 'in the first instant', genTime: '20250101000000Z', expected: 'verified' },
    { name: 'in the last instant', genTime: '20270101000000Z', expected: 'verified' },
    {
      name: 'a fraction after the last instant',
      genTime: '20270101000000.0001Z',
      expected: outside,
    },
    { name: 'a second before the first instant', genTime: '20241231235959Z', expected: outside },
    {
      name: 'less than its accuracy after the first instant',
      genTime: '20250101000000Z',
      seconds: 1,
      expected: outside,
    },
    {
      name: 'less than its accuracy before the last instant',
      genTime: '20261231235959Z',
      seconds: 2,
      expected: outside,
    },
    {
      name: 'its accuracy before the last instant',
      genTime: '20261231235959Z',
      seconds: 1,
      expected: 'verified',
    },
  ])(
    'a timestamp $name of the signer’s certificates: $expected',
    async ({ genTime, seconds, expected }) => {
      const wide = [new Date('2020-01-01'), new Date('2040-01-01')] as const
      const authority = mintTsa({ validity: wide }, { validity: wide })
      const accuracy = seconds === undefined ? {} : { accuracy: [Uint8Array.of(2, 1, seconds)] }
      const token = (message: Uint8Array) =>
        mintToken({ message, chain: authority.chain, genTime, ...accuracy })
      expect(verdict(await verify({ token }, { tsa: [authority.root] }))).toBe(expected)
    },
  )
})

describe('levels', () => {
  const failing = {
    authenticity: { options: {}, rules: { ca: [] }, now: NOW },
    authenticTimestamp: { options: {}, rules: {}, now: AFTER },
    expiry: {
      options: {
        signed: {
          crit: ['io.cncf.notary.signingScheme', 'io.cncf.notary.expiry'],
          'io.cncf.notary.expiry': { time: '2026-02-01T00:00:00Z' },
        },
      },
      rules: {},
      now: NOW,
    },
    revocation: {
      options: {},
      rules: { revocation: { mode: 'strict', source: REVOKING } },
      now: NOW,
    },
  } as const
  const LEVELS = {
    strict: [],
    permissive: ['authenticTimestamp', 'expiry', 'revocation'],
    audit: ['authenticity', 'authenticTimestamp', 'expiry', 'revocation'],
  }
  const rows = Object.entries(LEVELS).flatMap(([level, relaxed]) =>
    (Object.keys(failing) as (keyof typeof failing)[]).map((check) => ({
      level: level as keyof typeof LEVELS,
      check,
      relaxed: relaxed.includes(check as never),
    })),
  )
  test.each(rows)(
    '$level with a failing $check, which it relaxes: $relaxed',
    async ({ level, check, relaxed }) => {
      const { options, rules, now } = failing[check]
      const found = await verify(
        options as Partial<EnvelopeOptions>,
        { ...rules, level } as Rules,
        now,
      )
      expect(found.status).toBe(relaxed ? 'verified' : 'rejected')
      expect(
        'outcomes' in found && found.outcomes.find((each) => each.check === check),
      ).toMatchObject({
        action: relaxed ? 'log' : 'enforce',
        passed: false,
      })
    },
  )

  test.each(['strict', 'permissive', 'audit'] as const)(
    '%s never relaxes integrity',
    async (level) => {
      expect((await verify({ touchSignature: true }, { level })).status).toBe('rejected')
      const other = { ...ARTIFACT, size: 1 }
      expect((await verify({}, { level }, NOW, other)).status).toBe('rejected')
    },
  )

  test('skip verifies nothing and says so', async () => {
    expect(await verify({ touchSignature: true }, { level: 'skip' })).toEqual({ status: 'skipped' })
  })

  test('what a level relaxes may be unreadable too', async () => {
    const found = await verify(
      { token: () => Uint8Array.of(1) },
      { level: 'permissive', tsa: [tsa.root] },
    )
    expect(found.status).toBe('verified')
  })
})

describe('revocation', () => {
  type Asked = { chain: readonly Certificate[]; signedAt: number | undefined }
  /** Says these one after the other, and who asked. */
  const source = (...statuses: RevocationStatus['status'][]) => {
    const asked: Asked[] = []
    const status = async (chain: readonly Certificate[], signedAt?: number) => {
      asked.push({ chain, signedAt })
      const said = statuses[asked.length - 1] ?? 'good'
      return { status: said, detail: `${said} it is` }
    }
    return { asked, status }
  }
  const failing = (error: Error) => ({ status: () => Promise.reject(error) })
  const down = failing(new AdmissionError('REGISTRY_UNREACHABLE', 'no answer'))
  const notKnown = 'whether a certificate is revoked is not known: unknown it is'

  test.each<{ name: string; revocation: NotaryPolicy['revocation']; expected: string }>([
    { name: 'skip asks nobody', revocation: { mode: 'skip' }, expected: 'verified' },
    {
      name: 'strict and good verifies',
      revocation: { mode: 'strict', source: source('good', 'good') },
      expected: 'verified',
    },
    {
      name: 'strict and unknown cannot be told',
      revocation: { mode: 'strict', source: source('unknown') },
      expected: `inconclusive: REVOCATION_UNKNOWN: ${notKnown}`,
    },
    {
      name: 'strict without an answer cannot be told',
      revocation: { mode: 'strict', source: down },
      expected: 'inconclusive: REGISTRY_UNREACHABLE: no answer',
    },
    {
      name: 'softfail and unknown verifies',
      revocation: { mode: 'softfail', source: source('unknown') },
      expected: 'verified',
    },
    {
      name: 'softfail without an answer verifies',
      revocation: { mode: 'softfail', source: down },
      expected: 'verified',
    },
    {
      name: 'softfail with a fault of our own cannot be told',
      revocation: { mode: 'softfail', source: failing(new TypeError('a bug')) },
      expected: 'inconclusive: INTERNAL: revocation: TypeError: a bug',
    },
    {
      name: 'softfail and revoked is refused',
      revocation: { mode: 'softfail', source: source('revoked') },
      expected: 'rejected: revoked it is',
    },
    {
      name: 'revoked weighs more than unknown',
      revocation: { mode: 'strict', source: source('unknown', 'revoked') },
      expected: 'rejected: revoked it is',
    },
    {
      name: 'a revoked timestamp authority is refused',
      revocation: { mode: 'softfail', source: source('good', 'revoked') },
      expected: 'rejected: revoked it is',
    },
  ])('$name', async ({ revocation, expected }) => {
    expect(verdict(await verify({ token: stamped() }, { revocation, tsa: [tsa.root] }))).toBe(
      expected,
    )
  })

  test('is asked with the time of a trusted timestamp for the signer, and without for its authority', async () => {
    const strict = source()
    const revocation = { mode: 'strict', source: strict } as const
    await verify({ token: stamped() }, { revocation, tsa: [tsa.root] })
    expect(strict.asked.map(({ chain, signedAt }) => [chain.length, signedAt])).toEqual([
      [CHAIN.length, Date.parse('2026-01-01T00:00:00Z')],
      [2, undefined],
    ])
  })

  test('is asked without a time when only the signer says it', async () => {
    const strict = source()
    await verify({ token: stamped() }, { revocation: { mode: 'strict', source: strict } })
    expect(strict.asked).toEqual([expect.objectContaining({ signedAt: undefined })])
  })

  test('is not asked about a chain that nobody trusts, whatever the level', async () => {
    const strict = source()
    const rules: Rules = { ca: [], level: 'audit', revocation: { mode: 'strict', source: strict } }
    const found = await verify({}, rules)
    expect(strict.asked).toEqual([])
    expect('outcomes' in found && found.outcomes.at(-1)).toEqual({
      check: 'revocation',
      action: 'log',
      passed: false,
      detail: 'nobody is asked about an untrusted chain',
    })
  })
})

describe('envelopes', () => {
  const notary = (envelope: string | Uint8Array, mediaType: string) =>
    verifyNotary(
      {
        envelope: new Uint8Array(
          typeof envelope === 'string' ? new TextEncoder().encode(envelope) : envelope,
        ),
        mediaType,
        artifact: ARTIFACT,
      },
      policyOf(),
      NOW,
    )
  const JWS = 'application/jose+json'
  const COSE = 'application/cose'
  const good = mintEnvelope({ format: 'JWS', chain: CHAIN }).envelope
  const json = JSON.parse(new TextDecoder().decode(good))
  const cose = mintEnvelope({ format: 'COSE', chain: CHAIN }).envelope

  test.each<{ name: string; envelope: string | Uint8Array; mediaType: string; message: string }>([
    {
      name: 'of an unknown type',
      envelope: good,
      mediaType: 'text/plain',
      message: 'the envelope is neither application/jose+json nor application/cose',
    },
    {
      name: 'of the other type',
      envelope: cose,
      mediaType: JWS,
      message: 'JWS: JSON is not valid UTF-8',
    },
    {
      name: 'that is too long',
      envelope: new Uint8Array(1024 * 1024 + 1),
      mediaType: JWS,
      message: 'the envelope has more than 1048576 bytes',
    },
    {
      name: 'with several signatures',
      envelope: JSON.stringify({ ...json, signatures: [] }),
      mediaType: JWS,
      message: 'JWS has a member that is not of the flattened form',
    },
    {
      name: 'without a signature',
      envelope: JSON.stringify({ ...json, signature: undefined }),
      mediaType: JWS,
      message: 'JWS has no signature',
    },
    {
      name: 'without a header',
      envelope: JSON.stringify({ ...json, header: undefined }),
      mediaType: JWS,
      message: 'JWS has no header',
    },
    {
      name: 'with padded base64url',
      envelope: JSON.stringify({ ...json, signature: `${json.signature}==` }),
      mediaType: JWS,
      message: 'JWS signature is not strict base64url',
    },
    {
      name: 'with bytes after it',
      envelope: Uint8Array.of(...cose, 0),
      mediaType: COSE,
      message: 'CBOR is followed by other bytes',
    },
    {
      name: 'without a tag',
      envelope: cose.slice(1),
      mediaType: COSE,
      message: 'COSE is not a tagged COSE_Sign1',
    },
    {
      name: 'with another tag',
      envelope: Uint8Array.of(0xd1, ...cose.slice(1)),
      mediaType: COSE,
      message: 'COSE is not a tagged COSE_Sign1',
    },
    {
      name: 'with a detached payload',
      envelope: Uint8Array.of(0xd2, 0x84, 0x40, 0xa0, 0xf6, 0x40),
      mediaType: COSE,
      message: 'COSE_Sign1 is not three byte strings and a header',
    },
    {
      name: 'with an empty header',
      envelope: Uint8Array.of(0xd2, 0x84, 0x41, 0xa0, 0xa0, 0x40, 0x40),
      mediaType: COSE,
      message: 'COSE algorithm is not supported',
    },
  ])('$name cannot be told', async ({ envelope, mediaType, message }) => {
    expect(verdict(await notary(envelope, mediaType))).toBe(
      `inconclusive: SIGNATURE_MALFORMED: ${message}`,
    )
  })
})
