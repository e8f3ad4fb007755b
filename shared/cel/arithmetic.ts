import { compare, equals } from './equality.ts'
import {
  CelError,
  type CelResult,
  type CelValue,
  concatLists,
  Duration,
  double,
  INT_MAX,
  INT_MIN,
  isDouble,
  isInt,
  isList,
  isMap,
  mapFind,
  normalInt,
  Optional,
  runeCount,
  sizeOf,
  Timestamp,
  toNumber,
  UINT_MAX,
  Uint,
} from './values.ts'

const OVERFLOW = 'integer overflow'
const UNSIGNED_OVERFLOW = 'unsigned integer overflow'
const DURATION_OVERFLOW = 'duration overflow'
const TIMESTAMP_OVERFLOW = 'timestamp overflow'

/** First and last nanosecond of a timestamp: years 1 and 9999. */
export const TIMESTAMP_MIN = -62_135_596_800n * 1_000_000_000n
export const TIMESTAMP_MAX = 253_402_300_799n * 1_000_000_000n + 999_999_999n

/** The int, or the overflow error. */
export function checkedInt(value: bigint): CelResult {
  return value < INT_MIN || value > INT_MAX ? new CelError(OVERFLOW) : normalInt(value)
}

/** The uint, or the overflow error. */
export function checkedUint(value: bigint): CelResult {
  return value < 0n || value > UINT_MAX ? new CelError(UNSIGNED_OVERFLOW) : new Uint(value)
}

/** The duration, or the overflow error. */
export function checkedDuration(ns: bigint): CelResult {
  return ns < INT_MIN || ns > INT_MAX ? new CelError(DURATION_OVERFLOW) : new Duration(ns)
}

/** The timestamp, or the overflow error. */
export function checkedTimestamp(ns: bigint, offset = 0): CelResult {
  return ns < TIMESTAMP_MIN || ns > TIMESTAMP_MAX
    ? new CelError(TIMESTAMP_OVERFLOW)
    : new Timestamp(ns, offset)
}

function moved(timestamp: Timestamp, ns: bigint): CelResult {
  return checkedTimestamp(timestamp.ns + ns, timestamp.offset)
}

function unsupported(fn: string): CelError {
  return new CelError(`no such overload: ${fn}`)
}

/** A result of double arithmetic on two safe integers, when it is exact; otherwise undefined. */
function exact(value: number): number | undefined {
  // Adding 0 turns -0 into 0: an int has no negative zero.
  return Number.isSafeInteger(value) ? value + 0 : undefined
}

/** `a + b`. */
export function add(a: CelValue, b: CelValue): CelResult {
  if (typeof a === 'string') return typeof b === 'string' ? a + b : unsupported('_+_')
  if (isInt(a)) {
    if (!isInt(b)) return unsupported('_+_')
    const sum = typeof a === 'number' && typeof b === 'number' ? exact(a + b) : undefined
    return sum ?? checkedInt(BigInt(a) + BigInt(b))
  }
  if (isList(a)) return isList(b) ? concatLists(a, b) : unsupported('_+_')
  if (isDouble(a)) return isDouble(b) ? double(toNumber(a) + toNumber(b)) : unsupported('_+_')
  if (a instanceof Uint)
    return b instanceof Uint ? checkedUint(a.value + b.value) : unsupported('_+_')
  if (a instanceof Timestamp && b instanceof Duration) return moved(a, b.ns)
  if (a instanceof Duration && b instanceof Timestamp) return moved(b, a.ns)
  if (a instanceof Duration && b instanceof Duration) return checkedDuration(a.ns + b.ns)
  if (a instanceof Uint8Array && b instanceof Uint8Array) return concatBytes(a, b)
  return unsupported('_+_')
}

function concatBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length)
  out.set(a)
  out.set(b, a.length)
  return out
}

/** `a - b`. */
export function subtract(a: CelValue, b: CelValue): CelResult {
  if (isInt(a) && isInt(b)) {
    const difference = typeof a === 'number' && typeof b === 'number' ? exact(a - b) : undefined
    return difference ?? checkedInt(BigInt(a) - BigInt(b))
  }
  if (isDouble(a) && isDouble(b)) return double(toNumber(a) - toNumber(b))
  if (a instanceof Uint && b instanceof Uint) return checkedUint(a.value - b.value)
  if (a instanceof Timestamp && b instanceof Duration) return moved(a, -b.ns)
  if (a instanceof Timestamp && b instanceof Timestamp) return checkedDuration(a.ns - b.ns)
  if (a instanceof Duration && b instanceof Duration) return checkedDuration(a.ns - b.ns)
  return unsupported('_-_')
}

/** `a * b`. */
export function multiply(a: CelValue, b: CelValue): CelResult {
  if (isInt(a) && isInt(b)) {
    const product = typeof a === 'number' && typeof b === 'number' ? exact(a * b) : undefined
    return product ?? checkedInt(BigInt(a) * BigInt(b))
  }
  if (isDouble(a) && isDouble(b)) return double(toNumber(a) * toNumber(b))
  if (a instanceof Uint && b instanceof Uint) return checkedUint(a.value * b.value)
  return unsupported('_*_')
}

/** `a / b`. */
export function divide(a: CelValue, b: CelValue): CelResult {
  if (isInt(a) && isInt(b)) {
    // Loose equality: 0 and 0n are both zero.
    if (Number(b) === 0) return new CelError('division by zero')
    if (typeof a === 'number' && typeof b === 'number') return (a - (a % b)) / b + 0
    return checkedInt(BigInt(a) / BigInt(b))
  }
  if (isDouble(a) && isDouble(b)) return double(toNumber(a) / toNumber(b))
  if (a instanceof Uint && b instanceof Uint) {
    return b.value === 0n ? new CelError('division by zero') : new Uint(a.value / b.value)
  }
  return unsupported('_/_')
}

/** `a % b`; the sign is that of `a`. */
export function modulo(a: CelValue, b: CelValue): CelResult {
  if (isInt(a) && isInt(b)) {
    if (Number(b) === 0) return new CelError('modulus by zero')
    if (typeof a === 'number' && typeof b === 'number') return (a % b) + 0
    // Go's own rule: the least int by -1 overflows in division, and cel-go checks the same for the remainder.
    if (a === INT_MIN && Number(b) === -1) return new CelError(OVERFLOW)
    return checkedInt(BigInt(a) % BigInt(b))
  }
  if (a instanceof Uint && b instanceof Uint) {
    return b.value === 0n ? new CelError('modulus by zero') : new Uint(a.value % b.value)
  }
  return unsupported('_%_')
}

/** `-a`. */
export function negate(a: CelValue): CelResult {
  if (isInt(a)) return typeof a === 'number' ? 0 - a : checkedInt(-a)
  if (isDouble(a)) return double(-toNumber(a))
  if (a instanceof Duration) return checkedDuration(-a.ns)
  return unsupported('-_')
}

/** `!a`. */
export function not(a: CelValue): CelResult {
  return typeof a === 'boolean' ? !a : unsupported('!_')
}

/** `a < b`, `a <= b`, `a > b`, `a >= b`. */
export function relation(fn: string, holds: (order: number) => boolean) {
  return (a: CelValue, b: CelValue): CelResult => {
    const order = compare(a, b)
    if (!(order instanceof CelError)) return holds(order)
    return order.message === 'no such overload' ? unsupported(fn) : order
  }
}

/** `a in b`. */
export function contains(a: CelValue, b: CelValue): CelResult {
  if (isList(b)) {
    for (const element of b) if (equals(a, element)) return true
    return false
  }
  return isMap(b) ? mapFind(b, a) !== undefined : unsupported('@in')
}

/** `size(a)`. */
export function size(a: CelValue): CelResult {
  if (typeof a === 'string') return runeCount(a)
  if (isList(a) || a instanceof Uint8Array) return a.length
  if (a instanceof Optional || !isMap(a)) return unsupported('size')
  return sizeOf(a)
}
