import type { Regex, RegexEngine } from './types.ts'

interface Span {
  start: number
  end: number
  groups: (string | undefined)[]
}

/** The RE2 engine, loaded when first asked for: the only place that imports the package. */
export async function loadRegex(): Promise<RegexEngine> {
  const { RE2JS } = await import('re2js')
  type Compiled = ReturnType<typeof RE2JS.compile>

  /** Every match, as Go counts them: an empty one right after another match is none. */
  function spans(compiled: Compiled, text: string, limit: number): Span[] {
    const out: Span[] = []
    const matcher = compiled.matcher(text)
    let end = -1
    while (out.length < limit && matcher.find()) {
      const span = { start: matcher.start(), end: matcher.end() }
      if (span.start === span.end && span.start === end) continue
      end = span.end
      const groups: (string | undefined)[] = []
      for (let i = 0; i <= matcher.groupCount(); i++) groups.push(matcher.group(i) ?? undefined)
      out.push({ ...span, groups })
    }
    return out
  }

  // A pattern is checked and then planned, or meets one element after the other: mostly the last one comes again.
  let last: { pattern: string; regex: Regex } | undefined

  return {
    compile(pattern): Regex {
      if (last?.pattern === pattern) return last.regex
      const compiled = RE2JS.compile(pattern)
      const regex: Regex = {
        groups: compiled.groupCount(),
        test: (text) => compiled.test(text),
        matches: (text, limit = Number.POSITIVE_INFINITY) =>
          spans(compiled, text, limit).map((span) => span.groups),
        replace: (text, replacement, limit = Number.POSITIVE_INFINITY) => {
          const found = spans(compiled, text, limit)
          if (found.length === 0) return text
          const parts = parseReplacement(replacement, compiled.groupCount())
          let out = ''
          let at = 0
          for (const { start, end, groups } of found) {
            out += text.slice(at, start)
            for (const part of parts) out += typeof part === 'string' ? part : (groups[part] ?? '')
            at = end
          }
          return out + text.slice(at)
        },
      }
      last = { pattern, regex }
      return regex
    },
  }
}

/** The parts of a replacement: texts, and numbers for `\\0` to `\\9`. Throws when it is not well formed. */
function parseReplacement(replacement: string, groups: number): (string | number)[] {
  const out: (string | number)[] = []
  for (const part of replacement.split(/(\\[\s\S]?)/)) {
    if (!part.startsWith('\\')) out.push(part)
    else if (part === '\\\\') out.push('\\')
    else if (!/\d/.test(part)) {
      throw new Error(
        `invalid replacement string: '${replacement}' \\ must be followed by a digit or \\`,
      )
    } else if (Number(part.slice(1)) > groups) {
      throw new Error(
        `replacement string references group ${part.slice(1)} but regex has only ${groups} group(s)`,
      )
    } else out.push(Number(part.slice(1)))
  }
  return out
}
