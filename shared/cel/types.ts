import type { JsonValue } from '../json.ts'
import type { Node } from './ast.ts'

/**
 * The seams of the CEL layer: source → parse → check → plan → evaluate. A checked expression is plain JSON, so it can be
 * compiled at build time, shipped, and run where neither parser nor checker is loaded; it gives the same value at the same cost.
 */

/** The environment an expression is checked in. `kubernetes`: as the API server; `kyverno`: as Kyverno's image policies; `spec`: cel-go's own. */
export type Profile = 'kubernetes' | 'kyverno' | 'spec'

/** A type by its CEL spelling: `bool`, `int`, `string`, `dyn`, `list(string)`, `map(string, list(string))`, `optional_type(int)`, an object or opaque type by name. */
export type TypeName = string

/** A parse or check fault at a place in the source. */
export interface Issue {
  phase: 'parse' | 'check' | 'program'
  message: string
  /** UTF-16 offset of the first character. */
  offset: number
  /** One-based. */
  line: number
  /** One-based, in code points. */
  column: number
}

/** A checked expression: JSON all the way down. */
export interface CheckedExpression {
  source: string
  /** The checked result type. */
  type: TypeName
  /** The checked tree: names resolved, overloads attached. */
  ast: Node
  /** Host functions and engines the program needs: `regex`, or the name of a host function. */
  needs: readonly string[]
}

export type CompileResult =
  | { ok: true; checked: CheckedExpression }
  | { ok: false; issues: readonly Issue[] }

/**
 * A host call made while a program runs. It answers at once with a value, or with `pending` when the answer is not known
 * yet: the program then sees an error value (which `&&`, `||` and macros absorb), and the caller settles what is
 * pending and runs the program again.
 */
export interface HostCall {
  /** Name of the function, such as `verifyImageSignatures`. */
  name: string
  /** Arguments as plain data: strings as strings, lists as arrays, opaque values as their `key`. */
  args: readonly JsonValue[]
}

export type HostAnswer =
  | { kind: 'value'; value: JsonValue }
  | { kind: 'error'; message: string }
  | { kind: 'pending' }

export type Host = (call: HostCall) => HostAnswer

/** Regular expressions of CEL run on RE2; the engine is loaded only when a program needs it. */
export interface RegexEngine {
  /** Throws when the pattern is not RE2 syntax. */
  compile(pattern: string): Regex
}

export interface Regex {
  /** Number of capturing groups. */
  readonly groups: number
  /** True when the pattern matches anywhere in the text. */
  test(text: string): boolean
  /** Every leftmost match in order: `[whole, group1, …]`, an absent group is undefined. */
  matches(text: string, limit?: number): (string | undefined)[][]
  /** Every match replaced, or the first `limit`; in the replacement `\\1` is a group and `\\\\` a backslash. Throws when it is malformed. */
  replace(text: string, replacement: string, limit?: number): string
}

/** Cost that several evaluations draw from together; `spent` grows as they run. */
export interface Budget {
  readonly limit: number
  spent: number
}

/** The result of one evaluation: a value or an error, never a throw. */
export type Evaluation =
  | { kind: 'value'; value: unknown; cost: number }
  | { kind: 'error'; message: string; code: 'evaluation' | 'cost' | 'pending'; cost: number }
