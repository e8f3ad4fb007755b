import type { FunctionDeclaration, OverloadDeclaration } from './declarations.ts'
import { paramOf, parseType, type Type } from './type.ts'

/** An overload with its types read; its type variables have the indices 0, 1, …. */
export interface Signature {
  id: string
  args: readonly Type[]
  result: Type
  member: boolean
  /** Number of type variables. */
  variables: number
}

export interface CheckedFunction {
  name: string
  signatures: readonly Signature[]
}

const NONE: readonly string[] = []

/** Declared functions by name. Overloads of one name add up; types are read when a function is first asked for. */
export class FunctionTable {
  readonly #declarations = new Map<string, OverloadDeclaration[]>()
  /** What the host must answer, by function and overload. */
  readonly #hosts = new Map<string, { id: string; host: string }[]>()
  readonly #checked = new Map<string, CheckedFunction>()
  readonly #isStruct: (name: string) => boolean

  constructor(functions: readonly FunctionDeclaration[], isStruct: (name: string) => boolean) {
    this.#isStruct = isStruct
    for (const { name, overloads, host } of functions) {
      if (host !== undefined) this.#addHost(name, host, overloads)
      const declared = this.#declarations.get(name)
      if (declared === undefined) this.#declarations.set(name, [...overloads])
      else declared.push(...overloads)
    }
  }

  /** The function of that exact name. */
  get(name: string): CheckedFunction | undefined {
    const known = this.#checked.get(name)
    if (known !== undefined) return known
    const overloads = this.#declarations.get(name)
    if (overloads === undefined) return undefined
    const checked = { name, signatures: overloads.map((overload) => this.#signature(overload)) }
    this.#checked.set(name, checked)
    return checked
  }

  /** What the host must answer for a call of this function: with these overloads, or with any. */
  hostsOf(name: string, overloads?: readonly string[]): readonly string[] {
    const hosts = this.#hosts.get(name)
    if (hosts === undefined) return NONE
    const called = hosts.filter(({ id }) => overloads === undefined || overloads.includes(id))
    return called.map(({ host }) => host)
  }

  /** Every function with all its overloads. */
  *declarations(): Iterable<FunctionDeclaration> {
    for (const [name, overloads] of this.#declarations) yield { name, overloads }
  }

  #addHost(name: string, host: string, overloads: readonly OverloadDeclaration[]): void {
    const hosts = this.#hosts.get(name) ?? []
    this.#hosts.set(name, [...hosts, ...overloads.map(({ id }) => ({ id, host }))])
  }

  #signature({ id, args, result, member, typeParams }: OverloadDeclaration): Signature {
    const params = new Map((typeParams ?? []).map((name, index) => [name, paramOf(name, index)]))
    const names = { isStruct: this.#isStruct, params }
    return {
      id,
      args: args.map((arg) => parseType(arg, names)),
      result: parseType(result, names),
      member: member ?? false,
      variables: params.size,
    }
  }
}
