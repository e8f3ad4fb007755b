import type { JsonDouble } from '../../json.ts'
import { negate } from '../arithmetic.ts'
import { compare } from '../equality.ts'
import {
  double as doubleGuard,
  type Guard,
  int,
  type Library,
  listOf,
  overload,
  uint,
} from '../implementation.ts'
import {
  CelError,
  type CelResult,
  type CelValue,
  double,
  normalInt,
  toNumber,
  Uint,
} from '../values.ts'

type Int = number | bigint
type Double = number | JsonDouble

const NUMBERS: readonly [string, Guard][] = [
  ['int', int],
  ['uint', uint],
  ['double', doubleGuard],
]

/** The greater (`sign` 1) or lesser (`sign` -1) of two numbers; the first of equals. */
function better(sign: 1 | -1) {
  return (a: CelValue, b: CelValue): CelResult => {
    const order = compare(a, b)
    if (order instanceof CelError) return order
    return order * sign < 0 ? b : a
  }
}

function best(name: string, sign: 1 | -1) {
  const pair = better(sign)
  return (values: CelValue[]): CelResult => {
    const [first, ...rest] = values
    if (first === undefined) return new CelError(`math.@${name}(list) argument must not be empty`)
    let found = first
    for (const value of rest) {
      const next = pair(found, value)
      if (next instanceof CelError) return next
      found = next
    }
    return found
  }
}

function extremum(name: 'min' | 'max', sign: 1 | -1): Library {
  const out: Record<string, Library[string]> = {}
  for (const [type, guard] of NUMBERS) {
    const fn = `math.@${name}`
    out[`math_@${name}_${type}`] = overload(fn, [guard], (value) => value)
    out[`math_@${name}_list_${type}`] = overload(fn, [listOf(guard)], best(name, sign))
    for (const [other, otherGuard] of NUMBERS) {
      const id = `math_@${name}_${type}_${other}`
      out[id] = overload(fn, [guard, otherGuard], better(sign))
    }
  }
  return out
}

/** To the nearest integer, halves away from zero. */
function roundHalfAway(value: number): number {
  const down = Math.trunc(value)
  return Math.abs(value - down) >= 0.5 ? down + Math.sign(value) : down
}

function onDouble(name: string, run: (value: number) => number): Library {
  const id = `math_${name}_double`
  return { [id]: overload(`math.${name}`, [doubleGuard], (value) => double(run(toNumber(value)))) }
}

function testDouble(name: string, holds: (value: number) => boolean): Library {
  const id = `math_${name}_double`
  return { [id]: overload(`math.${name}`, [doubleGuard], (value) => holds(toNumber(value))) }
}

function absInt(value: Int): CelResult {
  return value < 0 ? negate(value) : value
}

function signInt(value: Int): number {
  return value < 0 ? -1 : Number(value > 0)
}

function signDouble(value: Double): CelResult {
  const number = toNumber(value)
  return double(number === 0 ? 0 : Math.sign(number))
}

const WIDTH = 64

type Bits = (a: bigint, b: bigint) => bigint

function bitwise(name: string, run: Bits): Library {
  const fn = `math.@${name}`
  const ints = (a: Int, b: Int) => normalInt(BigInt.asIntN(WIDTH, run(BigInt(a), BigInt(b))))
  const uints = (a: Uint, b: Uint) => new Uint(run(a.value, b.value))
  return {
    [`math_@${name}_int_int`]: overload(fn, [int, int], ints),
    [`math_@${name}_uint_uint`]: overload(fn, [uint, uint], uints),
    [`math_@${name}_list_int`]: overload(fn, [listOf(int)], (values) =>
      combine(name, values, ints),
    ),
    [`math_@${name}_list_uint`]: overload(fn, [listOf(uint)], (values) =>
      combine(name, values, uints),
    ),
  }
}

function combine<T extends CelValue>(
  name: string,
  values: readonly T[],
  run: (a: T, b: T) => T,
): CelResult {
  const [first, ...rest] = values
  if (first === undefined) return new CelError(`math.@${name}(list) argument must not be empty`)
  return rest.reduce(run, first)
}

/** Shifts the 64 bits; past the width nothing is left, and a right shift brings in zeros whatever the sign. */
function shift(name: string, run: (bits: bigint, by: bigint) => bigint): Library {
  const fn = `math.${name}`
  const shifted = (bits: bigint, by: Int) =>
    by < 0
      ? new CelError(`${fn}() negative offset: ${by}`)
      : by >= WIDTH
        ? 0n
        : BigInt.asUintN(WIDTH, run(BigInt.asUintN(WIDTH, bits), BigInt(by)))
  return {
    [`math_${name}_int_int`]: overload(fn, [int, int], (value, by) => {
      const bits = shifted(BigInt(value), by)
      return bits instanceof CelError ? bits : normalInt(BigInt.asIntN(WIDTH, bits))
    }),
    [`math_${name}_uint_int`]: overload(fn, [uint, int], (value, by) => {
      const bits = shifted(value.value, by)
      return bits instanceof CelError ? bits : new Uint(bits)
    }),
  }
}

/** cel-go's math library. */
export const math: Library = {
  ...extremum('max', 1),
  ...extremum('min', -1),
  ...onDouble('ceil', Math.ceil),
  ...onDouble('floor', Math.floor),
  ...onDouble('round', roundHalfAway),
  ...onDouble('trunc', Math.trunc),
  ...testDouble('isInf', (value) => Math.abs(value) === Number.POSITIVE_INFINITY),
  ...testDouble('isNaN', Number.isNaN),
  ...testDouble('isFinite', Number.isFinite),
  math_abs_int: overload('math.abs', [int], absInt),
  math_abs_uint: overload('math.abs', [uint], (value) => value),
  math_abs_double: overload('math.abs', [doubleGuard], (value) =>
    double(Math.abs(toNumber(value))),
  ),
  math_sign_int: overload('math.sign', [int], signInt),
  math_sign_uint: overload('math.sign', [uint], (value) => new Uint(value.value > 0n ? 1n : 0n)),
  math_sign_double: overload('math.sign', [doubleGuard], signDouble),
  math_sqrt_int: overload('math.sqrt', [int], (value) => double(Math.sqrt(Number(value)))),
  math_sqrt_uint: overload('math.sqrt', [uint], (value) => double(Math.sqrt(Number(value.value)))),
  math_sqrt_double: overload('math.sqrt', [doubleGuard], (value) =>
    double(Math.sqrt(toNumber(value))),
  ),
  ...bitwise('bitAnd', (a, b) => a & b),
  ...bitwise('bitOr', (a, b) => a | b),
  ...bitwise('bitXor', (a, b) => a ^ b),
  math_bitNot_int_int: overload('math.bitNot', [int], (value) => normalInt(~BigInt(value))),
  math_bitNot_uint_uint: overload(
    'math.bitNot',
    [uint],
    (value) => new Uint(BigInt.asUintN(WIDTH, ~value.value)),
  ),
  ...shift('bitShiftLeft', (bits, by) => bits << by),
  ...shift('bitShiftRight', (bits, by) => bits >> by),
}
