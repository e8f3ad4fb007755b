import { AdmissionError } from '../errors.ts'
import { MAX_GLOB_CHARS } from '../limits.ts'
import { type Glob, plainGlob } from './plain-glob.ts'

export type { Glob } from './plain-glob.ts'

/** A compiled glob. Throws `POLICY_INVALID` with the place of the fault when the pattern is not one. */
export function compileGlob(pattern: string): Glob {
  if (pattern === '') throw fault(pattern, 'the pattern is empty')
  if (pattern.length > MAX_GLOB_CHARS) {
    throw new AdmissionError(
      'POLICY_INVALID',
      `glob of ${pattern.length} characters is longer than ${MAX_GLOB_CHARS}`,
    )
  }
  const program = new Compiler(pattern).compile()
  return plainGlob(pattern) ?? { pattern, matches: (text) => run(program, text) }
}

/** One step of the matcher. Steps are numbered; a step without an explicit target goes on with the next one. */
type Step =
  | { op: 'one'; accepts: (character: string) => boolean }
  | { op: 'fork'; targets: number[] }
  | { op: 'jump'; target: number }
  | { op: 'end' }

/** Recursive descent over the characters (code points) of a pattern, writing steps as it goes. */
class Compiler {
  readonly #pattern: string
  readonly #characters: string[]
  readonly #steps: Step[] = []
  #at = 0

  constructor(pattern: string) {
    this.#pattern = pattern
    this.#characters = [...pattern]
  }

  compile(): readonly Step[] {
    this.#sequence(false)
    this.#steps.push({ op: 'end' })
    return this.#steps
  }

  /** Inside braces a sequence ends before `,` or `}`; outside they are ordinary characters. */
  #sequence(inBraces: boolean): void {
    for (let next = this.#peek(); next !== undefined; next = this.#peek()) {
      if (inBraces && (next === ',' || next === '}')) return
      this.#at++
      if (next === '*') this.#anything()
      else if (next === '?') this.#one(() => true)
      else if (next === '[') this.#one(this.#set())
      else if (next === '{') this.#braces()
      else this.#literal(next === '\\' ? this.#escaped() : next)
    }
  }

  #anything(): void {
    while (this.#peek() === '*') this.#at++
    const start = this.#steps.length
    this.#steps.push({ op: 'fork', targets: [start + 1, start + 3] })
    this.#one(() => true)
    this.#steps.push({ op: 'jump', target: start })
  }

  #braces(): void {
    const open = this.#at - 1
    const fork: Step = { op: 'fork', targets: [] }
    const exits: { op: 'jump'; target: number }[] = []
    this.#steps.push(fork)
    for (;;) {
      fork.targets.push(this.#steps.length)
      this.#sequence(true)
      const exit = { op: 'jump' as const, target: 0 }
      this.#steps.push(exit)
      exits.push(exit)
      const next = this.#peek()
      if (next === undefined) throw fault(this.#pattern, `"{" is never closed`, open)
      this.#at++
      if (next === '}') break
    }
    for (const exit of exits) exit.target = this.#steps.length
  }

  /** What follows `[`: either one range or a list of characters, as gobwas has it; `[a-z0-9]` is neither. */
  #set(): (character: string) => boolean {
    const open = this.#at - 1
    const negated = this.#peek() === '!'
    if (negated) this.#at++
    const accepts = this.#characters[this.#at + 1] === '-' ? this.#range(open) : this.#list(open)
    return negated ? (character) => !accepts(character) : accepts
  }

  #range(open: number): (character: string) => boolean {
    const [low, , high, close] = this.#characters.slice(this.#at, this.#at + 4)
    if (low === undefined || high === undefined || close !== ']') {
      throw fault(this.#pattern, 'a set is either one range, "[a-z]", or a list, "[abc]"', open)
    }
    if (codePoint(high) < codePoint(low)) {
      throw fault(this.#pattern, `range "${low}-${high}" is the wrong way round`, open)
    }
    this.#at += 4
    return (character) =>
      codePoint(character) >= codePoint(low) && codePoint(character) <= codePoint(high)
  }

  #list(open: number): (character: string) => boolean {
    const members = new Set<string>()
    for (;;) {
      const next = this.#peek()
      if (next === undefined) throw fault(this.#pattern, '"[" is never closed', open)
      this.#at++
      if (next === ']') break
      members.add(next === '\\' ? this.#escaped() : next)
    }
    if (members.size === 0) throw fault(this.#pattern, 'a set is empty', open)
    return (character) => members.has(character)
  }

  #escaped(): string {
    const next = this.#peek()
    if (next === undefined) {
      throw fault(this.#pattern, 'nothing follows the last "\\"', this.#at - 1)
    }
    this.#at++
    return next
  }

  #literal(expected: string): void {
    this.#one((character) => character === expected)
  }

  #one(accepts: (character: string) => boolean): void {
    this.#steps.push({ op: 'one', accepts })
  }

  #peek(): string | undefined {
    return this.#characters[this.#at]
  }
}

/** Runs all ways through the program at once: no backtracking, so no pattern can make it slow. */
function run(program: readonly Step[], text: string): boolean {
  const seen = new Uint32Array(program.length)
  let round = 1
  let here = enter(program, 0, [], seen, round)
  for (const character of text) {
    round++
    const next: number[] = []
    for (const at of here) {
      const step = program[at]
      if (step?.op === 'one' && step.accepts(character)) enter(program, at + 1, next, seen, round)
    }
    if (next.length === 0) return false
    here = next
  }
  return here.includes(program.length - 1)
}

/** Adds to a list every step that reads a character or ends, reachable from `start` without reading one. */
function enter(
  program: readonly Step[],
  start: number,
  into: number[],
  seen: Uint32Array,
  round: number,
): number[] {
  const waiting = [start]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    if (seen[at] === round) continue
    seen[at] = round
    const step = program[at]
    if (step?.op === 'fork') waiting.push(...step.targets)
    else if (step?.op === 'jump') waiting.push(step.target)
    else into.push(at)
  }
  return into
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0
}

function fault(pattern: string, reason: string, at?: number): AdmissionError {
  const place = at === undefined ? '' : ` at character ${at + 1}`
  return new AdmissionError('POLICY_INVALID', `glob ${JSON.stringify(pattern)}${place}: ${reason}`)
}
