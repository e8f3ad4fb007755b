import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** List functions of the API server and of cel-go. */

describe('lists: order', () => {
  test.each([
    { expression: '[1, 2, 2, 5].isSorted()', gives: 'true', cost: 4 },
    { expression: '[2, 1].isSorted()', gives: 'false', cost: 2 },
    { expression: '[].isSorted()', gives: 'true', cost: 0 },
    { expression: "['a', 'b', 'B'].isSorted()", gives: 'false', cost: 0 },
    { expression: '[1.0, 0.0 / 0.0].isSorted()', gives: 'true', cost: 13 },
    { expression: '[3, 1, 2].min()', gives: '1', cost: 3 },
    { expression: '[3, 1, 2].max()', gives: '3', cost: 3 },
    { expression: "['b', 'a'].min()", gives: '"a"', cost: 0 },
    { expression: "[duration('2s'), duration('1s')].max()", gives: '2s', cost: 2 },
    { expression: '[].min()', gives: 'error', cost: 0 },
    { expression: "[b'b', b'a'].max()", gives: 'Yg==', cost: 0 },
    {
      expression: "[timestamp('2024-05-01T00:00:00Z'), timestamp('2023-05-01T00:00:00Z')].min()",
      gives: '2023-05-01T00:00:00Z',
      cost: 2,
    },
    { expression: '[false, true].max()', gives: 'true', cost: 2 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('lists: sums', () => {
  test.each([
    { expression: '[1, 2, 3].sum()', gives: '6', cost: 3 },
    { expression: '[1.5, 2.5].sum()', gives: '4.0', cost: 2 },
    { expression: '[1u, 2u].sum()', gives: '3u', cost: 2 },
    { expression: "[duration('1s'), duration('1m')].sum()", gives: '61s', cost: 2 },
    { expression: '[].sum()', gives: '0', cost: 0 },
    { expression: '[9223372036854775807, 1].sum()', gives: 'error', cost: 2 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('lists: places', () => {
  test.each([
    { expression: '[1, 2, 1].indexOf(1)', gives: '0', cost: 3 },
    { expression: '[1, 2, 1].lastIndexOf(1)', gives: '2', cost: 3 },
    { expression: '[1, 2, 1].indexOf(3)', gives: '-1', cost: 3 },
    { expression: "['a', 'b'].indexOf('b')", gives: '1', cost: 0 },
    { expression: '[[1], [2]].indexOf([2])', gives: '1', cost: 2 },
    { expression: '[1, 2].includes(2)', gives: 'true', cost: 2 },
    { expression: "'a'.includes('a')", gives: 'true', cost: 0 },
    { expression: "{'a': 1}.includes('a')", gives: 'false', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('lists: slices and shapes', () => {
  test.each([
    { expression: '[1, 2, 3, 4].slice(1, 3)', gives: '[2, 3]', cost: 13 },
    { expression: '[1, 2].slice(0, 2)', gives: '[1, 2]', cost: 13 },
    { expression: '[1, 2].slice(1, 1)', gives: '[]', cost: 11 },
    { expression: '[1, 2].slice(2, 1)', gives: 'error', cost: 12 },
    { expression: '[1, 2].slice(-1, 1)', gives: 'error', cost: 12 },
    { expression: '[1, 2].slice(0, 3)', gives: 'error', cost: 12 },
    { expression: '[[1, 2], [3]].flatten()', gives: '[1, 2, 3]', cost: 13 },
    { expression: '[[[1]], [[2]]].flatten()', gives: '[[1], [2]]', cost: 13 },
    { expression: '[[[1]], [[2]]].flatten(2)', gives: '[1, 2]', cost: 15 },
    { expression: '[[[1]]].flatten(0)', gives: '[[[1]]]', cost: 11 },
    { expression: '[[1]].flatten(-1)', gives: 'error', cost: 12 },
    { expression: 'lists.range(3)', gives: '[0, 1, 2]', cost: 14 },
    { expression: 'lists.range(0)', gives: '[]', cost: 11 },
    { expression: '[1, 2, 3].reverse()', gives: '[3, 2, 1]', cost: 14 },
    { expression: '[1, 2, 1, 3, 2].distinct()', gives: '[1, 2, 3]', cost: 61 },
    { expression: "['a', 'a'].distinct()", gives: '["a"]', cost: 19 },
    { expression: '[].distinct()', gives: '[]', cost: 11 },
    { expression: "[dyn(1), dyn(1u), dyn(1.0), dyn('1')].distinct()", gives: '[1, "1"]', cost: 43 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('lists: sorting', () => {
  test.each([
    { expression: '[3, 1, 2].sort()', gives: '[1, 2, 3]', cost: 29 },
    { expression: "['b', 'B', 'a'].sort()", gives: '["B", "a", "b"]', cost: 29 },
    { expression: '[].sort()', gives: '[]', cost: 11 },
    { expression: "[dyn(1), dyn('a')].sort()", gives: 'error', cost: 1 },
    { expression: '[3, 1, 2].sortBy(v, -v)', gives: '[3, 2, 1]', cost: 74 },
    { expression: "[{'n': 2}, {'n': 1}].sortBy(v, v.n)", gives: '[{"n": 1}, {"n": 2}]', cost: 50 },
    { expression: "['bb', 'a'].sortBy(v, size(v))", gives: '["a", "bb"]', cost: 50 },
    { expression: '[1, 2].sortBy(v, v / 0)', gives: 'error', cost: 31 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('lists: sets', () => {
  test.each([
    { expression: 'sets.contains([1, 2, 3], [2, 3])', gives: 'true', cost: 7 },
    { expression: 'sets.contains([1], [1, 2])', gives: 'false', cost: 3 },
    { expression: 'sets.contains([], [])', gives: 'true', cost: 1 },
    { expression: 'sets.contains([1], dyn([1.0]))', gives: 'true', cost: 2 },
    { expression: 'sets.equivalent([1, 2], [2, 1, 1])', gives: 'true', cost: 13 },
    { expression: 'sets.equivalent([1], [2])', gives: 'false', cost: 3 },
    { expression: 'sets.intersects([1, 2], [2, 3])', gives: 'true', cost: 5 },
    { expression: 'sets.intersects([1], [2])', gives: 'false', cost: 2 },
    { expression: 'sets.intersects([], [])', gives: 'false', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
