import {
  type CallCost,
  type Costs,
  comparisonCost,
  defaultCost,
  scaled,
  size,
  TRAVERSAL,
} from './cost.ts'
import { extensionCost } from './cost-extension.ts'
import { type CelResult, Opaque, sizeOf } from './values.ts'

/** What making a list adds to the cost of a call. */
const LIST = 10

/** One for the call, and what `work` says. */
function calling(work: (args: readonly CelResult[], result: CelResult) => number): CallCost {
  return (args, result) => 1 + work(args, result)
}

const reading = (args: readonly CelResult[]) => scaled(size(args, 0), TRAVERSAL)

/** Looking for one text in another; an empty one counts as one character where `least` says so. */
const searching = (least: 0 | 1) => (args: readonly CelResult[]) =>
  scaled(size(args, 0) * Math.max(least, size(args, 1)), TRAVERSAL)

const charAt = calling((args) => reading(args) + 1)
const search = calling(searching(0))
const rewrite = calling((args, result) => reading(args) + sizeOf(result))
const replace = calling((args, result) => searching(1)(args) + sizeOf(result))
const split = calling(
  (args, result) => scaled(size(args, 0) + size(args, 1), TRAVERSAL) + LIST + sizeOf(result),
)
const join = calling((args, result) => scaled(size(args, 0) + 1, TRAVERSAL) + sizeOf(result))

/** What cel-go's newest string library charges; the version the API server pins charges nothing of its own. */
const STRINGS: Readonly<Record<string, CallCost>> = {
  string_char_at_int: charAt,
  string_index_of_string: search,
  string_index_of_string_int: search,
  string_last_index_of_string: search,
  string_last_index_of_string_int: search,
  string_lower_ascii: rewrite,
  string_upper_ascii: rewrite,
  string_trim: rewrite,
  string_reverse: rewrite,
  string_substring_int: rewrite,
  string_substring_int_int: rewrite,
  string_replace_string_string: replace,
  string_replace_string_string_int: replace,
  string_split_string: split,
  string_split_string_int: split,
  list_join: join,
  list_join_string: join,
}

/** What cel-go's own environment charges: for a call its extensions' trackers, then its table. Opaque values have no size for `==` and `!=`. */
export const specCosts: Costs = {
  call(_, overload) {
    if (overload !== undefined && Object.hasOwn(STRINGS, overload)) {
      const tracked = STRINGS[overload]
      if (tracked !== undefined) return tracked
    }
    return extensionCost(overload) ?? defaultCost(overload)
  },
  equality: () => (a, b) =>
    comparisonCost(a instanceof Opaque ? null : a, b instanceof Opaque ? null : b),
}
