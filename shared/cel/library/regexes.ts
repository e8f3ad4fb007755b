import { int, type Library, regexOverload, string } from '../implementation.ts'
import type { Regex } from '../types.ts'
import { CelError, type CelResult, NONE, Optional } from '../values.ts'

function wholes(text: string, pattern: Regex, limit?: number): string[] {
  return pattern.matches(text, limit).map(([whole = '']) => whole)
}

function find(text: string, pattern: Regex): string {
  return wholes(text, pattern, 1)[0] ?? ''
}

/** At most `count` matches; negative means all. */
function findAll(text: string, pattern: Regex, count: number | bigint = -1): string[] {
  return count < 0 ? wholes(text, pattern) : wholes(text, pattern, Number(count))
}

const EAGER = { eager: true } as const

/** The API server's regular expression functions. */
export const kubernetesRegexes: Library = {
  string_find_string: regexOverload('find', [string, string], find, EAGER),
  string_find_all_string: regexOverload('findAll', [string, string], findAll, EAGER),
  string_find_all_string_int: regexOverload('findAll', [string, string, int], findAll, EAGER),
}

const TOO_MANY_GROUPS = new CelError('regular expression has more than one capturing group')

/** What a match gives: the whole of it, or its only group, and then nothing when that is empty. */
function extracted([whole, group]: readonly (string | undefined)[], groups: number) {
  return groups === 0 ? whole : group || undefined
}

function extract(text: string, pattern: Regex): CelResult {
  if (pattern.groups > 1) return TOO_MANY_GROUPS
  const [match] = pattern.matches(text, 1)
  const value = match && extracted(match, pattern.groups)
  return value === undefined ? NONE : new Optional(value)
}

function extractAll(text: string, pattern: Regex): CelResult {
  if (pattern.groups > 1) return TOO_MANY_GROUPS
  const out: string[] = []
  for (const match of pattern.matches(text)) {
    const value = extracted(match, pattern.groups)
    if (value !== undefined) out.push(value)
  }
  return out
}

function replace(text: string, pattern: Regex, replacement: string, count: number | bigint = -1) {
  if (count === 0) return text
  try {
    return count < 0
      ? pattern.replace(text, replacement)
      : pattern.replace(text, replacement, Number(count))
  } catch (thrown) {
    return new CelError(thrown instanceof Error ? thrown.message : String(thrown))
  }
}

/** cel-go's `regex.` functions. */
export const regexExtension: Library = {
  regex_extract_string_string: regexOverload('regex.extract', [string, string], extract),
  regex_extractAll_string_string: regexOverload('regex.extractAll', [string, string], extractAll),
  regex_replaceAll_string_string_string: regexOverload(
    'regex.replace',
    [string, string, string],
    replace,
  ),
  regex_replaceCount_string_string_string_int: regexOverload(
    'regex.replace',
    [string, string, string, int],
    replace,
  ),
}
