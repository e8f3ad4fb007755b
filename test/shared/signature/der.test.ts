import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromHex, toHex } from '#shared/bytes.ts'
import { MAX_DER_ELEMENTS } from '#shared/limits.ts'
import { ecdsaSignatureToRaw, encodeDer, readDer, readOnly } from '#shared/signature/der.ts'

const bytes = (hex: string) => fromHex(hex.replaceAll(' ', ''))!

/** DER as an encoder makes it, written here independently of the reader. */
function encode(r: bigint, s: bigint): string {
  const integer = (value: bigint): string => {
    const plain = value.toString(16)
    const even = plain.length % 2 === 0 ? plain : `0${plain}`
    const content = Number.parseInt(even.slice(0, 2), 16) >= 0x80 ? `00${even}` : even
    return `02${length(content)}${content}`
  }
  const body = integer(r) + integer(s)
  return `30${length(body)}${body}`
}

function length(hex: string): string {
  const count = hex.length / 2
  const plain = count.toString(16).padStart(2, '0')
  return count < 0x80 ? plain : `81${plain}`
}

const f32 = 'ff'.repeat(32)

describe('ecdsaSignatureToRaw', () => {
  test('pads each number to the length of the curve', () => {
    const raw = ecdsaSignatureToRaw(bytes('3006 0201 01 0201 7f'), 32)
    expect(toHex(raw!)).toBe(`${'00'.repeat(31)}01${'00'.repeat(31)}7f`)
  })

  test.each([
    { name: 'nothing', der: '' },
    { name: 'a byte after the sequence', der: '3006 0201 01 0201 01 00' },
    { name: 'a byte after the second number, inside the sequence', der: '3007 0201 01 0201 01 00' },
    { name: 'a third number', der: '3009 0201 01 0201 01 0201 01' },
    { name: 'one number only', der: '3003 0201 01' },
    { name: 'a negative number', der: '3006 0201 80 0201 01' },
    { name: 'a zero', der: '3006 0201 00 0201 01' },
    { name: 'an empty number', der: '3005 0200 0201 01' },
    { name: 'a number with a needless zero in front', der: '3007 0202 0001 0201 01' },
    { name: 'a number that is too long for the curve', der: `3026 0221 01${f32} 0201 01` },
    { name: 'a huge number', der: `3082 0407 0282 0400 ${'7f'.repeat(1024)} 0201 01` },
    { name: 'a length that is not minimal', der: '308106 0201 01 0201 01' },
    { name: 'a length with a leading zero', der: '30820006 0201 01 0201 01' },
    { name: 'an indefinite length', der: '3080 0201 01 0201 01 0000' },
    { name: 'a sequence that is cut off', der: '3006 0201 01 0201' },
    { name: 'a length beyond any signature', der: '3084 00000006 0201 01 0201 01' },
    { name: 'another tag than a sequence', der: '3106 0201 01 0201 01' },
    { name: 'octet strings instead of numbers', der: '3006 0401 01 0401 01' },
    { name: 'the raw form', der: 'ab'.repeat(64) },
  ])('refuses $name', ({ der }) => {
    expect(ecdsaSignatureToRaw(bytes(der), 32)).toBeUndefined()
  })

  test('reads back every pair of numbers that fits, and no other', () => {
    const scalar = fc.bigInt({ min: 1n, max: 2n ** 560n })
    fc.assert(
      fc.property(scalar, scalar, fc.constantFrom(32, 48, 66), (r, s, scalarBytes) => {
        const raw = ecdsaSignatureToRaw(bytes(encode(r, s)), scalarBytes)
        const limit = 2n ** BigInt(8 * scalarBytes)
        const hex = (value: bigint) => value.toString(16).padStart(2 * scalarBytes, '0')
        const expected = r < limit && s < limit ? hex(r) + hex(s) : undefined
        expect(raw === undefined ? undefined : toHex(raw)).toBe(expected)
      }),
    )
  })

  test('never throws, and what it accepts has exactly one encoding', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 160 }), (random) => {
        const raw = ecdsaSignatureToRaw(new Uint8Array(random), 32)
        if (raw === undefined) return
        const half = (from: number) => BigInt(`0x${toHex(raw.subarray(from, from + 32))}`)
        expect(encode(half(0), half(32))).toBe(toHex(random))
      }),
    )
  })

  test('refuses a good signature with any one byte of its framing changed', () => {
    const good = encode(2n ** 255n + 1n, 2n ** 200n + 1n)
    fc.assert(
      fc.property(fc.nat(good.length / 2 - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
        const changed = bytes(good)
        changed[at] = changed[at]! ^ mask
        const raw = ecdsaSignatureToRaw(changed, 32)
        expect(
          raw === undefined || toHex(raw) !== toHex(ecdsaSignatureToRaw(bytes(good), 32)!),
        ).toBe(true)
      }),
    )
  })
})

describe('readDer', () => {
  test('covers its input completely or gives nothing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (random) => {
        const elements = readDer(new Uint8Array(random))
        const content = (elements ?? []).reduce((sum, element) => sum + element.content.length, 0)
        expect(content <= random.length).toBe(true)
      }),
    )
  })
})

test('a list longer than any real one is not read', () => {
  const list = (length: number) => readDer(new Uint8Array(2 * length).fill(0))
  expect(list(MAX_DER_ELEMENTS)).toHaveLength(MAX_DER_ELEMENTS)
  expect(list(MAX_DER_ELEMENTS + 1)).toBeUndefined()
})

describe('encodeDer', () => {
  test.each([0, 1, 127, 128, 255, 256, 65_535, 65_536])(
    'writes %i bytes as they are read again, in one way',
    (size) => {
      const content = new Uint8Array(size).fill(7)
      const [half, rest] = [content.subarray(0, size >> 1), content.subarray(size >> 1)]
      const encoded = encodeDer(0x30, half, rest)
      expect(readOnly(encoded, 0x30)).toEqual(content)
      // A length that is not the shortest is refused by the reader.
      expect(readDer(encoded)).toHaveLength(1)
    },
  )
})
