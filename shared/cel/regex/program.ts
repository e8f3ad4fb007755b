import { BEGIN_TEXT } from './assertion.ts'
import { foldings } from './fold.ts'
import type { Node } from './node.ts'
import { includes, type Ranges } from './ranges.ts'

/** What an instruction does. The first four go on without taking a character. */
export const SPLIT = 0
export const CAPTURE = 1
export const ASSERT = 2
export const MATCH = 3
export const RUNE = 4
export const SET = 5

/** A pattern as instructions for the machines, in three columns. */
export interface Program {
  readonly ops: readonly number[]
  /** The next instruction; of a SPLIT the preferred one. */
  readonly outs: readonly number[]
  /** SPLIT: the other next. CAPTURE: the slot. ASSERT: what is asked for. RUNE: the character. SET: the number of the set. */
  readonly args: readonly number[]
  readonly sets: readonly Ranges[]
  readonly start: number
  /** Slots that a match fills: two for the whole and two for every group. */
  readonly slots: number
  /** Text that every match begins with. */
  readonly prefix: string
  /** True when the prefix is all there is to match. */
  readonly isLiteral: boolean
  /** True when a match can begin only where the text does. */
  readonly anchored: boolean
  readonly hasAsserts: boolean
}

/** True when the instruction, a RUNE or SET, takes the character. */
export function takes({ ops, args, sets }: Program, pc: number, rune: number): boolean {
  const arg = args[pc] ?? 0
  return ops[pc] === RUNE ? arg === rune : includes(sets[arg] ?? [], rune)
}

/** The program of a tree; every part is emitted after what follows it, so that it knows where to go on. */
export function compileProgram(node: Node, groups: number): Program {
  const emitter = new Emitter()
  const start = emitter.emit(node, emitter.add(MATCH, 0, 0))
  const { ops, outs, args, sets } = emitter
  const { pc, prefix, anchored } = beginning(emitter, start)
  return {
    ops,
    outs,
    args,
    sets,
    start,
    slots: 2 * groups + 2,
    prefix,
    isLiteral: prefix !== '' && ops[start] === RUNE && ops[pc] === MATCH,
    anchored,
    hasAsserts: ops.includes(ASSERT),
  }
}

class Emitter {
  readonly ops: number[] = []
  readonly outs: number[] = []
  readonly args: number[] = []
  readonly sets: Ranges[] = []
  readonly #setNumbers = new Map<Ranges, number>()

  add(op: number, out: number, arg: number): number {
    this.outs.push(out)
    this.args.push(arg)
    return this.ops.push(op) - 1
  }

  /** Adds the instructions of a node that go on at `next`; says where they begin. */
  emit(node: Node, next: number): number {
    let at = next
    switch (node.op) {
      case 'literal':
        for (const rune of node.runes.toReversed()) at = this.#rune(rune, node.fold, at)
        return at
      case 'class':
        return this.#set(node.runes, next)
      case 'assert':
        return this.add(ASSERT, next, node.bits)
      case 'capture':
        at = this.add(CAPTURE, next, 2 * node.group + 1)
        return this.add(CAPTURE, this.emit(node.sub, at), 2 * node.group)
      case 'concat':
        for (const sub of node.subs.toReversed()) at = this.emit(sub, at)
        return at
      case 'alternate': {
        at = -1
        for (const sub of node.subs.toReversed()) {
          const entry = this.emit(sub, next)
          at = at < 0 ? entry : this.add(SPLIT, entry, at)
        }
        return at
      }
      case 'repeat':
        return this.#repeat(node, next)
    }
  }

  #rune(rune: number, fold: boolean, next: number): number {
    const ranges = fold ? foldings(rune) : [rune]
    return ranges[0] === ranges.at(-1) ? this.add(RUNE, next, rune) : this.#set(ranges, next)
  }

  /** Copies of a repetition have the same set. */
  #set(ranges: Ranges, next: number): number {
    let number = this.#setNumbers.get(ranges)
    if (number === undefined) {
      number = this.sets.push(ranges) - 1
      this.#setNumbers.set(ranges, number)
    }
    return this.add(SET, next, number)
  }

  /** x{2,5} as xx(x(x(x)?)?)?, x{2,} as xx+. */
  #repeat({ sub, min, max, lazy }: Node & { op: 'repeat' }, next: number): number {
    let at = next
    let copies = min
    if (max < 0) {
      at = this.#loop(sub, min === 0, lazy, next)
      copies = min - 1
    } else {
      for (let i = min; i < max; i++) at = this.#split(this.emit(sub, at), next, lazy)
    }
    for (let i = 0; i < copies; i++) at = this.emit(sub, at)
    return at
  }

  /**
   * x+ or, when it is optional, x*. What can match nothing is repeated as (x+)? then: going in at the split would prefer another match
   * than the one a backtracking search finds first.
   */
  #loop(sub: Node, optional: boolean, lazy: boolean, next: number): number {
    const split = this.add(SPLIT, next, next)
    const body = this.emit(sub, split)
    const way = lazy ? this.args : this.outs
    way[split] = body
    if (!optional) return body
    return sub.nullable ? this.#split(body, next, lazy) : split
  }

  #split(body: number, next: number, lazy: boolean): number {
    return lazy ? this.add(SPLIT, next, body) : this.add(SPLIT, body, next)
  }
}

/** What can be told about the beginning of every match, and where that ends. */
function beginning({ ops, outs, args }: Emitter, start: number) {
  let pc = start
  const next = () => outs[pc] ?? 0
  while (ops[pc] === CAPTURE) pc = next()
  const anchored = ops[pc] === ASSERT && args[pc] === BEGIN_TEXT
  let prefix = ''
  while (ops[pc] === RUNE && isWhole(args[pc] ?? 0)) {
    prefix += String.fromCodePoint(args[pc] ?? 0)
    pc = next()
  }
  return { pc, prefix, anchored }
}

/** False for what a text may hold in another form: halves of pairs, and what they are taken for. */
function isWhole(rune: number): boolean {
  return rune < 0xd800 || (rune > 0xdfff && rune !== 0xfffd)
}
