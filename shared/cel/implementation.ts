import type { JsonDouble } from '../json.ts'
import type { Frame } from './frame.ts'
import {
  type CelMap,
  type CelResult,
  type CelValue,
  Concat,
  Duration,
  isDouble,
  isInt,
  isMap,
  mapEntries,
  mapSize,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
} from './values.ts'

/** True when a value may be passed as a parameter of some type; lists and maps are judged by their first entry, as cel-go does. */
export type Guard<T extends CelValue = CelValue> = (value: CelValue) => value is T

/** One overload of a function as the planner needs it. */
export interface Implementation {
  /** Function name, the same for all overloads of one function. */
  readonly fn: string
  /** One guard for each parameter; undefined takes any number of anything. */
  readonly args: readonly Guard[] | undefined
  /** Takes exactly the arguments (values, never errors, past their guards), then the frame. */
  readonly call: (...args: never[]) => CelResult
  /** cel-go binds it as a variadic function: it stops at the first argument that is an error, at no cost of its own. */
  readonly variadic?: true
  /** cel-go binds the function once for all its overloads: every argument is evaluated even when several overloads remain. */
  readonly singleton?: true
  /** Index of the argument that is a pattern for the regex engine. */
  readonly regex?: number
  /** A constant pattern is compiled when the program is planned, and a bad one refused there. */
  readonly eager?: true
}

/** Overload id → implementation. */
export type Library = Readonly<Record<string, Implementation>>

type V = CelValue
interface Options {
  variadic?: true
  singleton?: true
}

/** An Implementation whose parameters have the types its guards establish. */
export function overload(
  fn: string,
  args: readonly [],
  call: (frame: Frame) => CelResult,
  options?: Options,
): Implementation
export function overload<A extends V>(
  fn: string,
  args: readonly [Guard<A>],
  call: (a: A, frame: Frame) => CelResult,
  options?: Options,
): Implementation
export function overload<A extends V, B extends V>(
  fn: string,
  args: readonly [Guard<A>, Guard<B>],
  call: (a: A, b: B, frame: Frame) => CelResult,
  options?: Options,
): Implementation
export function overload<A extends V, B extends V, C extends V>(
  fn: string,
  args: readonly [Guard<A>, Guard<B>, Guard<C>],
  call: (a: A, b: B, c: C, frame: Frame) => CelResult,
  options?: Options,
): Implementation
export function overload<A extends V, B extends V, C extends V, D extends V>(
  fn: string,
  args: readonly [Guard<A>, Guard<B>, Guard<C>, Guard<D>],
  call: (a: A, b: B, c: C, d: D, frame: Frame) => CelResult,
  options?: Options,
): Implementation
export function overload(
  fn: string,
  args: readonly Guard[],
  call: Implementation['call'],
  options: Options = {},
): Implementation {
  return { fn, args, call, ...options }
}

/** An Implementation with a pattern as its second argument: the function receives it compiled. */
export function regexOverload(
  fn: string,
  args: readonly Guard[],
  call: (...values: never[]) => CelResult,
  options: { eager?: true } = {},
): Implementation {
  return { fn, args, call, regex: 1, ...options }
}

/** Runs an implementation whose guards the arguments have passed. */
export function invoke(impl: Implementation, args: readonly CelValue[], frame: Frame): CelResult {
  // The guards have established the parameter types.
  const call = impl.call as (...args: readonly (CelValue | Frame)[]) => CelResult
  return call(...args, frame)
}

/** The result of an implementation for these arguments: sums of lists are copied together where a list is wanted. */
export function callWith(
  impl: Implementation,
  args: readonly CelValue[],
  frame: Frame,
): CelResult | undefined {
  if (accepts(impl, args)) return invoke(impl, args, frame)
  if (!args.some((arg) => arg instanceof Concat)) return undefined
  const settled = args.map((arg) => (arg instanceof Concat ? arg.flat() : arg))
  return accepts(impl, settled) ? invoke(impl, settled, frame) : undefined
}

/** True when every guard takes its argument. */
export function accepts(impl: Implementation, args: readonly CelValue[]): boolean {
  const guards = impl.args
  if (guards === undefined) return true
  if (guards.length !== args.length) return false
  for (let i = 0; i < args.length; i++) {
    // Both have the same length.
    if (!(guards[i] as Guard)(args[i] as CelValue)) return false
  }
  return true
}

export const any = (v: CelValue): v is CelValue => v !== undefined
export const bool = (v: CelValue): v is boolean => typeof v === 'boolean'
export const int: Guard<number | bigint> = isInt
export const uint = (v: CelValue): v is Uint => v instanceof Uint
export const double: Guard<number | JsonDouble> = isDouble
export const string = (v: CelValue): v is string => typeof v === 'string'
export const bytes = (v: CelValue): v is Uint8Array => v instanceof Uint8Array
export const timestamp = (v: CelValue): v is Timestamp => v instanceof Timestamp
export const duration = (v: CelValue): v is Duration => v instanceof Duration
export const type = (v: CelValue): v is TypeValue => v instanceof TypeValue
export const nil = (v: CelValue): v is null => v === null
export const optional = (v: CelValue): v is Optional => v instanceof Optional
export const list = (v: CelValue): v is CelValue[] => Array.isArray(v)
export const map: Guard<CelMap | { [key: string]: CelValue }> = isMap

/** A list whose first element passes, or an empty one. */
export function listOf<T extends CelValue>(element: Guard<T>): Guard<T[]> {
  return (v): v is T[] => Array.isArray(v) && (v.length === 0 || element(v[0] as CelValue))
}

/** A map whose first entry passes, or an empty one. */
export function mapOf(key: Guard, value: Guard): Guard<CelMap | { [key: string]: CelValue }> {
  return (v): v is CelMap | { [key: string]: CelValue } => {
    if (!isMap(v)) return false
    if (mapSize(v) === 0) return true
    for (const [k, entry] of mapEntries(v)) return key(k) && value(entry)
    return true
  }
}

/** A value of one opaque class. */
export function instance<T extends CelValue>(
  // Only its identity as a class matters here.
  kind: abstract new (...args: never[]) => T,
): Guard<T> {
  return (v): v is T => v instanceof kind
}
