import { fromBase64, toBase64 } from '../bytes.ts'
import { JsonDouble } from '../json.ts'
import { doubleToString } from './library/cast.ts'
import { parseDuration, parseTimestamp } from './library/time.ts'
import { durationToString, timestampToUtc } from './library/time-text.ts'
import {
  CelError,
  CelMap,
  CelObject,
  type CelValue,
  Duration,
  double,
  INT_MAX,
  INT_MIN,
  isDouble,
  isList,
  Message,
  mapEntries,
  normalInt,
  Opaque,
  Optional,
  Timestamp,
  TypeValue,
  UINT_MAX,
  Uint,
} from './values.ts'

/** A CEL value as JSON that keeps its type: what conformance cases and `countersign cel` exchange. */
export type TaggedValue =
  | { int: string }
  | { uint: string }
  | { double: string }
  | { string: string }
  | { bool: boolean }
  | { bytes: string }
  | { null: true }
  | { list: TaggedValue[] }
  | { map: [TaggedValue, TaggedValue][] }
  | { type: string }
  | { timestamp: string }
  | { duration: string }
  | { optional: TaggedValue | null }
  | { opaque: string; str: string }
  | { message: string; fields: [string, TaggedValue][] }

/** Most parts of a tagged value: one that holds others twice is larger than it looks. */
const MAX_PARTS = 1_000_000

/**
 * The value with its tag; maps are sorted by the text of their keys, so that equal values have one text. Throws a RangeError
 * for a value of too many parts.
 */
export function toTagged(value: CelValue): TaggedValue {
  return tag(value, { left: MAX_PARTS })
}

/** Parts that a value may still have. */
interface Room {
  left: number
}

function tag(value: CelValue, room: Room): TaggedValue {
  room.left--
  if (room.left < 0) throw new RangeError(`a value of more than ${MAX_PARTS} parts`)
  switch (typeof value) {
    case 'string':
      return { string: value }
    case 'boolean':
      return { bool: value }
    case 'bigint':
      return { int: value.toString() }
    case 'number':
      return isDouble(value) ? { double: doubleText(value) } : { int: String(value) }
    default:
      return objectToTagged(value, room)
  }
}

function objectToTagged(value: CelValue & (object | null), room: Room): TaggedValue {
  if (value === null) return { null: true }
  if (value instanceof JsonDouble) return { double: doubleText(value.value) }
  if (isList(value)) return { list: Array.from(value, (item) => tag(item, room)) }
  if (value instanceof Uint8Array) return { bytes: toBase64(value) }
  if (value instanceof CelMap || !(value instanceof CelObject)) {
    const entries = Array.from(mapEntries(value), ([key, entry]): [TaggedValue, TaggedValue] => [
      tag(key, room),
      tag(entry, room),
    ])
    return { map: sortedByKey(entries) }
  }
  return classToTagged(value, room)
}

function classToTagged(value: CelObject, room: Room): TaggedValue {
  if (value instanceof Uint) return { uint: value.value.toString() }
  if (value instanceof Timestamp) return { timestamp: timestampToUtc(value) }
  if (value instanceof Duration) return { duration: durationToString(value) }
  if (value instanceof TypeValue) return { type: value.name }
  if (value instanceof Optional) {
    return { optional: value.value === undefined ? null : tag(value.value, room) }
  }
  if (value instanceof Message) {
    const fields = Array.from(value.fields)
    return {
      message: value.type,
      fields: fields.map(([name, field]): [string, TaggedValue] => [name, tag(field, room)]),
    }
  }
  return { opaque: value.type, str: value instanceof Opaque ? value.key : value.type }
}

function doubleText(value: number): string {
  return Number.isFinite(value) ? doubleToString(value) : String(value)
}

/** The value a tagged one stands for; throws a TypeError for a tag or a text that stands for none. */
export function fromTagged(tagged: unknown): CelValue {
  if (typeof tagged !== 'object' || tagged === null) throw notAValue(tagged)
  const [tag, content] = Object.entries(tagged)[0] ?? []
  if (tag === undefined) throw notAValue(tagged)
  const read = READERS.get(tag)
  const value = read?.(content)
  if (value === undefined || value instanceof CelError) throw notAValue(tagged)
  return value
}

function notAValue(tagged: unknown): TypeError {
  return new TypeError(`not a tagged value: ${JSON.stringify(tagged)?.slice(0, 200)}`)
}

type Reader = (content: unknown) => CelValue | CelError | undefined

function text(read: (content: string) => CelValue | CelError | undefined): Reader {
  return (content) => (typeof content === 'string' ? read(content) : undefined)
}

/** The number of at most 20 digits; undefined when it is none, or out of range. */
function integer(digits: string, min: bigint, max: bigint): bigint | undefined {
  if (!/^-?\d{1,20}$/.test(digits)) return undefined
  const value = BigInt(digits)
  return value >= min && value <= max ? value : undefined
}

function floating(digits: string): number | undefined {
  const value = Number(digits)
  return digits === '' || (Number.isNaN(value) && digits !== 'NaN') ? undefined : value
}

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['int', text((digits) => mapDefined(integer(digits, INT_MIN, INT_MAX), normalInt))],
  ['uint', text((digits) => mapDefined(integer(digits, 0n, UINT_MAX), (value) => new Uint(value)))],
  ['double', text((digits) => mapDefined(floating(digits), double))],
  ['string', text((content) => content)],
  ['bytes', text((content) => fromBase64(content))],
  ['type', text((name) => new TypeValue(name))],
  ['timestamp', text(parseTimestamp)],
  ['duration', text(parseDuration)],
  ['bool', (content) => (typeof content === 'boolean' ? content : undefined)],
  ['null', () => null],
  ['list', (content) => (Array.isArray(content) ? content.map(fromTagged) : undefined)],
  ['map', (content) => (Array.isArray(content) ? mapFromTagged(content) : undefined)],
  ['optional', (content) => new Optional(content === null ? undefined : fromTagged(content))],
])

function sortedByKey(entries: [TaggedValue, TaggedValue][]): [TaggedValue, TaggedValue][] {
  const keyed = entries.map((entry) => ({ entry, text: JSON.stringify(entry[0]) }))
  return keyed.sort((a, b) => (a.text < b.text ? -1 : 1)).map(({ entry }) => entry)
}

function mapDefined<T, R>(value: T | undefined, map: (value: T) => R): R | undefined {
  return value === undefined ? undefined : map(value)
}

function mapFromTagged(entries: readonly unknown[]): CelMap {
  const map = new CelMap()
  for (const entry of entries) {
    if (!Array.isArray(entry) || entry.length !== 2) throw notAValue(entry)
    map.set(fromTagged(entry[0]), fromTagged(entry[1]))
  }
  return map
}

/** True when two tagged values stand for the same value: maps in any order, doubles by number. */
export function sameTagged(a: TaggedValue, b: TaggedValue): boolean {
  return canonical(a) === canonical(b)
}

function canonical(value: TaggedValue): string {
  if ('double' in value) return `double ${Number(value.double)}`
  if ('list' in value) return `list ${JSON.stringify(value.list.map(canonical))}`
  if ('optional' in value) {
    return `optional ${value.optional === null ? '' : canonical(value.optional)}`
  }
  if (!('map' in value)) return JSON.stringify(value)
  return `map ${JSON.stringify(value.map.map((entry) => entry.map(canonical).join(' ')).sort())}`
}
