import { escapedRune } from './escape.ts'
import { folded } from './fold.ts'
import { perlClass, posixClass } from './named.ts'
import { negate, normalise, type Ranges } from './ranges.ts'
import { BAD_RANGE, type Cursor, refuse } from './syntax.ts'
import { property } from './unicode.ts'

/** The runes of a bracket expression, from its `[` on. */
export function bracketClass(cursor: Cursor, fold: boolean): Ranges {
  const from = cursor.at++
  const negated = cursor.takes('^')
  const pairs: number[] = []
  const single: number[] = []
  // A `]` is an ordinary character when it comes first.
  for (let first = true; first || !cursor.takes(']'); first = false) {
    const named = posix(cursor, fold) ?? escapedClass(cursor, fold)
    if (named !== undefined) for (const rune of named) pairs.push(rune)
    else addRange(cursor, from, single)
  }
  const plain = normalise(single)
  const ranges = normalise([...pairs, ...(fold ? folded(plain) : plain)])
  return negated ? negate(ranges) : ranges
}

function addRange(cursor: Cursor, from: number, pairs: number[]): void {
  const start = cursor.at
  const low = classRune(cursor, from)
  let high = low
  // Before the closing bracket a `-` is an ordinary character.
  if (cursor.sees('-') && !cursor.sees('-]')) {
    cursor.at++
    high = classRune(cursor, from)
    if (high < low) refuse(BAD_RANGE, cursor.since(start))
  }
  pairs.push(low, high)
}

function classRune(cursor: Cursor, from: number): number {
  if (cursor.done) refuse('missing closing ]', cursor.text.slice(from))
  return cursor.sees('\\') ? escapedRune(cursor) : cursor.rune()
}

function posix(cursor: Cursor, fold: boolean): Ranges | undefined {
  if (!cursor.sees('[:') || cursor.at + 2 > cursor.lastClassEnd) return undefined
  const end = cursor.text.indexOf(':]', cursor.at + 2)
  const from = cursor.at
  cursor.at = end + 2
  return posixClass(cursor.text.slice(from + 2, end), fold) ?? refuse(BAD_RANGE, cursor.since(from))
}

/** The runes of `\\d`, `\\pL`, `\\p{Greek}` and their like, which is passed then; undefined when none of them stands next. */
export function escapedClass(cursor: Cursor, fold: boolean): Ranges | undefined {
  if (!cursor.sees('\\')) return undefined
  const letter = cursor.text.charAt(cursor.at + 1)
  if (letter === 'p' || letter === 'P') return unicodeClass(cursor, letter === 'P', fold)
  const ranges = perlClass(letter, fold)
  if (ranges !== undefined) cursor.at += 2
  return ranges
}

function unicodeClass(cursor: Cursor, upper: boolean, fold: boolean): Ranges | undefined {
  const from = cursor.at
  const name = propertyName(cursor)
  const inverted = name.startsWith('^')
  const ranges = property(inverted ? name.slice(1) : name) ?? refuse(BAD_RANGE, cursor.since(from))
  const all = fold ? folded(ranges) : ranges
  return upper !== inverted ? negate(all) : all
}

/** The name behind `\\p`, with or without braces. */
function propertyName(cursor: Cursor): string {
  const from = cursor.at
  cursor.at += 2
  const start = cursor.at
  if (cursor.rune() !== 0x7b) return cursor.since(start)
  const end = cursor.text.indexOf('}', start)
  if (end < 0) refuse(BAD_RANGE, cursor.text.slice(from))
  cursor.at = end + 1
  return cursor.text.slice(start + 1, end)
}
