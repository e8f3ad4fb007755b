import { add } from '../arithmetic.ts'
import { compare, equals } from '../equality.ts'
import { toil } from '../frame.ts'
import {
  any,
  bool,
  bytes,
  double,
  duration,
  type Guard,
  type Implementation,
  int,
  type Library,
  list,
  listOf,
  overload,
  string,
  timestamp,
  uint,
} from '../implementation.ts'
import {
  CelError,
  type CelResult,
  type CelValue,
  Duration,
  elementsOf,
  double as toDouble,
  typeName,
  Uint,
} from '../values.ts'

/** Element types that have an order, by the name cel-go puts into overload ids. */
const ORDERED: readonly [string, Guard][] = [
  ['int', int],
  ['uint', uint],
  ['double', double],
  ['bool', bool],
  ['duration', duration],
  ['timestamp', timestamp],
  ['string', string],
  ['bytes', bytes],
]

const ZEROS: readonly [string, Guard, CelValue][] = [
  ['int', int, 0],
  ['uint', uint, new Uint(0n)],
  ['double', double, toDouble(0)],
  ['duration', duration, new Duration(0n)],
]

/** True when the first is greater; values that have no order with each other are not, as the API server's functions see it. */
function isGreater(a: CelValue, b: CelValue): boolean {
  const order = compare(a, b)
  return !(order instanceof CelError) && order > 0
}

function isOrdered(value: CelValue): boolean {
  return ORDERED.some(([, guard]) => guard(value))
}

function isSorted(values: CelValue[]): CelResult {
  let previous: CelValue | undefined
  for (const value of values) {
    if (!isOrdered(value)) return new CelError('no such overload')
    if (previous !== undefined && isGreater(previous, value)) return false
    previous = value
  }
  return true
}

function sum(zero: CelValue) {
  return (values: CelValue[]): CelResult => {
    let total = zero
    for (const value of values) {
      const next = add(total, value)
      if (next instanceof CelError) return next
      total = next
    }
    return total
  }
}

/** The first of the least or greatest elements. */
function extreme(name: 'min' | 'max') {
  return (values: CelValue[]): CelResult => {
    if (!values.every(isOrdered)) return new CelError('no such overload')
    let best: CelValue | undefined
    for (const value of values) {
      const wins =
        best === undefined || (name === 'min' ? isGreater(best, value) : isGreater(value, best))
      if (wins) best = value
    }
    return best ?? new CelError(`${name} called on empty list`)
  }
}

function indexOf(values: CelValue[], wanted: CelValue): number {
  return values.findIndex((value) => equals(wanted, value))
}

function lastIndexOf(values: CelValue[], wanted: CelValue): number {
  return values.findLastIndex((value) => equals(wanted, value))
}

function includes(value: CelValue, wanted: CelValue): boolean {
  const elements = elementsOf(value)
  if (elements === undefined) return equals(value, wanted)
  return elements.some((element) => equals(element, wanted))
}

function perType(
  types: readonly [string, Guard, CelValue?][],
  make: (name: string, guard: Guard, zero: CelValue) => [string, Implementation],
): Library {
  return Object.fromEntries(types.map(([name, guard, zero]) => make(name, guard, zero ?? null)))
}

/** The API server's list functions. */
export const kubernetesLists: Library = {
  ...perType(ORDERED, (name, guard) => [
    `list_${name}_is_sorted_bool`,
    overload('isSorted', [listOf(guard)], isSorted),
  ]),
  ...perType(ZEROS, (name, guard, zero) => [
    `list_${name}_sum_${name}`,
    overload('sum', [listOf(guard)], sum(zero)),
  ]),
  ...perType(ORDERED, (name, guard) => [
    `list_${name}_min_${name}`,
    overload('min', [listOf(guard)], extreme('min')),
  ]),
  ...perType(ORDERED, (name, guard) => [
    `list_${name}_max_${name}`,
    overload('max', [listOf(guard)], extreme('max')),
  ]),
  list_a_index_of_int: overload('indexOf', [list, any], indexOf),
  list_a_last_index_of_int: overload('lastIndexOf', [list, any], lastIndexOf),
  list_includes_dyn_dyn: overload('includes', [any, any], includes),
}

/** Longest list `lists.range` makes. */
const MAX_RANGE = 1_000_000

function slice(values: CelValue[], start: number | bigint, end: number | bigint): CelResult {
  const failed = `cannot slice(${start}, ${end}),`
  if (start < 0 || end < 0) return new CelError(`${failed} negative indexes not supported`)
  if (start > end) {
    return new CelError(`${failed} start index must be less than or equal to end index`)
  }
  if (values.length < end) return new CelError(`${failed} list is length ${values.length}`)
  return values.slice(Number(start), Number(end))
}

function flatten(values: CelValue[], depth: number | bigint): CelResult {
  if (depth < 0) return new CelError('level must be non-negative')
  return flattened(values, Number(depth))
}

/** Steps of flattening one element: so many that what is flattened fits into memory. */
const FLATTEN_STEPS = 100

function flattened(values: CelValue[], depth: number, out: CelValue[] = []): CelValue[] {
  toil(FLATTEN_STEPS * values.length)
  for (const value of values) {
    const elements = depth === 0 ? undefined : elementsOf(value)
    if (elements === undefined) out.push(value)
    else flattened(elements, depth - 1, out)
  }
  return out
}

/** `[0, 1, …, n - 1]`. */
function range(count: number | bigint): CelResult {
  if (count > MAX_RANGE) {
    return new CelError(`lists.range: size ${count} exceeds maximum allowed (${MAX_RANGE})`)
  }
  return Array.from({ length: Math.max(0, Number(count)) }, (_, index) => index)
}

function distinct(values: CelValue[]): CelValue[] {
  const out: CelValue[] = []
  for (const value of values) if (!out.some((kept) => equals(kept, value))) out.push(value)
  return out
}

/** The values in the order of their keys; keys must be of one type that has an order. */
function sortBy(values: CelValue[], keys: CelValue[]): CelResult {
  if (values.length !== keys.length) {
    return new CelError(
      `@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got ${values.length} and ${keys.length} elements respectively`,
    )
  }
  const [first] = keys
  if (first === undefined) return []
  if (!isOrdered(first)) {
    return new CelError('list elements must be comparable')
  }
  const type = typeName(first)
  if (keys.some((key) => typeName(key) !== type)) {
    return new CelError('list elements must have the same type')
  }
  return sorted(values, keys)
}

function sorted(values: CelValue[], keys: CelValue[]): CelValue[] {
  const order = keys.map((_, index) => index)
  // Every index is one of the keys and values, and all keys have an order.
  order.sort((a, b) => compare(keys[a] as CelValue, keys[b] as CelValue) as number)
  return order.map((index) => values[index] as CelValue)
}

/** Name of an element type in the overload ids of cel-go's list library. */
function runtimeName(name: string): string {
  if (name === 'duration') return 'google.protobuf.Duration'
  return name === 'timestamp' ? 'google.protobuf.Timestamp' : name
}

/** cel-go's list library. */
export const listExtension: Library = {
  list_slice: overload('slice', [list, int, int], slice),
  list_flatten: overload('flatten', [list], (values) => flattened(values, 1)),
  list_flatten_int: overload('flatten', [list, int], flatten),
  lists_range: overload('lists.range', [int], range),
  list_reverse: overload('reverse', [list], (values) => values.toReversed()),
  list_distinct: overload('distinct', [list], distinct),
  ...perType(ORDERED, (name, guard) => [
    `list_${runtimeName(name)}_sort`,
    overload('sort', [listOf(guard)], (values) => sortBy(values, values)),
  ]),
  ...perType(ORDERED, (name, guard) => [
    `list_${runtimeName(name)}_sortByAssociatedKeys`,
    overload('@sortByAssociatedKeys', [list, listOf(guard)], sortBy, { singleton: true }),
  ]),
}
