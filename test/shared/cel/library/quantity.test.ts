import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** Kubernetes quantities and semantic versions. */

describe('quantities and versions: quantities', () => {
  test.each([
    { expression: "quantity('1500m').isInteger()", gives: 'false', cost: 2 },
    { expression: "quantity('2k').asInteger()", gives: '2000', cost: 2 },
    { expression: "quantity('2Ki').asInteger()", gives: '2048', cost: 2 },
    { expression: "quantity('0.5').asInteger()", gives: 'error', cost: 2 },
    { expression: "quantity('9223372036854775807').asInteger()", gives: 'error', cost: 3 },
    { expression: "quantity('9223372036854775808').isInteger()", gives: 'false', cost: 3 },
    { expression: "quantity('500m').asApproximateFloat()", gives: '0.5', cost: 2 },
    { expression: "quantity('1.5Gi').asApproximateFloat()", gives: '1.610612736e+09', cost: 2 },
    { expression: "quantity('1e3') == quantity('1k')", gives: 'true', cost: 3 },
    { expression: "quantity('1Gi').isGreaterThan(quantity('1G'))", gives: 'true', cost: 3 },
    { expression: "quantity('0.1n').compareTo(quantity('1n'))", gives: '0', cost: 3 },
    { expression: "quantity('-1').isLessThan(quantity('0'))", gives: 'true', cost: 3 },
    { expression: "sign(quantity('-5'))", gives: '-1', cost: 2 },
    { expression: "sign(quantity('0'))", gives: '0', cost: 2 },
    {
      expression: "quantity('1').add(quantity('500m')).compareTo(quantity('1.5'))",
      gives: '0',
      cost: 5,
    },
    { expression: "quantity('1Ki').sub(24).asInteger()", gives: '1000', cost: 3 },
    { expression: "quantity('1').add(1) == quantity('2')", gives: 'true', cost: 4 },
    { expression: "quantity('2') == quantity('1').add(1)", gives: 'error', cost: 4 },
    { expression: "quantity('2') != quantity('1').add(1)", gives: 'true', cost: 4 },
    { expression: "[quantity('2')] == [quantity('1').add(1)]", gives: 'true', cost: 24 },
    { expression: "quantity('1') == dyn(1)", gives: 'error', cost: 2 },
    { expression: "quantity('ten')", gives: 'error', cost: 1 },
    { expression: "quantity('10Zi')", gives: 'error', cost: 1 },
    { expression: "quantity('')", gives: 'error', cost: 0 },
    { expression: "quantity('1 ')", gives: 'error', cost: 1 },
    { expression: "quantity('+0010')", gives: '+0010', cost: 1 },
    { expression: "isQuantity('1.5Mi')", gives: 'true', cost: 1 },
    { expression: "isQuantity('1.5MiB')", gives: 'false', cost: 1 },
    {
      expression: "quantity('99999999999999999999Ei').compareTo(quantity('9223372036854775807'))",
      gives: '0',
      cost: 6,
    },
    {
      expression: "quantity('1e2147483647').isGreaterThan(quantity('1e2147483646'))",
      gives: 'true',
      cost: 5,
    },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('quantities and versions: versions', () => {
  test.each([
    { expression: "semver('1.2.3').major()", gives: '1', cost: 2 },
    { expression: "semver('1.2.3').minor()", gives: '2', cost: 2 },
    { expression: "semver('1.2.3').patch()", gives: '3', cost: 2 },
    { expression: "semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))", gives: 'true', cost: 3 },
    {
      expression: "semver('1.2.3-rc.2').isGreaterThan(semver('1.2.3-rc.1'))",
      gives: 'true',
      cost: 3,
    },
    { expression: "semver('1.2.3-rc.10').compareTo(semver('1.2.3-rc.9'))", gives: '1', cost: 4 },
    { expression: "semver('1.2.3-alpha').compareTo(semver('1.2.3-1'))", gives: '1', cost: 4 },
    { expression: "semver('1.2.3-a.b').compareTo(semver('1.2.3-a'))", gives: '1', cost: 3 },
    { expression: "semver('1.2.3+build1') == semver('1.2.3+build2')", gives: 'true', cost: 5 },
    { expression: "semver('v1.2.3')", gives: 'error', cost: 1 },
    { expression: "semver('v1.2.3', true) == semver('1.2.3')", gives: 'true', cost: 3 },
    { expression: "semver('01.02', true).compareTo(semver('1.2.0'))", gives: '0', cost: 3 },
    { expression: "semver('1.2-rc', true)", gives: 'error', cost: 1 },
    { expression: "semver('1.2')", gives: 'error', cost: 1 },
    { expression: "semver('1.02.3')", gives: 'error', cost: 1 },
    { expression: "semver('1.2.3-01')", gives: 'error', cost: 1 },
    { expression: "semver('')", gives: 'error', cost: 0 },
    { expression: "isSemver('1.2.3')", gives: 'true', cost: 1 },
    { expression: "isSemver('1.2')", gives: 'false', cost: 1 },
    { expression: "isSemver('v1', true)", gives: 'true', cost: 1 },
    { expression: "semver('18446744073709551616.0.0')", gives: 'error', cost: 3 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
