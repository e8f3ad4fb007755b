import { toHex, utf8 } from '../../bytes.ts'
import {
  CelError,
  type CelResult,
  type CelValue,
  compareStrings,
  isInt,
  typeName,
  Uint,
} from '../values.ts'

/** Digits after the point when a clause names none. */
export const DEFAULT_PRECISION = 6
/** Largest precision, digits: where the API server's own number type ends. */
const MAX_PRECISION = 32_767

/** Steps of writing one list or map, its own part only. */
export const PART_STEPS = 1000

/** Thrown by formatters and caught by `formatWith`: why the text cannot be made. */
class Refusal {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** Ends the formatting with the words cel-go has for a value a clause does not take. */
export function refuse(what: string, value: CelValue): never {
  throw new Refusal(`error during formatting: ${what}, was given ${typeName(value)}`)
}

/** Ends the formatting with a message of its own. */
export function refuseWith(message: string): never {
  throw new Refusal(message)
}

/** One clause such as `%.3f`. */
export interface Clause {
  verb: string
  precision: number | undefined
}

/** The template with each clause replaced by what the formatter makes of its argument. */
export function formatWith(
  template: string,
  args: readonly CelValue[],
  format: (clause: Clause, value: CelValue) => string,
): CelResult {
  try {
    return formatted(template, args, format)
  } catch (thrown) {
    if (thrown instanceof Refusal) return new CelError(thrown.message)
    throw thrown
  }
}

function formatted(
  template: string,
  args: readonly CelValue[],
  format: (clause: Clause, value: CelValue) => string,
): string {
  let out = ''
  let next = 0
  let at = 0
  while (at < template.length) {
    const percent = template.indexOf('%', at)
    if (percent < 0) return out + template.slice(at)
    out += template.slice(at, percent)
    const clause = parseClause(template, percent + 1)
    at = clause.end
    if (clause.verb === '%') out += '%'
    else {
      const value = args[next]
      if (value === undefined) throw new Refusal(`index ${next} out of range`)
      next++
      out += format(clause, value)
    }
  }
  return out
}

function parseClause(template: string, start: number): Clause & { end: number } {
  const parts = /^(\.\d*)?([\s\S]?)/.exec(template.slice(start, start + 32))
  const [whole = '', precision, verb = ''] = parts ?? []
  if (verb === '') throw new Refusal('unexpected end of string')
  if (precision === '.') {
    throw new Refusal('could not parse formatting clause: error while parsing precision')
  }
  const digits = precision === undefined ? undefined : Number(precision.slice(1))
  if (digits !== undefined && digits > MAX_PRECISION) {
    throw new Refusal(`could not parse formatting clause: precision ${digits} is too large`)
  }
  return { verb, precision: digits, end: start + whole.length }
}

/** The value of a clause that cel-go does not know. */
export function unknownClause(verb: string): never {
  throw new Refusal(
    `could not parse formatting clause: unrecognized formatting clause ${JSON.stringify(verb)}`,
  )
}

/** `%d` of an int or uint; undefined for anything else. */
export function decimalInteger(value: CelValue): string | undefined {
  if (isInt(value)) return String(value)
  return value instanceof Uint ? String(value.value) : undefined
}

/** `%b` and `%o`: an integer in base 2 or 8; a bool is one binary digit. */
export function radix(value: CelValue, base: 2 | 8): string {
  if (isInt(value)) return value.toString(base)
  if (value instanceof Uint) return value.value.toString(base)
  if (base === 8) return refuse('octal clause can only be used on integers', value)
  if (typeof value === 'boolean') return String(Number(value))
  return refuse('only integers and bools can be formatted as binary', value)
}

/** `%x`: an integer in base 16, or the bytes of a text. */
export function hexClause(value: CelValue): string {
  if (typeof value === 'string') return toHex(utf8(value))
  if (value instanceof Uint8Array) return toHex(value)
  if (isInt(value)) return value.toString(16)
  if (value instanceof Uint) return value.value.toString(16)
  return refuse('only integers, byte buffers, and strings can be formatted as hex', value)
}

/** Printed map entries in the order of their printed keys. */
export function sortedByKey(entries: readonly [string, string][]): [string, string][] {
  return entries.toSorted(([a], [b]) => compareStrings(a, b))
}
