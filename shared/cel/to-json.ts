import { toBase64 } from '../bytes.ts'
import { JsonDouble, type JsonValue } from '../json.ts'
import { durationToString, timestampToString } from './library/time.ts'
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

/**
 * The value as JSON, or the error when it has none (types): bytes as base64, timestamps and durations as text, uint as an
 * integer, opaque values as their key, an absent optional as null, map keys as text. Plain JSON is given as it is.
 */
export function toJson(value: CelValue): JsonValue | CelError {
  switch (typeof value) {
    case 'object':
      return objectToJson(value)
    default:
      return value
  }
}

function objectToJson(value: CelValue & (object | null)): JsonValue | CelError {
  if (value === null || value instanceof JsonDouble) return value
  if (isList(value)) return listToJson(value)
  if (value instanceof Uint8Array) return toBase64(value)
  if (value instanceof CelMap || !(value instanceof CelObject)) return mapToJson(value)
  if (value instanceof Uint) return integer(value.value)
  if (value instanceof Timestamp) return timestampToString(value)
  if (value instanceof Duration) return durationToString(value)
  if (value instanceof Opaque) return value.key
  if (value instanceof Optional) return value.value === undefined ? null : toJson(value.value)
  if (value instanceof Message) return fieldsToJson(value.fields)
  return new CelError(`no JSON for a value of type ${typeName(value)}`)
}

function integer(value: bigint): number | bigint {
  const narrow = Number(value)
  return Number.isSafeInteger(narrow) ? narrow : value
}

function listToJson(values: Iterable<CelValue>): JsonValue | CelError {
  const out: JsonValue[] = []
  for (const value of values) {
    const json = toJson(value)
    if (json instanceof CelError) return json
    out.push(json)
  }
  return out
}

function mapToJson(map: CelMap | { [key: string]: CelValue }): JsonValue | CelError {
  return fieldsToJson(
    Array.from(mapEntries(map), ([key, value]): [string, CelValue] => [debugText(key), value]),
  )
}

function fieldsToJson(entries: Iterable<[string, CelValue]>): JsonValue | CelError {
  const out: [string, JsonValue][] = []
  for (const [key, value] of entries) {
    const json = toJson(value)
    if (json instanceof CelError) return json
    out.push([key, json])
  }
  // fromEntries defines own properties, so `__proto__` is a key like any other.
  return Object.fromEntries(out)
}
