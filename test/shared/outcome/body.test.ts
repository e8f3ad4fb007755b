import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '#shared/bytes.ts'
import { decodeBody, encodeBody, type SealBody } from '#shared/outcome/body.ts'
import type { Fact } from '#shared/outcome/types.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`
const BLOB = `sha256:${'b'.repeat(64)}`
const SIGNED: Fact = {
  policy: 'release',
  policyHash: 'c'.repeat(64),
  function: 'verifyImageSignatures',
  image: `web:1@${DIGEST}`,
  digest: DIGEST,
  attestor: 'key',
}
const ATTESTED: Fact = {
  ...SIGNED,
  function: 'verifyAttestationSignatures',
  attestation: 'slsa',
  payload: { digest: BLOB, size: 1234 },
}

const bodyOf = (...facts: Fact[]): SealBody => ({
  outcomes: { policies: [], facts },
  issuedAt: 1,
  expiresAt: 2,
})
const jsonOf = (...facts: Fact[]) => JSON.parse(fromUtf8(encodeBody(bodyOf(...facts))))

describe('the body of a seal', () => {
  test('of signatures only is written as it always was', () => {
    expect(jsonOf(SIGNED)).toEqual({
      iat: 1,
      exp: 2,
      policies: [['release', 'c'.repeat(64), 0]],
      functions: ['verifyImageSignatures'],
      images: [SIGNED.image],
      attestors: ['key'],
      facts: [[0, 0, 0, 0]],
    })
  })

  test('with attestations names each and its blob once', () => {
    const other = { ...ATTESTED, attestor: 'other' }
    expect(jsonOf(SIGNED, ATTESTED, other)).toMatchObject({
      functions: ['verifyImageSignatures', 'verifyAttestationSignatures'],
      attestations: ['slsa'],
      blobs: [[BLOB, 1234]],
      facts: [
        [0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 1, 0, 1, 0, 0],
      ],
    })
  })

  test('names an attestor with the hash of its texts where it has some, and each once', () => {
    const [one, other] = ['1'.repeat(64), '2'.repeat(64)]
    const facts = [SIGNED, { ...SIGNED, material: one }, { ...SIGNED, material: other }]
    expect(jsonOf(...facts, { ...ATTESTED, material: one })).toMatchObject({
      attestors: ['key', ['key', one], ['key', other]],
      facts: [
        [0, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 2],
        [0, 1, 0, 1, 0, 0],
      ],
    })
  })

  test('gives back what was written', () => {
    const digest = fc
      .uint8Array({ minLength: 32, maxLength: 32 })
      .map((bytes) => `sha256:${Buffer.from(bytes).toString('hex')}`)
    const fact = fc
      .record({
        policy: fc.string(),
        policyHash: fc.string(),
        name: fc.string(),
        digest,
        attestor: fc.string(),
        material: fc.option(fc.string(), { nil: undefined }),
        attested: fc.option(fc.record({ attestation: fc.string(), blob: digest, size: fc.nat() }), {
          nil: undefined,
        }),
      })
      .map(({ name, attested, material, ...parts }): Fact => {
        const rest = { ...parts, ...(material === undefined ? {} : { material }) }
        const image = `${name.replaceAll('@', '')}@${rest.digest}`
        if (attested === undefined) return { ...rest, image, function: 'verifyImageSignatures' }
        const { attestation, blob, size } = attested
        const payload = { digest: blob, size }
        return { ...rest, image, function: 'verifyAttestationSignatures', attestation, payload }
      })
    fc.assert(
      fc.property(fc.array(fact, { maxLength: 8 }), (facts) => {
        const body = bodyOf(...facts)
        expect(decodeBody(encodeBody(body))).toEqual(body)
      }),
    )
  })

  const good = () => jsonOf(SIGNED, ATTESTED)
  test.each<{ name: string; change: (body: ReturnType<typeof good>) => object }>([
    {
      name: 'an attestation without a blob',
      change: (body) => ({ ...body, facts: [[0, 1, 0, 0, 0]] }),
    },
    {
      name: 'an attestation that looks like a signature',
      change: (body) => ({ ...body, facts: [[0, 1, 0, 0]] }),
    },
    {
      name: 'a signature that looks like an attestation',
      change: (body) => ({ ...body, facts: [[0, 0, 0, 0, 0, 0]] }),
    },
    {
      name: 'a blob that is not in the table',
      change: (body) => ({ ...body, facts: [[0, 1, 0, 0, 0, 1]] }),
    },
    {
      name: 'an attestation that is not in the table',
      change: (body) => ({ ...body, facts: [[0, 1, 0, 0, 1, 0]] }),
    },
    { name: 'no table of attestations', change: ({ attestations: _, ...body }) => body },
    { name: 'no table of blobs', change: ({ blobs: _, ...body }) => body },
    {
      name: 'a blob without a digest',
      change: (body) => ({ ...body, blobs: [['sha256:b', 1234]] }),
    },
    {
      name: 'a blob in upper case',
      change: (body) => ({ ...body, blobs: [[`sha256:${'B'.repeat(64)}`, 1234]] }),
    },
    { name: 'a blob of a negative size', change: (body) => ({ ...body, blobs: [[BLOB, -1]] }) },
    { name: 'a blob of half a byte', change: (body) => ({ ...body, blobs: [[BLOB, 0.5]] }) },
    { name: 'a blob without a size', change: (body) => ({ ...body, blobs: [[BLOB]] }) },
    {
      name: 'an attestor with half a hash',
      change: (body) => ({ ...body, attestors: [['key']] }),
    },
    {
      name: 'an attestor with a hash that is no text',
      change: (body) => ({ ...body, attestors: [['key', 1]] }),
    },
    {
      name: 'an attestor with two hashes',
      change: (body) => ({ ...body, attestors: [['key', 'a', 'b']] }),
    },
    { name: 'attestations that are numbers', change: (body) => ({ ...body, attestations: [1] }) },
  ])('is refused with $name', ({ change }) => {
    expect(() => decodeBody(utf8(JSON.stringify(change(good()))))).toThrow(
      /^the body of the seal |^JSON/,
    )
  })

  test('is refused whole by who knows signatures only', () => {
    // The version before attestations takes rows of exactly four.
    expect(good().facts.some((row: unknown[]) => row.length !== 4)).toBe(true)
  })
})
