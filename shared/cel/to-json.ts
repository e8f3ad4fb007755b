import { toBase64 } from '../bytes.ts'
import { JsonDouble, type JsonValue } from '../json.ts'
import { toil } from './frame.ts'
import { durationToString, timestampToString } from './library/time-text.ts'
import {
  CelError,
  CelMap,
  CelObject,
  type CelValue,
  Duration,
  debugText,
  isList,
  Message,
  mapEntries,
  Opaque,
  Optional,
  Timestamp,
  typeName,
  Uint,
} from './values.ts'

/** Largest result, characters of text and parts of other kinds together: a value that holds others twice is larger than it looks. */
const MAX_SIZE = 4_000_000

/** Size that a result may still have. */
interface Room {
  left: number
}

/**
 * The value as JSON, or the error when it has none (types) or is too large: bytes as base64, timestamps and durations as text,
 * uint as an integer, opaque values as their key, an absent optional as null, map keys as text. Plain JSON may be given as it is.
 */
export function toJson(value: CelValue): JsonValue | CelError {
  return convert(value, { left: MAX_SIZE })
}

function convert(value: CelValue, room: Room): JsonValue | CelError {
  room.left -= typeof value === 'string' ? value.length + 1 : 1
  if (room.left < 0) return new CelError('the value is too large for JSON')
  toil(PART_STEPS)
  return typeof value === 'object' ? objectToJson(value, room) : value
}

/** Steps of converting one part. */
const PART_STEPS = 100

function objectToJson(value: CelValue & (object | null), room: Room): JsonValue | CelError {
  if (value === null || value instanceof JsonDouble) return value
  if (isList(value)) return listToJson(value, room)
  if (value instanceof Uint8Array) return convert(toBase64(value), room)
  if (value instanceof CelMap || !(value instanceof CelObject)) return mapToJson(value, room)
  if (value instanceof Uint) return integer(value.value)
  if (value instanceof Timestamp) return timestampToString(value)
  if (value instanceof Duration) return durationToString(value)
  if (value instanceof Opaque) return value.key
  if (value instanceof Optional) {
    return value.value === undefined ? null : convert(value.value, room)
  }
  if (value instanceof Message) return fieldsToJson(value.fields, room)
  return new CelError(`no JSON for a value of type ${typeName(value)}`)
}

function integer(value: bigint): number | bigint {
  const narrow = Number(value)
  return Number.isSafeInteger(narrow) ? narrow : value
}

function listToJson(values: Iterable<CelValue>, room: Room): JsonValue | CelError {
  const out: JsonValue[] = []
  for (const value of values) {
    const json = convert(value, room)
    if (json instanceof CelError) return json
    out.push(json)
  }
  return out
}

function mapToJson(map: CelMap | { [key: string]: CelValue }, room: Room): JsonValue | CelError {
  const entries = Array.from(mapEntries(map), ([key, value]): [string, CelValue] => [
    debugText(key),
    value,
  ])
  return fieldsToJson(entries, room)
}

function fieldsToJson(entries: Iterable<[string, CelValue]>, room: Room): JsonValue | CelError {
  const out: [string, JsonValue][] = []
  for (const [key, value] of entries) {
    const json = convert(value, room)
    if (json instanceof CelError) return json
    out.push([key, json])
  }
  // fromEntries defines own properties, so `__proto__` is a key like any other.
  return Object.fromEntries(out)
}
