import { describe, expect, test } from 'vitest'
import { MAX_OUTCOMES_BYTES } from '#shared/limits.ts'
import { formatOutcomes } from '#shared/outcome/record.ts'
import type { OutcomeRecord } from '#shared/outcome/types.ts'

const record = (message: string, more: Partial<OutcomeRecord> = {}): OutcomeRecord => ({
  name: 'p',
  ruleType: 'ImageVerify',
  message,
  status: 'pass',
  ...more,
})

describe('formatOutcomes', () => {
  test('is what Kyverno 1.18 writes: names sorted, fields in order, empty ones left out, Go escapes', () => {
    const records = new Map<string, OutcomeRecord | undefined>([
      ['b', record('success', { name: 'b', emitWarning: false, properties: {} })],
      ['c', undefined],
      [
        'a',
        record('<none> & "no"', {
          name: 'a',
          status: 'fail',
          emitWarning: true,
          properties: { z: '1', y: '2' },
        }),
      ],
    ])
    expect(formatOutcomes(records)).toBe(
      '{"a":{"name":"a","ruleType":"ImageVerify","message":"\\u003cnone\\u003e \\u0026 \\"no\\"","status":"fail","emitWarning":true,"properties":{"y":"2","z":"1"}},' +
        '"b":{"name":"b","ruleType":"ImageVerify","message":"success","status":"pass"},"c":{}}',
    )
  })

  test('of nothing is an empty object', () => {
    expect(formatOutcomes(new Map())).toBe('{}')
  })

  const many = (count: number, message: string, more: Partial<OutcomeRecord> = {}) =>
    new Map(Array.from({ length: count }, (_, i) => [`policy-${i}`, record(message, more)]))

  test.each([
    { name: 'a long message is cut', records: many(1, 'x'.repeat(100_000)), has: '…' },
    {
      name: 'many long messages are cut to the same length',
      records: many(300, 'ü<'.repeat(5000)),
      has: '…',
    },
    {
      name: 'properties go when messages are not enough',
      records: many(300, 'm', { properties: { a: 'x'.repeat(1000) } }),
      has: '"ruleType"',
    },
    {
      name: 'at last only the status is left',
      records: many(1200, 'm', { name: 'x'.repeat(200) }),
      has: '"policy-1199":{"status":"pass"}',
    },
  ])('$name; no policy is left out', ({ records, has }) => {
    const text = formatOutcomes(records) ?? ''
    expect(new TextEncoder().encode(text).length).toBeLessThanOrEqual(MAX_OUTCOMES_BYTES)
    expect(text).toContain(has)
    expect(Object.keys(JSON.parse(text)).sort()).toEqual([...records.keys()].sort())
  })

  test('is nothing when not even that fits', () => {
    expect(formatOutcomes(many(5000, 'm'))).toBeUndefined()
  })
})
