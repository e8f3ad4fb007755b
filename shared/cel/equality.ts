import { JsonDouble } from '../json.ts'
import { toil } from './frame.ts'
import {
  CelError,
  type CelList,
  CelMap,
  CelObject,
  type CelValue,
  compareBytes,
  compareStrings,
  Duration,
  isList,
  isMap,
  Message,
  mapEntries,
  mapFind,
  mapSize,
  Opaque,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
} from './values.ts'

/** Steps of looking at one part of a list or map. */
const PART_STEPS = 50

/** CEL equality: never an error; numbers compare across types, values of different types are unequal. */
export function equals(a: CelValue, b: CelValue): boolean {
  if (a === b) return true
  if (typeof a === 'string' || typeof a === 'boolean' || a === null) return false
  if (typeof b === 'string' || typeof b === 'boolean' || b === null) return false
  if (typeof a === 'number' && typeof b === 'number') return false
  if (isNumeric(a)) return isNumeric(b) && compareNumbers(a, b) === 0
  if (isList(a)) return isList(b) && equalLists(a, b)
  if (a instanceof CelMap || !(a instanceof CelObject || a instanceof Uint8Array)) {
    return isMap(a) && isMap(b) && equalMaps(a, b)
  }
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0
  return b instanceof CelObject && equalObjects(a, b)
}

/**
 * The result of `a == b`. An opaque value on the left is equal only to its own kind: anything else but null beside it is an
 * error, as it is in the API server, and makes `!=` true.
 */
export function equalResult(a: CelValue, b: CelValue): boolean | CelError {
  if (!(a instanceof Opaque) || b === null) return equals(a, b)
  if (b instanceof Opaque && a.type === b.type && b.comparable) return a.equals(b)
  return new CelError('no such overload')
}

function equalLists(a: CelList, b: CelList): boolean {
  if (a.length !== b.length) return false
  toil(PART_STEPS * a.length)
  let index = 0
  for (const element of a) {
    const other = Array.isArray(b) ? b[index] : b.at(index)
    if (other === undefined || !equals(element, other)) return false
    index++
  }
  return true
}

function equalMaps(
  a: CelMap | { [key: string]: CelValue },
  b: CelMap | { [key: string]: CelValue },
): boolean {
  const size = mapSize(a)
  if (size !== mapSize(b)) return false
  toil(PART_STEPS * size)
  for (const [key, value] of mapEntries(a)) {
    const other = mapFind(b, key)
    if (other === undefined || !equals(value, other)) return false
  }
  return true
}

function equalObjects(a: CelObject, b: CelObject): boolean {
  if (a instanceof Timestamp) return b instanceof Timestamp && a.ns === b.ns
  if (a instanceof Duration) return b instanceof Duration && a.ns === b.ns
  if (a instanceof TypeValue) return b instanceof TypeValue && a.name === b.name
  if (a instanceof Opaque) return b instanceof Opaque && a.type === b.type && a.equals(b)
  if (a instanceof Optional) return b instanceof Optional && equalOptionals(a, b)
  if (a instanceof Message) return b instanceof Message && equalMessages(a, b)
  return false
}

function equalOptionals(a: Optional, b: Optional): boolean {
  if (a.value === undefined || b.value === undefined) return a.value === b.value
  return equals(a.value, b.value)
}

function equalMessages(a: Message, b: Message): boolean {
  if (a.type !== b.type || a.fields.size !== b.fields.size) return false
  for (const [name, value] of a.fields) {
    const other = b.fields.get(name)
    if (other === undefined || !equals(value, other)) return false
  }
  return true
}

/** True for int, uint and double. */
export function isNumeric(value: CelValue): value is number | bigint | Uint | JsonDouble {
  return (
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    value instanceof Uint ||
    value instanceof JsonDouble
  )
}

/**
 * Order of two numbers of any numeric types, or undefined when one is NaN. Between an int or uint and a double,
 * cel-go rounds the integer to a double first; so do we.
 */
export function compareNumbers(
  a: number | bigint | Uint | JsonDouble,
  b: number | bigint | Uint | JsonDouble,
): number | undefined {
  const x = a instanceof Uint || a instanceof JsonDouble ? a.value : a
  const y = b instanceof Uint || b instanceof JsonDouble ? b.value : b
  if (Number.isNaN(x) || Number.isNaN(y)) return undefined
  if (isDoubleOperand(a, x) || isDoubleOperand(b, y)) return order(Number(x), Number(y))
  return order(x, y)
}

function isDoubleOperand(value: unknown, number: number | bigint): boolean {
  return (
    value instanceof JsonDouble || (typeof number === 'number' && !Number.isSafeInteger(number))
  )
}

function order(x: number | bigint, y: number | bigint): number {
  return x < y ? -1 : x > y ? 1 : 0
}

/** Order of two values of one comparable type, or the error cel-go gives when they have no order. */
export function compare(a: CelValue, b: CelValue): number | CelError {
  if (isNumeric(a) && isNumeric(b)) {
    return compareNumbers(a, b) ?? new CelError('NaN values cannot be ordered')
  }
  if (typeof a === 'string' && typeof b === 'string') return compareStrings(a, b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if (a instanceof Timestamp && b instanceof Timestamp) return order(a.ns, b.ns)
  if (a instanceof Duration && b instanceof Duration) return order(a.ns, b.ns)
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b)
  return new CelError('no such overload')
}
