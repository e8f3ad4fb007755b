import { concat, toBase64, utf8 } from '../bytes.ts'
import type { ConstNode } from './ast.ts'

/** What a literal token means, or the reason it means nothing. */
export type Literal = { value: ConstNode['value'] } | { error: string }

const INT_MAX = 2n ** 63n - 1n
const INT_MIN = -(2n ** 63n)
const UINT_MAX = 2n ** 64n - 1n

/** The int of `12`, `0x1f`, or of either after a minus sign. */
export function intLiteral(text: string, negative: boolean): Literal {
  const value = negative ? -BigInt(text) : BigInt(text)
  if (value > INT_MAX || value < INT_MIN) return { error: 'invalid int literal' }
  return { value: { int: value.toString() } }
}

/** The uint of `12u` or `0x1fU`. */
export function uintLiteral(text: string): Literal {
  const value = BigInt(text.slice(0, -1))
  return value > UINT_MAX
    ? { error: 'invalid uint literal' }
    : { value: { uint: value.toString() } }
}

/** The double of `1.5`, `.5` or `1e3`. Too small is zero, too large is an error. */
export function doubleLiteral(text: string, negative: boolean): Literal {
  const value = negative ? -Number(text) : Number(text)
  if (!Number.isFinite(value)) return { error: 'invalid double literal' }
  return { value: { double: Object.is(value, -0) ? '-0' : String(value) } }
}

/** The string of a quoted token, raw or not, one line or three quotes. */
export function stringLiteral(token: string): Literal {
  const { body, raw } = unquote(token)
  const text = raw ? body : unescapeText(body)
  return text === undefined ? UNESCAPE_FAILED : { value: { string: wellFormed(text) } }
}

/** The bytes of `b'…'`: characters as UTF-8, `\xhh` and octal escapes as bytes; Unicode escapes are an error. */
export function bytesLiteral(token: string): Literal {
  const { body, raw } = unquote(token.slice(1))
  const bytes = raw ? utf8(wellFormed(body)) : unescapeBytes(body)
  return bytes === undefined ? UNESCAPE_FAILED : { value: { bytes: toBase64(bytes) } }
}

const UNESCAPE_FAILED = { error: 'unable to unescape string' }

/** The text between the quotes, with every line end as `\n`. */
function unquote(token: string): { body: string; raw: boolean } {
  const raw = /^[rR]/.test(token)
  const quoted = (raw ? token.slice(1) : token).replace(/\r\n?/g, '\n')
  const width = quoted.length >= 6 && /^("""|''')/.test(quoted) ? 3 : 1
  return { body: quoted.slice(width, -width), raw }
}

const SIMPLE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['`', '`'],
  ['?', '?'],
])

const ESCAPE =
  /\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))/gs

function unescapeText(body: string): string | undefined {
  if (!body.includes('\\')) return body
  let failed = false
  const text = body.replace(ESCAPE, (_, hex, short, long, octal, char) => {
    const simple = char === undefined ? undefined : SIMPLE_ESCAPES.get(char)
    if (simple !== undefined) return simple
    const digits: string | undefined = hex ?? short ?? long
    const code = octal !== undefined ? Number.parseInt(octal, 8) : Number.parseInt(digits ?? '', 16)
    if (code <= 0x10ffff) return isSurrogate(code) ? '\ufffd' : String.fromCodePoint(code)
    failed = true
    return ''
  })
  return failed ? undefined : text
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xe000
}

function unescapeBytes(body: string): Uint8Array | undefined {
  if (!body.includes('\\')) return utf8(wellFormed(body))
  const parts: Uint8Array[] = []
  let at = 0
  for (const match of body.matchAll(ESCAPE)) {
    const byte = escapedByte(match)
    if (byte === undefined) return undefined
    parts.push(utf8(wellFormed(body.slice(at, match.index))), Uint8Array.of(byte))
    at = match.index + match[0].length
  }
  parts.push(utf8(wellFormed(body.slice(at))))
  return concat(...parts)
}

function escapedByte([, hex, , , octal, char]: RegExpMatchArray): number | undefined {
  if (hex !== undefined) return Number.parseInt(hex, 16)
  if (octal !== undefined) return Number.parseInt(octal, 8)
  return SIMPLE_ESCAPES.get(char ?? '')?.charCodeAt(0)
}

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

/** The text as Go decodes it: half of a surrogate pair is U+FFFD. */
function wellFormed(text: string): string {
  return text.replace(LONE_SURROGATE, '\ufffd')
}
