import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseDuration, timeLeftMs } from '#functions/deadline.ts'

describe('parseDuration', () => {
  test.each([
    ['10s', 10_000],
    ['1m0s', 60_000],
    ['1m30s', 90_000],
    ['500ms', 500],
    ['1.5s', 1500],
    ['.5s', 500],
    ['1h', 3_600_000],
    ['2000us', 2],
    ['2000µs', 2],
    ['2000μs', 2],
    ['5000000ns', 5],
  ])('reads %s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  test.each([
    '',
    '10',
    's',
    '0s',
    '0',
    '-5s',
    '+5s',
    '5 s',
    '5S',
    '1d',
    '1e3s',
    '5s,',
    '..5s',
    `${'9'.repeat(400)}s`,
    '1s'.repeat(30),
    'NaNs',
  ])('takes %j for nonsense', (text) => {
    expect(parseDuration(text)).toBeUndefined()
  })

  test('gives a positive number or nothing, whatever comes', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.nuµmsh]{0,50}$/)), (text) => {
        const ms = parseDuration(text)
        expect(ms === undefined || (ms > 0 && Number.isFinite(ms))).toBe(true)
      }),
    )
  })
})

describe('timeLeftMs', () => {
  test.each([
    {
      name: 'is the whole timeout when it is the configured one',
      timeout: '10s',
      configuredSeconds: 10,
      expected: 9700,
    },
    {
      name: 'is shorter by what the request has waited already',
      timeout: '10s',
      configuredSeconds: 10,
      waitedMs: 2000,
      expected: 7700,
    },
    {
      name: 'counts what it has waited once where the platform knows it, too',
      timeout: '10s',
      configuredSeconds: 10,
      waitedMs: 2000,
      remainingMs: 8000,
      expected: 7700,
    },
    { name: 'gives up the second that rounding may have added', timeout: '10s', expected: 8700 },
    {
      name: 'gives it up when less than the configured timeout is left',
      timeout: '7s',
      configuredSeconds: 10,
      expected: 5700,
    },
    { name: 'never ends before an answer from the seal is possible', timeout: '1s', expected: 150 },
    {
      name: 'takes a configured second for a second',
      timeout: '1s',
      configuredSeconds: 1,
      expected: 700,
    },
    { name: 'takes the API server at its maximum', timeout: '5m', expected: 28_700 },
    { name: 'falls back to the configured timeout', configuredSeconds: 5, expected: 4700 },
    { name: 'falls back to the default of the API server', expected: 9700 },
    { name: 'falls back on nonsense', timeout: 'soon', configuredSeconds: 5, expected: 4700 },
    { name: 'falls back on a negative timeout', timeout: '-1s', expected: 9700 },
    {
      name: 'is never longer than the platform grants',
      timeout: '10s',
      configuredSeconds: 10,
      remainingMs: 3000,
      expected: 2700,
    },
    { name: 'counts whole milliseconds', timeout: '1500.7ms', expected: 200 },
  ])('$name', ({ name: _, expected, ...input }) => {
    expect(timeLeftMs(input)).toBe(expected)
  })
})
