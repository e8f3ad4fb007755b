import type { Environment } from '#shared/cel/environment.ts'
import type { Signature } from '#shared/cel/functions.ts'
import { instantiate, Substitution } from '#shared/cel/infer.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  isDyn,
  isOptional,
  listOf,
  mapOf,
  optionalOf,
  paramOf,
  printType,
  STRING,
  TIMESTAMP,
  type Type,
  UINT,
} from '#shared/cel/type.ts'
import { literal, TYPE_NAMES } from '#test/generator/literals.ts'
import type { Random } from '#test/generator/random.ts'

interface Call {
  name: string
  signature: Signature
}

interface Local {
  name: string
  type: Type
}

const SCALARS: readonly Type[] = [BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION]
const KEYS: readonly Type[] = [STRING, STRING, INT, UINT, BOOL]

const INFIX: ReadonlySet<string> = new Set(
  '_+_ _-_ _*_ _/_ _%_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _&&_ _||_'.split(' '),
)

/**
 * Writes expressions of a wanted type, out of everything an environment declares: every function is used sooner or later. With
 * `flaws`, that share of the parts has a type that was not wanted.
 */
export class ExpressionGenerator {
  readonly #random: Random
  readonly #flaws: number
  readonly #calls: readonly Call[]
  readonly #variables: readonly Local[]
  readonly #suitable = new Map<string, readonly Call[]>()
  #locals: Local[] = []

  constructor(environment: Environment, variables: readonly string[], random: Random, flaws = 0) {
    this.#random = random
    this.#flaws = flaws
    this.#calls = callsOf(environment)
    this.#variables = variables.flatMap((name) => {
      const type = environment.ident(name)
      return type === undefined ? [] : [{ name, type }]
    })
  }

  /** An expression of at most this many levels, mostly a condition. */
  next(depth: number): string {
    this.#locals = []
    return this.#expression(this.#random.chance(0.6) ? BOOL : this.#anyType(2), depth)
  }

  /** A type an expression can have. */
  #anyType(depth: number): Type {
    const random = this.#random
    if (depth === 0 || random.chance(0.6)) return random.pick(SCALARS)
    const inner = () => this.#anyType(depth - 1)
    switch (random.below(5)) {
      case 0:
        return mapOf(random.pick(KEYS), inner())
      case 1:
        return optionalOf(inner())
      case 2:
        return DYN
      default:
        return listOf(inner())
    }
  }

  #expression(wanted: Type, depth: number, fn?: string): string {
    const random = this.#random
    const type = random.chance(this.#flaws) ? this.#anyType(1) : wanted
    if (isDyn(type)) return this.#dynamic(depth)
    if (depth <= 0 || random.chance(0.1)) return this.#leaf(type, depth, fn)
    if (random.chance(0.3)) {
      const macro = this.#macro(type, depth - 1)
      if (macro !== undefined) return macro
    }
    if (random.chance(0.1)) {
      const part = (of: Type) => this.#expression(of, depth - 1)
      return `(${part(BOOL)} ? ${part(type)} : ${part(type)})`
    }
    const calls = this.#callsFor(type)
    if (calls.length === 0) return this.#leaf(type, depth, fn)
    return this.#call(random.pick(calls), type, depth - 1)
  }

  /** Something of which only the run knows the type: a selection from an object, or any value made dynamic. */
  #dynamic(depth: number): string {
    const random = this.#random
    const roots = this.#inScope().filter(({ type }) => isDyn(type))
    if (roots.length > 0 && random.chance(0.7)) {
      const steps = random.several(3, () => random.pick(STEPS))
      return random.pick(roots).name + steps.join('')
    }
    const inner = this.#expression(random.pick(SCALARS), depth - 1)
    return random.chance(0.5) ? `dyn(${inner})` : inner
  }

  #inScope(): readonly Local[] {
    return [...this.#variables, ...this.#locals]
  }

  #leaf(type: Type, depth: number, fn?: string): string {
    const random = this.#random
    const text = printType(type)
    const named = this.#inScope().filter((local) => printType(local.type) === text)
    if (named.length > 0 && random.chance(0.6)) return random.pick(named).name
    return literal(random, text, fn) ?? this.#composed(type, depth)
  }

  #composed(type: Type, depth: number): string {
    const random = this.#random
    const [first = DYN, second = DYN] = type.params
    const part = (of: Type) => this.#expression(of, depth - 1)
    if (type.kind === 'list') return `[${random.several(3, () => part(first)).join(', ')}]`
    if (type.kind === 'map') {
      const entry = () => `${part(first)}: ${part(second)}`
      return `{${random.several(2, entry).join(', ')}}`
    }
    if (type.kind === 'type') return random.pick(TYPE_NAMES)
    if (isOptional(type)) {
      return random.chance(0.3) ? 'optional.none()' : `optional.of(${part(first)})`
    }
    const makers = this.#callsFor(type).filter(({ signature }) =>
      signature.args.every(({ kind }) => kind === 'string'),
    )
    return makers.length > 0 ? this.#call(random.pick(makers), type, 0) : 'null'
  }

  /** Calls with a result that can be used as this type. */
  #callsFor(type: Type): readonly Call[] {
    const key = printType(type)
    const known = this.#suitable.get(key)
    if (known !== undefined) return known
    const found = this.#calls.filter(({ signature }) => {
      const substitution = new Substitution()
      const base = substitution.reserve(signature.variables)
      return substitution.assignable(instantiate(signature.result, base), type)
    })
    this.#suitable.set(key, found)
    return found
  }

  #call({ name, signature }: Call, wanted: Type, depth: number): string {
    const substitution = new Substitution()
    const base = substitution.reserve(signature.variables)
    substitution.assignable(instantiate(signature.result, base), wanted)
    for (let i = 0; i < signature.variables; i++) {
      const variable = paramOf('', base + i)
      const known = substitution.apply(variable, false)
      // What the result leaves open is a type that may be a key, so that maps of it are well-formed.
      if (known.kind === 'param') substitution.assignable(this.#random.pick(KEYS), variable)
    }
    const args = signature.args.map((arg) =>
      this.#expression(substitution.apply(instantiate(arg, base), true), depth, name),
    )
    return spelled(name, args, signature.member)
  }

  /** A macro call of this type, if some macro makes one. */
  #macro(type: Type, depth: number): string | undefined {
    const random = this.#random
    if (type.kind === 'bool') return this.#test(depth)
    if (type.kind === 'list') return this.#listMacro(type, type.params[0] ?? DYN, depth)
    if (type.kind === 'map') {
      const [key = STRING, value = DYN] = type.params
      const range = mapOf(key, random.pick(SCALARS))
      return this.#over(range, depth, 2, (vars, part) => ['transformMap', ...vars, part(value)])
    }
    if (isOptional(type)) {
      const [inner = DYN] = type.params
      const from = random.pick(SCALARS)
      const range = this.#expression(optionalOf(from), depth)
      const name = `v${this.#locals.length}`
      const body = this.#within([{ name, type: from }], () => this.#expression(inner, depth))
      return `${range}.optMap(${name}, ${body})`
    }
    return undefined
  }

  #test(depth: number): string {
    const random = this.#random
    if (random.chance(0.3)) return `has(${this.#selection()})`
    const range = random.chance(0.7)
      ? listOf(random.pick(SCALARS))
      : mapOf(random.pick(KEYS), random.pick(SCALARS))
    const name = random.pick(['all', 'exists', 'exists_one'])
    return this.#over(range, depth, random.chance(0.2) ? 2 : 1, (vars, part) => [
      name === 'exists_one' && vars.length === 2 ? 'existsOne' : name,
      ...vars,
      part(BOOL),
    ])
  }

  #selection(): string {
    const random = this.#random
    const roots = this.#inScope().filter(({ type }) => isDyn(type) || type.kind === 'map')
    const root = roots.length === 0 ? '{"a": {"b": 1}}' : random.pick(roots).name
    return `${root}${random.several(2, () => random.pick(FIELDS)).join('')}${random.pick(FIELDS)}`
  }

  #listMacro(type: Type, element: Type, depth: number): string {
    const random = this.#random
    const other = listOf(random.pick(SCALARS))
    switch (random.below(5)) {
      case 0:
        return this.#over(other, depth, 2, (vars, part) => [
          'transformList',
          ...vars,
          part(element),
        ])
      case 1:
        return this.#over(type, depth, 1, (vars, part) => ['filter', ...vars, part(BOOL)])
      case 2:
        return this.#over(type, depth, 1, (vars, part) => ['sortBy', ...vars, part(INT)])
      case 3:
        return this.#over(other, depth, 1, (vars, part) => [
          'map',
          ...vars,
          part(BOOL),
          part(element),
        ])
      default:
        return this.#over(other, depth, 1, (vars, part) => ['map', ...vars, part(element)])
    }
  }

  /** A macro over a range, with one variable or two. `write` gives the macro's name and its arguments. */
  #over(
    type: Type,
    depth: number,
    count: 1 | 2,
    write: (vars: readonly string[], part: (type: Type) => string) => readonly string[],
  ): string {
    const range = this.#expression(type, depth)
    const [first = DYN, second = DYN] = type.kind === 'list' ? [INT, ...type.params] : type.params
    const types = count === 2 ? [first, second] : [type.kind === 'list' ? second : first]
    const vars = types.map((each, i) => ({ name: `v${this.#locals.length + i}`, type: each }))
    const names = vars.map(({ name }) => name)
    const [macro, ...args] = this.#within(vars, () =>
      write(names, (of) => this.#expression(of, depth - 1)),
    )
    return `${range}.${macro}(${args.join(', ')})`
  }

  #within<T>(locals: readonly Local[], make: () => T): T {
    const outer = this.#locals
    this.#locals = [...outer, ...locals]
    const made = make()
    this.#locals = outer
    return made
  }
}

const FIELDS: readonly string[] = ['.metadata', '.spec', '.labels', '.name', '.containers', '.a']
const STEPS: readonly string[] = [...FIELDS, '.?spec', '["a"]', '[0]', '[?1]']

/** Everything callable, without what only the parser may call. */
function callsOf(environment: Environment): readonly Call[] {
  return [...environment.declarations()].flatMap(({ name }) => {
    if (name.includes('@') && name !== '@in') return []
    return (environment.function(name)?.signatures ?? []).map((signature) => ({ name, signature }))
  })
}

function spelled(name: string, args: readonly string[], member: boolean): string {
  const [first = '', second = '', third = ''] = args
  if (INFIX.has(name)) return `(${first} ${name.slice(1, -1)} ${second})`
  switch (name) {
    case '_?_:_':
      return `(${first} ? ${second} : ${third})`
    case '@in':
      return `(${first} in ${second})`
    case '!_':
    case '-_':
      return `${name.charAt(0)}(${first})`
    case '_[_]':
      return `(${first})[${second}]`
    case '_[?_]':
      return `(${first})[?${second}]`
    case '_?._':
      return `(${first}).?a`
    default:
      return member
        ? `(${first}).${name}(${args.slice(1).join(', ')})`
        : `${name}(${args.join(', ')})`
  }
}
