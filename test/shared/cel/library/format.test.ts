import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** `format` in its first generation, locale en_US. */

describe('format: clauses', () => {
  test.each([
    { expression: "'%d of %d'.format([1, 2u])", gives: '"1 of 2"', cost: 1 },
    { expression: "'%s'.format(['text'])", gives: '"text"', cost: 1 },
    { expression: "'%s %s %s'.format([true, null, 1.5])", gives: '"true null 1.5"', cost: 1 },
    {
      expression: "'%s'.format([[1, 'a', 2.5, b'x', null]])",
      gives: '"[1, \\"a\\", 2.500000, b\\"x\\", null]"',
      cost: 1,
    },
    {
      expression: "'%s'.format([{'b': 1, 'a': [true]}])",
      gives: '"{\\"a\\":[true], \\"b\\":1}"',
      cost: 1,
    },
    {
      expression: "'%s'.format([timestamp('2024-01-01T00:00:00Z')])",
      gives: '"2024-01-01T00:00:00Z"',
      cost: 1,
    },
    {
      expression: "'%s'.format([[timestamp('2024-01-01T00:00:00Z'), duration('90s')]])",
      gives: '"[timestamp(\\"2024-01-01T00:00:00Z\\"), duration(\\"90s\\")]"',
      cost: 1,
    },
    { expression: "'%s'.format([type('a')])", gives: '"string"', cost: 1 },
    { expression: "'%f'.format([1234.5])", gives: '"1,234.500000"', cost: 1 },
    { expression: "'%.2f'.format([-0.125])", gives: '"-0.12"', cost: 1 },
    { expression: "'%.0f'.format([2.5])", gives: '"2"', cost: 1 },
    { expression: "'%.0f'.format([3.5])", gives: '"4"', cost: 1 },
    { expression: "'%f'.format([1.0 / 0.0])", gives: '"∞"', cost: 12 },
    { expression: "'%.3f'.format(['NaN'])", gives: '"NaN"', cost: 1 },
    { expression: "'%b %b %b'.format([5, -5, true])", gives: '"101 -101 1"', cost: 1 },
    { expression: "'%x %X %o'.format([255, 255, 8])", gives: '"ff FF 10"', cost: 1 },
    { expression: "'%x %X'.format(['hi', b'hi'])", gives: '"6869 6869"', cost: 1 },
    { expression: "'100%%'.format([])", gives: '"100%"', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('format: refusals', () => {
  test.each([
    { expression: 'x.format([1])', gives: 'error', cost: 2, with: { x: '%d %d' } },
    { expression: "x.format(['a'])", gives: 'error', cost: 2, with: { x: '%d' } },
    { expression: 'x.format([1])', gives: 'error', cost: 2, with: { x: '%f' } },
    { expression: 'x.format([1.5])', gives: 'error', cost: 2, with: { x: '%x' } },
    { expression: 'x.format([1])', gives: 'error', cost: 2, with: { x: '%q' } },
    { expression: 'x.format([1])', gives: 'error', cost: 2, with: { x: '%' } },
    { expression: 'x.format([1.0])', gives: 'error', cost: 2, with: { x: '%.f' } },
    { expression: 'x.format([optional.none()])', gives: 'error', cost: 13, with: { x: '%s' } },
    { expression: 'x.o.format([1])', gives: 'error', cost: 2, with: { x: {} } },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
