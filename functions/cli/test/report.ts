import type { Io } from '../io.ts'
import { faultList } from '../output.ts'
import type { Row } from './judge.ts'
import type { Ran } from './run.ts'

/** What all tests gave together. */
export interface Totals {
  passed: number
  failed: number
  /** Rows that passed because the policy is not about the resource. */
  excluded: number
  /** Tests that could not be run. */
  errors: number
  /** Tests that are about other kinds of policies only. */
  skipped: number
}

/** Counts rows and tests. */
export function totalsOf(tests: readonly Ran[]): Totals {
  const rows = tests.flatMap((test) => test.rows)
  return {
    passed: rows.filter(({ ok }) => ok).length,
    failed: rows.filter(({ ok }) => !ok).length,
    excluded: rows.filter(({ ok, got }) => ok && got === 'excluded').length,
    errors: tests.filter(({ error }) => error !== undefined).length,
    skipped: tests.filter(({ rows: own, error }) => own.length === 0 && error === undefined).length,
  }
}

/** The tests for people: a line each row, and why where it is not as expected. */
export function testText(io: Io, tests: readonly Ran[]): string {
  const { bold, dim, red } = io.colors
  const parts = tests.map(({ title, file, rows, others, error, faults = [] }) => {
    const head = `${bold(title)} ${dim(file)}\n`
    const wrong = error === undefined ? '' : `  ${red('error')} ${error}\n${faultList(faults)}`
    const left = others > 0 ? dim(`  ${count(others, 'result')} of other policies left out\n`) : ''
    return `${head}${table(io, rows)}${left}${wrong}`
  })
  return `${parts.join('\n')}\n${totalText(io, tests)}`
}

function table(io: Io, rows: readonly Row[]): string {
  const { green, red, yellow, dim } = io.colors
  const widths = [rows.map(({ policy }) => policy), rows.map(({ resource }) => resource)].map(
    (texts) => Math.max(0, ...texts.map(({ length }) => length)),
  )
  const [policyWidth = 0, resourceWidth = 0] = widths
  return rows
    .map(({ policy, resource, expected, got, ok, message }) => {
      const mark = ok ? green('✓') : red('✗')
      const result = got === expected ? got : `${ok ? yellow(got) : red(got)}, expected ${expected}`
      const why = ok ? '' : dim(`\n      ${message}`)
      return `  ${mark} ${policy.padEnd(policyWidth)}  ${resource.padEnd(resourceWidth)}  ${result}${why}\n`
    })
    .join('')
}

function totalText(io: Io, tests: readonly Ran[]): string {
  const { green, red } = io.colors
  const { passed, failed, excluded, errors, skipped } = totalsOf(tests)
  const without =
    excluded > 0 ? ` (${excluded} only because the policy is not about the resource)` : ''
  const parts = [
    green(`${passed} passed`) + without,
    failed > 0 ? red(`${failed} failed`) : '0 failed',
    ...(errors > 0 ? [red(`${count(errors, 'test')} could not be run`)] : []),
    ...(skipped > 0 ? [`${count(skipped, 'test')} of other policies left out`] : []),
  ]
  return `${count(tests.length, 'test')}: ${parts.join(', ')}\n`
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}

/** The tests as JUnit XML: a suite for each test file, a case for each row. */
export function toJunit(tests: readonly Ran[]): string {
  const suites = tests.map((test) => {
    const failures = test.rows.filter(({ ok }) => !ok).length
    const errors = test.error === undefined ? 0 : 1
    const cases = [
      ...test.rows.map(caseOf),
      ...(test.error === undefined
        ? []
        : [
            `    <testcase name="run" classname="${xml(test.title)}"><error message="${xml(test.error)}"/></testcase>\n`,
          ]),
    ]
    const counts = `tests="${cases.length}" failures="${failures}" errors="${errors}"`
    return `  <testsuite name="${xml(test.title)}" file="${xml(test.file)}" ${counts}>\n${cases.join('')}  </testsuite>\n`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`
}

function caseOf({ policy, resource, expected, got, ok, message }: Row): string {
  const head = `    <testcase classname="${xml(policy)}" name="${xml(`${resource} ${expected}`)}"`
  if (ok) return `${head}/>\n`
  const text = `expected ${expected}, got ${got}: ${message}`
  return `${head}><failure message="${xml(text)}"/></testcase>\n`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
}

/** Text inside an attribute; characters that XML has no way to write are left out. */
function xml(text: string): string {
  const written = [...text].filter(isWritable).join('')
  return written.replace(/[&<>"\n]/g, (each) => ENTITIES[each] ?? each)
}

/** XML 1.0 has no way to write other control characters. */
function isWritable(character: string): boolean {
  return character >= ' ' ? !['\ufffe', '\uffff'].includes(character) : '\t\n\r'.includes(character)
}
