import { AdmissionError } from '../errors.ts'
import type { FunctionDeclaration, OverloadDeclaration } from './declarations.ts'
import { type ObjectTypes, PATCH_OBJECT, PATCH_TYPES } from './declare/admission.ts'
import { JSON_PATCH_FUNCTIONS } from './declare/kubernetes.ts'
import type { Macro } from './macros.ts'
import type { MacroTable } from './parse.ts'
import { type Library, libraryOf, NEWEST_MINOR, OLDEST_MINOR, type Validation } from './profiles.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  opaqueOf,
  optionalOf,
  paramOf,
  parseType,
  STRING,
  structOf,
  TIMESTAMP,
  TYPE,
  type Type,
  type TypeNames,
  typeOf,
  UINT,
} from './type.ts'
import type { Profile, TypeName } from './types.ts'

export interface EnvironmentOptions {
  profile: Profile
  /** The Kubernetes minor version to imitate, 30 to 37; the newest when absent. Of the `kubernetes` profile only. */
  minor?: number
  /** The namespace names are looked up in first, such as `com.example`. */
  container?: string
  /** Name → type. A name may have dots. */
  variables: Readonly<Record<string, TypeName>>
  /** Field tables of more declared types. */
  objectTypes?: ObjectTypes
  /** More functions, or more overloads of functions that are there. */
  declare?: readonly FunctionDeclaration[]
  /** With `Object`, `JSONPatch` and `jsonpatch.escapeKey`, as in mutating admission policies. */
  patchTypes?: boolean
}

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

/** What an expression may use: macros, functions, variables and types. Made once, used for any number of expressions. */
export function createEnvironment(options: EnvironmentOptions): Environment {
  const minor = options.minor ?? NEWEST_MINOR
  if (!Number.isInteger(minor) || minor < OLDEST_MINOR || minor > NEWEST_MINOR) {
    const range = `1.${OLDEST_MINOR} to 1.${NEWEST_MINOR}`
    throw new AdmissionError('CEL_CHECK', `Kubernetes 1.${minor} is not one of ${range}`)
  }
  return new Environment(libraryOf(options.profile, minor), options)
}

const STANDARD_TYPES: ReadonlyMap<string, Type> = new Map(
  [
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    listOf(DYN),
    mapOf(DYN, DYN),
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    optionalOf(DYN),
  ].map((type) => [type.name, typeOf(type)]),
)

/** Made by `createEnvironment`. */
export class Environment {
  readonly profile: Profile
  readonly container: string
  readonly macros: MacroTable
  readonly validations: ReadonlySet<Validation>
  readonly homogeneous: boolean
  readonly #candidates: readonly string[]
  readonly #idents: ReadonlyMap<string, Type>
  readonly #objectTypes: ObjectTypes
  readonly #structs: ReadonlySet<string>
  readonly #patchTypes: boolean
  readonly #declarations = new Map<string, OverloadDeclaration[]>()
  readonly #functions = new Map<string, CheckedFunction>()
  /** First parts of names with dots: only an identifier among them can start a qualified name. */
  readonly #roots = new Set<string>()

  constructor(library: Library, options: EnvironmentOptions) {
    this.profile = options.profile
    this.container = options.container ?? ''
    this.macros = tableOf(library.macros)
    this.validations = new Set(library.validations)
    this.homogeneous = library.homogeneous
    this.#patchTypes = options.patchTypes ?? false
    this.#candidates = containersOf(this.container)
    this.#objectTypes = {
      ...library.objectTypes,
      ...(this.#patchTypes ? PATCH_TYPES : {}),
      ...options.objectTypes,
    }
    this.#structs = new Set([...library.structTypes, ...Object.keys(this.#objectTypes)])
    this.#idents = this.#declareIdents(library, options.variables)
    this.#declareFunctions(library.functions)
    if (this.#patchTypes) this.#declareFunctions(JSON_PATCH_FUNCTIONS)
    this.#declareFunctions(options.declare ?? [])
  }

  /** The names `name` may stand for, most specific first: within the container, then without it. */
  candidates(name: string): readonly string[] {
    if (name.startsWith('.')) return [name.slice(1)]
    if (this.container === '') return [name]
    return [...this.#candidates.map((prefix) => `${prefix}.${name}`), name]
  }

  /** False when no declared name with dots starts with this identifier. */
  mayQualify(root: string): boolean {
    return this.container !== '' || root.startsWith('.') || this.#roots.has(root)
  }

  /** The type of a variable, or the type of a name that is a type. */
  ident(name: string): Type | undefined {
    const declared = this.#idents.get(name)
    if (declared !== undefined) return declared
    return this.#isPatchObject(name) ? typeOf(structOf(name)) : undefined
  }

  /** The function of that exact name. */
  function(name: string): CheckedFunction | undefined {
    const known = this.#functions.get(name)
    if (known !== undefined) return known
    const overloads = this.#declarations.get(name)
    if (overloads === undefined) return undefined
    const signatures = overloads.map((overload) => this.#signature(overload))
    const checked = { name, signatures }
    this.#functions.set(name, checked)
    return checked
  }

  /** Every declared function with all its overloads. */
  *declarations(): Iterable<FunctionDeclaration> {
    for (const [name, overloads] of this.#declarations) yield { name, overloads }
  }

  /** True for a type whose fields are known. */
  hasFields(typeName: string): boolean {
    return Object.hasOwn(this.#objectTypes, typeName) || this.#isPatchObject(typeName)
  }

  /** The type of a field; undefined when the type has no such field. */
  field(typeName: string, field: string): Type | undefined {
    const fields = Object.hasOwn(this.#objectTypes, typeName)
      ? this.#objectTypes[typeName]
      : this.#isPatchObject(typeName)
        ? PATCH_TYPES[PATCH_OBJECT]
        : undefined
    if (fields === undefined) return undefined
    const declared = Object.hasOwn(fields, field) ? fields[field] : fields['*']
    return declared === undefined ? undefined : this.type(declared)
  }

  /** The type a TypeName spells in this environment. */
  type(name: TypeName, params?: ReadonlyMap<string, Type>): Type {
    const names: TypeNames = { isStruct: (struct) => this.#structs.has(struct) }
    return parseType(name, params === undefined ? names : { ...names, params })
  }

  #isPatchObject(name: string): boolean {
    return this.#patchTypes && (name === PATCH_OBJECT || name.startsWith(`${PATCH_OBJECT}.`))
  }

  #declareIdents(
    library: Library,
    variables: EnvironmentOptions['variables'],
  ): ReadonlyMap<string, Type> {
    const idents = new Map(STANDARD_TYPES)
    for (const name of library.opaqueTypes) idents.set(name, typeOf(opaqueOf(name)))
    for (const name of Object.keys(this.#objectTypes)) idents.set(name, typeOf(structOf(name)))
    for (const [name, type] of Object.entries(variables)) idents.set(name, this.type(type))
    for (const name of idents.keys()) this.#addRoot(name)
    if (this.#patchTypes) this.#roots.add(PATCH_OBJECT)
    return idents
  }

  #declareFunctions(functions: readonly FunctionDeclaration[]): void {
    for (const { name, overloads } of functions) {
      const declared = this.#declarations.get(name)
      if (declared === undefined) this.#declarations.set(name, [...overloads])
      else declared.push(...overloads)
      this.#functions.delete(name)
      this.#addRoot(name)
    }
  }

  #addRoot(name: string): void {
    const dot = name.indexOf('.')
    if (dot > 0) this.#roots.add(name.slice(0, dot))
  }

  #signature({ id, args, result, member, typeParams }: OverloadDeclaration): Signature {
    const params = new Map((typeParams ?? []).map((name, index) => [name, paramOf(name, index)]))
    return {
      id,
      args: args.map((arg) => this.type(arg, params)),
      result: this.type(result, params),
      member: member ?? false,
      variables: params.size,
    }
  }
}

function tableOf(macros: readonly Macro[]): MacroTable {
  const table = new Map<string, Macro[]>()
  for (const macro of macros) {
    const named = table.get(macro.name)
    if (named === undefined) table.set(macro.name, [macro])
    else named.push(macro)
  }
  return table
}

/** `a.b.c` → `a.b.c`, `a.b`, `a`. */
function containersOf(container: string): string[] {
  if (container === '') return []
  const parts = container.split('.')
  return parts.map((_, i) => parts.slice(0, parts.length - i).join('.'))
}
