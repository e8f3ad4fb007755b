import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** Operators and conversions: ranges, overflow, comparison across types. */

describe('operators: integers', () => {
  test.each([
    { expression: '9223372036854775806 + 1', gives: '9223372036854775807', cost: 1 },
    { expression: '9223372036854775807 + 1', gives: 'error', cost: 1 },
    { expression: '-9223372036854775808 - 1', gives: 'error', cost: 1 },
    { expression: '4611686018427387904 * 2', gives: 'error', cost: 1 },
    { expression: '3037000500 * 3037000500', gives: 'error', cost: 1 },
    { expression: '-9223372036854775808 / -1', gives: 'error', cost: 1 },
    { expression: '-9223372036854775808 % -1', gives: 'error', cost: 1 },
    { expression: '7 / -2', gives: '-3', cost: 1 },
    { expression: '-7 % 3', gives: '-1', cost: 1 },
    { expression: '1 / 0', gives: 'error', cost: 1 },
    { expression: '1 % 0', gives: 'error', cost: 1 },
    { expression: '9007199254740993 - 9007199254740992', gives: '1', cost: 1 },
    { expression: '-(-9223372036854775808)', gives: 'error', cost: 1 },
    { expression: '18446744073709551615u + 1u', gives: 'error', cost: 1 },
    { expression: '1u - 2u', gives: 'error', cost: 1 },
    { expression: '7u / 2u', gives: '3u', cost: 1 },
    { expression: '5u % 0u', gives: 'error', cost: 1 },
    { expression: '9007199254740992 + 1', gives: '9007199254740993', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('operators: doubles', () => {
  test.each([
    { expression: '1.0 / 0.0', gives: 'Infinity', cost: 1 },
    { expression: '-1.0 / 0.0', gives: '-Infinity', cost: 1 },
    { expression: '0.0 / 0.0', gives: 'NaN', cost: 1 },
    { expression: '0.1 + 0.2', gives: '0.30000000000000004', cost: 1 },
    { expression: '1e308 * 10.0', gives: 'Infinity', cost: 1 },
    { expression: '2.0 * 3.5', gives: '7.0', cost: 1 },
    { expression: '-(0.0)', gives: '-0.0', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('operators: comparison', () => {
  test.each([
    { expression: 'dyn(1) == dyn(1.0)', gives: 'true', cost: 1, with: {} },
    { expression: 'dyn(1) == dyn(1u)', gives: 'true', cost: 1, with: {} },
    { expression: "dyn(1) == dyn('1')", gives: 'false', cost: 1, with: {} },
    {
      expression: 'dyn(9007199254740993) == dyn(9007199254740992.0)',
      gives: 'true',
      cost: 1,
      with: {},
    },
    { expression: '1 < 1.5', gives: 'true', cost: 1, with: {} },
    { expression: '-1 < 0u', gives: 'true', cost: 1, with: {} },
    { expression: '18446744073709551615u > 9223372036854775807', gives: 'true', cost: 1, with: {} },
    { expression: '0.0 / 0.0 < 1.0', gives: 'error', cost: 2, with: {} },
    { expression: '0.0 / 0.0 == 0.0 / 0.0', gives: 'false', cost: 3, with: {} },
    { expression: "'a' < 'b'", gives: 'true', cost: 1, with: {} },
    { expression: "'\\uffff' < '\\U00010000'", gives: 'true', cost: 1, with: {} },
    { expression: "b'a' < b'aa'", gives: 'true', cost: 1, with: {} },
    { expression: 'false < true', gives: 'true', cost: 1, with: {} },
    { expression: 'dyn([1, 2]) == dyn([1.0, 2.0])', gives: 'true', cost: 1, with: {} },
    { expression: "dyn({'a': 1}) == dyn({'a': 1.0})", gives: 'true', cost: 1, with: {} },
    { expression: "dyn({1: 'a'}) == dyn({1u: 'a'})", gives: 'true', cost: 1, with: {} },
    { expression: 'null == dyn(1)', gives: 'false', cost: 1, with: {} },
    { expression: 'dyn(1) in [1.0]', gives: 'true', cost: 0, with: {} },
    { expression: 'dyn(1u) in [1, 2]', gives: 'true', cost: 0, with: {} },
    { expression: 'dyn(1.5) in [1, 2]', gives: 'false', cost: 0, with: {} },
    { expression: "'a' in {'a': 1}", gives: 'true', cost: 1, with: {} },
    { expression: 'x in y', gives: 'false', cost: 3, with: { x: 1, y: ['a', 1.5] } },
    { expression: 'x in y', gives: 'true', cost: 3, with: { x: 'a', y: { a: null } } },
    { expression: 'x in y', gives: 'error', cost: 3, with: { x: 1, y: 2 } },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('operators: conversions', () => {
  test.each([
    { expression: "int('-42')", gives: '-42', cost: 0, with: {} },
    { expression: 'int(x)', gives: 'error', cost: 2, with: { x: '4 2' } },
    { expression: 'int(x)', gives: 'error', cost: 2, with: { x: '9223372036854775808' } },
    {
      expression: 'int(x)',
      gives: '-9223372036854775808',
      cost: 2,
      with: { x: '-9223372036854775808' },
    },
    { expression: 'int(x)', gives: '7', cost: 2, with: { x: '007' } },
    { expression: 'int(3.99)', gives: '3', cost: 0, with: {} },
    { expression: 'int(-3.99)', gives: '-3', cost: 0, with: {} },
    { expression: 'int(x)', gives: 'error', cost: 2, with: { x: 1e19 } },
    { expression: 'int(0.0 / 0.0)', gives: 'error', cost: 2, with: {} },
    { expression: 'uint(3)', gives: '3u', cost: 0, with: {} },
    { expression: 'uint(x)', gives: 'error', cost: 2, with: { x: -1 } },
    { expression: 'uint(x)', gives: 'error', cost: 2, with: { x: 1e20 } },
    {
      expression: 'uint(x)',
      gives: '18446744073709551615u',
      cost: 2,
      with: { x: '18446744073709551615' },
    },
    { expression: 'uint(x)', gives: 'error', cost: 2, with: { x: '+1' } },
    { expression: "double('1e3')", gives: '1000.0', cost: 0, with: {} },
    { expression: "double('0x1p-2')", gives: '0.25', cost: 0, with: {} },
    { expression: 'double(x)', gives: 'error', cost: 2, with: { x: '1e999' } },
    { expression: 'double(x)', gives: 'error', cost: 2, with: { x: 'one' } },
    { expression: 'double(x)', gives: '0.5', cost: 2, with: { x: '.5' } },
    { expression: 'double(x)', gives: '-Infinity', cost: 2, with: { x: '-Inf' } },
    {
      expression: 'double(9223372036854775807)',
      gives: '9.223372036854776e+18',
      cost: 0,
      with: {},
    },
    { expression: 'string(1.0)', gives: '"1"', cost: 0, with: {} },
    { expression: 'string(1e6)', gives: '"1e+06"', cost: 0, with: {} },
    { expression: 'string(0.0001)', gives: '"0.0001"', cost: 0, with: {} },
    { expression: 'string(1e-5)', gives: '"1e-05"', cost: 0, with: {} },
    { expression: 'string(1e21)', gives: '"1e+21"', cost: 0, with: {} },
    { expression: 'string(123456.75)', gives: '"123456.75"', cost: 0, with: {} },
    { expression: "string(b'\\xc3\\xbc')", gives: '"ü"', cost: 0, with: {} },
    { expression: 'string(true)', gives: '"true"', cost: 0, with: {} },
    { expression: "bytes('ü')", gives: 'w7w=', cost: 0, with: {} },
    { expression: "bool('True')", gives: 'true', cost: 0, with: {} },
    { expression: 'bool(x)', gives: 'error', cost: 2, with: { x: 'yes' } },
    { expression: 'bool(x)', gives: 'true', cost: 2, with: { x: 't' } },
    { expression: 'type(1u)', gives: 'uint', cost: 0, with: {} },
    { expression: 'type([])', gives: 'list', cost: 0, with: {} },
    { expression: 'dyn(1)', gives: '1', cost: 0, with: {} },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('operators: sizes', () => {
  test.each([
    { expression: "size('ü🚀')", gives: '2', cost: 1 },
    { expression: "size(b'ü')", gives: '2', cost: 1 },
    { expression: 'size([1, 2])', gives: '2', cost: 1 },
    { expression: "size({'a': 1})", gives: '1', cost: 1 },
    { expression: "'ü🚀'.size()", gives: '2', cost: 1 },
    { expression: 'size(dyn(1))', gives: 'error', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('operators: absorbing errors', () => {
  test.each([
    { expression: 'false && 1 / 0 > 0', gives: 'false', cost: 0 },
    { expression: '1 / 0 > 0 && false', gives: 'false', cost: 2 },
    { expression: 'true || 1 / 0 > 0', gives: 'true', cost: 0 },
    { expression: '1 / 0 > 0 || true', gives: 'true', cost: 2 },
    { expression: '1 / 0 > 0 || false', gives: 'error', cost: 2 },
    { expression: '[1, 0].exists(v, 1 / v > 0)', gives: 'true', cost: 11 },
    { expression: '[0, 1].exists(v, 1 / v > 0)', gives: 'true', cost: 15 },
    { expression: '[0, 1].all(v, 1 / v > 0)', gives: 'error', cost: 13 },
    { expression: '[1, 0].all(v, 1 / v > 1)', gives: 'false', cost: 9 },
    { expression: '[0, 1].exists_one(v, 1 / v > 0)', gives: 'error', cost: 10 },
    { expression: '[1, 0].map(v, 1 / v)', gives: 'error', cost: 29 },
    { expression: '[1, 0].filter(v, 1 / v > 0)', gives: 'error', cost: 20 },
    { expression: 'true ? 1 : 1 / 0', gives: '1', cost: 0 },
    { expression: '(1 / 0 > 0) ? 1 : 2', gives: 'error', cost: 2 },
    { expression: 'dyn(1) ? 1 : 2', gives: 'error', cost: 0 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('operators: macros over lists and maps', () => {
  test.each([
    { expression: '[1, 2, 3].map(v, v * v)', gives: '[1, 4, 9]', cost: 46 },
    { expression: '[1, 2, 3].map(v, v > 1, v * v)', gives: '[4, 9]', cost: 37 },
    { expression: '[1, 2, 3].filter(v, v > 1)', gives: '[2, 3]', cost: 33 },
    { expression: "{'a': 1, 'b': 2}.all(k, k < 'c')", gives: 'true', cost: 11 },
    { expression: "['x', 'y'].all(i, v, i < 2 && v != 'z')", gives: 'true', cost: 15 },
    { expression: "['x'].transformList(i, v, v + 'y')", gives: '["xy"]', cost: 15 },
    { expression: "['x', 'y'].transformList(i, v, i > 0, v)", gives: '["y"]', cost: 18 },
    { expression: "{'a': 1}.transformMap(k, v, v + 1)", gives: '{"a": 2}', cost: 6 },
    { expression: "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", gives: '{"b": 2}', cost: 9 },
    { expression: "['x'].transformMapEntry(i, v, {v: i})", gives: '{"x": 0}', cost: 35 },
    { expression: "['x', 'x'].transformMapEntry(i, v, {v: i})", gives: 'error', cost: 69 },
    { expression: "{'a': 1}.exists(k, v, v == 1)", gives: 'true', cost: 7 },
    { expression: '[[1], [2, 3]].map(v, v.map(w, w + 1))', gives: '[[2], [3, 4]]', cost: 71 },
    { expression: 'dyn(1).map(v, v)', gives: 'error', cost: 0 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
