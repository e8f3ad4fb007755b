import * as arithmetic from './arithmetic.ts'
import type { Step } from './attribute.ts'
import { type CallCost, one, scaled, TRAVERSAL } from './cost.ts'
import { equalResult } from './equality.ts'
import { type Frame, noSuchOverload } from './frame.ts'
import { any, callWith, type Implementation, invoke } from './implementation.ts'
import { CelError, type CelResult, type CelValue, isPlainMap, Optional, sizeOf } from './values.ts'

type Unary = (a: CelValue, frame: Frame) => CelResult
type Binary = (a: CelValue, b: CelValue) => CelResult

/** `size(a)`; a large map's keys are listed once. */
function sizeIn(a: CelValue, frame: Frame): CelResult {
  return isPlainMap(a) ? frame.keysOf(a).length : arithmetic.size(a)
}

/** Operators and functions cel-go binds once for all their overloads, one argument. */
export const UNARY: Readonly<Record<string, Unary>> = {
  '!_': arithmetic.not,
  '-_': arithmetic.negate,
  size: sizeIn,
}

/** The same, two arguments. */
export const BINARY: Readonly<Record<string, Binary>> = {
  '_+_': arithmetic.add,
  '_-_': arithmetic.subtract,
  '_*_': arithmetic.multiply,
  '_/_': arithmetic.divide,
  '_%_': arithmetic.modulo,
  '_<_': arithmetic.relation('_<_', (order) => order < 0),
  '_<=_': arithmetic.relation('_<=_', (order) => order <= 0),
  '_>_': arithmetic.relation('_>_', (order) => order > 0),
  '_>=_': arithmetic.relation('_>=_', (order) => order >= 0),
  '@in': arithmetic.contains,
  in: arithmetic.contains,
  _in_: arithmetic.contains,
}

/** A call of a function of one argument: an error in it is the result, and the call is paid for all the same. */
export function unaryStep(run: Unary, arg: Step, cost: CallCost): Step {
  const flat = cost === one
  return (frame) => {
    const a = arg(frame)
    const result = a instanceof CelError ? a : run(a, frame)
    if (flat) frame.toilOver(a)
    frame.spend(flat ? 1 : cost([a], result))
    return result
  }
}

/** A call of a function of two arguments: both are evaluated, the first error is the result, the call is paid. */
export function binaryStep(run: Binary, left: Step, right: Step, cost: CallCost): Step {
  const flat = cost === one
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    const result = a instanceof CelError ? a : b instanceof CelError ? b : run(a, b)
    frame.spend(flat ? 1 : cost([a, b], result))
    return result
  }
}

/** Steps it takes to list one key of a map. */
const KEY_STEPS = 500

/**
 * `a + b` of two texts. Long messages are joined from many parts, and the engine keeps such a text as its parts until somebody
 * reads it: its length in code points is known from them.
 */
export function joinStep(left: Step, right: Step, cost: CallCost): Step {
  const general = (frame: Frame, a: CelResult, b: CelResult) => {
    const result = a instanceof CelError ? a : b instanceof CelError ? b : arithmetic.add(a, b)
    frame.spend(cost([a, b], result))
    return result
  }
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    if (typeof a !== 'string' || typeof b !== 'string') return general(frame, a, b)
    // Halves of one code point may meet where the texts do.
    if ((b.charCodeAt(0) & 0xfc00) === 0xdc00) return general(frame, a, b)
    const runes = frame.runesOf(a) + frame.runesOf(b)
    frame.spend(scaled(runes, TRAVERSAL))
    return frame.joined(a + b, runes)
  }
}

/** What comparing two values costs. */
export type EqualityCost = (a: CelResult, b: CelResult) => number

/** `a == b`, or `a != b` when `negated`. */
export function equalityStep(left: Step, right: Step, negated: boolean, cost: EqualityCost): Step {
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    const result = a instanceof CelError ? a : b instanceof CelError ? b : compared(a, b, negated)
    if (isPlainMap(a) || isPlainMap(b)) frame.toil(KEY_STEPS * (sizeOf(a) + sizeOf(b)))
    frame.spend(cost(a, b))
    return result
  }
}

function compared(a: CelValue, b: CelValue, negated: boolean): boolean | CelError {
  const equal = equalResult(a, b)
  return negated ? equal !== true : equal
}

/** A call of a library function that has one implementation and up to two arguments. */
export function boundStep(impl: Implementation, args: readonly Step[], cost: CallCost): Step {
  const [first, second] = args
  if (first === undefined) return nullaryBound(impl, cost)
  return second === undefined
    ? unaryBound(impl, first, cost)
    : binaryBound(impl, first, second, cost)
}

function nullaryBound(impl: Implementation, cost: CallCost): Step {
  return (frame) => {
    const result = invoke(impl, [], frame)
    frame.spend(cost([], result))
    return result
  }
}

function unaryBound(impl: Implementation, arg: Step, cost: CallCost): Step {
  const [guard = any] = impl.args ?? []
  const flat = cost === one
  // The guard establishes the type of the parameter.
  const call = impl.call as unknown as (a: CelValue, frame: Frame) => CelResult
  return (frame) => {
    const a = arg(frame)
    const result = a instanceof CelError ? a : guard(a) ? call(a, frame) : noSuchOverload(impl.fn)
    frame.spend(flat ? 1 : cost([a], result))
    return result
  }
}

function tried(impl: Implementation, args: readonly CelValue[], frame: Frame): CelResult {
  const result = callWith(impl, args, frame)
  return result === undefined ? noSuchOverload(impl.fn) : result
}

function binaryBound(impl: Implementation, left: Step, right: Step, cost: CallCost): Step {
  const [guardA = any, guardB = any] = impl.args ?? []
  const flat = cost === one
  // The guards establish the types of the parameters.
  const call = impl.call as unknown as (a: CelValue, b: CelValue, frame: Frame) => CelResult
  const run = (a: CelValue, b: CelValue, frame: Frame) =>
    guardA(a) && guardB(b) ? call(a, b, frame) : tried(impl, [a, b], frame)
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    const result = a instanceof CelError ? a : b instanceof CelError ? b : run(a, b, frame)
    if (flat) frame.toilOver(a)
    frame.spend(flat ? 1 : cost([a, b], result))
    return result
  }
}

/**
 * A call that cel-go dispatches as a variadic function: it ends at the first argument that is an error, and unless that was
 * the last one the call itself is not paid. Of several implementations the first that takes the arguments runs.
 */
export function dispatchStep(
  fn: string,
  candidates: readonly Implementation[],
  args: readonly Step[],
  cost: CallCost,
): Step {
  return (frame) => {
    const values: CelValue[] = []
    for (const arg of args) {
      const value = arg(frame)
      if (value instanceof CelError) {
        if (values.length === args.length - 1) frame.spend(cost([...values, value], value))
        return value
      }
      values.push(value)
    }
    const result = dispatched(fn, candidates, values, frame)
    frame.spend(cost(values, result))
    return result
  }
}

/** A call of a function that is bound once and whose overload is not resolved: all arguments are evaluated, the call is paid. */
export function singletonStep(
  fn: string,
  candidates: readonly Implementation[],
  args: readonly Step[],
  cost: CallCost,
): Step {
  return (frame) => {
    const values = args.map((arg) => arg(frame))
    const fault = values.find((value) => value instanceof CelError)
    // Without a fault every result is a value.
    const result = fault ?? dispatched(fn, candidates, values as CelValue[], frame)
    frame.spend(cost(values, result))
    return result
  }
}

function dispatched(
  fn: string,
  candidates: readonly Implementation[],
  args: readonly CelValue[],
  frame: Frame,
): CelResult {
  for (const candidate of candidates) {
    const result = callWith(candidate, args, frame)
    if (result !== undefined) return result
  }
  return noSuchOverload(fn)
}

/** `a && b` or `a || b`: the deciding value ends it; an error is the result only when nothing decides. */
export function logicalStep(terms: readonly Step[], deciding: boolean): Step {
  return (frame) => {
    let fault: CelError | undefined
    for (const term of terms) {
      const value = term(frame)
      if (value === deciding) return deciding
      if (typeof value !== 'boolean') fault ??= value instanceof CelError ? value : noSuchOverload()
    }
    return fault ?? !deciding
  }
}

/** `@not_strictly_false(a)`: false only for false. */
export function notStrictlyFalseStep(arg: Step): Step {
  return (frame) => {
    const value = arg(frame)
    frame.spend(1)
    return value !== false
  }
}

/** `a.or(b)` and `a.orValue(b)`: free, and `b` is evaluated only when `a` is absent. */
export function alternativeStep(fn: 'or' | 'orValue', left: Step, right: Step): Step {
  return (frame) => {
    const value = left(frame)
    if (value instanceof CelError) return value
    if (!(value instanceof Optional)) return noSuchOverload(fn)
    if (value.value === undefined) return right(frame)
    return fn === 'orValue' ? value.value : value
  }
}
