import { assertionsAt } from './assertion.ts'
import { ASSERT, CAPTURE, MATCH, type Program, RUNE, SPLIT } from './program.ts'
import { includes } from './ranges.ts'
import type { Slots } from './search.ts'
import { type Starts, startsOf } from './starts.ts'
import { runeAt, unitsOf } from './syntax.ts'

/** Most pairs of instruction and position that are kept in mind: 4 KB, cleared for every search. */
const MAX_PAIRS = 1 << 15

/** True when the text is so short for the program that a Backtracker may look for matches. */
export function isShort({ ops }: Program, text: string): boolean {
  return ops.length * (text.length + 1) <= MAX_PAIRS
}

/**
 * Finds the same match as the Searcher, faster where text and program are short: it tries one way after the other, and none twice from
 * the same instruction at the same position.
 */
export class Backtracker {
  /** Instructions looked at. */
  steps = 0
  readonly #program: Program
  readonly #starts: Starts
  /** A bit for every instruction at every position: it led to no match. */
  #visited = new Uint32Array(0)
  /** Instructions and positions still to be tried; or a slot as -1 - slot with the value that it gets back. */
  readonly #left: number[] = []

  constructor(program: Program) {
    this.#program = program
    this.#starts = startsOf(program)
  }

  /** The leftmost match at or behind `from` in a short text; undefined when there is none. */
  find(text: string, from: number): Slots | undefined {
    const { ops, anchored, slots } = this.#program
    let at = anchored && from > 0 ? -1 : this.#starts(text, from)
    if (at < 0) return undefined
    const words = (ops.length * (text.length + 1) + 31) >> 5
    if (this.#visited.length < words) this.#visited = new Uint32Array(words)
    else this.#visited.fill(0, 0, words)
    const found = new Array<number>(slots).fill(-1)
    while (at >= 0 && at <= text.length && (at === 0 || !anchored)) {
      found[0] = at
      if (this.#matches(text, at, found)) return found
      at = this.#starts(text, at + unitsOf(runeAt(text, at)))
    }
    return undefined
  }

  /** True when there is a match from this position on; its slots are filled then, and as before when there is none. */
  #matches(text: string, from: number, found: number[]): boolean {
    const { ops, outs, args, sets, start } = this.#program
    const visited = this.#visited
    const left = this.#left
    const width = text.length + 1
    let steps = 0
    left[0] = from
    left[1] = start
    // The array keeps its length: what is behind `size` is of no meaning.
    for (let size = 2; size > 0; ) {
      let pc = left[--size] ?? 0
      let at = left[--size] ?? 0
      if (pc < 0) {
        found[-1 - pc] = at
        continue
      }
      for (;;) {
        steps++
        const pair: number = pc * width + at
        const bit = 1 << (pair & 31)
        const word = visited[pair >> 5] ?? 0
        if ((word & bit) !== 0) break
        visited[pair >> 5] = word | bit
        const op = ops[pc]
        const arg = args[pc] ?? 0
        pc = outs[pc] ?? 0
        if (op === SPLIT) {
          left[size++] = at
          left[size++] = arg
        } else if (op === CAPTURE) {
          left[size++] = found[arg] ?? -1
          left[size++] = -1 - arg
          found[arg] = at
        } else if (op === ASSERT) {
          if ((arg & ~assertionsAt(text, at)) !== 0) break
        } else if (op === MATCH) {
          found[1] = at
          this.steps += steps
          return true
        } else {
          if (at === text.length) break
          let rune = text.charCodeAt(at)
          if (rune >= 0xd800) rune = runeAt(text, at)
          if (op === RUNE ? rune !== arg : !includes(sets[arg] ?? [], rune)) break
          at += unitsOf(rune)
        }
      }
    }
    this.steps += steps
    return false
  }
}
