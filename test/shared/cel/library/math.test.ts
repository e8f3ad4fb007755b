import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** cel-go's math library and base64, which Kyverno has. */

describe('math and encoders: math', () => {
  test.each([
    { expression: 'math.least(1, -2.5)', gives: '-2.5', cost: 1 },
    { expression: 'math.greatest([3, 1, 2])', gives: '3', cost: 1 },
    { expression: 'math.least([1.5])', gives: '1.5', cost: 1 },
    { expression: 'math.ceil(1.2)', gives: '2.0', cost: 1 },
    { expression: 'math.floor(-1.2)', gives: '-2.0', cost: 1 },
    { expression: 'math.round(-2.5)', gives: '-3.0', cost: 1 },
    { expression: 'math.round(2.4)', gives: '2.0', cost: 1 },
    { expression: 'math.trunc(-1.9)', gives: '-1.0', cost: 1 },
    { expression: 'math.abs(-5)', gives: '5', cost: 1 },
    { expression: 'math.abs(-9223372036854775807 - 1)', gives: 'error', cost: 2 },
    { expression: 'math.abs(-1.5)', gives: '1.5', cost: 1 },
    { expression: 'math.sign(-3)', gives: '-1', cost: 1 },
    { expression: 'math.sign(0.0)', gives: '0.0', cost: 1 },
    { expression: 'math.sign(7u)', gives: '1u', cost: 1 },
    { expression: 'math.sqrt(16)', gives: '4.0', cost: 1 },
    { expression: 'math.sqrt(-1.0)', gives: 'NaN', cost: 1 },
    { expression: 'math.isNaN(0.0 / 0.0)', gives: 'true', cost: 2 },
    { expression: 'math.isInf(1.0 / 0.0)', gives: 'true', cost: 2 },
    { expression: 'math.isFinite(1.0)', gives: 'true', cost: 1 },
    { expression: 'math.bitAnd(12, 10)', gives: '8', cost: 1 },
    { expression: 'math.bitOr(12u, 3u)', gives: '15u', cost: 1 },
    { expression: 'math.bitXor(-1, 1)', gives: '-2', cost: 1 },
    { expression: 'math.bitNot(0)', gives: '-1', cost: 1 },
    { expression: 'math.bitNot(0u)', gives: '18446744073709551615u', cost: 1 },
    { expression: 'math.bitShiftLeft(1, 63)', gives: '-9223372036854775808', cost: 1 },
    { expression: 'math.bitShiftLeft(1, 64)', gives: '0', cost: 1 },
    { expression: 'math.bitShiftLeft(1, -1)', gives: 'error', cost: 1 },
    { expression: 'math.bitShiftRight(-1, 1)', gives: '9223372036854775807', cost: 1 },
    { expression: 'math.bitShiftRight(8u, 2)', gives: '2u', cost: 1 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression, {}, { profile: 'kyverno' })
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('math and encoders: encoders', () => {
  test.each([
    { expression: "base64.encode(b'hello')", gives: '"aGVsbG8="', cost: 1 },
    { expression: "base64.decode('aGVsbG8=')", gives: 'aGVsbG8=', cost: 1 },
    { expression: "base64.decode('aGVsbG8')", gives: 'aGVsbG8=', cost: 1 },
    { expression: "base64.decode('%')", gives: 'error', cost: 1 },
    { expression: "string(base64.decode('aGVs\\nbG8='))", gives: '"hello"', cost: 2 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression, {}, { profile: 'kyverno' })
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
