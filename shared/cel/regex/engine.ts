import type { Regex } from '../types.ts'
import { Automaton } from './automaton.ts'
import { Backtracker, isShort } from './backtrack.ts'
import { parse } from './parse.ts'
import { compileProgram, type Program } from './program.ts'
import { parseReplacement } from './replacement.ts'
import { Searcher, type Slots } from './search.ts'
import { refuse, runeAt, TOO_LARGE, unitsOf } from './syntax.ts'

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
  if (program.ops.length * program.slots > MAX_SLOTS) refuse(TOO_LARGE, pattern)
  const finder = finderOf(program)
  return {
    groups,
    test: testOf(program, finder),
    matches: (text, limit) =>
      allMatches(finder(text), text, limit).map((slots) => pieces(text, slots)),
    replace(text, replacement, limit) {
      const found = allMatches(finder(text), text, limit)
      if (found.length === 0) return text
      const parts = parseReplacement(replacement, groups)
      let out = ''
      let at = 0
      for (const slots of found) {
        const match = pieces(text, slots)
        out += text.slice(at, slots[0])
        for (const part of parts) out += typeof part === 'string' ? part : (match[part] ?? '')
        at = slots[1] ?? 0
      }
      return out + text.slice(at)
    },
  }
}

type Finder = Backtracker | Searcher

/** What finds the matches of a text; each is made when it is first needed. */
function finderOf(program: Program): (text: string) => Finder {
  let backtracker: Backtracker | undefined
  let searcher: Searcher | undefined
  return (text) => {
    if (isShort(program, text)) {
      backtracker ??= new Backtracker(program)
      return backtracker
    }
    searcher ??= new Searcher(program)
    return searcher
  }
}

function testOf(program: Program, finder: (text: string) => Finder): (text: string) => boolean {
  const { prefix, isLiteral } = program
  if (isLiteral) return (text) => text.includes(prefix)
  let automaton: Automaton | undefined
  let tests = 0
  return (text) => {
    // An automaton pays when it is used again.
    if (tests++ < FEW && isShort(program, text)) return finder(text).find(text, 0) !== undefined
    automaton ??= new Automaton(program)
    return automaton.test(text)
  }
}

/** Every match, as Go counts them: an empty one right behind another match is none. */
function allMatches(finder: Finder, text: string, limit = Number.POSITIVE_INFINITY): Slots[] {
  const found: Slots[] = []
  let end = -1
  for (let from = 0; from <= text.length && found.length < limit; ) {
    const slots = finder.find(text, from)
    if (slots === undefined) break
    const first = slots[0] ?? 0
    const last = slots[1] ?? 0
    if (first < last || first !== end) found.push(slots)
    end = last
    from = last > from ? last : from + unitsOf(runeAt(text, from))
  }
  return found
}

/** The whole of a match and its groups. */
function pieces(text: string, slots: Slots): (string | undefined)[] {
  const out: (string | undefined)[] = []
  for (let slot = 0; slot < slots.length; slot += 2) {
    const from = slots[slot] ?? -1
    out.push(from < 0 ? undefined : text.slice(from, slots[slot + 1]))
  }
  return out
}
