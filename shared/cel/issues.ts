import type { Issue } from './types.ts'

/** Faults reported for one expression; further ones are counted, not listed. cel-go's own limit. */
export const MAX_REPORTED_ISSUES = 100

/** Source lines longer than this are not quoted under a fault, characters. cel-go's own limit. */
const MAX_QUOTED_LINE = 16_384

/** A fault at a UTF-16 offset of the source, with its one-based line and code-point column. */
export function issueAt(
  phase: Issue['phase'],
  source: string,
  offset: number,
  message: string,
): Issue {
  const at = Math.min(Math.max(offset, 0), source.length)
  let line = 1
  let lineStart = 0
  for (let i = source.indexOf('\n'); i >= 0 && i < at; i = source.indexOf('\n', i + 1)) {
    line++
    lineStart = i + 1
  }
  return { phase, message, offset: at, line, column: codePoints(source, lineStart, at) + 1 }
}

/** Code points of `text` between two UTF-16 offsets. */
export function codePoints(text: string, from = 0, to = text.length): number {
  let count = 0
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i)
    const pair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00
    if (pair && i + 1 < to) i++
    count++
  }
  return count
}

/** Issues in source order, each place and message once. */
export function sortIssues(issues: readonly Issue[]): Issue[] {
  const seen = new Set<string>()
  return issues
    .filter(({ offset, message }) => {
      const key = `${offset} ${message}`
      return seen.has(key) ? false : seen.add(key)
    })
    .sort((a, b) => a.offset - b.offset)
}

/**
 * The text cel-go prints for these issues: per issue `ERROR: <input>:line:column: message`, the source line and a caret
 * under the place. Wide characters get wide dots, as in cel-go.
 */
export function formatIssues(source: string, issues: readonly Issue[]): string {
  const lines = source.split('\n')
  const shown = issues.slice(0, MAX_REPORTED_ISSUES)
  const texts = shown.map((issue) => formatIssue(lines[issue.line - 1], issue))
  const rest = issues.length - shown.length
  return rest > 0 ? [...texts, `${rest} more errors were truncated`].join('\n') : texts.join('\n')
}

function formatIssue(sourceLine: string | undefined, issue: Issue): string {
  const head = `ERROR: <input>:${issue.line}:${issue.column}: ${issue.message}`
  if (sourceLine === undefined || sourceLine.length > MAX_QUOTED_LINE) return head
  const quoted = sourceLine.replaceAll('\t', ' ')
  const chars = [...quoted]
  const dots = chars.slice(0, issue.column - 1).map((char) => (isWide(char) ? '．' : '.'))
  const caret = isWide(chars[issue.column - 1] ?? '') ? '＾' : '^'
  return `${head}\n | ${quoted}\n | ${dots.join('')}${caret}`
}

function isWide(char: string): boolean {
  return (char.codePointAt(0) ?? 0) > 0x7f
}
