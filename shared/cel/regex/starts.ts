import { MATCH, type Program, RUNE, SET, SPLIT } from './program.ts'

/** Finds where in a text a match may begin at all. */
export class Starts {
  readonly #prefix: string
  /** By ASCII character: 1 when a match may begin with it. Undefined when one may begin with nothing. */
  readonly #ascii: Uint8Array | undefined

  constructor(program: Program) {
    this.#prefix = program.prefix
    this.#ascii = this.#prefix === '' ? firstCharacters(program) : undefined
  }

  /** The first such position at or behind `at`; -1 when there is none. */
  next(text: string, at: number): number {
    if (this.#prefix !== '') return text.indexOf(this.#prefix, at)
    const ascii = this.#ascii
    if (ascii === undefined) return at
    for (let i = at; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit > 127 || ascii[unit] === 1) return i
    }
    return -1
  }
}

function firstCharacters({ ops, outs, args, sets, start }: Program): Uint8Array | undefined {
  const ascii = new Uint8Array(128)
  const reached = new Set([start])
  for (const pc of reached) {
    const op = ops[pc]
    const arg = args[pc] ?? 0
    if (op === MATCH) return undefined
    if (op === RUNE) ascii[arg] = 1
    else if (op === SET) {
      const set = sets[arg] ?? []
      for (let i = 0; i < set.length; i += 2) ascii.fill(1, set[i], (set[i + 1] ?? 0) + 1)
    } else {
      // An assertion is taken to hold.
      reached.add(outs[pc] ?? 0)
      if (op === SPLIT) reached.add(arg)
    }
  }
  return ascii
}
