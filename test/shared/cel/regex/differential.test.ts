import fc from 'fast-check'
import { RE2JS } from 're2js'
import { describe, expect, test } from 'vitest'
import { Automaton } from '#shared/cel/regex/automaton.ts'
import { compileRegex } from '#shared/cel/regex/engine.ts'
import { parse } from '#shared/cel/regex/parse.ts'
import { compileProgram } from '#shared/cel/regex/program.ts'
import { Searcher } from '#shared/cel/regex/search.ts'
import type { Regex } from '#shared/cel/types.ts'

/**
 * RE2 by other people. Stricter than Go about names: no two groups may share one, those of properties must be as Unicode writes them; and one
 * in `[: :]` ends where Go's does not yet.
 */
function reference(pattern: string): Regex {
  const compiled = RE2JS.compile(pattern)
  const matches = (text: string): (string | undefined)[][] => {
    const out: (string | undefined)[][] = []
    const matcher = compiled.matcher(text)
    let end = -1
    while (matcher.find()) {
      // Go counts no empty match right behind another one.
      const isEmpty = matcher.start() === matcher.end()
      if (isEmpty && matcher.start() === end) continue
      end = matcher.end()
      out.push(
        Array.from(
          { length: compiled.groupCount() + 1 },
          (_, group) => matcher.group(group) ?? undefined,
        ),
      )
    }
    return out
  }
  return {
    groups: compiled.groupCount(),
    test: (text) => compiled.test(text),
    matches,
    replace: (text) => text,
  }
}

type Outcome<T> = { value: T } | { message: string }

function attempt<T>(run: () => T): Outcome<T> {
  try {
    return { value: run() }
  } catch (thrown) {
    // Go quotes the piece at fault even when there is none.
    return { message: (thrown as Error).message.replace(/: ``$/, '') }
  }
}

const CHARACTERS = [...'abcABkKs019_- \n.é\u212aſσςßẞ🚀日', '\ufffd']

const literal = fc.constantFrom(...CHARACTERS.filter((char) => char !== '.'), '\\.', '\\*', '\\n')
const escapes = fc.constantFrom(
  ...['\\d', '\\D', '\\s', '\\S', '\\w', '\\W', '\\x41', '\\x{212a}', '\\101', '\\-'],
  ...['\\pL', '\\PL', '\\p{Lu}', '\\p{Greek}', '\\P{Greek}', '\\p{^Lu}', '\\Qa.b\\E', '\\Q\\E'],
)
const bracket = fc
  .tuple(
    fc.boolean(),
    fc.array(
      fc.oneof(
        literal,
        fc.constantFrom('a-c', 'A-Z', '0-9', 'b-k', 'é-ſ', '-', '[:alpha:]', '[:^digit:]'),
        fc.constantFrom('\\d', '\\W', '\\pL', '\\P{Lu}', '[:word:]', '🚀-🛰'),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([negated, parts]) => `[${negated ? '^' : ''}${parts.join('')}]`)
const repetition = fc.constantFrom(
  ...['', '', '', '', '*', '+', '?', '*?', '+?', '??'],
  ...['{2}', '{1,2}', '{0,2}?', '{2,}', '{0}', '{0,1}'],
)
const opening = fc.constantFrom('(', '(', '(?:', '(?i:', '(?s:', '(?m:', '(?U:', '(?i-s:')

const { pattern } = fc.letrec<{ pattern: string; sequence: string; atom: string }>((tie) => ({
  pattern: fc
    .array(tie('sequence'), { minLength: 1, maxLength: 3 })
    .map((alternatives) => alternatives.join('|')),
  sequence: fc
    .array(
      fc.tuple(tie('atom'), repetition).map((parts) => parts.join('')),
      { maxLength: 4 },
    )
    .map((parts) => parts.join('')),
  atom: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    literal,
    bracket,
    escapes,
    fc.constantFrom('.', '^', '$', '\\b', '\\B', '\\A', '\\z'),
    fc.tuple(opening, tie('pattern')).map(([open, inside]) => `${open}${inside})`),
  ),
}))

/** Patterns with one piece lost or put in: most are refused. */
const broken = fc
  .tuple(
    pattern,
    fc.nat(20),
    fc.nat(2),
    fc.constantFrom(
      ...'()[]{}*+?|\\^$-x',
      '(?',
      '{2}',
      '\\p{',
      '}',
      ':]',
      '(?P<n>',
      '>',
      '(?i',
      '\\',
    ),
  )
  .map(([whole, at, lost, piece]) => {
    const characters = [...whole]
    characters.splice(at, lost, piece)
    return characters.join('')
  })

const text = fc.oneof(
  fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 }),
  fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 12 }),
)
const texts = fc.array(
  text.map((characters) => characters.join('')),
  { minLength: 1, maxLength: 3 },
)

const RUNS = { numRuns: 1000 }

describe('beside another RE2', () => {
  test('the same patterns are taken, and refused in the same words', () => {
    fc.assert(
      fc.property(
        fc.oneof(pattern, broken, fc.string({ unit: 'binary', maxLength: 8 })),
        (each) => {
          const ours = attempt(() => compileRegex(each).groups)
          const theirs = attempt(() => reference(each).groups)
          if ('message' in theirs && /\\p|`\[:/i.test(theirs.message)) return
          expect(ours).toEqual(theirs)
        },
      ),
      { numRuns: 2000 },
    )
  })

  test('the same matches with the same groups are found', () => {
    fc.assert(
      fc.property(pattern, texts, (each, all) => {
        const ours = attempt(() => compileRegex(each))
        const theirs = attempt(() => reference(each))
        if (!('value' in ours && 'value' in theirs)) return
        for (const one of all) {
          expect(ours.value.matches(one)).toEqual(theirs.value.matches(one))
          expect(ours.value.test(one)).toBe(theirs.value.test(one))
        }
      }),
      RUNS,
    )
  })

  test('what is for long texts and for many agrees with what is for short ones', () => {
    fc.assert(
      fc.property(pattern, texts, (each, all) => {
        const compiled = attempt(() => compileRegex(each))
        if (!('value' in compiled)) return
        const { node, groups } = parse(each)
        const program = compileProgram(node, groups)
        const automaton = new Automaton(program)
        const searcher = new Searcher(program)
        for (const one of [...all, ...all]) {
          const [first] = compiled.value.matches(one, 1)
          const slots = searcher.find(one, 0)
          expect(automaton.test(one)).toBe(first !== undefined)
          expect(slots && pieces(one, slots)).toEqual(first)
        }
      }),
      RUNS,
    )
  })

  test('a replacement by the whole match changes nothing, one by marks shows where matches are', () => {
    fc.assert(
      fc.property(pattern, texts, (each, all) => {
        const compiled = attempt(() => compileRegex(each))
        if (!('value' in compiled)) return
        for (const one of all) {
          expect(compiled.value.replace(one, '\\0')).toBe(one)
          const marked = compiled.value.replace(one, '«\\0»')
          expect([...marked.matchAll(/«([^»]*)»/gu)].map(([, whole]) => whole)).toEqual(
            compiled.value.matches(one).map(([whole]) => whole),
          )
        }
      }),
      RUNS,
    )
  })
})

function pieces(one: string, slots: ArrayLike<number>): (string | undefined)[] {
  return Array.from({ length: slots.length / 2 }, (_, group) => {
    const from = slots[2 * group]!
    return from < 0 ? undefined : one.slice(from, slots[2 * group + 1])
  })
}
