import { fromUtf8, utf8 } from '../../bytes.ts'
import type { JsonDouble } from '../../json.ts'
import { checkedInt, checkedUint } from '../arithmetic.ts'
import {
  CelError,
  type CelResult,
  double,
  INT_MAX,
  INT_MIN,
  normalInt,
  toNumber,
  UINT_MAX,
  Uint,
} from '../values.ts'

function conversionError(from: string, to: string): CelError {
  return new CelError(`type conversion error from '${from}' to '${to}'`)
}

/** `bool("true")`: the spellings Go's ParseBool takes. */
export function stringToBool(text: string): CelResult {
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text)) return true
  if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text)) return false
  return conversionError('string', 'bool')
}

/** The UTF-8 bytes of a text. */
export function stringToBytes(text: string): Uint8Array {
  return utf8(text)
}

/** The text of UTF-8 bytes. */
export function bytesToString(value: Uint8Array): CelResult {
  try {
    return fromUtf8(value)
  } catch {
    return new CelError('invalid UTF-8 in bytes, cannot convert to string')
  }
}

/** An int as a double, rounded to the nearest. */
export function intToDouble(value: number | bigint): number | JsonDouble {
  return double(Number(value))
}

/** A uint as a double, rounded to the nearest. */
export function uintToDouble(value: Uint): number | JsonDouble {
  return double(Number(value.value))
}

const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i
const HEX_FLOAT = /^([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?p([+-]?\d+)$/i
const SPECIAL = /^([+-]?)(inf|infinity)$/i

/** `double("1e3")`: what Go's ParseFloat takes; out of range is an error. */
export function stringToDouble(text: string): CelResult {
  const value = parseFloatText(text)
  return value === undefined ? conversionError('string', 'double') : double(value)
}

function parseFloatText(text: string): number | undefined {
  if (/^nan$/i.test(text)) return Number.NaN
  const special = SPECIAL.exec(text)
  if (special !== null) return special[1] === '-' ? -Infinity : Infinity
  const value = DECIMAL.test(text) ? Number(text) : hexFloat(text)
  return value === undefined || Number.isFinite(value) ? value : undefined
}

function hexFloat(text: string): number | undefined {
  const parts = HEX_FLOAT.exec(text)
  const [, sign, whole = '', fraction = '', exponent] = parts ?? []
  if (parts === null || whole.length + fraction.length === 0) return undefined
  const mantissa = Number(BigInt(`0x${whole}${fraction}`))
  const value = mantissa * 2 ** (Number(exponent) - 4 * fraction.length)
  return sign === '-' ? -value : value
}

/** A double cut to an int; at and beyond the ends of int64 it is an error. */
export function doubleToInt(value: number | JsonDouble): CelResult {
  const number = toNumber(value)
  if (!(number > -(2 ** 63) && number < 2 ** 63)) return new CelError('integer overflow')
  return normalInt(BigInt(Math.trunc(number)))
}

/** A double cut to a uint. */
export function doubleToUint(value: number | JsonDouble): CelResult {
  const number = toNumber(value)
  if (!(number >= 0 && number < 2 ** 64)) return new CelError('unsigned integer overflow')
  return new Uint(BigInt(Math.trunc(number)))
}

/** Digits of the largest uint. */
const MAX_DIGITS = 20

/** Decimal digits without leading zeros; undefined when there are too many for any integer, or anything else. */
function significantDigits(text: string): string | undefined {
  if (!/^\d+$/.test(text)) return undefined
  const digits = text.replace(/^0+(?=.)/, '')
  return digits.length > MAX_DIGITS ? undefined : digits
}

/** `int("-12")`: decimal digits with an optional sign. */
export function stringToInt(text: string): CelResult {
  const digits = significantDigits(text.replace(/^[+-]/, ''))
  if (digits === undefined) return conversionError('string', 'int')
  const value = BigInt(text.startsWith('-') ? `-${digits}` : digits)
  if (value < INT_MIN || value > INT_MAX) return conversionError('string', 'int')
  return normalInt(value)
}

/** `uint("12")`: decimal digits. */
export function stringToUint(text: string): CelResult {
  const digits = significantDigits(text)
  const value = digits === undefined ? -1n : BigInt(digits)
  return value < 0n || value > UINT_MAX ? conversionError('string', 'uint') : new Uint(value)
}

/** A uint as an int. */
export function uintToInt(value: Uint): CelResult {
  return checkedInt(value.value)
}

/** An int as a uint. */
export function intToUint(value: number | bigint): CelResult {
  return checkedUint(BigInt(value))
}

/** A double as Go's `strconv.FormatFloat(value, 'g', -1, 64)` prints it: shortest digits, an exponent below 1e-4 and from 1e6 on. */
export function doubleToString(value: number | JsonDouble): string {
  return formatDouble(toNumber(value), 1e6)
}

/** A double in shortest digits, in exponent form below 1e-4 and from `exponentFrom` on. */
export function formatDouble(value: number, exponentFrom: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (Object.is(value, -0)) return '-0'
  const magnitude = Math.abs(value)
  if (magnitude === 0 || (magnitude >= 1e-4 && magnitude < exponentFrom)) return String(value)
  const [mantissa, exponent = '+0'] = value.toExponential().split('e')
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`
}
