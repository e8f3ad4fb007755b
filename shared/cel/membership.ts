import type { Step } from './attribute.ts'
import { isNumeric } from './equality.ts'
import {
  CelError,
  type CelValue,
  INT_MAX,
  INT_MIN,
  isDouble,
  isInt,
  normalInt,
  toNumber,
  UINT_MAX,
  Uint,
} from './values.ts'

interface NumberSets {
  ints: Set<number | bigint>
  uints: Set<bigint>
  doubles: Set<number>
}

/**
 * `x in [constants]` as a set lookup, as cel-go's optimiser turns it into: it costs nothing beyond `x`. Undefined when an
 * element is not a primitive.
 */
export function membershipStep(arg: Step, elements: readonly CelValue[]): Step | undefined {
  const texts = new Set<CelValue>()
  const numbers: NumberSets = { ints: new Set(), uints: new Set(), doubles: new Set() }
  for (const element of elements) {
    if (typeof element === 'string' || typeof element === 'boolean') texts.add(element)
    else if (isNumeric(element)) addNumber(numbers, element)
    else return undefined
  }
  return (frame) => {
    const value = arg(frame)
    if (value instanceof CelError) return value
    return isNumeric(value) ? hasNumber(numbers, value) : texts.has(value)
  }
}

/** Adds the element, and its counterparts of the other numeric types where cel-go's conversion allows. */
function addNumber(sets: NumberSets, element: CelValue): void {
  if (isInt(element)) {
    sets.ints.add(element)
    sets.doubles.add(Number(element))
    if (element >= 0) sets.uints.add(BigInt(element))
  } else if (element instanceof Uint) {
    sets.uints.add(element.value)
    sets.doubles.add(Number(element.value))
    if (element.value <= INT_MAX) sets.ints.add(normalInt(element.value))
  } else if (isDouble(element)) addDouble(sets, toNumber(element))
}

function addDouble(sets: NumberSets, value: number): void {
  // NaN is in no set: it equals nothing.
  if (Number.isNaN(value)) return
  sets.doubles.add(value)
  if (!Number.isInteger(value)) return
  const exact = BigInt(value)
  if (exact > INT_MIN && exact < INT_MAX) sets.ints.add(normalInt(exact))
  if (exact >= 0n && exact < UINT_MAX) sets.uints.add(exact)
}

function hasNumber(sets: NumberSets, value: CelValue): boolean {
  if (isInt(value)) return sets.ints.has(value)
  if (value instanceof Uint) return sets.uints.has(value.value)
  return isDouble(value) && sets.doubles.has(toNumber(value))
}
