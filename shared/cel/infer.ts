import { CEL_MAX_TYPE_SIZE, CEL_MAX_TYPE_STEPS } from '../limits.ts'
import { DYN, isDyn, paramOf, sameType, type Type, withParams } from './type.ts'

/** Thrown when types grow past their bounds: the expression is refused. Never leaves the compiler. */
export class TypeLimit extends Error {
  constructor() {
    super('expression is too complex: the types in it are too large')
  }
}

/**
 * What is known about type variables while an expression is checked. The rules are cel-go's, down to the order in which
 * variables are bound: which overloads match depends on it.
 */
export class Substitution {
  readonly #bound: (Type | undefined)[] = []
  /** Changes since the start, to take back those of an attempt that failed. */
  readonly #trail: { index: number; before: Type | undefined }[] = []
  #count = 0
  #steps = 0

  /** A type variable that is bound to nothing. */
  fresh(): Type {
    return paramOf(`_var${this.#count}`, this.#count++)
  }

  /** The index the next `count` type variables start at; they are taken. */
  reserve(count: number): number {
    const base = this.#count
    this.#count += count
    return base
  }

  /** True when `from` can be used as `to`; binds type variables, or changes nothing when it is false. */
  assignable(from: Type, to: Type): boolean {
    const mark = this.#trail.length
    return this.#assign(from, to) || this.#undo(mark)
  }

  /** `assignable` for each pair, all or nothing. */
  allAssignable(from: readonly Type[], to: readonly Type[]): boolean {
    const mark = this.#trail.length
    return this.#assignAll(from, to) || this.#undo(mark)
  }

  /** The type with bound variables replaced; with `closed`, unbound ones by `dyn`. */
  apply(type: Type, closed: boolean): Type {
    if (!type.open) return type
    if (type.kind === 'param') {
      const bound = this.#bound[type.index]
      if (bound !== undefined) return this.apply(bound, closed)
      return closed ? DYN : type
    }
    this.#spend(1)
    const applied = withParams(
      type,
      type.params.map((param) => this.apply(param, closed)),
    )
    if (applied.size > CEL_MAX_TYPE_SIZE) throw new TypeLimit()
    return applied
  }

  #spend(steps: number): void {
    this.#steps += steps
    if (this.#steps > CEL_MAX_TYPE_STEPS) throw new TypeLimit()
  }

  #bind(variable: Type, type: Type): void {
    this.#trail.push({ index: variable.index, before: this.#bound[variable.index] })
    this.#bound[variable.index] = type
  }

  #undo(mark: number): false {
    while (this.#trail.length > mark) {
      const change = this.#trail.pop()
      if (change !== undefined) this.#bound[change.index] = change.before
    }
    return false
  }

  #assignAll(from: readonly Type[], to: readonly Type[]): boolean {
    if (from.length !== to.length) return false
    for (let i = 0; i < from.length; i++) {
      // Both have the same length.
      if (!this.#assign(from[i] as Type, to[i] as Type)) return false
    }
    return true
  }

  #assign(from: Type, to: Type): boolean {
    this.#spend(1)
    if (to.kind === 'param') {
      const { valid, bound } = this.#bindable(from, to)
      if (valid) return true
      if (bound) return false
    }
    if (from.kind === 'param') return this.#bindable(to, from).valid
    if (isDynOrError(from) || isDynOrError(to)) return true
    if (from.kind === 'null') return isNullable(to)
    if (to.kind === 'null') return isNullable(from)
    switch (from.kind) {
      case 'type':
        return to.kind === 'type'
      case 'opaque':
      case 'list':
      case 'map':
        return (
          from.kind === to.kind && from.name === to.name && this.#assignAll(from.params, to.params)
        )
      default:
        return from.kind === to.kind && from.name === to.name
    }
  }

  /** Whether `variable` can stand for `type`; binds it, or widens what it is bound to. */
  #bindable(type: Type, variable: Type): { valid: boolean; bound: boolean } {
    if (sameType(type, variable)) return { valid: true, bound: true }
    const bound = this.#bound[variable.index]
    if (bound === undefined) {
      const valid = !this.#occurs(variable, type)
      if (valid) this.#bind(variable, type)
      return { valid, bound: false }
    }
    this.#spend(Math.min(type.size, bound.size))
    if (sameType(type, bound)) return { valid: true, bound: true }
    if (!this.#assign(type, bound)) return { valid: false, bound: true }
    const general = mostGeneral(type, bound)
    if (!this.#occurs(variable, general)) this.#bind(variable, general)
    return { valid: true, bound: true }
  }

  #occurs(variable: Type, within: Type): boolean {
    if (!within.open) return false
    this.#spend(1)
    if (within.kind !== 'param') return within.params.some((param) => this.#occurs(variable, param))
    if (within.index === variable.index) return true
    const bound = this.#bound[within.index]
    return bound !== undefined && this.#occurs(variable, bound)
  }
}

/** The more general of two types that are known to unify. */
export function mostGeneral(a: Type, b: Type): Type {
  return isEqualOrLessSpecific(a, b) ? a : b
}

function isEqualOrLessSpecific(a: Type, b: Type): boolean {
  if (isDyn(a) || a.kind === 'param') return true
  if (isDyn(b) || b.kind === 'param') return false
  if (a.kind !== b.kind) return false
  switch (a.kind) {
    case 'opaque':
      if (a.name !== b.name || a.params.length !== b.params.length) return false
      return a.params.every((param, i) => isEqualOrLessSpecific(param, b.params[i] ?? DYN))
    case 'list':
    case 'map':
      return a.params.every((param, i) => isEqualOrLessSpecific(param, b.params[i] ?? DYN))
    case 'type':
      return true
    default:
      return sameType(a, b)
  }
}

function isDynOrError(type: Type): boolean {
  return isDyn(type) || type.kind === 'error'
}

function isNullable(type: Type): boolean {
  switch (type.kind) {
    case 'any':
    case 'duration':
    case 'null':
    case 'opaque':
    case 'struct':
    case 'timestamp':
      return true
    default:
      return type.nullable
  }
}

/** A type with its local variables (index 0, 1, …) replaced by those of a substitution from `base` on. */
export function instantiate(type: Type, base: number): Type {
  if (!type.open) return type
  if (type.kind === 'param') return paramOf(`_var${base + type.index}`, base + type.index)
  return withParams(
    type,
    type.params.map((param) => instantiate(param, base)),
  )
}
