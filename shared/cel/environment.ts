import { AdmissionError } from '../errors.ts'
import type { FunctionDeclaration } from './declarations.ts'
import { type ObjectTypes, PATCH_OBJECT, PATCH_TYPES } from './declare/admission.ts'
import { JSON_PATCH_FUNCTIONS } from './declare/kubernetes.ts'
import { type CheckedFunction, FunctionTable } from './functions.ts'
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
  parseType,
  STRING,
  structOf,
  TIMESTAMP,
  TYPE,
  type Type,
  typeOf,
  UINT,
} from './type.ts'
import type { Profile, RegexEngine, TypeName } from './types.ts'

/** Name → type; a name may have dots. */
export type Variables = Readonly<Record<string, TypeName>>

export interface EnvironmentOptions {
  profile: Profile
  /** The Kubernetes minor version to imitate, 30 to 37; the newest when absent. Of the `kubernetes` profile only. */
  minor?: number
  /**
   * For expressions of objects that are being stored: the API server takes in them only what the version before it knows, so that it can be
   * taken back to that one (kubernetes-admission.md 5.1).
   */
  isNew?: boolean
  /** The namespace names are looked up in first, such as `com.example`. */
  container?: string
  variables: Variables
  /** Field tables of more declared types. */
  objectTypes?: ObjectTypes
  /** More functions, or more overloads of functions that are there. */
  declare?: readonly FunctionDeclaration[]
  /** Refuses constant patterns that are not RE2 when an expression is checked; without it, they are refused when it is planned. */
  regex?: RegexEngine
  /** With `Object`, `JSONPatch` and `jsonpatch.escapeKey`, as in mutating admission policies. */
  patchTypes?: boolean
}

/**
 * What an expression may use: macros, functions, variables and types. Made once, used for any number of expressions.
 * Throws `CEL_CHECK` for a Kubernetes version that cannot be imitated, a TypeError for a type that cannot be read.
 */
export function createEnvironment(options: EnvironmentOptions): Environment {
  const minor = options.minor ?? NEWEST_MINOR
  if (!Number.isInteger(minor) || minor < OLDEST_MINOR || minor > NEWEST_MINOR) {
    const range = `1.${OLDEST_MINOR} to 1.${NEWEST_MINOR}`
    throw new AdmissionError('CEL_CHECK', `Kubernetes 1.${minor} is not one of ${range}`)
  }
  return new Environment(
    partsOf(libraryOf(options.profile, options.isNew ? minor - 1 : minor), options),
  )
}

/** What environments that extend one another share, and what each has of its own. */
interface Parts {
  profile: Profile
  container: string
  macros: MacroTable
  validations: ReadonlySet<Validation>
  regex: RegexEngine | undefined
  functions: FunctionTable
  idents: ReadonlyMap<string, Type>
  objectTypes: ObjectTypes
  structs: ReadonlySet<string>
  patchTypes: boolean
}

/** Made by `createEnvironment`. */
export class Environment {
  readonly #parts: Parts
  readonly #containers: readonly string[]
  /** First parts of names with dots: only an identifier among them can start a qualified name. */
  readonly #roots: ReadonlySet<string>
  readonly #fields = new Map<string, Type>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#containers = containersOf(parts.container)
    this.#roots = rootsOf(parts)
  }

  get profile(): Profile {
    return this.#parts.profile
  }

  /** The namespace names are looked up in first; empty when there is none. */
  get container(): string {
    return this.#parts.container
  }

  get macros(): MacroTable {
    return this.#parts.macros
  }

  get validations(): ReadonlySet<Validation> {
    return this.#parts.validations
  }

  /** The engine that patterns written in an expression are tried on. */
  get regex(): RegexEngine | undefined {
    return this.#parts.regex
  }

  /** This environment with more variables and more declared types. */
  extend(variables: Variables, objectTypes: ObjectTypes = {}): Environment {
    const parts = this.#parts
    const structs = new Set([...parts.structs, ...Object.keys(objectTypes)])
    const idents = new Map(parts.idents)
    declareIdents(idents, variables, objectTypes, structs)
    return new Environment({
      ...parts,
      idents,
      structs,
      objectTypes: { ...parts.objectTypes, ...objectTypes },
    })
  }

  /** The names `name` may stand for, most specific first: within the container, then without it. */
  candidates(name: string): readonly string[] {
    if (name.startsWith('.')) return [name.slice(1)]
    if (this.#containers.length === 0) return [name]
    return [...this.#containers.map((prefix) => `${prefix}.${name}`), name]
  }

  /** False when no declared name with dots starts with this identifier. */
  mayQualify(root: string): boolean {
    return this.#containers.length > 0 || root.startsWith('.') || this.#roots.has(root)
  }

  /** The type of a variable, or the type of a name that is a type. */
  ident(name: string): Type | undefined {
    const declared = this.#parts.idents.get(name)
    if (declared !== undefined) return declared
    return this.#isPatchObject(name) ? typeOf(structOf(name)) : undefined
  }

  /** The function of that exact name. */
  function(name: string): CheckedFunction | undefined {
    return this.#parts.functions.get(name)
  }

  /** What the host must answer for a call of this function: with these overloads, or with any. */
  hostsOf(name: string, overloads?: readonly string[]): readonly string[] {
    return this.#parts.functions.hostsOf(name, overloads)
  }

  /** Every declared function with all its overloads. */
  declarations(): Iterable<FunctionDeclaration> {
    return this.#parts.functions.declarations()
  }

  /** True for a type whose fields are known. */
  hasFields(typeName: string): boolean {
    return this.#fieldsOf(typeName) !== undefined
  }

  /** The type of a field; undefined when the type has no such field. */
  field(typeName: string, field: string): Type | undefined {
    const key = `${typeName} ${field}`
    const known = this.#fields.get(key)
    if (known !== undefined) return known
    const fields = this.#fieldsOf(typeName)
    if (fields === undefined) return undefined
    const declared = Object.hasOwn(fields, field) ? fields[field] : fields['*']
    if (declared === undefined) return undefined
    const type = this.type(declared)
    this.#fields.set(key, type)
    return type
  }

  /** The type a TypeName spells in this environment. */
  type(name: TypeName): Type {
    return readType(name, this.#parts.structs)
  }

  #fieldsOf(typeName: string): Readonly<Record<string, TypeName>> | undefined {
    const { objectTypes } = this.#parts
    if (Object.hasOwn(objectTypes, typeName)) return objectTypes[typeName]
    return this.#isPatchObject(typeName) ? PATCH_TYPES[PATCH_OBJECT] : undefined
  }

  #isPatchObject(name: string): boolean {
    return this.#parts.patchTypes && (name === PATCH_OBJECT || name.startsWith(`${PATCH_OBJECT}.`))
  }
}

function partsOf(library: Library, options: EnvironmentOptions): Parts {
  const patchTypes = options.patchTypes ?? false
  const objectTypes = {
    ...library.objectTypes,
    ...(patchTypes ? PATCH_TYPES : {}),
    ...options.objectTypes,
  }
  const structs = new Set([...library.structTypes, ...Object.keys(objectTypes)])
  const idents = new Map(STANDARD_TYPES)
  for (const name of library.opaqueTypes) idents.set(name, typeOf(opaqueOf(name)))
  declareIdents(idents, options.variables, objectTypes, structs)
  const functions = [
    ...library.functions,
    ...(patchTypes ? JSON_PATCH_FUNCTIONS : []),
    ...(options.declare ?? []),
  ]
  return {
    profile: options.profile,
    container: options.container ?? '',
    macros: tableOf(library.macros),
    validations: new Set(library.validations),
    regex: options.regex,
    functions: new FunctionTable(functions, (name) => structs.has(name)),
    idents,
    objectTypes,
    structs,
    patchTypes,
  }
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

function declareIdents(
  idents: Map<string, Type>,
  variables: Variables,
  objectTypes: ObjectTypes,
  structs: ReadonlySet<string>,
): void {
  for (const name of Object.keys(objectTypes)) idents.set(name, typeOf(structOf(name)))
  for (const [name, type] of Object.entries(variables)) idents.set(name, readType(type, structs))
}

function readType(name: TypeName, structs: ReadonlySet<string>): Type {
  return parseType(name, { isStruct: (struct) => structs.has(struct) })
}

function rootsOf({ functions, idents, patchTypes }: Parts): ReadonlySet<string> {
  const roots = new Set<string>(patchTypes ? [PATCH_OBJECT] : [])
  const add = (name: string) => {
    const dot = name.indexOf('.')
    if (dot > 0) roots.add(name.slice(0, dot))
  }
  for (const name of idents.keys()) add(name)
  for (const { name } of functions.declarations()) add(name)
  return roots
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
