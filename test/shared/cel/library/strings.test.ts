import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** String functions as the API server pins them: indexes are code points, cost counts what the API server counts. */

describe('strings: places in a text', () => {
  test.each([
    { expression: "'grüße'.charAt(2)", gives: '"ü"', cost: 1 },
    { expression: "'grüße'.charAt(5)", gives: '""', cost: 1 },
    { expression: "'grüße'.charAt(6)", gives: 'error', cost: 1 },
    { expression: "'grüße'.charAt(-1)", gives: 'error', cost: 1 },
    { expression: "'a🚀b'.charAt(1)", gives: '"🚀"', cost: 1 },
    { expression: "'a🚀b'.charAt(2)", gives: '"b"', cost: 1 },
    { expression: "'a🚀b🚀'.indexOf('🚀')", gives: '1', cost: 1 },
    { expression: "'a🚀b🚀'.indexOf('🚀', 2)", gives: '3', cost: 1 },
    { expression: "'a🚀b🚀'.lastIndexOf('🚀')", gives: '3', cost: 1 },
    { expression: "'a🚀b🚀'.lastIndexOf('🚀', 2)", gives: '1', cost: 1 },
    { expression: "'banana'.indexOf('an')", gives: '1', cost: 0 },
    { expression: "'banana'.indexOf('an', 2)", gives: '3', cost: 0 },
    { expression: "'banana'.indexOf('an', 4)", gives: '-1', cost: 0 },
    { expression: "'banana'.indexOf('an', 60)", gives: '-1', cost: 0 },
    { expression: "'banana'.indexOf('an', -2)", gives: 'error', cost: 0 },
    { expression: "'banana'.indexOf('')", gives: '0', cost: 0 },
    { expression: "'banana'.indexOf('', 4)", gives: '4', cost: 0 },
    { expression: "'banana'.indexOf('', 40)", gives: '6', cost: 0 },
    { expression: "'banana'.lastIndexOf('na')", gives: '4', cost: 0 },
    { expression: "'banana'.lastIndexOf('na', 3)", gives: '2', cost: 0 },
    { expression: "'banana'.lastIndexOf('na', 60)", gives: '-1', cost: 0 },
    { expression: "'banana'.lastIndexOf('')", gives: '6', cost: 0 },
    { expression: "''.lastIndexOf('')", gives: '0', cost: 0 },
    { expression: "''.lastIndexOf('a')", gives: '-1', cost: 0 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('strings: parts of a text', () => {
  test.each([
    { expression: "'banana'.substring(2)", gives: '"nana"', cost: 1 },
    { expression: "'banana'.substring(6)", gives: '""', cost: 1 },
    { expression: "'banana'.substring(7)", gives: 'error', cost: 1 },
    { expression: "'banana'.substring(-1)", gives: 'error', cost: 1 },
    { expression: "'banana'.substring(1, 3)", gives: '"an"', cost: 1 },
    { expression: "'banana'.substring(3, 1)", gives: 'error', cost: 1 },
    { expression: "'banana'.substring(0, 9)", gives: 'error', cost: 1 },
    { expression: "'a🚀b'.substring(1, 2)", gives: '"🚀"', cost: 1 },
    { expression: "'a-b-c'.split('-')", gives: '["a", "b", "c"]', cost: 1 },
    { expression: "'a-b-c'.split('-', 2)", gives: '["a", "b-c"]', cost: 1 },
    { expression: "'a-b-c'.split('-', 0)", gives: '[]', cost: 1 },
    { expression: "'a-b-c'.split('-', -1)", gives: '["a", "b", "c"]', cost: 1 },
    { expression: "'a-b-c'.split('-', 9)", gives: '["a", "b", "c"]', cost: 1 },
    { expression: "'a🚀b'.split('')", gives: '["a", "🚀", "b"]', cost: 1 },
    { expression: "'abc'.split('', 2)", gives: '["a", "bc"]', cost: 1 },
    { expression: "''.split('')", gives: '[]', cost: 0 },
    { expression: "''.split('-')", gives: '[""]', cost: 0 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('strings: changing a text', () => {
  test.each([
    { expression: "'Straße ABC'.lowerAscii()", gives: '"straße abc"', cost: 1 },
    { expression: "'Straße abc'.upperAscii()", gives: '"STRAßE ABC"', cost: 1 },
    { expression: "'  \\t padded\\u00a0\\u3000'.trim()", gives: '"padded"', cost: 2 },
    { expression: "'\\ufeffkept\\ufeff'.trim()", gives: '"﻿kept﻿"', cost: 1 },
    { expression: "''.trim()", gives: '""', cost: 0 },
    { expression: "'aaa'.replace('a', 'bb')", gives: '"bbbbbb"', cost: 1 },
    { expression: "'aaa'.replace('a', 'bb', 2)", gives: '"bbbba"', cost: 1 },
    { expression: "'aaa'.replace('a', 'bb', 0)", gives: '"aaa"', cost: 1 },
    { expression: "'aaa'.replace('a', 'bb', -4)", gives: '"bbbbbb"', cost: 1 },
    { expression: "'abc'.replace('', '.')", gives: '".a.b.c."', cost: 1 },
    { expression: "'abc'.replace('', '.', 2)", gives: '".a.bc"', cost: 1 },
    { expression: "'a🚀'.replace('', '.')", gives: '".a.🚀."', cost: 1 },
    { expression: "['a', 'b', 'c'].join()", gives: '"abc"', cost: 1 },
    { expression: "['a', 'b', 'c'].join(', ')", gives: '"a, b, c"', cost: 2 },
    { expression: "[].join(',')", gives: '""', cost: 0 },
    { expression: "[dyn('a'), dyn(1)].join(',')", gives: 'error', cost: 1 },
    {
      expression: `strings.quote('say "hi"\\n\\u0007')`,
      gives: '"\\"say \\\\\\"hi\\\\\\"\\\\n\\\\a\\""',
      cost: 1,
    },
    { expression: "strings.quote('🚀')", gives: '"\\"🚀\\""', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('strings: values that are no strings', () => {
  test.each([
    { expression: "x.indexOf('a')", gives: 'error', cost: 2, with: { x: true } },
    { expression: 'x.o.trim()', gives: 'error', cost: 3, with: { x: {} } },
    { expression: "x.replace('a', 'b')", gives: 'error', cost: 2, with: { x: 1 } },
    { expression: "'a'.replace(x.o, 'b')", gives: 'error', cost: 2, with: { x: {} } },
    { expression: "x.o.replace('a', 'b')", gives: 'error', cost: 2, with: { x: {} } },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
