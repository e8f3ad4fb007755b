import type { TypeName } from './types.ts'

/** What a type is, apart from its name and parameters. `struct` has fields, `opaque` has none, `param` is a type variable. */
export type TypeKind =
  | 'any'
  | 'bool'
  | 'bytes'
  | 'double'
  | 'duration'
  | 'dyn'
  | 'error'
  | 'int'
  | 'list'
  | 'map'
  | 'null'
  | 'opaque'
  | 'param'
  | 'string'
  | 'struct'
  | 'timestamp'
  | 'type'
  | 'uint'

/** A type of the checker. Compare with `sameType`, not with `===`. */
export interface Type {
  readonly kind: TypeKind
  /** The name at run time, such as `google.protobuf.Duration`, `list` or `net.IP`; of a type variable, its own name. */
  readonly name: string
  readonly params: readonly Type[]
  /** A wrapper type: the primitive, or null. */
  readonly nullable: boolean
  /** True when a type variable occurs in it. */
  readonly open: boolean
  /** Index of a type variable; -1 for every other type. */
  readonly index: number
  /** Number of parts: 1 and those of the parameters. */
  readonly size: number
}

const NONE: readonly Type[] = []

function scalar(kind: TypeKind, name: string = kind): Type {
  return { kind, name, params: NONE, nullable: false, open: false, index: -1, size: 1 }
}

export const ANY = scalar('any', 'google.protobuf.Any')
export const BOOL = scalar('bool')
export const BYTES = scalar('bytes')
export const DOUBLE = scalar('double')
export const DURATION = scalar('duration', 'google.protobuf.Duration')
export const DYN = scalar('dyn')
export const ERROR = scalar('error')
export const INT = scalar('int')
export const NULL = scalar('null', 'null_type')
export const STRING = scalar('string')
export const TIMESTAMP = scalar('timestamp', 'google.protobuf.Timestamp')
export const TYPE = scalar('type')
export const UINT = scalar('uint')

function composite(kind: TypeKind, name: string, params: readonly Type[]): Type {
  let size = 1
  let open = false
  for (const param of params) {
    size += param.size
    open ||= param.open
  }
  return { kind, name, params, nullable: false, open, index: -1, size }
}

/** The type with other parameters. */
export function withParams(type: Type, params: readonly Type[]): Type {
  const made = composite(type.kind, type.name, params)
  return type.nullable ? { ...made, nullable: true } : made
}

/** `list(element)`. */
export function listOf(element: Type): Type {
  return composite('list', 'list', [element])
}

/** `map(key, value)`. */
export function mapOf(key: Type, value: Type): Type {
  return composite('map', 'map', [key, value])
}

/** `type(of)`: the type of a value that is itself a type. */
export function typeOf(of: Type): Type {
  return composite('type', 'type', [of])
}

/** `optional_type(of)`. */
export function optionalOf(of: Type): Type {
  return composite('opaque', OPTIONAL, [of])
}

/** A type with a name and no fields. */
export function opaqueOf(name: string, ...params: Type[]): Type {
  return composite('opaque', name, params)
}

/** A type whose fields the environment declares. */
export function structOf(name: string): Type {
  return scalar('struct', name)
}

/** A type variable; `index` is its place in the substitution. */
export function paramOf(name: string, index: number): Type {
  return { kind: 'param', name, params: NONE, nullable: false, open: true, index, size: 1 }
}

/** The wrapper of a primitive: its values and null. */
export function wrapperOf(primitive: Type): Type {
  return { ...primitive, nullable: true }
}

const OPTIONAL = 'optional_type'

/** True for the types that every value has. */
export function isDyn(type: Type): boolean {
  return type.kind === 'dyn' || type.kind === 'any'
}

/** True for `optional_type(…)`. */
export function isOptional(type: Type): boolean {
  return type.kind === 'opaque' && type.name === OPTIONAL
}

/** The type inside an optional; any other type as it is. */
export function unwrapOptional(type: Type): Type {
  return isOptional(type) ? (type.params[0] ?? DYN) : type
}

/** True when both are the same type. With `anyParams`, type variables are the same whatever their names. */
export function sameType(a: Type, b: Type, anyParams = false): boolean {
  if (a === b) return true
  if (a.kind !== b.kind || a.params.length !== b.params.length) return false
  if (a.name !== b.name && !(anyParams && a.kind === 'param')) return false
  for (let i = 0; i < a.params.length; i++) {
    // Both have as many.
    if (!sameType(a.params[i] as Type, b.params[i] as Type, anyParams)) return false
  }
  return true
}

const CHECKED_NAMES: Partial<Record<TypeKind, string>> = {
  any: 'any',
  duration: 'duration',
  error: '!error!',
  null: 'null',
  timestamp: 'timestamp',
}

/** The spelling of a checked type: `int`, `list(string)`, `null`, `duration`, `wrapper(int)`. */
export function printType(type: Type): TypeName {
  const name = CHECKED_NAMES[type.kind]
  if (name !== undefined) return name
  if (type.params.length > 0) return `${type.name}(${type.params.map(printType).join(', ')})`
  return type.nullable ? `wrapper(${type.name})` : type.name
}

/** The spelling the API server uses in its own messages: run-time names, such as `null_type`. */
export function printDeclaredType(type: Type): string {
  if (type.params.length > 0)
    return `${type.name}(${type.params.map(printDeclaredType).join(', ')})`
  return type.nullable ? `wrapper(${type.name})` : type.name
}

const BY_NAME: ReadonlyMap<string, Type> = new Map([
  ['any', ANY],
  ['bool', BOOL],
  ['bytes', BYTES],
  ['double', DOUBLE],
  ['duration', DURATION],
  ['dyn', DYN],
  ['error', ERROR],
  ['int', INT],
  ['null', NULL],
  ['null_type', NULL],
  ['string', STRING],
  ['timestamp', TIMESTAMP],
  ['type', TYPE],
  ['uint', UINT],
  ['google.protobuf.Any', ANY],
  ['google.protobuf.Duration', DURATION],
  ['google.protobuf.Timestamp', TIMESTAMP],
])

/** What names mean while a TypeName is read. */
export interface TypeNames {
  /** True for a name that has a field table: it is a `struct`, any other unknown name is `opaque`. */
  isStruct?: (name: string) => boolean
  /** Type variables by name. */
  params?: ReadonlyMap<string, Type>
}

/** The type that `text` spells. Throws a TypeError when it is not the spelling of a type. */
export function parseType(text: TypeName, names: TypeNames = {}): Type {
  const reader = new TypeReader(text, names)
  const type = reader.type()
  reader.end()
  return type
}

class TypeReader {
  #at = 0
  readonly #text: string
  readonly #names: TypeNames

  constructor(text: string, names: TypeNames) {
    this.#text = text
    this.#names = names
  }

  type(): Type {
    const name = this.#name()
    const params = this.#take('(') ? this.#params() : undefined
    return params === undefined ? this.#plain(name) : this.#applied(name, params)
  }

  end(): void {
    if (this.#at < this.#text.length) this.#fail()
  }

  #params(): Type[] {
    const params = [this.type()]
    while (this.#take(',')) params.push(this.type())
    if (!this.#take(')')) this.#fail()
    return params
  }

  #plain(name: string): Type {
    const known = this.#names.params?.get(name) ?? BY_NAME.get(name)
    if (known !== undefined) return known
    if (name === 'list') return listOf(DYN)
    if (name === 'map') return mapOf(DYN, DYN)
    return this.#names.isStruct?.(name) ? structOf(name) : opaqueOf(name)
  }

  #applied(name: string, params: Type[]): Type {
    const [first, second] = params
    if (first === undefined) return this.#fail()
    if (name === 'map' && second !== undefined) return mapOf(first, second)
    if (params.length > 1) return opaqueOf(name, ...params)
    if (name === 'list') return listOf(first)
    if (name === 'type') return typeOf(first)
    if (name === 'wrapper') return wrapperOf(first)
    return opaqueOf(name, first)
  }

  #name(): string {
    this.#space()
    const start = this.#at
    while (/[\w.]/.test(this.#text.charAt(this.#at))) this.#at++
    const name = this.#text.slice(start, this.#at)
    this.#space()
    return name === '' ? this.#fail() : name
  }

  #take(char: string): boolean {
    this.#space()
    if (this.#text.charAt(this.#at) !== char) return false
    this.#at++
    return true
  }

  #space(): void {
    while (this.#text.charAt(this.#at) === ' ') this.#at++
  }

  #fail(): never {
    throw new TypeError(`not a type name: ${JSON.stringify(this.#text)} at ${this.#at}`)
  }
}
