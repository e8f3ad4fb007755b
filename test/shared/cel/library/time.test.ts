import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** Timestamps and durations in nanoseconds, with their ranges and zones. */

describe('time: durations', () => {
  test.each([
    { expression: "duration('1h30m')", gives: '5400s', cost: 0, with: {} },
    { expression: "duration('1.5s')", gives: '1.5s', cost: 0, with: {} },
    { expression: "duration('-1.5h')", gives: '-5400s', cost: 0, with: {} },
    { expression: "duration('1ms1us1ns')", gives: '0.001001001s', cost: 0, with: {} },
    { expression: "duration('0')", gives: '0s', cost: 0, with: {} },
    { expression: "string(duration('1ns'))", gives: '"0.000000001s"', cost: 0, with: {} },
    { expression: "string(duration('90m'))", gives: '"5400s"', cost: 0, with: {} },
    { expression: 'duration(x)', gives: 'error', cost: 2, with: { x: '1d' } },
    { expression: 'duration(x)', gives: 'error', cost: 2, with: { x: '' } },
    { expression: 'duration(x)', gives: 'error', cost: 2, with: { x: '1' } },
    { expression: 'duration(x)', gives: 'error', cost: 2, with: { x: '9223372036854775808ns' } },
    { expression: "duration('90s').getMinutes()", gives: '1', cost: 1, with: {} },
    { expression: "duration('3h').getHours()", gives: '3', cost: 1, with: {} },
    { expression: "duration('1.5s').getMilliseconds()", gives: '1500', cost: 1, with: {} },
    { expression: "duration('1m') + duration('1s')", gives: '61s', cost: 1, with: {} },
    { expression: "duration('1m') - duration('61s')", gives: '-1s', cost: 1, with: {} },
    {
      expression: "duration('2562047h') + duration('2562047h')",
      gives: 'error',
      cost: 1,
      with: {},
    },
    { expression: "duration('1m') < duration('61s')", gives: 'true', cost: 1, with: {} },
    { expression: "int(duration('1us'))", gives: '1000', cost: 0, with: {} },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('time: timestamps', () => {
  test.each([
    {
      expression: "timestamp('2024-02-29T12:34:56.789Z')",
      gives: '2024-02-29T12:34:56.789Z',
      cost: 0,
      with: {},
    },
    {
      expression: "timestamp('2024-02-29T12:34:56+05:30')",
      gives: '2024-02-29T07:04:56Z',
      cost: 0,
      with: {},
    },
    {
      expression: "string(timestamp('2024-02-29T12:34:56.5+05:30'))",
      gives: '"2024-02-29T12:34:56.5+05:30"',
      cost: 0,
      with: {},
    },
    {
      expression: "string(timestamp('2024-02-29T12:34:56-00:30') + duration('1h'))",
      gives: '"2024-02-29T13:34:56-00:30"',
      cost: 2,
      with: {},
    },
    { expression: 'timestamp(x)', gives: 'error', cost: 2, with: { x: '2023-02-29T00:00:00Z' } },
    { expression: 'timestamp(x)', gives: 'error', cost: 2, with: { x: '2024-01-01' } },
    { expression: 'timestamp(x)', gives: 'error', cost: 2, with: { x: '2024-01-01T25:00:00Z' } },
    {
      expression: 'timestamp(x)',
      gives: 'error',
      cost: 2,
      with: { x: '9999-12-31T23:59:59-01:00' },
    },
    { expression: 'timestamp(0)', gives: '1970-01-01T00:00:00Z', cost: 0, with: {} },
    { expression: 'timestamp(x)', gives: 'error', cost: 2, with: { x: 253402300800 } },
    { expression: "int(timestamp('1969-12-31T23:59:59.5Z'))", gives: '-1', cost: 0, with: {} },
    {
      expression: "timestamp('2024-01-01T00:00:00Z') - timestamp('2023-01-01T00:00:00Z')",
      gives: '31536000s',
      cost: 1,
      with: {},
    },
    {
      expression: "timestamp('9999-12-31T00:00:00Z') + duration('48h')",
      gives: 'error',
      cost: 1,
      with: {},
    },
    {
      expression: "timestamp('2024-01-01T01:00:00+01:00') == timestamp('2024-01-01T00:00:00Z')",
      gives: 'true',
      cost: 1,
      with: {},
    },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('time: fields', () => {
  test.each([
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getFullYear()", gives: '2024', cost: 1 },
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getMonth()", gives: '1', cost: 1 },
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getDate()", gives: '29', cost: 1 },
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getDayOfMonth()", gives: '28', cost: 1 },
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getDayOfWeek()", gives: '4', cost: 1 },
    { expression: "timestamp('2024-12-31T12:34:56.789Z').getDayOfYear()", gives: '365', cost: 1 },
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getHours()", gives: '12', cost: 1 },
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getMinutes()", gives: '34', cost: 1 },
    { expression: "timestamp('2024-02-29T12:34:56.789Z').getSeconds()", gives: '56', cost: 1 },
    {
      expression: "timestamp('2024-02-29T12:34:56.789Z').getMilliseconds()",
      gives: '789',
      cost: 1,
    },
    {
      expression: "timestamp('2024-07-01T23:30:00Z').getHours('Europe/Berlin')",
      gives: '1',
      cost: 1,
    },
    {
      expression: "timestamp('2024-01-01T23:30:00Z').getHours('Europe/Berlin')",
      gives: '0',
      cost: 1,
    },
    { expression: "timestamp('2024-07-01T23:30:00Z').getDate('+05:45')", gives: '2', cost: 1 },
    { expression: "timestamp('2024-07-01T23:30:00Z').getMinutes('-3:30')", gives: '0', cost: 1 },
    { expression: "timestamp('2024-07-01T23:30:00Z').getHours('02:00')", gives: '1', cost: 1 },
    { expression: "timestamp('2024-07-01T23:30:00Z').getHours('utc')", gives: 'error', cost: 1 },
    {
      expression: "timestamp('2024-07-01T23:30:00Z').getHours('Mars/Phobos')",
      gives: 'error',
      cost: 1,
    },
    { expression: "timestamp('2024-07-01T23:30:00Z').getHours('+x:00')", gives: 'error', cost: 1 },
    {
      expression: "timestamp('0001-01-01T00:00:00Z').getFullYear('America/New_York')",
      gives: '0',
      cost: 1,
    },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
