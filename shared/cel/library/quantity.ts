import { type Guard, instance, int, type Library, overload, string } from '../implementation.ts'
import { CelError, type CelResult, double, INT_MAX, INT_MIN, normalInt, Opaque } from '../values.ts'

/**
 * A Kubernetes quantity: `value × 10^scale`. `exact` is Go's int64 representation, where the value fits an int64 and the
 * scale is at least nano; what Go holds as a big decimal is never an integer to `isInteger()`, whatever its value.
 */
export class Quantity extends Opaque {
  readonly type = 'kubernetes.Quantity'
  readonly value: bigint
  readonly scale: number
  readonly exact: boolean
  /** Made by `add` or `sub`: such a value on the right of `==` is an error in the API server. */
  readonly computed: boolean
  readonly #text: string | undefined
  constructor(value: bigint, scale: number, exact: boolean, computed = false, text?: string) {
    super()
    this.#text = text
    this.value = value
    this.scale = scale
    this.exact = exact
    this.computed = computed
  }

  get key(): string {
    if (this.#text !== undefined) return this.#text
    return this.scale === 0 ? String(this.value) : `${this.value}e${this.scale}`
  }

  override equals(other: Opaque): boolean {
    return other instanceof Quantity && compareQuantities(this, other) === 0
  }

  override get comparable(): boolean {
    return !this.computed
  }
}

/** Longest text that is read as a quantity, characters: digits beyond this many would cost far more than they are charged. */
const MAX_TEXT = 10_000
/** Decimal digits that surely fit an int64. */
const MAX_DIGITS = 18
const NANO = -9
const WRONG_FORMAT =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
const WRONG_SUFFIX = "unable to parse quantity's suffix"

const DECIMAL_SUFFIXES: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}
const BINARY_SUFFIXES: Readonly<Record<string, number>> = {
  Ki: 10,
  Mi: 20,
  Gi: 30,
  Ti: 40,
  Pi: 50,
  Ei: 60,
}

/** The quantity, or why the text is none. */
export function parseQuantity(text: string): Quantity | CelError {
  const parsed = parse(text)
  if (parsed instanceof CelError) return parsed
  return new Quantity(parsed.value, parsed.scale, parsed.exact, false, text)
}

function parse(text: string): Quantity | CelError {
  if (text === '' || text.length > MAX_TEXT) return new CelError(WRONG_FORMAT)
  const sign = text.startsWith('-') ? -1n : 1n
  const unsigned = text.replace(/^[+-]/, '').replace(/^0+/, '')
  if (unsigned === '') return new Quantity(0n, 0, true)
  // One after the other: a single pattern would try every place where the number could end.
  const whole = /^\d*/.exec(unsigned)?.[0] ?? ''
  const point = /^\.\d*/.exec(unsigned.slice(whole.length))?.[0] ?? ''
  const fraction = point.slice(1)
  const suffix = unsigned.slice(whole.length + point.length)
  if (!/^[eEinumkKMGTP]*[-+]?\d*$/.test(suffix)) return new CelError(WRONG_FORMAT)
  const digits = { whole: whole || '0', fraction }
  const binary = Object.hasOwn(BINARY_SUFFIXES, suffix) ? BINARY_SUFFIXES[suffix] : undefined
  if (binary !== undefined) return binaryQuantity(sign, digits, binary)
  const exponent = decimalExponent(suffix)
  return exponent === undefined
    ? new CelError(WRONG_SUFFIX)
    : decimalQuantity(sign, digits, exponent)
}

interface Digits {
  whole: string
  fraction: string
}

function decimalExponent(suffix: string): number | undefined {
  if (Object.hasOwn(DECIMAL_SUFFIXES, suffix)) return DECIMAL_SUFFIXES[suffix]
  if (!/^[eE][+-]?\d+$/.test(suffix)) return undefined
  const exponent = BigInt(suffix.slice(1).replace(/^\+/, ''))
  if (exponent < INT_MIN || exponent > INT_MAX) return undefined
  return Number(BigInt.asIntN(32, exponent))
}

function decimalQuantity(sign: bigint, { whole, fraction }: Digits, exponent: number): Quantity {
  const value = sign * BigInt(whole + fraction)
  const scale = exponent - fraction.length
  if (whole.length + fraction.length <= MAX_DIGITS && scale >= NANO) {
    return new Quantity(value, scale, true)
  }
  return atLeastNano(value, scale)
}

function binaryQuantity(
  sign: bigint,
  { whole, fraction }: Digits,
  exponent: number,
): Quantity | CelError {
  const value = sign * BigInt(whole + fraction) * 2n ** BigInt(exponent)
  const precision = 15 - whole.length - Math.trunc((exponent * 3) / 10) - 1
  if (fraction === '' && precision >= 0 && value <= INT_MAX && value >= INT_MIN) {
    return new Quantity(value, 0, true)
  }
  const rounded = atLeastNano(value, -fraction.length)
  const limit = new Quantity(INT_MAX, 0, false)
  if (compareQuantities(magnitude(rounded), limit) <= 0) return rounded
  return new Quantity(sign * INT_MAX, 0, false)
}

function magnitude(quantity: Quantity): Quantity {
  return quantity.value < 0n ? new Quantity(-quantity.value, quantity.scale, false) : quantity
}

/** A decimal rounded away from zero to nano: what was asked for is never rounded to nothing. */
function atLeastNano(value: bigint, scale: number): Quantity {
  if (scale >= NANO) return new Quantity(value, scale, false)
  if (value === 0n) return new Quantity(0n, NANO, false)
  const text = String(value < 0n ? -value : value)
  const dropped = NANO - scale
  const kept = dropped >= text.length ? 0n : BigInt(text.slice(0, -dropped))
  const rest = dropped >= text.length ? text : text.slice(-dropped)
  const up = /[1-9]/.test(rest) ? 1n : 0n
  return new Quantity((value < 0n ? -1n : 1n) * (kept + up), NANO, false)
}

/** Order of two quantities: -1, 0 or 1. Exponents are compared before anything is multiplied out. */
export function compareQuantities(a: Quantity, b: Quantity): -1 | 0 | 1 {
  const signs = [signOf(a), signOf(b)] as const
  if (signs[0] !== signs[1]) return signs[0] < signs[1] ? -1 : 1
  if (signs[0] === 0) return 0
  const order = compareMagnitudes(a, b)
  return order === 0 ? 0 : order * signs[0] < 0 ? -1 : 1
}

function compareMagnitudes(a: Quantity, b: Quantity): number {
  const x = String(a.value).replace('-', '')
  const y = String(b.value).replace('-', '')
  const difference = x.length + a.scale - (y.length + b.scale)
  if (difference !== 0) return difference
  const length = Math.max(x.length, y.length)
  const [left, right] = [x.padEnd(length, '0'), y.padEnd(length, '0')]
  return left === right ? 0 : left < right ? -1 : 1
}

function signOf(quantity: Quantity): -1 | 0 | 1 {
  return quantity.value === 0n ? 0 : quantity.value < 0n ? -1 : 1
}

/** The int64 of an exactly held integer, or undefined. */
function asInt64({ value, scale, exact }: Quantity): bigint | undefined {
  if (!exact || scale < 0) return undefined
  if (value === 0n) return 0n
  if (scale > MAX_DIGITS) return undefined
  const whole = value * 10n ** BigInt(scale)
  return whole < INT_MIN || whole > INT_MAX ? undefined : whole
}

function asInteger(quantity: Quantity): CelResult {
  const value = asInt64(quantity)
  return value === undefined ? new CelError('cannot convert value to integer') : normalInt(value)
}

function asFloat({ value, scale }: Quantity): CelResult {
  const base = Number(value)
  return double(scale === 0 ? base : base * powerOfTen(scale))
}

/** 10^n as the nearest double; 0 and infinity past the range. */
function powerOfTen(exponent: number): number {
  if (exponent < -323) return 0
  return exponent > 308 ? Number.POSITIVE_INFINITY : Number(`1e${exponent}`)
}

/** Widest difference of exponents an addition multiplies out; Go would try any, at any cost in memory. */
const MAX_SHIFT = 10_000

function add(a: Quantity, b: Quantity): CelResult {
  if (b.value === 0n) return new Quantity(a.value, a.scale, a.exact && b.exact, true)
  if (a.value === 0n) return new Quantity(b.value, b.scale, a.exact && b.exact, true)
  const scale = Math.min(a.scale, b.scale)
  if (Math.max(a.scale, b.scale) - scale > MAX_SHIFT) {
    return new CelError('quantities are too far apart to add')
  }
  const sum = aligned(a, scale) + aligned(b, scale)
  const fits = [aligned(a, scale), aligned(b, scale), sum].every(
    (value) => value >= INT_MIN && value <= INT_MAX,
  )
  return new Quantity(sum, scale, a.exact && b.exact && fits, true)
}

function aligned(quantity: Quantity, scale: number): bigint {
  return quantity.value * 10n ** BigInt(quantity.scale - scale)
}

function subtract(a: Quantity, b: Quantity): CelResult {
  return add(a, new Quantity(-b.value, b.scale, b.exact))
}

function ofInt(value: number | bigint): Quantity {
  return new Quantity(BigInt(value), 0, true)
}

const quantity: Guard<Quantity> = instance(Quantity)

/** Kubernetes quantities. */
export const quantities: Library = {
  string_to_quantity: overload('quantity', [string], parseQuantity),
  is_quantity_string: overload(
    'isQuantity',
    [string],
    (text) => parseQuantity(text) instanceof Quantity,
  ),
  quantity_sign: overload('sign', [quantity], signOf),
  quantity_is_greater_than: overload(
    'isGreaterThan',
    [quantity, quantity],
    (a, b) => compareQuantities(a, b) > 0,
  ),
  quantity_is_less_than: overload(
    'isLessThan',
    [quantity, quantity],
    (a, b) => compareQuantities(a, b) < 0,
  ),
  quantity_compare_to: overload('compareTo', [quantity, quantity], compareQuantities),
  quantity_get_float: overload('asApproximateFloat', [quantity], asFloat),
  quantity_get_int: overload('asInteger', [quantity], asInteger),
  quantity_is_integer: overload('isInteger', [quantity], (q) => asInt64(q) !== undefined),
  quantity_add: overload('add', [quantity, quantity], add),
  quantity_add_int: overload('add', [quantity, int], (q, n) => add(q, ofInt(n))),
  quantity_sub: overload('sub', [quantity, quantity], subtract),
  quantity_sub_int: overload('sub', [quantity, int], (q, n) => subtract(q, ofInt(n))),
}
