import type { JsonValue } from '#shared/json.ts'

/** Where an object is not as expected, or undefined: members that are not expected do not matter, items of lists have to be as many. */
export function difference(
  expected: JsonValue,
  got: JsonValue | undefined,
  at = '',
): string | undefined {
  if (Array.isArray(expected)) {
    if (!Array.isArray(got) || got.length !== expected.length) return told(expected, got, at)
    return firstOf(expected.map((item, index) => difference(item, got[index], `${at}[${index}]`)))
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof got !== 'object' || got === null || Array.isArray(got))
      return told(expected, got, at)
    const entries = Object.entries(expected)
    // An empty object is expected to be one.
    if (entries.length === 0 && Object.keys(got).length > 0) return told(expected, got, at)
    const members = got as Record<string, JsonValue>
    return firstOf(entries.map(([name, item]) => difference(item, members[name], `${at}.${name}`)))
  }
  return expected === got ? undefined : told(expected, got, at)
}

function firstOf(found: readonly (string | undefined)[]): string | undefined {
  return found.find((each) => each !== undefined)
}

function told(expected: JsonValue, got: JsonValue | undefined, at: string): string {
  return `${at}: ${JSON.stringify(got)?.slice(0, 200)}, expected ${JSON.stringify(expected).slice(0, 200)}`
}
