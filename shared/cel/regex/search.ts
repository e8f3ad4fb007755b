import { assertionsAt, NONE } from './assertion.ts'
import { ASSERT, CAPTURE, MATCH, type Program, SPLIT, takes } from './program.ts'
import { grown } from './ranges.ts'
import { type Starts, startsOf } from './starts.ts'
import { runeAt, unitsOf } from './syntax.ts'

/** Slots of a match: where the whole and then every group begins and ends; -1 for a group that has no part in it. */
export type Slots = ArrayLike<number>

/** Instructions that wait for the next character, the preferred first, each with the slots of the way it was reached. */
interface Threads {
  pcs: Int32Array
  slots: Int32Array
  count: number
}

/** Room for so many to begin with: few programs need more. */
const FIRST_THREADS = 16

/**
 * Finds the match that a backtracking search would find first, by following all ways through the program at once: linear in the text
 * times the program.
 */
export class Searcher {
  /** Instructions looked at. */
  steps = 0
  readonly #program: Program
  readonly #starts: Starts
  /** By instruction: the last round in which it was reached. */
  readonly #marks: Int32Array
  #round = 0
  #now: Threads
  #next: Threads
  /** Instructions still to be looked at; or a slot as -1 - slot, on top of the value that it gets back. */
  readonly #left: number[] = []
  /** The slots of the way that is being followed. */
  readonly #way: Int32Array

  constructor(program: Program) {
    this.#program = program
    this.#starts = startsOf(program)
    const size = program.ops.length
    this.#marks = new Int32Array(size)
    this.#now = threads(program.slots)
    this.#next = threads(program.slots)
    this.#way = new Int32Array(program.slots)
  }

  /** The leftmost match at or behind `from`; undefined when there is none. */
  find(text: string, from: number): Slots | undefined {
    const { anchored, start } = this.#program
    let found: Slots | undefined
    this.#now.count = 0
    for (let at = from; ; ) {
      if (this.#now.count === 0) {
        if (found !== undefined) return found
        at = this.#starts(text, at)
        if (at < 0 || (anchored && at > 0)) return undefined
        this.#round++
      }
      if (found === undefined && (at === 0 || !anchored)) {
        this.#way.fill(-1)
        this.#way[0] = at
        this.#reach(this.#now, start, text, at)
      }
      const rune = at < text.length ? runeAt(text, at) : NONE
      const after = at + unitsOf(rune)
      found = this.#step(text, at, rune, after) ?? found
      if (rune === NONE) return found
      at = after
    }
  }

  /** Takes one character everywhere; gives a match that ends before it, which ends all less preferred ways. */
  #step(text: string, at: number, rune: number, after: number): Int32Array | undefined {
    const { ops, outs, slots } = this.#program
    const now = this.#now
    const next = this.#next
    this.#round++
    next.count = 0
    let found: Int32Array | undefined
    for (let i = 0; i < now.count && found === undefined; i++) {
      const pc = now.pcs[i] ?? 0
      if (ops[pc] === MATCH) {
        found = now.slots.slice(i * slots, (i + 1) * slots)
        found[1] = at
      } else if (rune !== NONE && takes(this.#program, pc, rune)) {
        for (let slot = 0; slot < slots; slot++) this.#way[slot] = now.slots[i * slots + slot] ?? -1
        this.#reach(next, outs[pc] ?? 0, text, after)
      }
    }
    this.#now = next
    this.#next = now
    return found
  }

  /** Adds the instructions that can be reached from one without a character. */
  #reach(into: Threads, from: number, text: string, at: number): void {
    const { ops, outs, args } = this.#program
    const marks = this.#marks
    const left = this.#left
    const way = this.#way
    left.push(from)
    for (let pc = left.pop(); pc !== undefined; pc = left.pop()) {
      if (pc < 0) {
        way[-1 - pc] = left.pop() ?? -1
        continue
      }
      this.steps++
      if (marks[pc] === this.#round) continue
      marks[pc] = this.#round
      const op = ops[pc]
      const arg = args[pc] ?? 0
      if (op === SPLIT) left.push(arg, outs[pc] ?? 0)
      else if (op === CAPTURE) {
        left.push(way[arg] ?? -1, -1 - arg, outs[pc] ?? 0)
        way[arg] = at
      } else if (op === ASSERT) {
        if ((arg & ~assertionsAt(text, at)) === 0) left.push(outs[pc] ?? 0)
      } else {
        this.#add(into, pc)
      }
    }
  }

  #add(into: Threads, pc: number): void {
    const { slots } = this.#program
    if (into.count === into.pcs.length) {
      into.pcs = grown(into.pcs)
      into.slots = grown(into.slots)
    }
    const from = into.count * slots
    for (let slot = 0; slot < slots; slot++) into.slots[from + slot] = this.#way[slot] ?? -1
    into.pcs[into.count++] = pc
  }
}

function threads(slots: number): Threads {
  return {
    pcs: new Int32Array(FIRST_THREADS),
    slots: new Int32Array(FIRST_THREADS * slots),
    count: 0,
  }
}
