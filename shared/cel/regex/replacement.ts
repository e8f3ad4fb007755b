/** The parts of a replacement: texts, and numbers for `\\0` to `\\9`. Throws when it is not well formed. */
export function parseReplacement(replacement: string, groups: number): (string | number)[] {
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
