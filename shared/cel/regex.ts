import type { Regex, RegexEngine } from './types.ts'

/** The RE2 engine, loaded when first asked for: not every policy needs it. */
export async function loadRegex(): Promise<RegexEngine> {
  const { compileRegex } = await import('./regex/engine.ts')

  // A pattern is checked and then planned, or meets one element after the other: mostly the last one comes again.
  let last: { pattern: string; regex: Regex } | undefined

  return {
    compile(pattern): Regex {
      if (last?.pattern !== pattern) last = { pattern, regex: compileRegex(pattern) }
      return last.regex
    },
  }
}
