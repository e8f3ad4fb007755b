import { JsonDouble } from '../json.ts'
import { TIMESTAMP_MIN } from './arithmetic.ts'
import {
  type CelValue,
  Duration,
  isList,
  isMap,
  Message,
  mapSize,
  Timestamp,
  Uint,
} from './values.ts'

/** True for the zero value of a type: false, 0, "", empty, null, and for a timestamp the first of year 1, as in Go. An optional has none. */
export function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === '') return true
  // Loose equality: 0, -0 and 0n are all zero.
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value) === 0
  if (value instanceof JsonDouble) return value.value === 0
  if (value instanceof Uint) return value.value === 0n
  if (isList(value) || value instanceof Uint8Array) return value.length === 0
  if (value instanceof Duration) return value.ns === 0n
  if (value instanceof Timestamp) return value.ns === TIMESTAMP_MIN
  if (value instanceof Message) return value.fields.size === 0
  return typeof value === 'object' && isMap(value) && mapSize(value) === 0
}
