import { JsonDouble } from '../json.ts'

/**
 * A CEL value. Plain JSON is a CEL value as it is, so nothing is copied on the way in:
 *
 * | CEL | here |
 * |---|---|
 * | int | a safe integer `number`, or a `bigint` outside ±(2^53 - 1) |
 * | double | any other `number`, or a JsonDouble when the value is a safe integer (`1.0`, `-0.0`) |
 * | uint, timestamp, duration, type, optional, opaque | the classes below |
 * | bytes | `Uint8Array` |
 * | list | an array |
 * | map | a plain object (string keys) or a CelMap |
 *
 * Int arithmetic on numbers is exact: a sum, difference or product of safe integers whose rounded double is itself a safe
 * integer was not rounded, and everything else goes through bigint.
 */
export type CelValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | JsonDouble
  | CelObject
  | CelValue[]
  | { [key: string]: CelValue }

/** What an evaluation step gives: a value, or an error that travels as a value. */
export type CelResult = CelValue | CelError

/** The base of every class that is a CEL value; whatever object is not one of these is a plain JSON map. */
export abstract class CelObject {
  /** The name `type()` gives. */
  abstract readonly type: string
}

/** A fault of one evaluation step. `&&`, `||`, `?:` and macros decide whether it becomes the result. */
export class CelError {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** A uint, 0 … 2^64 - 1. */
export class Uint extends CelObject {
  readonly type = 'uint'
  readonly value: bigint
  constructor(value: bigint) {
    super()
    this.value = value
  }
}

/** A point in time: nanoseconds since the epoch, years 1 to 9999. */
export class Timestamp extends CelObject {
  readonly type = 'google.protobuf.Timestamp'
  readonly ns: bigint
  /** Offset of the zone it was written in, seconds: it shows in the timestamp's text and nowhere else. */
  readonly offset: number
  constructor(ns: bigint, offset = 0) {
    super()
    this.ns = ns
    this.offset = offset
  }
}

/** A length of time in nanoseconds, an int64. */
export class Duration extends CelObject {
  readonly type = 'google.protobuf.Duration'
  readonly ns: bigint
  constructor(ns: bigint) {
    super()
    this.ns = ns
  }
}

/** A type as a value: `int`, `list`, `net.IP`. */
export class TypeValue extends CelObject {
  readonly type = 'type'
  readonly name: string
  constructor(name: string) {
    super()
    this.name = name
  }
}

/** A value that may be absent; `value` is undefined when it is. */
export class Optional extends CelObject {
  readonly type = 'optional_type'
  readonly value: CelValue | undefined
  constructor(value: CelValue | undefined) {
    super()
    this.value = value
  }
}

/** `optional.none()`. */
export const NONE = new Optional(undefined)

/** A value that only its library looks into: an IP, a quantity, an attestor. */
export abstract class Opaque extends CelObject {
  /** What stands for the value outside CEL: in host calls, in JSON, in text. */
  abstract readonly key: string
  /** CEL equality with a value of the same `type`. */
  equals(other: Opaque): boolean {
    return this.key === other.key
  }
  /** False for a value the API server cannot have on the right of `==` outside lists and maps. */
  get comparable(): boolean {
    return true
  }
  /** What cel-go's cost model takes as its size. */
  get size(): number {
    return 1
  }
}

/** Lists up to this many elements are copied when they are added, longer ones are kept as their two halves. */
const COPIED = 64
/** Longest list that is ever copied together, elements: more than any budget can pay for looking at. */
const MAX_LIST = 10_000_000

/**
 * The sum of two long lists. Adding costs 1 whatever the lengths, so it must not copy: what reads the elements one by one
 * walks the halves, and only what needs them all at once copies them together, once.
 */
export class Concat extends CelObject {
  readonly type = 'list'
  readonly length: number
  readonly #left: CelList
  readonly #right: CelList
  #flat: CelValue[] | undefined

  constructor(left: CelList, right: CelList) {
    super()
    this.#left = left
    this.#right = right
    this.length = left.length + right.length
  }

  /** The element at an index, or undefined. */
  at(index: number): CelValue | undefined {
    let list: CelList = this
    let i = index
    while (list instanceof Concat) {
      if (list.#flat !== undefined) return list.#flat[i]
      const { length }: CelList = list.#left
      if (i < length) list = list.#left
      else {
        i -= length
        list = list.#right
      }
    }
    return list[i]
  }

  *[Symbol.iterator](): Generator<CelValue> {
    const waiting: CelList[] = [this]
    for (let list = waiting.pop(); list !== undefined; list = waiting.pop()) {
      if (list instanceof Concat && list.#flat === undefined) waiting.push(list.#right, list.#left)
      else yield* list instanceof Concat ? (list.#flat ?? []) : list
    }
  }

  /** All elements in one array. */
  flat(): CelValue[] {
    if (this.length > MAX_LIST)
      throw new RangeError(`a list of ${this.length} elements is too long`)
    this.#flat ??= Array.from(this)
    return this.#flat
  }
}

/** A list as it comes: an array, or the sum of two lists. */
export type CelList = CelValue[] | Concat

/** True for a list. */
export function isList(value: CelResult): value is CelList {
  return Array.isArray(value) || value instanceof Concat
}

/** The elements of a list in one array; undefined when the value is no list. */
export function elementsOf(value: CelResult): CelValue[] | undefined {
  if (Array.isArray(value)) return value
  return value instanceof Concat ? value.flat() : undefined
}

/** The sum of two lists. */
export function concatLists(a: CelList, b: CelList): CelList {
  if (a.length === 0) return b
  if (b.length === 0) return a
  return a.length + b.length > COPIED ? new Concat(a, b) : [...a, ...b]
}

/** A message literal such as `JSONPatch{op: "add"}`: its type name and the fields that were set. */
export class Message extends CelObject {
  readonly type: string
  readonly fields: ReadonlyMap<string, CelValue>
  constructor(type: string, fields: ReadonlyMap<string, CelValue>) {
    super()
    this.type = type
    this.fields = fields
  }
}

type PlainKey = string | number | bigint | boolean

/** A map made by an expression: keys of any type, in order of insertion. */
export class CelMap extends CelObject {
  readonly type = 'map'
  readonly #plain = new Map<PlainKey, CelValue>()
  /** Entries whose key a JavaScript Map would not tell apart or not find again: uint, double, anything else. */
  #other: Map<string, [CelValue, CelValue]> | undefined

  get size(): number {
    return this.#plain.size + (this.#other?.size ?? 0)
  }

  /** The value under exactly this key, types included. */
  own(key: CelValue): CelValue | undefined {
    if (isPlainKey(key)) return this.#plain.get(key)
    return this.#other?.get(otherKey(key))?.[1]
  }

  /** The value CEL finds under this key: numbers find each other across int and uint when nothing is lost. */
  find(key: CelValue): CelValue | undefined {
    const found = this.own(key)
    if (found !== undefined || this.size === 0) return found
    for (const alias of numericAliases(key)) {
      const value = this.own(alias)
      if (value !== undefined) return value
    }
    return undefined
  }

  set(key: CelValue, value: CelValue): void {
    if (isPlainKey(key)) this.#plain.set(key, value)
    else {
      this.#other ??= new Map()
      this.#other.set(otherKey(key), [key, value])
    }
  }

  delete(key: CelValue): void {
    if (isPlainKey(key)) this.#plain.delete(key)
    else this.#other?.delete(otherKey(key))
  }

  *entries(): Generator<[CelValue, CelValue]> {
    yield* this.#plain
    if (this.#other !== undefined) yield* this.#other.values()
  }
}

function isPlainKey(key: CelValue): key is PlainKey {
  return (
    typeof key === 'string' ||
    typeof key === 'boolean' ||
    typeof key === 'bigint' ||
    (typeof key === 'number' && Number.isSafeInteger(key))
  )
}

function otherKey(key: CelValue): string {
  if (key instanceof Uint) return `u${key.value}`
  if (isDouble(key)) return `d${toNumber(key) + 0}`
  return `${typeName(key)} ${debugText(key)}`
}

/** The other numeric values a map lookup tries: a double as int and uint, an int as uint, a uint as int. */
function numericAliases(key: CelValue): CelValue[] {
  if (key instanceof Uint) return key.value <= INT_MAX ? [normalInt(key.value)] : []
  if (isInt(key)) return key >= 0 ? [new Uint(BigInt(key))] : []
  if (!isDouble(key)) return []
  const value = toNumber(key)
  if (!Number.isInteger(value)) return []
  const out: CelValue[] = []
  const exact = BigInt(value)
  if (exact >= INT_MIN && exact <= INT_MAX) out.push(normalInt(exact))
  if (exact >= 0n && exact <= UINT_MAX) out.push(new Uint(exact))
  return out
}

export const INT_MIN = -(2n ** 63n)
export const INT_MAX = 2n ** 63n - 1n
export const UINT_MAX = 2n ** 64n - 1n

/** The int of an in-range bigint in its one representation. */
export function normalInt(value: bigint): number | bigint {
  const narrow = Number(value)
  return Number.isSafeInteger(narrow) ? narrow : value
}

/** The double of a JavaScript number in its one representation. */
export function double(value: number): number | JsonDouble {
  return Number.isSafeInteger(value) ? new JsonDouble(value) : value
}

/** True for an int. */
export function isInt(value: CelValue): value is number | bigint {
  return typeof value === 'number' ? Number.isSafeInteger(value) : typeof value === 'bigint'
}

/** True for a double. */
export function isDouble(value: CelValue): value is number | JsonDouble {
  return typeof value === 'number' ? !Number.isSafeInteger(value) : value instanceof JsonDouble
}

/** The JavaScript number of a double. */
export function toNumber(value: number | JsonDouble): number {
  return typeof value === 'number' ? value : value.value
}

/** True for a map that came as JSON: a plain object and nothing else. */
export function isPlainMap(value: unknown): value is { [key: string]: CelValue } {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** True for any map. */
export function isMap(value: CelValue): value is CelMap | { [key: string]: CelValue } {
  return value instanceof CelMap || isPlainMap(value)
}

/** The own property of a plain map, or undefined: `__proto__` and `constructor` are keys like any other. */
export function ownField(map: { [key: string]: CelValue }, key: string): CelValue | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined
}

/** The value under a key, or undefined. A key that is not a string is in no JSON map. */
export function mapFind(
  map: CelMap | { [key: string]: CelValue },
  key: CelValue,
): CelValue | undefined {
  if (map instanceof CelMap) return map.find(key)
  return typeof key === 'string' ? ownField(map, key) : undefined
}

/** Number of entries of a map. */
export function mapSize(map: CelMap | { [key: string]: CelValue }): number {
  return map instanceof CelMap ? map.size : Object.keys(map).length
}

/** The entries of a map, in its own order. */
export function mapEntries(
  map: CelMap | { [key: string]: CelValue },
): Iterable<[CelValue, CelValue]> {
  return map instanceof CelMap ? map.entries() : Object.entries(map)
}

/** The name `type()` gives: `int`, `list`, `google.protobuf.Timestamp`, `net.IP`. */
export function typeName(value: CelResult): string {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'boolean':
      return 'bool'
    case 'number':
      return Number.isSafeInteger(value) ? 'int' : 'double'
    case 'bigint':
      return 'int'
    default:
      return objectTypeName(value)
  }
}

function objectTypeName(value: CelResult): string {
  if (value === null) return 'null_type'
  if (Array.isArray(value)) return 'list'
  if (value instanceof CelObject) return value.type
  if (value instanceof CelError) return 'error'
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof JsonDouble) return 'double'
  return 'map'
}

const SURROGATE = /[\ud800-\udfff]/
/** Up to this many units a look at each is faster than asking for surrogates at all. */
const SHORT = 8

/** Number of code points. */
export function runeCount(text: string): number {
  let count = text.length
  // Engines answer this for Latin-1 texts without reading them.
  if (count > SHORT && !SURROGATE.test(text)) return count
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      count--
      i++
    }
  }
  return count
}

/** Number of UTF-8 bytes; a lone surrogate counts as the three bytes of U+FFFD. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else if ((unit & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      bytes += 2
      i++
    } else bytes += 2
  }
  return bytes
}

/** cel-go's size of a value for cost: code points, bytes, entries; the size of what a present optional holds; else 1. */
export function sizeOf(value: CelResult): number {
  if (typeof value === 'string') return runeCount(value)
  if (isList(value)) return value.length
  if (value instanceof CelMap) return value.size
  if (value instanceof Opaque) return value.size
  if (value instanceof Uint8Array) return value.length
  if (value instanceof Optional) return value.value === undefined ? 1 : sizeOf(value.value)
  return isPlainMap(value) ? Object.keys(value).length : 1
}

/** Order of two strings by code point: -1, 0 or 1. UTF-16 order differs where surrogates meet U+E000 … U+FFFF. */
export function compareStrings(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return orderKey(x) < orderKey(y) ? -1 : 1
  }
  return a.length < b.length ? -1 : 1
}

/** Puts surrogates after every other code unit, which is where their code points are. */
function orderKey(unit: number): number {
  if (unit < 0xd800) return unit
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000
}

/** Order of two byte strings: -1, 0 or 1. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0)
    if (difference !== 0) return difference < 0 ? -1 : 1
  }
  return Math.sign(a.length - b.length)
}

/** A short text of a value for error messages and `join`: never meant to be parsed. */
export function debugText(value: CelResult): string {
  if (typeof value === 'string') return value
  if (value === null) return 'null'
  if (value instanceof Uint) return String(value.value)
  if (value instanceof JsonDouble) return String(value.value)
  if (value instanceof Opaque) return value.key
  if (value instanceof TypeValue) return value.name
  if (value instanceof Timestamp || value instanceof Duration) return String(value.ns)
  return typeof value === 'object' ? typeName(value) : String(value)
}
