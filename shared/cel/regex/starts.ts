import { MATCH, type Program, RUNE, SET, SPLIT } from './program.ts'

/** Says where in a text a match may begin: the first such position at or behind another; -1 when there is none. */
export type Starts = (text: string, at: number) => number

/** Tells by the beginning of a program where its matches may begin. */
export function startsOf(program: Program): Starts {
  const { prefix } = program
  if (prefix !== '') return (text, at) => text.indexOf(prefix, at)
  const ascii = firstCharacters(program)
  if (ascii === undefined) return (_, at) => at
  return (text, at) => {
    for (let i = at; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit > 127 || ascii[unit] === 1) return i
    }
    return -1
  }
}

/** By ASCII character: 1 when a match may begin with it. Undefined when one may begin with nothing. */
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
