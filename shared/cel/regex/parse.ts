import * as assertion from './assertion.ts'
import { bracketClass, escapedClass } from './class.ts'
import { escapedRune, isAlphanumeric } from './escape.ts'
import { isBearable, type Node, NodeFactory } from './node.ts'
import { MAX_RUNE } from './ranges.ts'
import { Cursor, refuse } from './syntax.ts'

/** A pattern as its tree. */
export interface Parsed {
  node: Node
  /** Number of capturing groups, those of parts that never match included. */
  groups: number
}

interface Flags {
  fold: boolean
  multiline: boolean
  dotAll: boolean
  swapGreed: boolean
}

/** A group that is still open, the whole pattern being the outermost. */
interface Open {
  /** 0 when it captures nothing. */
  group: number
  /** The flags outside. */
  flags: Flags
  alternatives: Node[]
  sequence: Node[]
}

const NEWLINE_EXCLUDED = [0, 9, 11, MAX_RUNE]
const EVERYTHING = [0, MAX_RUNE]

/** The tree of a pattern in the syntax that Go's regexp has for Perl. Throws a SyntaxError with Go's words. */
export function parse(pattern: string): Parsed {
  return new Parser(pattern).parse()
}

class Parser {
  readonly #cursor: Cursor
  readonly #make: NodeFactory
  readonly #outer: Open[] = []
  #flags: Flags = { fold: false, multiline: false, dotAll: false, swapGreed: false }
  #open: Open = { group: 0, flags: this.#flags, alternatives: [], sequence: [] }
  #groups = 0
  /** Where the last repetition began when nothing has come since: they do not stack. */
  #repeated = -1

  constructor(pattern: string) {
    this.#cursor = new Cursor(pattern)
    this.#make = new NodeFactory(pattern)
  }

  parse(): Parsed {
    while (!this.#cursor.done) {
      const at = this.#cursor.at
      const isRepetition = this.#next(this.#cursor.text.charAt(at))
      this.#repeated = isRepetition ? at : -1
    }
    const node = this.#closed()
    if (this.#outer.length > 0) refuse('missing closing )', this.#cursor.text)
    return { node, groups: this.#groups }
  }

  /** Reads one thing; true when it was a repetition. */
  #next(char: string): boolean {
    switch (char) {
      case '*':
        return this.#operator(0, -1)
      case '+':
        return this.#operator(1, -1)
      case '?':
        return this.#operator(0, 1)
      case '{':
        return this.#counted()
      case '(':
        this.#group()
        return false
      case '[':
        this.#push(this.#make.class(bracketClass(this.#cursor, this.#flags.fold)))
        return false
      case '\\':
        this.#escape(this.#cursor.text.charAt(this.#cursor.at + 1))
        return false
      default:
        if (!this.#sign(char)) this.#literal(this.#cursor.rune())
        else this.#cursor.at++
        return false
    }
  }

  /** Handles what is a single sign; false when the character stands for itself. */
  #sign(char: string): boolean {
    const { multiline, dotAll } = this.#flags
    if (char === '^') this.#assert(multiline ? assertion.BEGIN_LINE : assertion.BEGIN_TEXT)
    else if (char === '$') this.#assert(multiline ? assertion.END_LINE : assertion.END_TEXT)
    else if (char === '.') this.#push(this.#make.class(dotAll ? EVERYTHING : NEWLINE_EXCLUDED))
    else if (char === '|') this.#bar()
    else if (char === ')') this.#close()
    else return false
    return true
  }

  #push(node: Node): void {
    this.#open.sequence.push(node)
  }

  #assert(bits: number): void {
    this.#push(this.#make.assert(bits))
  }

  #literal(rune: number): void {
    this.#push(this.#make.literal([rune], this.#flags.fold))
  }

  #bar(): void {
    this.#open.alternatives.push(this.#make.concat(this.#open.sequence))
    this.#open.sequence = []
  }

  #closed(): Node {
    this.#bar()
    return this.#make.alternate(this.#open.alternatives)
  }

  #close(): void {
    const { group, flags } = this.#open
    const node = this.#closed()
    const outer = this.#outer.pop() ?? refuse('unexpected )', this.#cursor.text)
    this.#open = outer
    this.#flags = flags
    this.#push(group > 0 ? this.#make.capture(group, node) : node)
  }

  #operator(min: number, max: number): boolean {
    const at = this.#cursor.at++
    return this.#repeat(at, min, max)
  }

  /** `{n}`, `{n,}` or `{n,m}`; anything else in braces stands for itself. */
  #counted(): boolean {
    const cursor = this.#cursor
    const at = cursor.at++
    const min = count(cursor)
    let max = min
    if (cursor.takes(',')) max = cursor.sees('}') ? -1 : count(cursor)
    if (min === undefined || max === undefined || !cursor.takes('}')) {
      cursor.at = at + 1
      this.#literal(0x7b)
      return false
    }
    if (min > 1000 || max > 1000 || (max >= 0 && min > max)) {
      refuse('invalid repeat count', cursor.since(at))
    }
    return this.#repeat(at, min, max)
  }

  #repeat(at: number, min: number, max: number): boolean {
    const cursor = this.#cursor
    const lazy = cursor.takes('?') !== this.#flags.swapGreed
    if (this.#repeated >= 0) {
      refuse('invalid nested repetition operator', cursor.since(this.#repeated))
    }
    const sub =
      this.#open.sequence.pop() ??
      refuse('missing argument to repetition operator', cursor.since(at))
    const node = this.#make.repeat(sub, min, max, lazy)
    if ((min > 1 || max > 1) && !isBearable(node)) {
      refuse('invalid repeat count', cursor.since(at))
    }
    this.#push(node)
    return true
  }

  #escape(letter: string): void {
    const cursor = this.#cursor
    const bits = ASSERTIONS[letter]
    if (bits !== undefined) {
      cursor.at += 2
      this.#assert(bits)
    } else if (letter === 'C') refuse('invalid escape sequence', '\\C')
    else if (letter === 'Q') this.#quoted()
    else {
      const ranges = escapedClass(cursor, this.#flags.fold)
      if (ranges !== undefined) this.#push(this.#make.class(ranges))
      else this.#literal(escapedRune(cursor))
    }
  }

  /** Everything up to `\\E`, or to the end, stands for itself. */
  #quoted(): void {
    const cursor = this.#cursor
    cursor.at += 2
    while (!cursor.done && !cursor.takes('\\E')) this.#literal(cursor.rune())
  }

  #group(): void {
    const cursor = this.#cursor
    const from = cursor.at
    if (!cursor.takes('(?')) {
      cursor.at++
      this.#begin(++this.#groups)
    } else if (this.#startsName()) {
      this.#name(from)
      this.#begin(++this.#groups)
    } else this.#setFlags(from)
  }

  #begin(group: number): void {
    this.#outer.push(this.#open)
    this.#open = { group, flags: this.#flags, alternatives: [], sequence: [] }
  }

  /** Passes `<` or `P<` when at least one more character follows. */
  #startsName(): boolean {
    const { text, at } = this.#cursor
    const width = this.#cursor.sees('P<') ? 2 : 1
    return at + width < text.length && (this.#cursor.takes('P<') || this.#cursor.takes('<'))
  }

  /** Names are there to be read by people: nothing refers to them. */
  #name(from: number): void {
    const { text, at } = this.#cursor
    const end = text.indexOf('>', at)
    if (end < 0) refuse('invalid named capture', text.slice(from))
    const name = text.slice(at, end)
    this.#cursor.at = end + 1
    if (name === '' || ![...name].every((char) => char === '_' || isAlphanumeric(char))) {
      refuse('invalid named capture', this.#cursor.since(from))
    }
  }

  /** `(?i-s)` for the rest of the group, `(?i-s:` for a group of its own. */
  #setFlags(from: number): void {
    const cursor = this.#cursor
    const flags = { ...this.#flags }
    let on = true
    let some = true
    while (!cursor.done) {
      const char = String.fromCodePoint(cursor.rune())
      const flag = FLAGS[char]
      if (flag !== undefined) {
        flags[flag] = on
        some = true
      } else if (char === '-' && on) {
        on = false
        some = false
      } else if ((char === ':' || char === ')') && some) {
        if (char === ':') this.#begin(0)
        this.#flags = flags
        return
      } else break
    }
    refuse('invalid or unsupported Perl syntax', cursor.since(from))
  }
}

const ASSERTIONS: Readonly<Record<string, number>> = {
  A: assertion.BEGIN_TEXT,
  b: assertion.WORD_BOUNDARY,
  B: assertion.NO_WORD_BOUNDARY,
  z: assertion.END_TEXT,
}

const FLAGS: Readonly<Record<string, keyof Flags>> = {
  i: 'fold',
  m: 'multiline',
  s: 'dotAll',
  U: 'swapGreed',
}

/** A decimal number without leading zeros; undefined when there is none. What is far too large is more than anything allowed. */
function count(cursor: Cursor): number | undefined {
  const from = cursor.at
  while (isDigit(cursor.text.charAt(cursor.at))) cursor.at++
  const digits = cursor.since(from)
  if (digits === '' || (digits.length > 1 && digits.startsWith('0'))) return undefined
  return Number(digits)
}

function isDigit(char: string): boolean {
  return char >= '0' && char <= '9'
}
