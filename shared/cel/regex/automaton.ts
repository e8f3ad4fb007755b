import { assertionsBetween, likeness, NONE, TOLD_APART } from './assertion.ts'
import { ASSERT, CAPTURE, MATCH, type Program, RUNE, SPLIT, takes } from './program.ts'
import { lastNotAbove } from './ranges.ts'
import type { Starts } from './starts.ts'
import { runeAt } from './syntax.ts'

/** Most numbers kept in transitions and states together, about 1 MB; past them the automaton forgets what it knows and goes on. */
const MAX_KEPT = 1 << 18

/** Transitions: to a state from 1 on, or one of these. */
const UNKNOWN = 0
const DEAD = -1
const MATCHED = -2

const START = 1

interface State {
  /** Instructions where a character is awaited or what leads there, in order. */
  pcs: readonly number[]
  /** What assertions see before. */
  before: number
}

/**
 * Says whether a program matches anywhere in a text: a deterministic automaton over classes of characters, built as texts need it.
 * Linear in the text, and where states are new in the program for each character.
 */
export class Automaton {
  /** Instructions looked at while states were built. */
  steps = 0
  readonly #program: Program
  readonly #starts: Starts
  /** First character of every class, in order. */
  readonly #classes: readonly number[]
  /** Class by ASCII character. */
  readonly #ascii: Uint16Array
  /** Transitions per state: one for every class and one for the end of the text. */
  readonly #width: number
  readonly #marks: Int32Array
  #generation = 0
  #states: State[] = []
  #numbers = new Map<string, number>()
  #rows = new Int32Array(0)
  #kept = 0

  constructor(program: Program, starts: Starts) {
    this.#program = program
    this.#starts = starts
    this.#classes = classesOf(program)
    this.#width = this.#classes.length + 1
    this.#ascii = new Uint16Array(128)
    for (let rune = 0; rune < 128; rune++) this.#ascii[rune] = lastNotAbove(this.#classes, rune)
    this.#marks = new Int32Array(program.ops.length)
    this.#forget()
  }

  /** True when the program matches somewhere in the text. */
  test(text: string): boolean {
    const ascii = this.#ascii
    const width = this.#width
    const { prefix, hasAsserts } = this.#program
    let state = START
    // What comes before the first character matters to assertions, which are in no prefix.
    let at = hasAsserts && prefix === '' ? 0 : this.#starts.next(text, 0)
    if (at < 0) return false
    while (at < text.length) {
      let rune = text.charCodeAt(at++)
      let next: number
      if (rune < 128) next = this.#rows[state * width + (ascii[rune] ?? 0)] ?? UNKNOWN
      else {
        rune = runeAt(text, at - 1)
        if (rune > 0xffff) at++
        next = this.#rows[state * width + lastNotAbove(this.#classes, rune)] ?? UNKNOWN
      }
      if (next === UNKNOWN) next = this.#build(state, rune)
      if (next < UNKNOWN) return next === MATCHED
      state = next
    }
    const last = this.#rows[state * width + width - 1] || this.#build(state, NONE)
    return last === MATCHED
  }

  /** The transition of a state by a character, or by the end, which is kept. */
  #build(number: number, rune: number): number {
    // Every number that was given out has its state.
    const state = this.#states[number] as State
    const column = rune === NONE ? this.#width - 1 : lastNotAbove(this.#classes, rune)
    const next = this.#follow(state, rune)
    const states = this.#states
    const to = typeof next === 'number' ? next : this.#number(next, likeness(rune))
    if (states === this.#states) this.#rows[number * this.#width + column] = to
    return to
  }

  /** Where the program can be after the character, given where it can be before. */
  #follow({ pcs, before }: State, rune: number): number[] | typeof DEAD | typeof MATCHED {
    const { ops, outs, args, hasAsserts, anchored, start } = this.#program
    const holds = hasAsserts ? assertionsBetween(before, rune) : 0
    const marks = this.#marks
    const generation = ++this.#generation
    const next: number[] = []
    const left = [...pcs]
    for (let pc = left.pop(); pc !== undefined; pc = left.pop()) {
      this.steps++
      if (marks[pc] === generation) continue
      marks[pc] = generation
      const op = ops[pc] ?? MATCH
      if (op === MATCH) return MATCHED
      const out = outs[pc] ?? 0
      if (op === SPLIT) left.push(args[pc] ?? 0, out)
      else if (op === CAPTURE || (op === ASSERT && ((args[pc] ?? 0) & ~holds) === 0)) left.push(out)
      else if (op !== ASSERT && rune !== NONE && takes(this.#program, pc, rune)) next.push(out)
    }
    // A match may begin behind every character.
    if (rune !== NONE && !anchored) next.push(start)
    return next.length === 0 ? DEAD : next
  }

  /** The number of the state with these instructions, a new one if need be. */
  #number(pcs: number[], before: number): number {
    const { hasAsserts } = this.#program
    const sorted = [...new Set(pcs)].sort((a, b) => a - b)
    const state = { pcs: sorted, before: hasAsserts ? before : NONE }
    const key = `${state.before},${sorted}`
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    this.#kept += this.#width + sorted.length
    if (this.#kept > MAX_KEPT) this.#forget()
    return this.#add(key, state)
  }

  #add(key: string, state: State): number {
    const number = this.#states.push(state) - 1
    this.#numbers.set(key, number)
    const needed = (number + 1) * this.#width
    if (needed > this.#rows.length) {
      const rows = new Int32Array(2 * needed)
      rows.set(this.#rows)
      this.#rows = rows
    }
    return number
  }

  /** Only the first state is left. Number 0 is none. */
  #forget(): void {
    const none = { pcs: [], before: NONE }
    this.#states = [none]
    this.#numbers = new Map()
    this.#rows = new Int32Array(0)
    this.#kept = 0
    this.#add(`${NONE},${this.#program.start}`, { pcs: [this.#program.start], before: NONE })
  }
}

/** First character of every run that the program treats alike. */
function classesOf({ ops, args, sets, hasAsserts }: Program): readonly number[] {
  const firsts = new Set([0])
  for (const ranges of sets) {
    for (const [i, rune] of ranges.entries()) firsts.add(rune + (i % 2))
  }
  for (const [pc, op] of ops.entries()) {
    const rune = args[pc] ?? 0
    if (op === RUNE) firsts.add(rune).add(rune + 1)
  }
  if (hasAsserts) for (const rune of TOLD_APART) firsts.add(rune)
  return [...firsts].sort((a, b) => a - b)
}
