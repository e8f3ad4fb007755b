import type { TypeName } from './types.ts'

/** One signature of a function. The id is cel-go's or the API server's own: the evaluator looks implementations up by it. */
export interface OverloadDeclaration {
  id: string
  /** Argument types, the receiver first. */
  args: readonly TypeName[]
  result: TypeName
  /** Called as `target.name(…)`. */
  member?: boolean
  /** Names in `args` and `result` that are type variables. */
  typeParams?: readonly string[]
}

export interface FunctionDeclaration {
  name: string
  /** Answered by the host: a program that calls it has this name among its needs. */
  host?: string
  overloads: readonly OverloadDeclaration[]
}

/** A function and its overloads. */
export function fn(name: string, ...overloads: OverloadDeclaration[]): FunctionDeclaration {
  return { name, overloads }
}

/** A function the host answers; programs need it by its own name. */
export function hostFn(name: string, ...overloads: OverloadDeclaration[]): FunctionDeclaration {
  return { name, host: name, overloads }
}

/** A function the host answers, one of several that go by the name of their port. */
export function portFn(
  port: string,
  name: string,
  ...overloads: OverloadDeclaration[]
): FunctionDeclaration {
  return { name, host: port, overloads }
}

/** A signature `name(args) → result`. Single capital letters, with a digit or without, are type variables. */
export function overload(
  id: string,
  args: readonly TypeName[],
  result: TypeName,
): OverloadDeclaration {
  const typeParams = typeParamsIn([...args, result])
  return typeParams.length === 0 ? { id, args, result } : { id, args, result, typeParams }
}

/** A signature `target.name(rest) → result`. */
export function member(
  id: string,
  args: readonly TypeName[],
  result: TypeName,
): OverloadDeclaration {
  return { ...overload(id, args, result), member: true }
}

function typeParamsIn(types: readonly TypeName[]): string[] {
  return [...new Set(types.flatMap((type) => type.match(/\b[A-Z]\d?\b(?!\.)/g) ?? []))]
}
