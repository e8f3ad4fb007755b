import { describe, expect, test } from 'vitest'
import { Automaton } from '#shared/cel/regex/automaton.ts'
import { Backtracker } from '#shared/cel/regex/backtrack.ts'
import { parse } from '#shared/cel/regex/parse.ts'
import { compileProgram, type Program } from '#shared/cel/regex/program.ts'
import { Searcher } from '#shared/cel/regex/search.ts'

function program(pattern: string): Program {
  const { node, groups } = parse(pattern)
  return compileProgram(node, groups)
}

/** Patterns on which a search that only tries one way after the other takes for ever. */
const CATASTROPHES: readonly [pattern: string, text: (size: number) => string][] = [
  ['(a*)*b', (size) => 'a'.repeat(size)],
  ['(x+x+)+y', (size) => 'x'.repeat(size)],
  ['(a|aa)+$', (size) => `${'a'.repeat(size)}b`],
  ['(?:a?){20}a{20}b', (size) => 'a'.repeat(size)],
  ['^(([a-z])+.)+[A-Z]([a-z])+$', (size) => 'a'.repeat(size)],
  ['(.*)*(.*)*(.*)*x', (size) => 'ab'.repeat(size / 2)],
  [`${'(?:'.repeat(50)}a*${')*'.repeat(50)}b`, (size) => 'a'.repeat(size)],
  ['(?:a|b)*a(?:a|b){10}c', (size) => 'abbabaab'.repeat(size / 8)],
  ['(?m)^(\\s*\\w+\\s*,?)*;$', (size) => 'word, '.repeat(size / 6)],
]

describe('steps grow with the text as the text does, and are never more than instructions times characters', () => {
  test.each(CATASTROPHES)('%s', (pattern, textOf) => {
    const compiled = program(pattern)
    const size = compiled.ops.length
    // A step that finds what has been looked at already follows from one that has not.
    const most = (text: string) => 3 * size * (text.length + 1)
    for (const text of [textOf(240), textOf(4800)]) {
      const automaton = new Automaton(compiled)
      expect(automaton.test(text)).toBe(false)
      expect(automaton.steps).toBeLessThanOrEqual(most(text))
      const searcher = new Searcher(compiled)
      expect(searcher.find(text, 0)).toBeUndefined()
      expect(searcher.steps).toBeLessThanOrEqual(most(text))
    }
    const short = textOf(240)
    const backtracker = new Backtracker(compiled)
    expect(backtracker.find(short, 0)).toBeUndefined()
    expect(backtracker.steps).toBeLessThanOrEqual(most(short))
  })

  test('an automaton that has been through a text takes no more steps for it', () => {
    const automaton = new Automaton(program('(a|b)*c[d-f]+'))
    expect(automaton.test('ababc')).toBe(false)
    const { steps } = automaton
    expect(automaton.test('ababc')).toBe(false)
    expect(automaton.steps).toBe(steps)
  })

  test('an automaton that would have very many states forgets, and is still right and linear', () => {
    // One state for each of 2^16 histories.
    const compiled = program('(?:a|b)*a(?:a|b){16}c')
    const automaton = new Automaton(compiled)
    let text = ''
    for (let i = 1; text.length < 24_000; i = (i * 48271) % 2147483647) text += i % 2 ? 'a' : 'b'
    expect(automaton.test(text)).toBe(false)
    expect(automaton.test(`${text}a${'b'.repeat(16)}c`)).toBe(true)
    expect(automaton.steps).toBeLessThanOrEqual(3 * compiled.ops.length * 2 * text.length)
  })
})

describe('a long text gives what a short one gives', () => {
  test.each([
    ['a match far behind', '(a+)(b)?c', 'aabc'],
    ['a boundary', '\\bword\\b', 'word'],
    ['characters outside the first plane', '([🚀-🛰]+)x', '🚀🛰x'],
    ['without regard to case', '(?i)(STRASSE|straße)', 'STRAẞE'],
  ])('%s', (_, pattern, text) => {
    const compiled = program(pattern)
    const before = '- '.repeat(30_000)
    expect(new Automaton(compiled).test(before + text)).toBe(true)
    const short = Array.from(new Backtracker(compiled).find(text, 0) ?? [])
    expect(Array.from(new Searcher(compiled).find(before + text, 0) ?? [])).toEqual(
      short.map((at) => (at < 0 ? at : at + before.length)),
    )
    expect(short.slice(0, 2)).toEqual([0, text.length])
  })
})
