/**
 * Image globs as Kyverno understands them: the gobwas syntax compiled without separators, so `*` and `**` both match any text,
 * `/` included. `?` is one character, `[abc]`, `[a-z]` and `[!…]` are one character of a set, `{a,b}` is one of several
 * patterns, `\` takes the next character literally. Anchored at both ends, case-sensitive (image-validating-policy.md 3.8).
 */
export interface Glob {
  readonly pattern: string
  /** True when the whole text matches. Time is at most text length × pattern length, whatever either holds. */
  matches(text: string): boolean
}

/**
 * The glob of a pattern that has no wildcards but stars, or undefined for any other. Nearly every pattern is of that kind, and the platform
 * finds its literal pieces many times faster than the steps of `glob.ts` do. What it is given was checked when the policy was loaded.
 */
export function plainGlob(pattern: string): Glob | undefined {
  if (/[?[{\\]/.test(pattern)) return undefined
  const pieces = pattern.split(/\*+/)
  return { pattern, matches: (text) => isJoined(pieces, text) }
}

/** True when the text is the pieces in their order with any text between them: leftmost first, the last at the end. */
function isJoined([first = '', ...rest]: readonly string[], text: string): boolean {
  const last = rest.pop()
  if (last === undefined) return text === first
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const piece of rest) {
    const found = text.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
