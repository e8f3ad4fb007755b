import { fromUtf8 } from '../../bytes.ts'
import { toil } from '../frame.ts'
import { type Library, list, overload, string } from '../implementation.ts'
import {
  type CelResult,
  type CelValue,
  Duration,
  elementsOf,
  isDouble,
  isInt,
  isMap,
  mapEntries,
  Timestamp,
  TypeValue,
  toNumber,
  Uint,
} from '../values.ts'
import { bytesToString, doubleToString } from './cast.ts'
import { plainFixed, toFixedDecimal, toScientificDecimal } from './decimal.ts'
import {
  type Clause,
  DEFAULT_PRECISION,
  decimalInteger,
  formatWith,
  hexClause,
  PART_STEPS,
  radix,
  refuse,
  refuseWith,
  sortedByKey,
  unknownClause,
} from './format-clause.ts'
import { quote } from './strings.ts'
import { durationToString, timestampToString } from './time-text.ts'

/**
 * `format` as the API server pins it (string library version 2, first-generation formatter, locale en_US): `%f` groups
 * thousands, `%e` is written with `×10` and superscripts.
 */
function format(template: string, args: CelValue[]): CelResult {
  return formatWith(template, args, formatValue)
}

function formatValue({ verb, precision }: Clause, value: CelValue): string {
  const digits = precision ?? DEFAULT_PRECISION
  switch (verb) {
    case 's':
      return stringClause(value)
    case 'd':
      return decimalClause(value)
    case 'f':
      return fixedClause(value, digits)
    case 'e':
      return scientificClause(value, digits)
    case 'b':
      return radix(value, 2)
    case 'x':
      return hexClause(value)
    case 'X':
      return hexClause(value).toUpperCase()
    case 'o':
      return radix(value, 8)
    default:
      return unknownClause(verb)
  }
}

/** `%s`: scalars bare, what is inside lists and maps as literals. */
function stringClause(value: CelValue): string {
  if (typeof value === 'string') return value
  if (value instanceof Uint8Array) {
    const text = bytesToString(value)
    if (typeof text === 'string') return text
    return refuseWith('error during formatting: could not convert argument to string')
  }
  if (isDouble(value)) return doubleToString(value)
  if (value instanceof Timestamp) return timestampToString(value)
  if (value instanceof Duration) return durationToString(value)
  return nested(value)
}

/** A value inside a list or map. */
function nested(value: CelValue): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'boolean') return String(value)
  if (value === null) return 'null'
  if (isInt(value)) return String(value)
  if (value instanceof Uint) return String(value.value)
  if (isDouble(value)) return nestedDouble(toNumber(value))
  if (value instanceof Uint8Array) return `b${quote(lenient(value))}`
  if (value instanceof Timestamp) return `timestamp("${timestampToString(value)}")`
  if (value instanceof Duration) return `duration("${durationToString(value)}")`
  if (value instanceof TypeValue) return value.name
  toil(PART_STEPS)
  const elements = elementsOf(value)
  if (elements !== undefined) return `[${elements.map(nested).join(', ')}]`
  if (isMap(value)) return nestedMap(value)
  return refuse(
    'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
    value,
  )
}

function nestedDouble(value: number): string {
  return Number.isFinite(value)
    ? plainFixed(value, DEFAULT_PRECISION)
    : quote(doubleToString(value))
}

function lenient(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes)
  } catch {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  }
}

function nestedMap(map: CelValue & object): string {
  const entries: [string, string][] = []
  for (const [key, value] of isMap(map) ? mapEntries(map) : []) {
    entries.push([nested(key), nested(value)])
  }
  return `{${sortedByKey(entries)
    .map(([key, value]) => `${key}:${value}`)
    .join(', ')}}`
}

function decimalClause(value: CelValue): string {
  return decimalInteger(value) ?? refuse('decimal clause can only be used on integers', value)
}

const NAMED: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
}

/** The double of a clause for doubles; the three names JSON has no numbers for count as doubles. */
function doubleArgument(value: CelValue, clause: string): number {
  if (isDouble(value)) return toNumber(value)
  const named = typeof value === 'string' && Object.hasOwn(NAMED, value) ? NAMED[value] : undefined
  return named ?? refuse(`${clause} clause can only be used on doubles`, value)
}

function special(value: number): string | undefined {
  if (Number.isNaN(value)) return 'NaN'
  if (Number.isFinite(value)) return undefined
  return value > 0 ? '∞' : '-∞'
}

function fixedClause(value: CelValue, precision: number): string {
  const number = doubleArgument(value, 'fixed-point')
  const named = special(number)
  if (named !== undefined) return named
  const { negative, whole, fraction } = toFixedDecimal(number, precision)
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  const kept = atLeast(fraction, precision)
  return `${negative && number !== 0 ? '-' : ''}${grouped}${kept === '' ? '' : '.'}${kept}`
}

/** Go keeps the least number of fraction digits in a byte: from 256 on, zeros at the end are dropped down to what that says. */
function atLeast(fraction: string, precision: number): string {
  if (precision < 256) return fraction
  const least = precision & 0xff
  return fraction.replace(/0+$/, '').padEnd(least, '0')
}

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹'

/** Always six digits after the point; the precision is the least width, filled with spaces from the left. */
function scientificClause(value: CelValue, width: number): string {
  const number = doubleArgument(value, 'scientific')
  return (special(number) ?? scientific(number)).padStart(width)
}

function scientific(value: number): string {
  const { negative, whole, fraction, exponent } = toScientificDecimal(value, DEFAULT_PRECISION)
  const digits = String(Math.abs(exponent)).padStart(2, '0')
  const raised = Array.from(digits, (digit) => SUPERSCRIPTS[Number(digit)]).join('')
  const sign = negative ? '-' : ''
  return `${sign}${whole}.${fraction}\u202f×\u202f10${exponent < 0 ? '⁻' : ''}${raised}`
}

/** `format` of the string library. */
export const formats: Library = {
  string_format: overload('format', [string, list], format, { variadic: true }),
}
