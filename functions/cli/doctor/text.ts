import type { Io } from '../io.ts'
import type { Check, CheckStatus } from './types.ts'

const MARKS: Readonly<Record<CheckStatus, string>> = {
  ok: 'ok',
  warn: 'warn',
  fail: 'FAIL',
  skip: 'skip',
}

/** Room for the name of a check. */
const NAME_CHARS = 8

/** One line for each check, a second one with the fix, and what it comes to. */
export function doctorText(io: Io, cluster: string, checks: readonly Check[]): string {
  const { green, yellow, red, dim, bold } = io.colors
  const paint = { ok: green, warn: yellow, fail: red, skip: dim }
  const wide = Math.max(NAME_CHARS, ...checks.map(({ check }) => check.length))
  const lines = checks.flatMap(({ check, status, found, fix }) => [
    `${paint[status](MARKS[status].padEnd(4))}  ${check.padEnd(wide)}  ${found}`,
    ...(fix === undefined ? [] : [`${' '.repeat(wide + 8)}${dim('→')} ${fix}`]),
  ])
  return `${lines.join('\n')}\n${bold(verdict(cluster, checks))}\n`
}

function verdict(cluster: string, checks: readonly Check[]): string {
  const count = (status: CheckStatus) => checks.filter((each) => each.status === status).length
  const [failed, warned] = [count('fail'), count('warn')]
  if (failed > 0) return `${cluster}: ${failed} of ${checks.length} checks will hurt`
  return warned > 0
    ? `${cluster}: nothing will hurt, ${warned} to look at`
    : `${cluster}: nothing will hurt`
}
