import { includes, type Ranges } from './ranges.ts'

/** What an assertion asks for, as bits. */
export const BEGIN_LINE = 1
export const END_LINE = 2
export const BEGIN_TEXT = 4
export const END_TEXT = 8
export const WORD_BOUNDARY = 16
export const NO_WORD_BOUNDARY = 32

/** Stands for the character before the first and behind the last. */
export const NONE = -1
const NEWLINE = 10

/** The bits that hold between two characters. */
export function assertionsBetween(before: number, after: number): number {
  const begin = before === NONE ? BEGIN_TEXT | BEGIN_LINE : before === NEWLINE ? BEGIN_LINE : 0
  const end = after === NONE ? END_TEXT | END_LINE : after === NEWLINE ? END_LINE : 0
  return begin | end | (isWord(before) === isWord(after) ? NO_WORD_BOUNDARY : WORD_BOUNDARY)
}

/** The bits that hold at a position of a text. Halves of pairs are like any other character to assertions. */
export function assertionsAt(text: string, at: number): number {
  const before = at > 0 ? text.charCodeAt(at - 1) : NONE
  return assertionsBetween(before, at < text.length ? text.charCodeAt(at) : NONE)
}

/** A character that assertions see as they see this one: a newline, `a` for those of words, a space for all others. */
export function likeness(rune: number): number {
  if (rune === NONE || rune === NEWLINE) return rune
  return isWord(rune) ? 97 : 32
}

/** ASCII letters, digits and `_`, whatever the flags. */
export const WORD: Ranges = [48, 57, 65, 90, 95, 95, 97, 122]

/** Runs that assertions tell from what is around them. */
export const TOLD_APART: Ranges = [NEWLINE, NEWLINE, ...WORD]

function isWord(rune: number): boolean {
  return includes(WORD, rune)
}
