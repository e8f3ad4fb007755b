import { int, type Library, listOf, overload, string } from '../implementation.ts'
import { CelError, type CelResult, type CelValue, debugText } from '../values.ts'

type Int = number | bigint

const PAIR = /[\ud800-\udbff][\udc00-\udfff]/

/** The text by code points: itself when every code point is one unit. */
function runes(text: string): string | string[] {
  return PAIR.test(text) ? Array.from(text) : text
}

function textOf(part: string | string[]): string {
  return typeof part === 'string' ? part : part.join('')
}

function outOfRange(index: Int): CelError {
  return new CelError(`index out of range: ${index}`)
}

function charAt(text: string, index: Int): CelResult {
  const points = runes(text)
  if (index < 0 || index > points.length) return outOfRange(index)
  return points[Number(index)] ?? ''
}

/** Index by code points of the first occurrence at or after a place. */
function search(text: string, part: string, from: number): number {
  if (!PAIR.test(text)) return text.indexOf(part, from)
  const points = Array.from(text)
  const unit = text.indexOf(part, points.slice(0, from).join('').length)
  return unit < 0 ? -1 : Array.from(text.slice(0, unit)).length
}

function searchLast(text: string, part: string, from: number): number {
  if (!PAIR.test(text)) return text.lastIndexOf(part, from)
  const points = Array.from(text)
  const unit = text.lastIndexOf(part, points.slice(0, from).join('').length)
  return unit < 0 ? -1 : Array.from(text.slice(0, unit)).length
}

function indexOf(text: string, part: string): CelResult {
  return indexOfFrom(text, part, 0)
}

function indexOfFrom(text: string, part: string, offset: Int): CelResult {
  const { length } = runes(text)
  if (offset < 0) return outOfRange(offset)
  if (part === '') return Math.min(Number(offset), length)
  return offset >= length ? -1 : search(text, part, Number(offset))
}

function lastIndexOf(text: string, part: string): CelResult {
  const { length } = runes(text)
  if (part === '') return length
  return length === 0 ? -1 : searchLast(text, part, length - 1)
}

function lastIndexOfFrom(text: string, part: string, offset: Int): CelResult {
  const { length } = runes(text)
  if (offset < 0) return outOfRange(offset)
  if (part === '') return Math.min(Number(offset), length)
  return offset >= length ? -1 : searchLast(text, part, Number(offset))
}

function substringFrom(text: string, start: Int): CelResult {
  const points = runes(text)
  if (start < 0 || start > points.length) return outOfRange(start)
  return textOf(points.slice(Number(start)))
}

function substring(text: string, start: Int, end: Int): CelResult {
  const points = runes(text)
  if (start > end) {
    return new CelError(`invalid substring range. start: ${start}, end: ${end}`)
  }
  if (start < 0 || start > points.length) return outOfRange(start)
  if (end < 0 || end > points.length) return outOfRange(end)
  return textOf(points.slice(Number(start), Number(end)))
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function upperAscii(text: string): string {
  return text.replace(/[a-z]/g, (letter) => letter.toUpperCase())
}

function replaceAll(text: string, old: string, replacement: string): string {
  return replace(text, old, replacement, -1)
}

/** The first `count` occurrences replaced; an empty `old` is found before every code point and at the end. */
function replace(text: string, old: string, replacement: string, count: Int): string {
  if (old === replacement || count === 0) return text
  if (old === '') return insert(Array.from(text), replacement, count)
  const parts = text.split(old)
  const last = count < 0 ? parts.length - 1 : Math.min(parts.length - 1, Number(count))
  return [...parts.slice(0, last), parts.slice(last).join(old)].join(replacement)
}

function insert(points: string[], text: string, count: Int): string {
  let out = ''
  let left = count < 0 ? points.length + 1 : Number(count)
  for (const point of points) out += left-- > 0 ? text + point : point
  return left > 0 ? out + text : out
}

function splitAll(text: string, separator: string): string[] {
  return separator === '' ? Array.from(text) : text.split(separator)
}

/** At most `count` parts, the last one holding the rest; negative means all. */
function split(text: string, separator: string, count: Int): string[] {
  if (count === 0) return []
  const parts = splitAll(text, separator)
  if (count < 0 || parts.length <= count) return parts
  const kept = Number(count) - 1
  return [...parts.slice(0, kept), parts.slice(kept).join(separator)]
}

function join(separator: string, parts: readonly CelValue[]): CelResult {
  for (const part of parts) {
    if (typeof part !== 'string') return new CelError(`join: invalid input: ${debugText(part)}`)
  }
  return parts.join(separator)
}

const SPACE = '[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'
const LEADING = new RegExp(`^${SPACE}+`)
const SPACE_CHARACTER = new RegExp(SPACE)

/** Without the Unicode white space at both ends. */
function trim(text: string): string {
  let end = text.length
  while (end > 0 && SPACE_CHARACTER.test(text.charAt(end - 1))) end--
  return text.slice(0, end).replace(LEADING, '')
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

/** The text as a CEL string literal in double quotes. */
export function quote(text: string): string {
  let out = '"'
  for (const point of text) out += ESCAPES[point] ?? point
  return `${out}"`
}

function reverse(text: string): string {
  return Array.from(text).reverse().join('')
}

/** cel-go's string library without `format`. */
export const strings: Library = {
  string_char_at_int: overload('charAt', [string, int], charAt),
  string_index_of_string: overload('indexOf', [string, string], indexOf),
  string_index_of_string_int: overload('indexOf', [string, string, int], indexOfFrom),
  string_last_index_of_string: overload('lastIndexOf', [string, string], lastIndexOf),
  string_last_index_of_string_int: overload('lastIndexOf', [string, string, int], lastIndexOfFrom),
  string_lower_ascii: overload('lowerAscii', [string], lowerAscii),
  string_upper_ascii: overload('upperAscii', [string], upperAscii),
  string_replace_string_string: overload('replace', [string, string, string], replaceAll),
  string_replace_string_string_int: overload('replace', [string, string, string, int], replace),
  string_split_string: overload('split', [string, string], splitAll),
  string_split_string_int: overload('split', [string, string, int], split),
  string_substring_int: overload('substring', [string, int], substringFrom),
  string_substring_int_int: overload('substring', [string, int, int], substring),
  string_trim: overload('trim', [string], trim),
  string_reverse: overload('reverse', [string], reverse),
  list_join: overload('join', [listOf(string)], (parts) => join('', parts)),
  list_join_string: overload('join', [listOf(string), string], (parts, separator) =>
    join(separator, parts),
  ),
  strings_quote: overload('strings.quote', [string], quote),
}
