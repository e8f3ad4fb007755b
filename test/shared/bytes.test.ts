import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  assertDigest,
  concat,
  digestBytes,
  equal,
  fromBase64,
  fromBase64Url,
  fromHex,
  sha256Digest,
  toBase64,
  toBase64Url,
  toHex,
  utf8,
} from '#shared/bytes.ts'

const ABC = 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

describe('base64 is strict', () => {
  test.each([
    { name: 'no padding', text: 'YQ' },
    { name: 'too much padding', text: 'YWI===' },
    { name: 'padding in the middle', text: 'YQ==YQ==' },
    { name: 'only padding', text: '====' },
    { name: 'white space', text: 'YWJj\n' },
    { name: 'the URL alphabet', text: 'ab_-' },
    { name: 'unused bits that are set, one byte', text: 'YR==' },
    { name: 'unused bits that are set, two bytes', text: 'YWJ=' },
    { name: 'a letter that is not ASCII', text: 'YWJé' },
  ])('$name is refused', ({ text }) => {
    expect(fromBase64(text)).toBeUndefined()
  })

  test('text of many millions of characters is answered, good or bad', () => {
    const long = 'AAAA'.repeat(4_000_000)
    expect(fromBase64(long)?.length).toBe(12_000_000)
    expect(fromBase64(`${long}*AAA`)).toBeUndefined()
  })

  test('decode after encode is the identity, and nothing else has that spelling', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect([...(fromBase64(toBase64(bytes)) ?? [])]).toEqual([...bytes])
        expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'))
        expect([...(fromBase64Url(toBase64Url(bytes)) ?? [])]).toEqual([...bytes])
        expect(toBase64Url(bytes)).toBe(Buffer.from(bytes).toString('base64url'))
        expect([...(fromHex(toHex(bytes)) ?? [])]).toEqual([...bytes])
      }),
    )
  })

  test('whatever decodes is written the same way again', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ABYZaz09+/=-_') }), (text) => {
        const bytes = fromBase64(text)
        if (bytes !== undefined) expect(toBase64(bytes)).toBe(text)
        const url = fromBase64Url(text)
        if (url !== undefined) expect(toBase64Url(url)).toBe(text)
      }),
    )
  })
})

describe('digests', () => {
  test.each([
    { name: 'upper-case hex', digest: ABC.toUpperCase().replace('SHA256', 'sha256') },
    { name: 'another algorithm', digest: ABC.replace('sha256', 'sha512') },
    { name: 'one character short', digest: ABC.slice(0, -1) },
    { name: 'one character long', digest: `${ABC}0` },
    { name: 'a line break at the end', digest: `${ABC}\n` },
  ])('$name is no digest', ({ digest }) => {
    expect(digestBytes(digest)).toBeUndefined()
  })

  test('content is compared with its digest', async () => {
    expect(await sha256Digest(utf8('abc'))).toBe(ABC)
    await expect(assertDigest(utf8('abc'), ABC, 'blob')).resolves.toBeUndefined()
    await expect(assertDigest(utf8('abd'), ABC, 'blob')).rejects.toMatchObject({
      code: 'REGISTRY_DIGEST_MISMATCH',
    })
    await expect(assertDigest(utf8('abc'), 'md5:00', 'blob')).rejects.toMatchObject({
      code: 'REGISTRY_RESPONSE_INVALID',
    })
  })
})

test.each([
  { a: [], b: [], same: true },
  { a: [1, 2], b: [1, 2], same: true },
  { a: [1, 2], b: [1, 3], same: false },
  { a: [1, 2], b: [1], same: false },
])('$a and $b: equal $same', ({ a, b, same }) => {
  expect(equal(Uint8Array.from(a), Uint8Array.from(b))).toBe(same)
})

test('concat puts parts one after the other', () => {
  expect([...concat(Uint8Array.of(1), new Uint8Array(), Uint8Array.of(2, 3))]).toEqual([1, 2, 3])
})
