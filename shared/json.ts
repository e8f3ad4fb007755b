import { fromUtf8 } from './bytes.ts'
import { AdmissionError } from './errors.ts'
import { MAX_JSON_DEPTH } from './limits.ts'

/**
 * A JSON value as the engine holds it. Ordinary numbers are JavaScript numbers; an integer beyond 2^53 is a bigint and a
 * number written with a fraction or exponent whose value is integral (`1.0`, `1e3`) is a JsonDouble, so that both
 * survive and CEL can tell `int` from `double`. An integer that does not fit 64 bits is a JsonDouble too, because the
 * API server decodes it to a float.
 */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | JsonDouble
  | JsonValue[]
  | { [key: string]: JsonValue }

/** A number whose text says it is not an integer although its value is, such as `1.0`. */
export class JsonDouble {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** True for a JSON object: not null, not an array, not a JsonDouble. */
export function isJsonObject(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof JsonDouble)
  )
}

/** The own value of a key, or undefined: `__proto__` and inherited names are never found by accident. */
export function getOwn(object: { [key: string]: JsonValue }, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Sets an own, ordinary member whatever its name; a plain assignment to `__proto__` would set the prototype. */
export function setOwn(object: { [key: string]: JsonValue }, key: string, value: JsonValue): void {
  if (key !== '__proto__') object[key] = value
  else {
    Object.defineProperty(object, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    })
  }
}

/** A deep copy that shares nothing mutable with the original. */
export function copyJson(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(copyJson)
  if (!isJsonObject(value)) return value
  const out: { [key: string]: JsonValue } = {}
  for (const [key, member] of Object.entries(value)) setOwn(out, key, copyJson(member))
  return out
}

export interface ParseOptions {
  /** Deepest nesting of arrays and objects; the default is `MAX_JSON_DEPTH`. */
  maxDepth?: number
  /** Most values in it, those inside others included; as many as there are by default. */
  maxValues?: number
}

/**
 * The value of strictly decoded UTF-8 JSON bytes. Throws `JSON_INVALID` as `parseJson` does, and for a byte order mark or
 * bytes that are not UTF-8.
 */
export function decodeJson(bytes: Uint8Array, options: ParseOptions = {}): JsonValue {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new AdmissionError('JSON_INVALID', 'JSON must not begin with a byte order mark')
  }
  let text: string
  try {
    text = fromUtf8(bytes)
  } catch (cause) {
    throw new AdmissionError('JSON_INVALID', 'JSON is not valid UTF-8', { cause })
  }
  return parseJson(text, options)
}

/**
 * The value of a JSON text (RFC 8259). Throws `JSON_INVALID` with the position for anything else, and for a key that
 * occurs twice in one object (readers disagree about which one counts), nesting beyond `maxDepth`, more than `maxValues`, and a
 * number that is not finite. Ordinary texts are parsed by the platform; a linear scan finds those that need the exact parser.
 */
export function parseJson(text: string, options: ParseOptions = {}): JsonValue {
  const bounds: Bounds = {
    maxDepth: options.maxDepth ?? MAX_JSON_DEPTH,
    maxValues: options.maxValues ?? Number.POSITIVE_INFINITY,
  }
  const members = scan(text, bounds)
  if (members === undefined) return new Parser(text, bounds).document()
  let value: JsonValue
  try {
    // Without a reviver JSON.parse gives exactly the members of JsonValue that are not bigint or JsonDouble.
    value = JSON.parse(text) as JsonValue
  } catch (cause) {
    // The platform's message quotes the body and its position differs per engine: let our own parser say where.
    new Parser(text, bounds).document()
    throw new AdmissionError('JSON_INVALID', 'JSON is not valid', { cause })
  }
  return countMembers(value) === members ? value : new Parser(text, bounds).document()
}

type Bounds = Required<ParseOptions>

const QUOTE = 0x22
const BACKSLASH = 0x5c
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39

/**
 * How many object members a text has if it is valid JSON, or undefined when the platform's parser would lose something:
 * a long integer, `1.0`; or when it is past a bound, which the exact parser then says. Fewer members after parsing than colons here means a duplicate key.
 */
function scan(text: string, { maxDepth, maxValues }: Bounds): number | undefined {
  let depth = 0
  let members = 0
  let values = 1
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) {
      i = endOfString(text, i)
      if (i < 0) return undefined
    } else if (c === 0x3a) members++
    else if (c === 0x2c) {
      if (++values > maxValues) return undefined
    } else if (c === 0x7b || c === 0x5b) {
      if (++depth > maxDepth || ++values > maxValues) return undefined
    } else if (c === 0x7d || c === 0x5d) depth--
    else if (c === MINUS || (c >= ZERO && c <= NINE)) {
      const end = endOfDigits(text, i)
      const next = text.charCodeAt(end)
      const integer = next !== 0x2e && next !== 0x65 && next !== 0x45
      if (!integer || end - i > 15) {
        const numberEnd = integer ? end : endOfNumber(text, end)
        if (!isPlain(text.slice(i, numberEnd))) return undefined
        i = numberEnd - 1
      } else i = end - 1
    }
  }
  return members
}

/** Index of the closing quote of the string that opens at `start`, or −1. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) return i
    if (c === BACKSLASH) i++
  }
  return -1
}

/** Index after the digits that follow `start`, which is a minus sign or the first digit. */
function endOfDigits(text: string, start: number): number {
  for (let i = start + 1; ; i++) {
    const c = text.charCodeAt(i)
    // NaN past the end of the text fails the comparison too.
    if (!(c >= ZERO && c <= NINE)) return i
  }
}

const AFTER_DIGITS = /[0-9.eE+-]*/y

/** Index after the fraction and exponent that begin at `start`. */
function endOfNumber(text: string, start: number): number {
  AFTER_DIGITS.lastIndex = start
  AFTER_DIGITS.test(text)
  return AFTER_DIGITS.lastIndex
}

/** True when a JavaScript number holds all that the number's text says. */
function isPlain(token: string): boolean {
  const value = Number(token)
  if (!Number.isFinite(value)) return false
  return /[.eE]/.test(token) ? !Number.isInteger(value) : Number.isSafeInteger(value)
}

function countMembers(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0
  let members = 0
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') members += countMembers(item)
    return members
  }
  // A value straight from JSON.parse: arrays aside, every object is a plain one.
  const object = value as { [key: string]: JsonValue }
  const keys = Object.keys(object)
  members = keys.length
  for (const key of keys) {
    const member = object[key] as JsonValue
    if (typeof member === 'object') members += countMembers(member)
  }
  return members
}

const MAX_INT64 = 2n ** 63n - 1n
const MIN_INT64 = -(2n ** 63n)
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y
const LITERALS: readonly [string, JsonValue][] = [
  ['true', true],
  ['false', false],
  ['null', null],
]

/** The exact parser: keeps what JavaScript numbers lose, and says what is wrong and where. */
class Parser {
  readonly #text: string
  readonly #bounds: Bounds
  #at = 0
  #values = 0

  constructor(text: string, bounds: Bounds) {
    this.#text = text
    this.#bounds = bounds
  }

  document(): JsonValue {
    const value = this.#value(1)
    if (this.#peek() !== '') throw this.#unexpected('the end')
    return value
  }

  #value(depth: number): JsonValue {
    const c = this.#peek()
    if (++this.#values > this.#bounds.maxValues) {
      throw this.#fault(`it holds more than ${this.#bounds.maxValues} values`, this.#at)
    }
    if (c === '{') return this.#object(depth)
    if (c === '[') return this.#array(depth)
    if (c === '"') return this.#string()
    if (c === '-' || (c >= '0' && c <= '9')) return this.#number()
    for (const [word, value] of LITERALS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length
        return value
      }
    }
    throw this.#unexpected('a value')
  }

  #object(depth: number): JsonValue {
    this.#open(depth)
    const out: { [key: string]: JsonValue } = {}
    if (this.#take('}')) return out
    do {
      if (this.#peek() !== '"') throw this.#unexpected('a key')
      const at = this.#at
      const key = this.#string()
      if (Object.hasOwn(out, key)) throw this.#fault(`key ${show(key)} occurs twice`, at)
      this.#expect(':')
      setOwn(out, key, this.#value(depth + 1))
    } while (this.#take(','))
    this.#expect('}')
    return out
  }

  #array(depth: number): JsonValue {
    this.#open(depth)
    const out: JsonValue[] = []
    if (this.#take(']')) return out
    do out.push(this.#value(depth + 1))
    while (this.#take(','))
    this.#expect(']')
    return out
  }

  #open(depth: number): void {
    if (depth > this.#bounds.maxDepth) {
      throw this.#fault(`nesting is deeper than ${this.#bounds.maxDepth} levels`, this.#at)
    }
    this.#at++
  }

  #string(): string {
    const start = this.#at
    const end = endOfString(this.#text, start)
    if (end < 0) throw this.#fault('a string is not closed', start)
    const token = this.#text.slice(start, end + 1)
    this.#at = end + 1
    try {
      // A JSON text that begins with a quote and parses is a string.
      return JSON.parse(token) as string
    } catch (cause) {
      throw this.#fault('a string has a raw control character or a bad escape', start, cause)
    }
  }

  #number(): JsonValue {
    NUMBER.lastIndex = this.#at
    const match = NUMBER.exec(this.#text)
    if (match === null) throw this.#unexpected('a number')
    const [token, fraction, exponent] = match
    const value = Number(token)
    if (!Number.isFinite(value)) throw this.#fault('a number is out of range', this.#at)
    this.#at += token.length
    if (fraction !== undefined || exponent !== undefined) {
      return Number.isInteger(value) ? new JsonDouble(value) : value
    }
    if (Number.isSafeInteger(value)) return value
    const integer = BigInt(token)
    return integer >= MIN_INT64 && integer <= MAX_INT64 ? integer : new JsonDouble(value)
  }

  /** The next character that is not white space, or '' at the end. */
  #peek(): string {
    for (; this.#at < this.#text.length; this.#at++) {
      const c = this.#text.charCodeAt(this.#at)
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return this.#text.charAt(this.#at)
    }
    return ''
  }

  #take(c: string): boolean {
    if (this.#peek() !== c) return false
    this.#at++
    return true
  }

  #expect(c: string): void {
    if (!this.#take(c)) throw this.#unexpected(`"${c}"`)
  }

  #unexpected(expected: string): AdmissionError {
    const found = this.#peek()
    return this.#fault(
      `expected ${expected}, found ${found === '' ? 'the end' : show(found)}`,
      this.#at,
    )
  }

  #fault(message: string, at: number, cause?: unknown): AdmissionError {
    const before = this.#text.slice(0, at)
    const line = before.split('\n').length
    const column = at - before.lastIndexOf('\n')
    const where = `offset ${at} (line ${line}, column ${column})`
    return new AdmissionError('JSON_INVALID', `JSON is not valid at ${where}: ${message}`, {
      cause,
    })
  }
}

function show(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

/** Compact JSON text in member order; `parseJson` gives back the same value, bigint and JsonDouble included. */
export function stringifyJson(value: JsonValue): string {
  return write(value, Object.keys, JSON.stringify)
}

/** Compact JSON text with sorted keys: equal values have one text, so it can be hashed. */
export function canonicalJson(value: JsonValue): string {
  return write(value, sortedKeys, JSON.stringify)
}

/** JSON text as Go's encoder writes a map: keys sorted, and `<`, `>`, `&`, U+2028, U+2029 escaped. */
export function goJson(value: JsonValue): string {
  return write(value, sortedKeys, goJsonString)
}

/** A string as Go's JSON encoder writes it. */
export function goJsonString(text: string): string {
  return JSON.stringify(text.replace(/\p{Cs}/gu, '\ufffd')).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function sortedKeys(object: object): string[] {
  return Object.keys(object).sort()
}

function write(
  value: JsonValue,
  keys: (object: object) => string[],
  quote: (text: string) => string,
): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') return `${value}`
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? writeInteger(value) : writeDouble(value)
  }
  if (value instanceof JsonDouble) return writeDouble(value.value)
  if (Array.isArray(value)) return `[${value.map((item) => write(item, keys, quote)).join(',')}]`
  if (!isJsonObject(value)) throw new TypeError(`not a JSON value: ${typeof value}`)
  const members = keys(value).map(
    (key) => `${quote(key)}:${write(value[key] as JsonValue, keys, quote)}`,
  )
  return `{${members.join(',')}}`
}

function writeInteger(value: number): string {
  return Object.is(value, -0) ? '-0' : `${value}`
}

function writeDouble(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`not a JSON number: ${value}`)
  const text = writeInteger(value)
  return /[.e]/.test(text) ? text : `${text}.0`
}
