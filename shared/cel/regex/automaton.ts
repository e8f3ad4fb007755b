import { assertionsBetween, likeness, NONE, TOLD_APART } from './assertion.ts'
import { ASSERT, CAPTURE, MATCH, type Program, RUNE, SPLIT, takes } from './program.ts'
import { grown, lastNotAbove } from './ranges.ts'
import { type Starts, startsOf } from './starts.ts'
import { runeAt, unitsOf } from './syntax.ts'

/** Most numbers kept in transitions and states together, about 1 MB; past them the automaton forgets what it knows and goes on. */
const MAX_KEPT = 1 << 18

/** Transitions: to a state from 1 on, one of these, or 0 as long as it is not known. */
const DEAD = -1
const MATCHED = -2

const START = 1

/** What assertions see before, and then the instructions where a character is awaited or what leads there, in order. */
type State = readonly number[]

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

  constructor(program: Program) {
    this.#program = program
    this.#starts = startsOf(program)
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
    let at = hasAsserts && prefix === '' ? 0 : this.#starts(text, 0)
    if (at < 0) return false
    while (at < text.length) {
      let rune = text.charCodeAt(at)
      if (rune > 0x7f) rune = runeAt(text, at)
      at += unitsOf(rune)
      const column = rune < 128 ? (ascii[rune] ?? 0) : lastNotAbove(this.#classes, rune)
      state = this.#rows[state * width + column] || this.#build(state, rune, column)
      if (state < 0) return state === MATCHED
    }
    const last = this.#rows[state * width + width - 1] || this.#build(state, NONE, width - 1)
    return last === MATCHED
  }

  /** The transition of a state by a character, or by the end; it is kept, unless all has been forgotten in between. */
  #build(number: number, rune: number, column: number): number {
    const states = this.#states
    const next = this.#follow(states[number] ?? [], rune)
    const to = typeof next === 'number' ? next : this.#number(next, likeness(rune))
    if (states === this.#states) this.#rows[number * this.#width + column] = to
    return to
  }

  /** Where the program can be after the character, given where it can be before. */
  #follow([before = NONE, ...left]: State, rune: number): number[] | typeof DEAD | typeof MATCHED {
    const { ops, outs, args, hasAsserts, anchored, start } = this.#program
    const holds = hasAsserts ? assertionsBetween(before, rune) : 0
    const marks = this.#marks
    const generation = ++this.#generation
    const next: number[] = []
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
  #number(pcs: readonly number[], before: number): number {
    const state = [...new Set(pcs)].sort((a, b) => a - b)
    state.unshift(this.#program.hasAsserts ? before : NONE)
    const known = this.#numbers.get(`${state}`)
    if (known !== undefined) return known
    this.#kept += this.#width + state.length
    if (this.#kept > MAX_KEPT) this.#forget()
    return this.#add(state)
  }

  #add(state: State): number {
    const number = this.#states.push(state) - 1
    this.#numbers.set(`${state}`, number)
    while ((number + 1) * this.#width > this.#rows.length) this.#rows = grown(this.#rows)
    return number
  }

  /** Only the first state is left. Number 0 is none. */
  #forget(): void {
    this.#states = [[]]
    this.#numbers = new Map()
    this.#rows = new Int32Array(4 * this.#width)
    this.#kept = 0
    this.#add([NONE, this.#program.start])
  }
}

/** First character of every run that the program treats alike. */
function classesOf({ ops, args, sets, hasAsserts }: Program): readonly number[] {
  const firsts = new Set([0])
  for (const ranges of hasAsserts ? [...sets, TOLD_APART] : sets) {
    for (const [i, rune] of ranges.entries()) firsts.add(rune + (i % 2))
  }
  for (const [pc, op] of ops.entries()) {
    const rune = args[pc] ?? 0
    if (op === RUNE) firsts.add(rune).add(rune + 1)
  }
  return [...firsts].sort((a, b) => a - b)
}
