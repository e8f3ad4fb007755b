/** A token's kind: punctuation and keywords are themselves, the others are classes. `bad` cannot start any token. */
export type TokenKind =
  | 'end'
  | 'bad'
  | 'ident'
  | 'quoted'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'true'
  | 'false'
  | 'null'
  | 'in'
  | Punctuation

type Punctuation = (typeof PUNCTUATION)[number]

/** Longer ones first. */
const PUNCTUATION = [
  '==',
  '!=',
  '<=',
  '>=',
  '&&',
  '||',
  '<',
  '>',
  '[',
  ']',
  '{',
  '}',
  '(',
  ')',
  '.',
  ',',
  '-',
  '!',
  '?',
  ':',
  '+',
  '*',
  '/',
  '%',
] as const

/** A piece of the source: UTF-16 offsets, `end` exclusive. */
export interface Token {
  kind: TokenKind
  start: number
  end: number
}

/** The tokens of an expression in order, `end` last; white space and comments are left out. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = []
  let at = skipBlank(source, 0)
  while (at < source.length) {
    const token = nextToken(source, at)
    tokens.push(token)
    at = skipBlank(source, token.end)
  }
  tokens.push({ kind: 'end', start: source.length, end: source.length })
  return tokens
}

const BLANK = /(?:[\t \r\n\f]+|\/\/[^\n]*)*/y
const QUOTED = /`[A-Za-z0-9_.\-/ ]+`/y
const DOUBLE = /(?:\d+\.\d+|\d+(?=[eE][+-]?\d)|\.\d+)(?:[eE][+-]?\d+)?/y
const INTEGER = /(?:0x[0-9a-fA-F]+|\d+)([uU])?/y
const STRING_START = /[bB]?[rR]?(?=["'])/y

const KEYWORDS: ReadonlySet<string> = new Set(['true', 'false', 'null', 'in'])

/** A field as it is written after a dot, back-quoted where it must be; undefined when only brackets can reach it. */
export function spellField(name: string): string | undefined {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !KEYWORDS.has(name)) return name
  return /^[A-Za-z0-9_.\-/ ]+$/.test(name) ? `\`${name}\`` : undefined
}

function skipBlank(source: string, at: number): number {
  let next = at
  while (source.charCodeAt(next) === 0x20) next++
  const code = source.charCodeAt(next)
  if (code > 0x20 && code !== 0x2f) return next
  return next + (matchAt(BLANK, source, next)?.[0].length ?? 0)
}

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(source)
}

function nextToken(source: string, start: number): Token {
  const code = source.charCodeAt(start)
  if (isLetter(code)) return wordOrString(source, start)
  if (isDigit(code) || (code === 0x2e && isDigit(source.charCodeAt(start + 1)))) {
    return numberToken(source, start)
  }
  if (code === 0x22 || code === 0x27) {
    const end = stringEnd(source, start, false)
    return end < 0 ? { kind: 'bad', start, end: ~end } : { kind: 'string', start, end }
  }
  if (code === 0x60) return quotedIdent(source, start)
  return punctuation(source, start)
}

function isLetter(code: number): boolean {
  return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function wordOrString(source: string, start: number): Token {
  const end = wordEnd(source, start)
  const word: Token = { kind: wordKind(source, start, end), start, end }
  const quote = source.charCodeAt(end)
  // Only a word of one or two letters can be the prefix of a string.
  if (end - start > 2 || (quote !== 0x22 && quote !== 0x27)) return word
  return prefixedString(source, start) ?? word
}

/** The string whose prefix starts here, such as `r'…'`; undefined when it is no prefix, or the string does not close. */
function prefixedString(source: string, start: number): Token | undefined {
  const prefix = matchAt(STRING_START, source, start)?.[0] ?? ''
  if (prefix === '') return undefined
  const end = stringEnd(source, start + prefix.length, /[rR]/.test(prefix))
  return end < 0 ? undefined : { kind: /[bB]/.test(prefix) ? 'bytes' : 'string', start, end }
}

function wordEnd(source: string, start: number): number {
  let end = start + 1
  for (let code = source.charCodeAt(end); isLetter(code) || isDigit(code); ) {
    code = source.charCodeAt(++end)
  }
  return end
}

const LONGEST_KEYWORD = 5

function wordKind(source: string, start: number, end: number): TokenKind {
  if (end - start > LONGEST_KEYWORD) return 'ident'
  const word = source.slice(start, end)
  // The set holds exactly the words that are token kinds of their own.
  return KEYWORDS.has(word) ? (word as TokenKind) : 'ident'
}

function numberToken(source: string, start: number): Token {
  const double = matchAt(DOUBLE, source, start)
  if (double !== null) return { kind: 'double', start, end: start + double[0].length }
  const integer = matchAt(INTEGER, source, start)
  const end = start + (integer?.[0].length ?? 1)
  return { kind: integer?.[1] === undefined ? 'int' : 'uint', start, end }
}

function quotedIdent(source: string, start: number): Token {
  const quoted = matchAt(QUOTED, source, start)
  if (quoted !== null) return { kind: 'quoted', start, end: start + quoted[0].length }
  return { kind: 'bad', start, end: start + 1 }
}

/** By their first character's code, longer ones first. */
const BY_CODE: readonly (readonly Punctuation[])[] = Array.from({ length: 128 }, (_, code) =>
  PUNCTUATION.filter((text) => text.charCodeAt(0) === code),
)

function punctuation(source: string, start: number): Token {
  for (const kind of BY_CODE[source.charCodeAt(start)] ?? []) {
    if (kind.length === 1 || source.charCodeAt(start + 1) === kind.charCodeAt(1)) {
      return { kind, start, end: start + kind.length }
    }
  }
  const wide = (source.codePointAt(start) ?? 0) > 0xffff
  return { kind: 'bad', start, end: start + (wide ? 2 : 1) }
}

/** End of the string whose opening quote is at `open`; `~end of what was read` when it does not close. */
function stringEnd(source: string, open: number, raw: boolean): number {
  const quote = source.charAt(open)
  if (source.charAt(open + 1) === quote && source.charAt(open + 2) === quote) {
    const triple = quote.repeat(3)
    const end = closingQuote(source, open + 3, triple, raw)
    // Three quotes that never close are an empty string and the start of another.
    return end >= 0 ? end : open + 2
  }
  return closingQuote(source, open + 1, quote, raw)
}

function closingQuote(source: string, from: number, quote: string, raw: boolean): number {
  const oneLine = quote.length === 1
  const first = quote.charCodeAt(0)
  let at = from
  while (at < source.length) {
    const code = source.charCodeAt(at)
    if (code === first && (oneLine || source.startsWith(quote, at))) return at + quote.length
    if (oneLine && (code === 0x0a || code === 0x0d)) return ~at
    if (code === 0x5c && !raw) {
      const length = escapeLength(source, at)
      if (length === 0) return ~Math.min(at + 1, source.length)
      at += length
    } else {
      at++
    }
  }
  return ~at
}

const ESCAPE_SEQUENCE =
  /\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})/y

function escapeLength(source: string, at: number): number {
  return matchAt(ESCAPE_SEQUENCE, source, at)?.[0].length ?? 0
}
