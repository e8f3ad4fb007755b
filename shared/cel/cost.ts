import { type CelResult, runeCount, sizeOf } from './values.ts'

/** What a call costs, given its arguments (receiver first, errors included) and its result. */
export type CallCost = (args: readonly CelResult[], result: CelResult) => number

/** What a profile charges. */
export interface Costs {
  /** For a call, by the name of the function and the overload it was resolved to. */
  call(fn: string, overload: string | undefined): CallCost
  /** For `_==_` or `_!=_`. */
  equality(fn: string): (a: CelResult, b: CelResult) => number
}

/** Cost of a code point or byte that is looked at. */
export const TRAVERSAL = 0.1
/** Cost of a character of a regular expression. */
export const REGEX = 0.25

/** `ceil(size × factor)`, in the same double arithmetic as cel-go. */
export function scaled(size: number, factor: number): number {
  return Math.ceil(size * factor)
}

/** cel-go's size of an argument; 1 when there is none. */
export function size(args: readonly CelResult[], index: number): number {
  const value = args[index]
  return value === undefined ? 1 : sizeOf(value)
}

/** `ceil(factor × size of the first argument)`. */
export const byFirst =
  (factor: number): CallCost =>
  (args) =>
    scaled(size(args, 0), factor)

/** Cost of comparing two values: the traversal of the shorter one. */
export function comparisonCost(a: CelResult, b: CelResult): number {
  if (typeof a === 'string' && typeof b === 'string') {
    const shorter = Math.min(a.length, b.length)
    // Up to ten code units are one to ten code points, and those cost 1 whatever their number.
    if (shorter <= 10) return shorter === 0 ? 0 : 1
    return scaled(Math.min(runeCount(a), runeCount(b)), TRAVERSAL)
  }
  if (isScalar(a) || isScalar(b)) {
    return isScalar(a) && isScalar(b) ? 1 : scaled(Math.min(sizeOf(a), sizeOf(b)), TRAVERSAL)
  }
  return scaled(Math.min(sizeOf(a), sizeOf(b)), TRAVERSAL)
}

function isScalar(value: CelResult): boolean {
  return typeof value === 'number' || typeof value === 'boolean'
}

const comparison: CallCost = (args) => comparisonCost(args[0] ?? null, args[1] ?? null)

const concatenation: CallCost = (args) => scaled(size(args, 0) + size(args, 1), TRAVERSAL)

/** Cost of running a pattern over a text. */
export const regexMatch: CallCost = (args) =>
  scaled(1 + size(args, 0), TRAVERSAL) * scaled(size(args, 1), REGEX)

const containment: CallCost = (args) =>
  scaled(size(args, 0), TRAVERSAL) * scaled(size(args, 1), TRAVERSAL)

/** What a call costs when nothing else is known. */
export const one: CallCost = () => 1

/** cel-go's own cost by overload id; whatever is not here costs 1. */
const DEFAULT: Readonly<Record<string, CallCost>> = {
  starts_with_string: byFirst(TRAVERSAL),
  ends_with_string: byFirst(TRAVERSAL),
  string_to_bytes: byFirst(TRAVERSAL),
  bytes_to_string: byFirst(TRAVERSAL),
  strings_quote: byFirst(TRAVERSAL),
  string_format: byFirst(TRAVERSAL),
  in_list: (args) => size(args, 1),
  less_string: comparison,
  less_equals_string: comparison,
  greater_string: comparison,
  greater_equals_string: comparison,
  less_bytes: comparison,
  less_equals_bytes: comparison,
  greater_bytes: comparison,
  greater_equals_bytes: comparison,
  equals: comparison,
  not_equals: comparison,
  add_string: concatenation,
  add_bytes: concatenation,
  matches: regexMatch,
  matches_string: regexMatch,
  contains_string: containment,
}

/** The cost cel-go's default tracker gives an overload; an unresolved call has no overload id. */
export function defaultCost(overload: string | undefined): CallCost {
  return (overload !== undefined && Object.hasOwn(DEFAULT, overload) && DEFAULT[overload]) || one
}

/** What cel-go charges where no library has a word in it. */
export const plainCosts: Costs = {
  call: (_, overload) => defaultCost(overload),
  equality: () => comparisonCost,
}
