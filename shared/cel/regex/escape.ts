import { WORD } from './assertion.ts'
import { includes, MAX_RUNE } from './ranges.ts'
import { BAD_ESCAPE, type Cursor, refuse } from './syntax.ts'

/** Letters that mean a control character, from U+0007 on; there is no `\\b`. */
const CONTROLS = 'a tnvfr'
const HEX = '0123456789abcdef'

/** The rune that an escape means, the backslash included; the cursor is behind it then. */
export function escapedRune(cursor: Cursor): number {
  const from = cursor.at++
  if (cursor.done) refuse('trailing backslash at end of expression', '')
  const rune = cursor.rune()
  const char = String.fromCodePoint(rune)
  if (char === '0' || (char > '0' && char < '8' && seesDigit(cursor, '7'))) {
    return octal(cursor, rune)
  }
  const value = char === 'x' ? hex(cursor) : plainEscape(char, rune)
  return value ?? refuse(BAD_ESCAPE, cursor.since(from))
}

function plainEscape(char: string, rune: number): number | undefined {
  const control = char === ' ' ? -1 : CONTROLS.indexOf(char)
  if (control >= 0) return control + 7
  // Signs stand for themselves, and so does `_`.
  return rune < 128 && (char === '_' || !includes(WORD, rune)) ? rune : undefined
}

/** True when the next character is a digit, no higher than the last one that counts. */
export function seesDigit({ text, at }: Cursor, last = '9'): boolean {
  const char = text.charAt(at)
  return char >= '0' && char <= last
}

/** Up to three digits, the first of them read. */
function octal(cursor: Cursor, first: number): number {
  let value = first - 48
  for (let i = 0; i < 2 && seesDigit(cursor, '7'); i++) {
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
