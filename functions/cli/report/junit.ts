import { messageOf } from './documents.ts'
import { type Result, summaryOf } from './fold.ts'
import { resourceText } from './text.ts'

/** JUnit XML: a suite for every policy and cluster, a case for every resource. What only warns is a failure too, and says so. */
export function* junitLines(results: readonly Result[]): Generator<string> {
  const { fail, warn, error, skip } = summaryOf(results)
  yield '<?xml version="1.0" encoding="UTF-8"?>\n'
  yield `<testsuites name="countersign" tests="${results.length}" failures="${fail + warn}" errors="${error}" skipped="${skip}">\n`
  for (const [name, suite] of suitesOf(results)) yield* suiteLines(name, suite)
  yield '</testsuites>\n'
}

function suitesOf(results: readonly Result[]): Map<string, Result[]> {
  const suites = new Map<string, Result[]>()
  for (const result of results) {
    const name = `${result.cluster}/${result.policy}`
    const suite = suites.get(name)
    if (suite === undefined) suites.set(name, [result])
    else suite.push(result)
  }
  return suites
}

function* suiteLines(name: string, results: readonly Result[]): Generator<string> {
  const { fail, warn, error, skip } = summaryOf(results)
  const counts = `tests="${results.length}" failures="${fail + warn}" errors="${error}" skipped="${skip}"`
  yield `  <testsuite name="${xml(name)}" ${counts}>\n`
  for (const result of results) {
    const { policy, ms, time } = result
    const start = `    <testcase classname="${xml(policy)}" name="${xml(resourceText(result))}" time="${Math.max(0, ms) / 1000}" timestamp="${xml(time)}"`
    const inner = innerOf(result)
    yield inner === '' ? `${start}/>\n` : `${start}>\n      ${inner}\n    </testcase>\n`
  }
  yield '  </testsuite>\n'
}

function innerOf(result: Result): string {
  const message = xml(messageOf(result))
  const images = xml(result.images.map(({ image }) => image).join('\n'))
  switch (result.status) {
    case 'pass':
      return ''
    case 'skip':
      return `<skipped message="${message}"/>`
    case 'error':
      return `<error type="${result.action}" message="${message}">${images}</error>`
    case 'fail':
    case 'warn':
      return `<failure type="${result.action}" message="${message}">${images}</failure>`
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\n': '&#10;',
  '\t': '&#9;',
  '\r': '&#13;',
}

/** Text for an element or an attribute. What XML 1.0 has no place for, not even escaped, becomes U+FFFD. */
function xml(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll(/[&<>"'\n\t\r]/g, (character) => ESCAPES[character] ?? character)
}
