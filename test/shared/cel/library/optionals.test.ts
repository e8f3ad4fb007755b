import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** Optional values and optional syntax. */

describe('optionals: selection', () => {
  test.each([
    { expression: 'x.?a', gives: 'of 1', cost: 2, with: { x: { a: 1 } } },
    { expression: 'x.?b', gives: 'none', cost: 1, with: { x: { a: 1 } } },
    { expression: 'x.?a.b', gives: 'of null', cost: 3, with: { x: { a: { b: null } } } },
    { expression: 'x.?c.b', gives: 'none', cost: 1, with: { x: { a: { b: null } } } },
    { expression: "x[?'a']", gives: 'of 1', cost: 2, with: { x: { a: 1 } } },
    { expression: 'x[?1]', gives: 'of "q"', cost: 2, with: { x: ['p', 'q'] } },
    { expression: 'x[?5]', gives: 'none', cost: 1, with: { x: ['p', 'q'] } },
    { expression: "x[?'a']", gives: 'error', cost: 1, with: { x: ['p'] } },
    { expression: 'x.?a.orValue(7)', gives: '7', cost: 1, with: { x: {} } },
    { expression: 'x.?a.or(optional.of(8))', gives: 'of 8', cost: 2, with: { x: {} } },
    { expression: 'x.?a.hasValue()', gives: 'false', cost: 2, with: { x: {} } },
    { expression: 'has(x.?a.b)', gives: 'true', cost: 2, with: { x: { a: { b: 1 } } } },
    { expression: 'has(x.?z.b)', gives: 'false', cost: 0, with: { x: { a: { b: 1 } } } },
    { expression: 'x.?a', gives: 'none', cost: 1, with: { x: 1 } },
    { expression: 'x.a.?b', gives: 'error', cost: 2, with: { x: {} } },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('optionals: functions', () => {
  test.each([
    { expression: 'optional.of(1)', gives: 'of 1', cost: 1 },
    { expression: 'optional.none()', gives: 'none', cost: 1 },
    { expression: "optional.ofNonZeroValue('')", gives: 'none', cost: 1 },
    { expression: 'optional.ofNonZeroValue(0)', gives: 'none', cost: 1 },
    { expression: 'optional.ofNonZeroValue([1])', gives: 'of [1]', cost: 1 },
    { expression: "optional.ofNonZeroValue(duration('0s'))", gives: 'none', cost: 1 },
    { expression: 'optional.of(1).value()', gives: '1', cost: 2 },
    { expression: 'optional.none().value()', gives: 'error', cost: 2 },
    { expression: 'optional.of(1).optMap(v, v + 1)', gives: 'of 2', cost: 7 },
    { expression: 'optional.none().optMap(v, v + 1)', gives: 'none', cost: 3 },
    { expression: 'optional.of(1).optFlatMap(v, optional.none())', gives: 'none', cost: 3 },
    { expression: '[?optional.of(1), ?optional.none(), 2]', gives: '[1, 2]', cost: 12 },
    { expression: "{?'a': optional.of(1), ?'b': optional.none()}", gives: '{"a": 1}', cost: 32 },
    { expression: 'optional.unwrap([optional.of(1), optional.none()])', gives: '[1]', cost: 13 },
    { expression: "[optional.none(), optional.of('a')].unwrapOpt()", gives: '["a"]', cost: 13 },
    { expression: '[1, 2].first()', gives: 'of 1', cost: 1 },
    { expression: '[1, 2].last()', gives: 'of 2', cost: 1 },
    { expression: '[].first()', gives: 'none', cost: 1 },
    { expression: 'dyn(optional.of(1)) == dyn(optional.of(1.0))', gives: 'true', cost: 5 },
    { expression: 'optional.none() == optional.of(null)', gives: 'false', cost: 3 },
    { expression: 'optional.of(1 / 0)', gives: 'error', cost: 2 },
    { expression: 'optional.of(1).orValue(1 / 0)', gives: '1', cost: 1 },
    { expression: 'optional.none().orValue(1 / 0)', gives: 'error', cost: 2 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
