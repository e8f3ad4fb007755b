import * as assertion from './assertion.ts'
import { bracketClass, escapedClass } from './class.ts'
import { escapedRune, seesDigit } from './escape.ts'
import { isBearable, type Node, NodeFactory } from './node.ts'
import { includes, MAX_RUNE } from './ranges.ts'
import { BAD_COUNT, BAD_NAME, Cursor, refuse, runeAt } from './syntax.ts'

/** A pattern as its tree. */
export interface Parsed {
  node: Node
  /** Number of capturing groups, those of parts that never match included. */
  groups: number
}

/** Flags of a group as bits, in the order of their letters. */
const FLAG_LETTERS = 'imsU'
const FOLD = 1
const MULTILINE = 2
const DOT_ALL = 4
const SWAP_GREED = 8

/** A group that is still open, the whole pattern being the outermost. */
interface Open {
  /** 0 when it captures nothing. */
  group: number
  /** The flags outside. */
  flags: number
  alternatives: Node[]
  sequence: Node[]
}

const ANY_IN_LINE = [0, 9, 11, MAX_RUNE]
const ANY = [0, MAX_RUNE]

/** The tree of a pattern in the syntax that Go's regexp has for Perl. Throws a SyntaxError with Go's words. */
export function parse(pattern: string): Parsed {
  return new Parser(pattern).parse()
}

class Parser extends Cursor {
  readonly #make: NodeFactory
  readonly #outer: Open[] = []
  #flags = 0
  #open: Open = { group: 0, flags: 0, alternatives: [], sequence: [] }
  #groups = 0
  /** Where the last repetition began, and where it ended: another one may not stand there. */
  #repeated = 0
  #repeatedTo = 0

  constructor(pattern: string) {
    super(pattern)
    this.#make = new NodeFactory(pattern)
  }

  parse(): Parsed {
    while (!this.done) this.#next(this.text.charAt(this.at))
    const node = this.#closed()
    if (this.#outer.length > 0) refuse('missing closing )', this.text)
    return { node, groups: this.#groups }
  }

  #next(char: string): void {
    const operator = OPERATORS[char]
    if (operator !== undefined) {
      this.at++
      this.#repeat(this.at - 1, ...operator)
    } else if (char === '{') this.#counted()
    else if (char === '(') this.#group()
    else if (char === '[') this.#push(this.#make.class(bracketClass(this, this.#fold)))
    else if (char === '\\') this.#escape(this.text.charAt(this.at + 1))
    else if (this.#sign(char)) this.at++
    else this.#literal(this.rune())
  }

  /** Handles what is a single sign; false when the character stands for itself. */
  #sign(char: string): boolean {
    const multiline = (this.#flags & MULTILINE) !== 0
    if (char === '^') this.#assert(multiline ? assertion.BEGIN_LINE : assertion.BEGIN_TEXT)
    else if (char === '$') this.#assert(multiline ? assertion.END_LINE : assertion.END_TEXT)
    else if (char === '.') this.#push(this.#make.class(this.#flags & DOT_ALL ? ANY : ANY_IN_LINE))
    else if (char === '|') this.#bar()
    else if (char === ')') this.#close()
    else return false
    return true
  }

  get #fold(): boolean {
    return (this.#flags & FOLD) !== 0
  }

  #push(node: Node): void {
    this.#open.sequence.push(node)
  }

  #assert(bits: number): void {
    this.#push(this.#make.assert(bits))
  }

  #literal(rune: number): void {
    this.#push(this.#make.literal([rune], this.#fold))
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
    const outer = this.#outer.pop() ?? refuse('unexpected )', this.text)
    this.#open = outer
    this.#flags = flags
    this.#push(group > 0 ? this.#make.capture(group, node) : node)
  }

  /** `{n}`, `{n,}` or `{n,m}`; anything else in braces stands for itself. */
  #counted(): void {
    const at = this.at++
    const min = count(this)
    let max = min
    if (this.takes(',')) max = this.sees('}') ? -1 : count(this)
    if (min === undefined || max === undefined || !this.takes('}')) {
      this.at = at + 1
      this.#literal(0x7b)
      return
    }
    if (min > 1000 || max > 1000 || (max >= 0 && min > max)) refuse(BAD_COUNT, this.since(at))
    this.#repeat(at, min, max)
  }

  #repeat(at: number, min: number, max: number): void {
    const lazy = this.takes('?') !== (this.#flags & SWAP_GREED) > 0
    if (at > 0 && at === this.#repeatedTo) {
      refuse('invalid nested repetition operator', this.since(this.#repeated))
    }
    const sub =
      this.#open.sequence.pop() ?? refuse('missing argument to repetition operator', this.since(at))
    const node = this.#make.repeat(sub, min, max, lazy)
    if ((min > 1 || max > 1) && !isBearable(node)) refuse(BAD_COUNT, this.since(at))
    this.#push(node)
    this.#repeated = at
    this.#repeatedTo = this.at
  }

  #escape(letter: string): void {
    const bits = ASSERTIONS[letter]
    if (bits !== undefined) {
      this.at += 2
      this.#assert(bits)
    } else if (letter === 'Q') this.#quoted()
    else {
      const ranges = escapedClass(this, this.#fold)
      if (ranges !== undefined) this.#push(this.#make.class(ranges))
      else this.#literal(escapedRune(this))
    }
  }

  /** Everything up to `\\E`, or to the end, stands for itself. */
  #quoted(): void {
    this.at += 2
    while (!this.done && !this.takes('\\E')) this.#literal(this.rune())
  }

  #group(): void {
    const from = this.at
    if (!this.takes('(?')) {
      this.at++
      this.#begin(++this.#groups)
    } else if ((this.takes('P<') || this.takes('<')) && !this.done) {
      this.#name(from)
      this.#begin(++this.#groups)
    } else {
      this.at = from + 2
      this.#setFlags(from)
    }
  }

  #begin(group: number): void {
    this.#outer.push(this.#open)
    this.#open = { group, flags: this.#flags, alternatives: [], sequence: [] }
  }

  /** Names are there to be read by people: nothing refers to them. */
  #name(from: number): void {
    const { text, at } = this
    const end = text.indexOf('>', at)
    if (end < 0) refuse(BAD_NAME, text.slice(from))
    const name = text.slice(at, end)
    this.at = end + 1
    if (name === '' || ![...name].every((char) => includes(assertion.WORD, runeAt(char, 0)))) {
      refuse(BAD_NAME, this.since(from))
    }
  }

  /** `(?i-s)` for the rest of the group, `(?i-s:` for a group of its own. */
  #setFlags(from: number): void {
    let flags = this.#flags
    let on = true
    let some = true
    while (!this.done) {
      const char = String.fromCodePoint(this.rune())
      const flag = FLAG_LETTERS.indexOf(char)
      if (flag >= 0) {
        flags = on ? flags | (1 << flag) : flags & ~(1 << flag)
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
    refuse('invalid or unsupported Perl syntax', this.since(from))
  }
}

const ASSERTIONS: Readonly<Record<string, number>> = {
  A: assertion.BEGIN_TEXT,
  b: assertion.WORD_BOUNDARY,
  B: assertion.NO_WORD_BOUNDARY,
  z: assertion.END_TEXT,
}

/** Least and most of what the operators ask for. */
const OPERATORS: Readonly<Record<string, readonly [min: number, max: number]>> = {
  '*': [0, -1],
  '+': [1, -1],
  '?': [0, 1],
}

/** A decimal number without leading zeros; undefined when there is none. What is far too large is more than anything allowed. */
function count(cursor: Cursor): number | undefined {
  const from = cursor.at
  while (seesDigit(cursor)) cursor.at++
  const digits = cursor.since(from)
  if (digits === '' || (digits.length > 1 && digits.startsWith('0'))) return undefined
  return Number(digits)
}
