import { concat, utf8 } from '#shared/bytes.ts'

/** DER encoding (X.690), as much as a certificate needs. Every function returns one complete element. */

/** An element with this tag around its content. */
export function element(tag: number, ...content: readonly Uint8Array[]): Uint8Array {
  const body = concat(...content)
  return concat(Uint8Array.of(tag, ...length(body.length)), body)
}

function length(bytes: number): number[] {
  if (bytes < 0x80) return [bytes]
  const digits: number[] = []
  for (let rest = bytes; rest > 0; rest >>>= 8) digits.unshift(rest & 0xff)
  return [0x80 | digits.length, ...digits]
}

export const sequence = (...items: readonly Uint8Array[]) => element(0x30, ...items)
export const set = (...items: readonly Uint8Array[]) => element(0x31, ...items)
export const octets = (bytes: Uint8Array) => element(0x04, bytes)
export const utf8String = (text: string) => element(0x0c, utf8(text))
export const boolean = (value: boolean) => element(0x01, Uint8Array.of(value ? 0xff : 0))

/** `[number]` with constructed content (EXPLICIT, or IMPLICIT over a SEQUENCE). */
export const context = (number: number, ...content: readonly Uint8Array[]) =>
  element(0xa0 | number, ...content)

/** `[number]` with primitive content (IMPLICIT over a string type). */
export const contextPrimitive = (number: number, content: Uint8Array) =>
  element(0x80 | number, content)

/** A BIT STRING; `unused` bits of the last byte do not count. */
export const bits = (bytes: Uint8Array, unused = 0) => element(0x03, Uint8Array.of(unused), bytes)

/** A non-negative INTEGER from its big-endian bytes, in the shortest form. */
export function integer(bytes: Uint8Array): Uint8Array {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const digits = bytes.subarray(start)
  return (digits[0] ?? 0) >= 0x80 ? element(0x02, Uint8Array.of(0), digits) : element(0x02, digits)
}

/** An OBJECT IDENTIFIER from its dotted form. */
export function oid(dotted: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const content = [40 * first + second, ...rest].flatMap(base128)
  return element(0x06, Uint8Array.from(content))
}

function base128(arc: number): number[] {
  const digits = [arc & 0x7f]
  for (let rest = arc >>> 7; rest > 0; rest >>>= 7) digits.unshift(0x80 | (rest & 0x7f))
  return digits
}

/** A UTCTime, or a GeneralizedTime from 2050 on (RFC 5280 section 4.1.2.5). Fractions of a second are dropped. */
export function time(at: Date): Uint8Array {
  const digits = `${at.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
  return at.getUTCFullYear() < 2050
    ? element(0x17, utf8(digits.slice(2)))
    : element(0x18, utf8(digits))
}
