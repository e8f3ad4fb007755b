import type { Regex, RegexEngine } from './types.ts'

/** The RE2 engine, loaded when first asked for: the only place that imports the package. */
export async function loadRegex(): Promise<RegexEngine> {
  const { RE2JS } = await import('re2js')
  return {
    compile(pattern) {
      const compiled = RE2JS.compile(pattern)
      return wrap(compiled)
    },
  }

  function wrap(compiled: InstanceType<typeof RE2JS>): Regex {
    return {
      test: (text) => compiled.matcher(text).find(),
      matches: (text, limit = Number.POSITIVE_INFINITY) => {
        const out: (string | undefined)[][] = []
        const matcher = compiled.matcher(text)
        while (out.length < limit && matcher.find()) {
          const groups: (string | undefined)[] = []
          for (let i = 0; i <= matcher.groupCount(); i++) groups.push(matcher.group(i) ?? undefined)
          out.push(groups)
        }
        return out
      },
      replace: (text) => text,
    }
  }
}
