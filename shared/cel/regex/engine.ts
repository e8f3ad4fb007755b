import type { Regex } from '../types.ts'
import { Automaton } from './automaton.ts'
import { Backtracker, isShort } from './backtrack.ts'
import { parse } from './parse.ts'
import { compileProgram, type Program } from './program.ts'
import { parseReplacement } from './replacement.ts'
import { Searcher, type Slots } from './search.ts'
import { Starts } from './starts.ts'
import { refuse, runeAt } from './syntax.ts'

/** Tests for which no automaton is built, if the text is short. */
const FEW = 4
/** Most numbers that the ways through a program may need at one time: 32 MB. */
const MAX_SLOTS = 1 << 23

/**
 * A regular expression as Go's regexp has it: the same syntax, matches and groups, in time linear in text and pattern. Throws a
 * SyntaxError with Go's words.
 */
export function compileRegex(pattern: string): Regex {
  const { node, groups } = parse(pattern)
  const program = compileProgram(node, groups)
  if (program.ops.length * program.slots > MAX_SLOTS) refuse('expression too large', pattern)
  return new CompiledRegex(program, groups)
}

class CompiledRegex implements Regex {
  readonly groups: number
  readonly #program: Program
  #starts: Starts | undefined
  #backtracker: Backtracker | undefined
  #automaton: Automaton | undefined
  #searcher: Searcher | undefined
  #tests = 0

  constructor(program: Program, groups: number) {
    this.#program = program
    this.groups = groups
  }

  test(text: string): boolean {
    const program = this.#program
    if (program.isLiteral) return text.includes(program.prefix)
    // An automaton pays when it is used again.
    if (this.#tests++ < FEW && isShort(program, text)) {
      return this.#finder(text).find(text, 0) !== undefined
    }
    this.#starts ??= new Starts(program)
    this.#automaton ??= new Automaton(program, this.#starts)
    return this.#automaton.test(text)
  }

  matches(text: string, limit?: number): (string | undefined)[][] {
    return this.#all(text, limit).map((slots) => {
      const groups: (string | undefined)[] = []
      for (let group = 0; group <= this.groups; group++) groups.push(piece(text, slots, group))
      return groups
    })
  }

  replace(text: string, replacement: string, limit?: number): string {
    const found = this.#all(text, limit)
    if (found.length === 0) return text
    const parts = parseReplacement(replacement, this.groups)
    let out = ''
    let at = 0
    for (const slots of found) {
      out += text.slice(at, slots[0])
      for (const part of parts) {
        out += typeof part === 'string' ? part : (piece(text, slots, part) ?? '')
      }
      at = slots[1] ?? 0
    }
    return out + text.slice(at)
  }

  #finder(text: string): Backtracker | Searcher {
    const program = this.#program
    this.#starts ??= new Starts(program)
    if (isShort(program, text)) {
      this.#backtracker ??= new Backtracker(program, this.#starts)
      return this.#backtracker
    }
    this.#searcher ??= new Searcher(program, this.#starts)
    return this.#searcher
  }

  /** Every match, as Go counts them: an empty one right behind another match is none. */
  #all(text: string, limit = Number.POSITIVE_INFINITY): Slots[] {
    const finder = this.#finder(text)
    const found: Slots[] = []
    let end = -1
    for (let from = 0; from <= text.length && found.length < limit; ) {
      const slots = finder.find(text, from)
      if (slots === undefined) break
      const [first = 0, last = 0] = slots
      if (first < last || first !== end) found.push(slots)
      end = last
      from = last > from ? last : from + (runeAt(text, from) > 0xffff ? 2 : 1)
    }
    return found
  }
}

function piece(text: string, slots: Slots, group: number): string | undefined {
  const from = slots[2 * group] ?? -1
  return from < 0 ? undefined : text.slice(from, slots[2 * group + 1])
}
