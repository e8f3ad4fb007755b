import { compileRegex } from '../cel/regex/engine.ts'
import type { Node } from '../cel/regex/node.ts'
import { parse } from '../cel/regex/parse.ts'
import { MAX_RANDOM_CHARS } from '../limits.ts'

/** A whole number from 0 to below `bound`, each as likely. */
export type Draw = (bound: number) => number

/** Repetitions of `*`, `+` and `{n,}` beyond the fewest. */
const MORE = 10

/**
 * A text that a pattern in Go's syntax matches as a whole, made by chance. Throws a SyntaxError for a pattern that is none, a RangeError
 * where it is too long or only a text that was looked for would match (`a\bb`).
 */
export function randomText(pattern: string, draw: Draw = secureDraw): string {
  const { node } = parse(pattern)
  const made = new Maker(draw).make(node)
  if (!compileRegex(`^(?:${pattern})$`).test(made)) {
    throw new RangeError('no text could be made for the pattern')
  }
  return made
}

class Maker {
  readonly #draw: Draw
  #left = MAX_RANDOM_CHARS

  constructor(draw: Draw) {
    this.#draw = draw
  }

  make(node: Node): string {
    switch (node.op) {
      case 'literal':
        return this.#text(node.runes)
      case 'class':
        return this.#text([this.#oneOf(node.runes)])
      case 'capture':
        return this.make(node.sub)
      case 'concat':
        return node.subs.map((sub) => this.make(sub)).join('')
      case 'alternate':
        return this.#either(node.subs)
      case 'repeat': {
        const spread = node.max < 0 ? MORE : node.max - node.min
        const count = node.min + this.#draw(spread + 1)
        let out = ''
        for (let i = 0; i < count; i++) out += this.make(node.sub)
        return out
      }
      default:
        // Whether an assertion holds is seen on the whole text.
        return ''
    }
  }

  #either(subs: readonly Node[]): string {
    const chosen = subs[this.#draw(subs.length)]
    return chosen === undefined ? '' : this.make(chosen)
  }

  #text(runes: readonly number[]): string {
    this.#left -= runes.length
    if (this.#left < 0)
      throw new RangeError(`the text has more than ${MAX_RANDOM_CHARS} characters`)
    return String.fromCodePoint(...runes)
  }

  /** A printable ASCII character where the class has one: `.` and `[^a]` mean a character, not half of Unicode. */
  #oneOf(ranges: readonly number[]): number {
    const printable = within(ranges, 0x20, 0x7e)
    const runs = printable.length > 0 ? printable : within(ranges, 0, 0x10ffff)
    let at = this.#draw(runs.reduce((sum, [first, last]) => sum + last - first + 1, 0))
    for (const [first, last] of runs) {
      if (at <= last - first) return first + at
      at -= last - first + 1
    }
    throw new RangeError('a class of the pattern is empty')
  }
}

function within(ranges: readonly number[], low: number, high: number): [number, number][] {
  const runs: [number, number][] = []
  for (let i = 0; i < ranges.length; i += 2) {
    const [first, last] = [Math.max(ranges[i] ?? 0, low), Math.min(ranges[i + 1] ?? 0, high)]
    if (first <= last) runs.push([first, last])
  }
  return runs
}

/** Values past the last whole multiple of the bound are drawn again, or the first ones would be more likely. */
function secureDraw(bound: number): number {
  const limit = 2 ** 32 - (2 ** 32 % bound)
  for (;;) {
    const [value = 0] = crypto.getRandomValues(new Uint32Array(1))
    if (value < limit) return value % bound
  }
}
