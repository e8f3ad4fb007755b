import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromHex } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { CborTag, decodeCbor, encodeHead, encodeString } from '#shared/signature/notary/cbor.ts'

const bytes = (hex: string) => fromHex(hex.replaceAll(' ', ''))!

describe('decodeCbor', () => {
  test.each([
    ['00', 0],
    ['17', 23],
    ['1818', 24],
    ['190100', 256],
    ['1a00010000', 65536],
    ['1b0000000100000000', 4294967296],
    ['20', -1],
    ['3824', -37],
    ['40', new Uint8Array()],
    ['420102', Uint8Array.of(1, 2)],
    ['62c3bc', 'ü'],
    ['80', []],
    ['820120', [1, -1]],
    [
      'a201026161f5',
      new Map<number | string, unknown>([
        [1, 2],
        ['a', true],
      ]),
    ],
    ['f4', false],
    ['f6', null],
    ['c11a60000000', new CborTag(1, 0x60000000)],
  ])('reads %s', (hex, value) => {
    expect(decodeCbor(bytes(hex))).toEqual(value)
  })

  test.each([
    ['', 'CBOR is cut off'],
    ['1817', 'CBOR has a number that is not in its shortest form'],
    ['1900ff', 'CBOR has a number that is not in its shortest form'],
    ['1a0000ffff', 'CBOR has a number that is not in its shortest form'],
    ['1b00000000ffffffff', 'CBOR has a number that is not in its shortest form'],
    ['5801 00', 'CBOR has a number that is not in its shortest form'],
    ['1bffffffffffffffff', 'CBOR has a number beyond 2^53'],
    ['5f4100ff', 'CBOR has an indefinite length'],
    ['9fff', 'CBOR has an indefinite length'],
    ['1c', 'CBOR has an indefinite length'],
    ['4201', 'CBOR is cut off'],
    ['5bffffffff00000000', 'CBOR has a number beyond 2^53'],
    ['9a7fffffff', 'CBOR is cut off'],
    ['61ff', 'a CBOR text is cut off or not UTF-8'],
    ['a2010201 03', 'a CBOR map has a label twice'],
    ['a1400 0', 'a CBOR map has a key that is no label'],
    ['a1f500', 'a CBOR map has a key that is no label'],
    ['0000', 'CBOR is followed by other bytes'],
    ['f7', 'CBOR has a float or an unknown simple value'],
    ['f90000', 'CBOR has a float or an unknown simple value'],
    ['ff', 'CBOR has a float or an unknown simple value'],
    [`${'81'.repeat(9)}00`, 'CBOR is nested too deeply'],
    [`${'c1'.repeat(9)}00`, 'CBOR is nested too deeply'],
    [`9901f4${'00'.repeat(500)}`, 'CBOR has too many items'],
  ])('refuses %s: %s', (hex, message) => {
    expect(() => decodeCbor(bytes(hex))).toThrow(new AdmissionError('SIGNATURE_MALFORMED', message))
  })

  test('throws nothing but its code, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (input) => {
        try {
          decodeCbor(new Uint8Array(input))
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'SIGNATURE_MALFORMED' })
        }
      }),
      { numRuns: 2000 },
    )
  })

  test('gives back what was written', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70_000 }), fc.string(), fc.nat(), (raw, text, n) => {
        expect(decodeCbor(encodeString(raw))).toEqual(new Uint8Array(raw))
        expect(decodeCbor(encodeString(text))).toBe(text)
        expect(decodeCbor(encodeHead(0, n))).toBe(n)
      }),
      { numRuns: 100 },
    )
  })
})
