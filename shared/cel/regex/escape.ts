import { MAX_RUNE } from './ranges.ts'
import { type Cursor, refuse } from './syntax.ts'

/** Letters that mean a control character, from U+0007 on; there is no `\\b`. */
const CONTROLS = 'a tnvfr'
const HEX = '0123456789abcdef'

/** The rune that an escape means, the backslash included; the cursor is behind it then. */
export function escapedRune(cursor: Cursor): number {
  const from = cursor.at++
  if (cursor.done) refuse('trailing backslash at end of expression', '')
  const rune = cursor.rune()
  const char = String.fromCodePoint(rune)
  if (isOctal(char) && (char === '0' || isOctal(cursor.text[cursor.at]))) return octal(cursor, rune)
  const value = char === 'x' ? hex(cursor) : plainEscape(char, rune)
  return value ?? refuse('invalid escape sequence', cursor.since(from))
}

function plainEscape(char: string, rune: number): number | undefined {
  const control = char === ' ' ? -1 : CONTROLS.indexOf(char)
  if (control >= 0) return control + 7
  return rune < 128 && !isAlphanumeric(char) ? rune : undefined
}

/** True for ASCII letters and digits. */
export function isAlphanumeric(char: string): boolean {
  return (
    (char >= '0' && char <= '9') || (char >= 'a' && char <= 'z') || (char >= 'A' && char <= 'Z')
  )
}

function isOctal(char: string | undefined): boolean {
  return char !== undefined && char >= '0' && char <= '7'
}

/** Up to three digits, the first of them read. */
function octal(cursor: Cursor, first: number): number {
  let value = first - 48
  for (let i = 0; i < 2 && isOctal(cursor.text[cursor.at]); i++) {
    value = value * 8 + cursor.rune() - 48
  }
  return value
}

function hex(cursor: Cursor): number | undefined {
  if (cursor.done) return undefined
  if (cursor.takes('{')) return longHex(cursor)
  const high = hexDigit(cursor)
  const low = hexDigit(cursor)
  return high < 0 || low < 0 ? undefined : high * 16 + low
}

function longHex(cursor: Cursor): number | undefined {
  let value: number | undefined
  while (!cursor.done) {
    if (cursor.takes('}')) return value
    const digit = hexDigit(cursor)
    value = (value ?? 0) * 16 + digit
    if (digit < 0 || value > MAX_RUNE) break
  }
  return undefined
}

function hexDigit(cursor: Cursor): number {
  return HEX.indexOf(String.fromCodePoint(cursor.rune()).toLowerCase())
}
