import { type CallCost, REGEX, size, TRAVERSAL } from './cost.ts'
import { Stop } from './frame.ts'
import { CelError, type CelResult, elementsOf, isInt, sizeOf } from './values.ts'

/** Cost of a call plus that of the list it makes. */
const LIST_RESULT = 11

const product =
  (factor: number): CallCost =>
  (args) =>
    1 + Math.floor(size(args, 0) * size(args, 1) * factor)

const resultSize: CallCost = (_args, result) => sizeOf(result) + LIST_RESULT

/** A negative depth is an error at run time, and paid like the depth that is none. */
const flatten: CallCost = (args) => {
  const depth = args.length < 2 ? 1 : args[1]
  if (depth === undefined || depth instanceof CelError || !isInt(depth)) {
    throw new Stop('evaluation', 'internal error: interface conversion: the depth is no int')
  }
  const levels = Number(depth)
  return (levels < 0 ? 1 : levels) * size(args, 0) + LIST_RESULT
}

/** Running a pattern over a text: neither counts as empty. */
const matching = (args: readonly CelResult[]) =>
  Math.ceil((size(args, 0) + 1) * TRAVERSAL * ((size(args, 1) + 1) * REGEX))

const extract: CallCost = (args) => matching(args) + 2
const extractAll: CallCost = (args, result) => matching(args) + LIST_RESULT + sizeOf(result)
const replace: CallCost = (args, result) => matching(args) + sizeOf(result)

/** Comparing every element with every other; texts and bytes cost a tenth more. */
const pairwise =
  (index: 0 | 1): CallCost =>
  (args) => {
    const elements = listOf(args[index])
    const [first] = elements
    if (first === undefined) return LIST_RESULT
    const factor = typeof first === 'string' || first instanceof Uint8Array ? 2.1 : 2
    return Math.floor(elements.length * elements.length * factor) + LIST_RESULT
  }

/** The list argument; cel-go's tracker ends the whole run when it is none (an error). */
function listOf(list: CelResult | undefined): readonly CelResult[] {
  const elements = list === undefined ? undefined : elementsOf(list)
  if (elements !== undefined) return elements
  throw new Stop('evaluation', 'internal error: interface conversion: not a list')
}

/** Element types of lists that can be sorted, as they stand in overload ids. */
const SORTABLE =
  'int uint double bool string bytes google.protobuf.Duration google.protobuf.Timestamp'

const TRACKED: ReadonlyMap<string, CallCost> = new Map<string, CallCost>([
  ['list_sets_contains_list', product(1)],
  ['list_sets_intersects_list', product(1)],
  ['list_sets_equivalent_list', product(2)],
  ['list_slice', resultSize],
  ['lists_range', resultSize],
  ['list_reverse', resultSize],
  ['list_flatten', flatten],
  ['list_flatten_int', flatten],
  ['list_distinct', pairwise(0)],
  // Sorting compares the elements, or the keys that are the second argument.
  ...SORTABLE.split(' ').flatMap((type): [string, CallCost][] => [
    [`list_${type}_sort`, pairwise(0)],
    [`list_${type}_sortByAssociatedKeys`, pairwise(1)],
  ]),
  ['regex_extract_string_string', extract],
  ['regex_extractAll_string_string', extractAll],
  ['regex_replaceAll_string_string_string', replace],
  ['regex_replaceCount_string_string_string_int', replace],
])

/** The cost an extension library registers for an overload, or undefined when it registers none. */
export function extensionCost(overload: string | undefined): CallCost | undefined {
  return overload === undefined ? undefined : TRACKED.get(overload)
}
