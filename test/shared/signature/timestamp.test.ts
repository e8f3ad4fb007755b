import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { type Bytes, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { checkTimestamp } from '#shared/signature/timestamp.ts'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import {
  algorithm,
  extension,
  type KeySpec,
  type Minted,
  mint,
  mintIntermediate,
  NOTARY_NAME,
  NULL,
  nameOf,
  pssAlgorithm,
  TIME_STAMPING,
} from '#test/fakes/pki.ts'
import { mintToken, mintTsa, type TokenOptions } from '#test/fakes/tsa.ts'

const MESSAGE = utf8('a signature')
const tsa = mintTsa()

async function check(options: Partial<TokenOptions> = {}, anchors: readonly Minted[] = [tsa.root]) {
  return checkBytes(mintToken({ message: MESSAGE, chain: tsa.chain, ...options }), anchors)
}

/** The answer in one line. */
async function checkBytes(token: Bytes, anchors: readonly Minted[] = [tsa.root]): Promise<string> {
  try {
    const found = await checkTimestamp(
      token,
      MESSAGE,
      anchors.map((each) => parseCertificate(each.der)),
    )
    if (!found.valid) return found.reason
    return `${new Date(found.earliest).toISOString()} ${new Date(found.latest).toISOString()}`
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    return `${thrown.code}: ${thrown.message}`
  }
}

const AT = '2026-01-01T00:00:00.000Z'
const OK = `${AT} ${AT}`
const bad = (message: string) => `SIGNATURE_MALFORMED: ${message}`

describe('a timestamp token', () => {
  const SPECS: readonly KeySpec[] = ['RSA 2048', 'P-256', 'P-384', 'P-521', 'Ed25519']
  test.each(
    SPECS.flatMap((spec) =>
      (['sha256', 'sha384', 'sha512'] as const).map((digestHash) => ({ spec, digestHash })),
    ),
  )('by a $spec key with $digestHash is valid', async ({ spec, digestHash }) => {
    const { chain, root } = mintTsa({ spec })
    expect(await check({ chain, digestHash }, [root])).toBe(OK)
    expect(await check({ chain, digestHash, touchSignature: true }, [root])).toBe(
      'its signature is not by the certificate of its signer',
    )
  })

  test.each([
    { name: 'with RSASSA-PSS', options: { pss: true } },
    { name: 'with rsaEncryption and a hash beside it', options: { plainRsa: true } },
    { name: 'with SHA-512 as imprint', options: { imprintHash: 'sha512' as const } },
  ])('by an RSA key $name is valid', async ({ options }) => {
    const { chain, root } = mintTsa({ spec: 'RSA 2048' })
    expect(await check({ chain, ...options }, [root])).toBe(OK)
  })

  test('by a signer named by its key identifier is valid', async () => {
    const id = Uint8Array.of(1, 2, 3)
    const { chain, root } = mintTsa({ extra: [extension('2.5.29.14', der.octets(id))] })
    expect(await check({ chain, bySubjectKeyId: id }, [root])).toBe(OK)
    expect(await check({ chain, bySubjectKeyId: Uint8Array.of(9) }, [root])).toBe(
      'the certificate of its signer is not in it',
    )
  })

  test.each<{ name: string; options: Partial<TokenOptions>; expected: string }>([
    {
      name: 'about other bytes',
      options: { message: utf8('other') },
      expected: 'it is about other bytes',
    },
    {
      name: 'with a SHA-1 imprint',
      options: { imprintHash: 'sha1' },
      expected: 'its imprint is not SHA-256, SHA-384 or SHA-512',
    },
    {
      name: 'with a SHA-1 digest',
      options: { digestHash: 'sha1' },
      expected: 'its hash is not SHA-256, SHA-384 or SHA-512',
    },
    {
      name: 'whose digest is of other content',
      options: { digestOf: utf8('x') },
      expected: 'its message digest is not that of its content',
    },
    {
      name: 'whose signed content type is another',
      options: { signedType: '1.2.840.113549.1.7.1' },
      expected: 'its signed content type is another one',
    },
    {
      name: 'that is no timestamp',
      options: { infoType: '1.2.840.113549.1.7.1' },
      expected: bad('CMS is not a timestamp token'),
    },
    {
      name: 'that names another certificate',
      options: { named: tsa.root },
      expected: 'its signed attributes do not name the certificate of its signer',
    },
    {
      name: 'that names no certificate',
      options: { attributes: (all) => all.slice(0, 2) },
      expected: 'its signed attributes do not name the certificate of its signer',
    },
    {
      name: 'without a message digest',
      options: { attributes: (all) => [all[0]!, all[2]!] },
      expected: 'its message digest is not that of its content',
    },
    {
      name: 'with an attribute twice',
      options: { attributes: (all) => [...all, all[0]!] },
      expected: bad('a signed attribute has not one value'),
    },
    {
      name: 'without certificates',
      options: { certificates: [] },
      expected: 'the certificate of its signer is not in it',
    },
    {
      name: 'with another certificate',
      options: { certificates: [tsa.root] },
      expected: 'the certificate of its signer is not in it',
    },
    {
      name: 'with too many certificates',
      options: { certificates: Array(11).fill(tsa.root) },
      expected: bad('CMS has too many certificates'),
    },
    { name: 'with two signers', options: { signers: 2 }, expected: bad('CMS has not one signer') },
    {
      name: 'with an algorithm nobody knows',
      options: { writeAlgorithm: algorithm('1.2.3') },
      expected: 'its signature algorithm is not supported',
    },
    {
      name: 'with the hash of the algorithm unlike the digest’s',
      options: { writeAlgorithm: algorithm('1.2.840.10045.4.3.3') },
      expected: 'its signature algorithm is not supported',
    },
    {
      name: 'with PSS of two hashes',
      options: { writeAlgorithm: pssAlgorithm('sha256', 'sha384') },
      expected: 'its signature algorithm is not supported',
    },
    {
      name: 'with PSS of a short salt',
      options: { writeAlgorithm: pssAlgorithm('sha256', 'sha256', 20) },
      expected: 'its signature algorithm is not supported',
    },
    {
      name: 'with an ECDSA algorithm that has parameters',
      options: { writeAlgorithm: algorithm('1.2.840.10045.4.3.2', NULL) },
      expected: 'its signature algorithm is not supported',
    },
    {
      name: 'with extensions',
      options: { infoTail: [der.context(1)] },
      expected: bad('TSTInfo has extensions, not supported'),
    },
    {
      name: 'with the name of another authority',
      options: { infoTail: [der.context(0, der.context(4, nameOf(NOTARY_NAME('other'))))] },
      expected: 'it names another authority than its signer',
    },
    {
      name: 'with the name of its authority',
      options: { infoTail: [der.context(0, der.context(4, nameOf(NOTARY_NAME('tsa'))))] },
      expected: OK,
    },
    {
      name: 'with ordering and a nonce',
      options: { infoTail: [der.boolean(true), der.integer(Uint8Array.of(5))] },
      expected: OK,
    },
    {
      name: 'at a fraction of a second',
      options: { genTime: '20260101000000.25Z' },
      expected: '2026-01-01T00:00:00.250Z 2026-01-01T00:00:00.250Z',
    },
    {
      name: 'at a fraction of a millisecond',
      options: { genTime: '20260101000000.0005Z' },
      expected: '2026-01-01T00:00:00.000Z 2026-01-01T00:00:00.001Z',
    },
    {
      name: 'with an accuracy',
      options: {
        accuracy: [Uint8Array.of(2, 1, 2), Uint8Array.of(0x80, 1, 5), Uint8Array.of(0x81, 1, 1)],
      },
      expected: '2025-12-31T23:59:57.994Z 2026-01-01T00:00:02.006Z',
    },
    {
      name: 'under the policy of RFC 3628, which is exact to the second',
      options: { policy: '0.4.0.2023.1.1' },
      expected: '2025-12-31T23:59:59.000Z 2026-01-01T00:00:01.000Z',
    },
    {
      name: 'under that policy with an accuracy of its own',
      options: { policy: '0.4.0.2023.1.1', accuracy: [Uint8Array.of(0x80, 1, 5)] },
      expected: '2025-12-31T23:59:59.995Z 2026-01-01T00:00:00.005Z',
    },
    {
      name: 'at a fraction with a trailing zero',
      options: { genTime: '20260101000000.50Z' },
      expected: bad('genTime is not a time in UTC'),
    },
    {
      name: 'in another zone',
      options: { genTime: '20260101000000+0100' },
      expected: bad('genTime is not a time in UTC'),
    },
    {
      name: 'on a day that does not exist',
      options: { genTime: '20260230000000Z' },
      expected: bad('genTime is a time that does not exist'),
    },
    {
      name: 'after its authority',
      options: { genTime: '20280101000000Z' },
      expected: 'a certificate of its authority was not valid at its time',
    },
    {
      name: 'before its authority',
      options: { genTime: '20240101000000Z' },
      expected: 'a certificate of its authority was not valid at its time',
    },
  ])('$name: $expected', async ({ options, expected }) => {
    expect(await check(options)).toBe(expected)
  })

  test.each<{ name: string; signer: Parameters<typeof mint>[0]; expected: string }>([
    {
      name: 'for more than timestamps',
      signer: { purposes: [TIME_STAMPING, '1.3.6.1.5.5.7.3.3'] },
      expected: 'C=US, ST=WA, O=Example, CN=tsa is not for timestamps only',
    },
    {
      name: 'for code',
      signer: { purposes: ['1.3.6.1.5.5.7.3.3'] },
      expected: 'C=US, ST=WA, O=Example, CN=tsa is not for timestamps only',
    },
    {
      name: 'without purposes',
      signer: { purposes: null },
      expected: 'C=US, ST=WA, O=Example, CN=tsa is not for timestamps only',
    },
    {
      name: 'whose purpose is not critical',
      signer: { purposesCritical: false },
      expected: 'C=US, ST=WA, O=Example, CN=tsa is not for timestamps only',
    },
    {
      name: 'that is an authority',
      signer: { ca: {} },
      expected: 'C=US, ST=WA, O=Example, CN=tsa is a certificate authority',
    },
    {
      name: 'that may sign certificates',
      signer: { usages: [0, 5] },
      expected: 'C=US, ST=WA, O=Example, CN=tsa has key usage keyCertSign',
    },
    {
      name: 'signed with SHA-1',
      signer: { hash: 'sha1' },
      expected: 'its authority does not chain to a trusted certificate',
    },
    {
      name: 'whose key is too short',
      signer: { spec: 'RSA 1024' },
      expected: 'KEY_INVALID: public key: found an RSA key of 1024 bits, expected 2048 to 8192',
    },
  ])('by a signer $name: $expected', async ({ signer, expected }) => {
    const { chain, root } = mintTsa(signer)
    expect(await check({ chain }, [root])).toBe(expected)
  })

  test('by an authority nobody trusts, or of the trusted name with another key, is refused', async () => {
    const impostor = mintTsa({}, { keyName: 'impostor' })
    const expected = 'its authority does not chain to a trusted certificate'
    expect(await check({}, [])).toBe(expected)
    expect(await check({}, [impostor.root])).toBe(expected)
  })

  test('its authority’s intermediate must allow timestamps when it limits purposes', async () => {
    const through = (purposes: readonly string[] | null) => {
      const middle = mintIntermediate(tsa.root, { purposes })
      const signer = mint({
        issuer: middle,
        purposes: [TIME_STAMPING],
        purposesCritical: true,
        keyName: 'tsa',
      })
      return check({ chain: [signer, middle, tsa.root] })
    }
    expect(await through(null)).toBe(OK)
    expect(await through([TIME_STAMPING])).toBe(OK)
    expect(await through(['1.3.6.1.5.5.7.3.3'])).toBe(
      'its authority does not chain to a trusted certificate',
    )
  })

  test('every bit of it counts, or the answer stays the same', async () => {
    const token = mintToken({ message: MESSAGE, chain: tsa.chain })
    const accepted: number[] = []
    for (let at = 0; at < token.length; at++) {
      const touched = token.slice()
      touched[at]! ^= 1
      if ((await checkBytes(touched)).startsWith('2')) accepted.push(at)
    }
    // The versions of SignedData and SignerInfo and the list of digest algorithms, which nothing is read from.
    expect(accepted.length).toBeLessThan(25)
  })

  test('whatever bytes it is made of, the answer is a refusal', async () => {
    const token = mintToken({ message: MESSAGE, chain: tsa.chain })
    const edit = fc.tuple(fc.nat(token.length - 1), fc.uint8Array({ maxLength: 6 }))
    await fc.assert(
      fc.asyncProperty(edit, fc.boolean(), async ([at, bytes], cut) => {
        const touched = cut ? token.slice(0, at) : token.slice()
        if (!cut) touched.set(bytes.slice(0, touched.length - at), at)
        await checkBytes(touched)
      }),
      { numRuns: 300 },
    )
  })
})
