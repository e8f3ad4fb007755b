import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** RE2 in all of them: no look-around, no backtracking. */

describe('regular expressions: of the API server', () => {
  test.each([
    { expression: "'pod-123-456'.matches('[0-9]+')", gives: 'true', cost: 4, with: {} },
    { expression: "'pod'.matches('^[0-9]+$')", gives: 'false', cost: 2, with: {} },
    { expression: "'a\\nb'.matches('^b')", gives: 'false', cost: 1, with: {} },
    { expression: "'a\\nb'.matches('(?m)^b')", gives: 'true', cost: 2, with: {} },
    { expression: "'ÄÖ'.matches('(?i)äö')", gives: 'true', cost: 2, with: {} },
    { expression: "'pod-123-456'.find('[0-9]+')", gives: '"123"', cost: 4, with: {} },
    { expression: "'pod'.find('[0-9]+')", gives: '""', cost: 2, with: {} },
    { expression: "'pod-123-456'.findAll('[0-9]+')", gives: '["123", "456"]', cost: 4, with: {} },
    { expression: "'pod-123-456'.findAll('[0-9]+', 1)", gives: '["123"]', cost: 4, with: {} },
    { expression: "'pod-123-456'.findAll('[0-9]+', 0)", gives: '[]', cost: 4, with: {} },
    {
      expression: "'pod-123-456'.findAll('[0-9]+', -1)",
      gives: '["123", "456"]',
      cost: 4,
      with: {},
    },
    { expression: "'aab'.findAll('a*')", gives: '["aa", ""]', cost: 1, with: {} },
    { expression: "'a🚀'.findAll('.')", gives: '["a", "🚀"]', cost: 1, with: {} },
    { expression: "'abc'.matches(x)", gives: 'error', cost: 2, with: { x: '(' } },
    { expression: "'abc'.find(x)", gives: 'error', cost: 3, with: { x: '(?=a)' } },
    { expression: "x.o.matches('a')", gives: 'error', cost: 2, with: { x: {} } },
    { expression: "'a'.find(x.o)", gives: 'error', cost: 3, with: { x: {} } },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost, with: activation }) => {
    const outcome = run(expression, activation)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
