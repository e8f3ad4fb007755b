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
import { plainFixed, toScientificDecimal } from './decimal.ts'
import {
  type Clause,
  DEFAULT_PRECISION,
  decimalInteger,
  formatWith,
  hexClause,
  PART_STEPS,
  radix,
  refuse,
  sortedByKey,
  unknownClause,
} from './format-clause.ts'
import { durationToString, timestampToString } from './time-text.ts'

/** `format` as the CEL specification has it: plain numbers, nothing quoted inside lists and maps. */
function format(template: string, args: CelValue[]): CelResult {
  return formatWith(template, args, formatValue)
}

function formatValue({ verb, precision = DEFAULT_PRECISION }: Clause, value: CelValue): string {
  switch (verb) {
    case 's':
      return text(value)
    case 'd':
      return decimal(value)
    case 'f':
      return special(numeric(value, 'fixed-point'), (number) => plainFixed(number, precision))
    case 'e':
      return special(numeric(value, 'scientific'), (number) => scientific(number, precision))
    case 'b':
      return radix(value, 2)
    case 'o':
      return radix(value, 8)
    case 'x':
      return hexClause(value)
    case 'X':
      return hexClause(value).toUpperCase()
    default:
      return unknownClause(verb)
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function text(value: CelValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (value === null) return 'null'
  if (isDouble(value)) return special(toNumber(value), plainDouble)
  if (value instanceof Uint8Array) return decoder.decode(value)
  if (value instanceof Timestamp) return timestampToString(value)
  if (value instanceof Duration) return durationToString(value)
  if (value instanceof TypeValue) return value.name
  toil(PART_STEPS)
  const elements = elementsOf(value)
  if (elements !== undefined) return `[${elements.map(text).join(', ')}]`
  if (isMap(value)) {
    const entries = Array.from(mapEntries(value), ([key, entry]): [string, string] => [
      text(key),
      text(entry),
    ])
    return `{${sortedByKey(entries)
      .map(([key, entry]) => `${key}: ${entry}`)
      .join(', ')}}`
  }
  return (
    decimalInteger(value) ??
    refuse(
      'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
      value,
    )
  )
}

function special(value: number, print: (value: number) => string): string {
  return Number.isFinite(value) ? print(value) : String(value)
}

/** Shortest digits, never an exponent. */
function plainDouble(value: number): string {
  const shortest = Object.is(value, -0) ? '-0' : String(value)
  if (!shortest.includes('e')) return shortest
  const [mantissa = '', exponent] = shortest.split('e')
  const digits = mantissa.replace(/^-?\d\.?/, '').length
  return plainFixed(value, Math.max(0, digits - Number(exponent)))
}

function decimal(value: CelValue): string {
  if (isDouble(value)) return special(toNumber(value), plainDouble)
  return decimalInteger(value) ?? refuse('decimal clause can only be used on integers', value)
}

function numeric(value: CelValue, clause: string): number {
  if (isDouble(value)) return toNumber(value)
  if (isInt(value)) return Number(value)
  if (value instanceof Uint) return Number(value.value)
  return refuse(`${clause} clause can only be used on doubles`, value)
}

function scientific(value: number, precision: number): string {
  const { negative, whole, fraction, exponent } = toScientificDecimal(value, precision)
  const digits = String(Math.abs(exponent)).padStart(2, '0')
  const point = fraction === '' ? '' : '.'
  return `${negative ? '-' : ''}${whole}${point}${fraction}e${exponent < 0 ? '-' : '+'}${digits}`
}

/** `format` of the newest string library. */
export const specFormats: Library = {
  string_format: overload('format', [string, list], format, { variadic: true }),
}
