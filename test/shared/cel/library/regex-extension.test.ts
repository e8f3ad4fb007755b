import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** cel-go's own `regex.` functions, which Kyverno has. */

describe('regular expressions: regex.', () => {
  test.each([
    { expression: "regex.extract('key=value', '=(.*)')", gives: 'of "value"', cost: 4, with: {} },
    { expression: "regex.extract('key=value', '[a-z]+')", gives: 'of "key"', cost: 4, with: {} },
    { expression: "regex.extract('key', '[0-9]')", gives: 'none', cost: 3, with: {} },
    { expression: "regex.extract('ab', '(a)(b)')", gives: 'error', cost: 3, with: {} },
    { expression: "regex.extractAll('a1b22', '[0-9]+')", gives: '["1", "22"]', cost: 15, with: {} },
    {
      expression: "regex.extractAll('a1b22', '[a-z]([0-9]+)')",
      gives: '["1", "22"]',
      cost: 16,
      with: {},
    },
    { expression: "regex.extractAll('abc', 'z*')", gives: '["", "", "", ""]', cost: 16, with: {} },
    { expression: "regex.replace('a1b22', '[0-9]+', '#')", gives: '"a#b#"', cost: 6, with: {} },
    { expression: "regex.replace('a1b22', '[0-9]+', '#', 1)", gives: '"a#b22"', cost: 7, with: {} },
    { expression: "regex.replace('a1b22', '[0-9]+', '#', 0)", gives: '"a1b22"', cost: 7, with: {} },
    {
      expression: "regex.replace('john smith', '(\\\\w+) (\\\\w+)', '\\\\2, \\\\1')",
      gives: '"smith, john"',
      cost: 15,
      with: {},
    },
    { expression: "regex.replace('a', 'a', '\\\\1')", gives: 'error', cost: 2, with: {} },
    { expression: "regex.replace('a', 'a', '\\\\x')", gives: 'error', cost: 2, with: {} },
    { expression: "regex.replace('a', 'b', '\\\\x')", gives: '"a"', cost: 2, with: {} },
    { expression: "regex.extract('a', x)", gives: 'error', cost: 4, with: { x: '(' } },
    { expression: "regex.replace(x.o, 'a', 'b')", gives: 'error', cost: 2, with: { x: {} } },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation, { profile: 'kyverno' })
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
