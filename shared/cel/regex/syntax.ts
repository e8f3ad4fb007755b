/** Go's words for faults that are found in several places. */
export const BAD_RANGE = 'invalid character class range'
export const BAD_ESCAPE = 'invalid escape sequence'
export const BAD_COUNT = 'invalid repeat count'
export const BAD_NAME = 'invalid named capture'
export const TOO_LARGE = 'expression too large'

/** Refuses a pattern with the words and the piece of it that Go's regexp names. */
export function refuse(what: string, piece: string): never {
  throw new SyntaxError(`error parsing regexp: ${what}: \`${piece}\``)
}

/** What stands in for half of a surrogate pair, as Go decodes it. */
export const REPLACEMENT = 0xfffd

/** The rune at a position of a text; that of half a pair is U+FFFD. */
export function runeAt(text: string, at: number): number {
  const rune = text.codePointAt(at) ?? REPLACEMENT
  return rune >= 0xd800 && rune < 0xe000 ? REPLACEMENT : rune
}

/** The code units that a rune takes. */
export function unitsOf(rune: number): number {
  return rune > 0xffff ? 2 : 1
}

/** Where a parser stands in its pattern. */
export class Cursor {
  at = 0
  readonly text: string
  /** Where the last name of a class ends: beyond, nobody need look for one. */
  readonly lastClassEnd: number

  constructor(text: string) {
    this.text = text
    this.lastClassEnd = text.lastIndexOf(':]')
  }

  get done(): boolean {
    return this.at >= this.text.length
  }

  /** True when the token stands next. */
  sees(token: string): boolean {
    return this.text.startsWith(token, this.at)
  }

  /** True when the token stood next; it is passed then. */
  takes(token: string): boolean {
    const seen = this.sees(token)
    if (seen) this.at += token.length
    return seen
  }

  /** The next character, passed. U+FFFD at the end, which moves nothing. */
  rune(): number {
    const rune = runeAt(this.text, this.at)
    if (!this.done) this.at += unitsOf(rune)
    return rune
  }

  /** The pattern from a position up to here. */
  since(from: number): string {
    return this.text.slice(from, this.at)
  }
}
