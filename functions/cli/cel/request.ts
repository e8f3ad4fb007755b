import { fromTagged } from '#shared/cel/tagged.ts'
import type { Profile, TypeName } from '#shared/cel/types.ts'
import type { CelValue } from '#shared/cel/values.ts'
import { AdmissionError } from '#shared/errors.ts'
import { getOwn, isJsonObject, type JsonValue } from '#shared/json.ts'

/** What an expression of an admission policy may be given. */
export const INPUT_NAMES = ['object', 'oldObject', 'request', 'params', 'namespaceObject'] as const
export type InputName = (typeof INPUT_NAMES)[number]
export type Input = Readonly<Partial<Record<InputName, JsonValue>>>

/** A variable of a policy: `variables.<name>`. */
export interface PolicyVariable {
  name: string
  expr: string
}

/** An expression as the API server or Kyverno evaluates it. */
export interface PolicyRequest {
  profile: Exclude<Profile, 'spec'>
  expr: string
  /** Without it no name is bound; with it, what it does not have is null. */
  input?: Input
  variables: readonly PolicyVariable[]
}

/** An expression in an environment of its own, as a case of the CEL specification. */
export interface SpecRequest {
  profile: 'spec'
  expr: string
  /** Types of the variables. */
  vars: Readonly<Record<string, TypeName>>
  bindings: Readonly<Record<string, CelValue>>
  container: string
  disableCheck: boolean
  /** Only its type is wanted. */
  checkOnly: boolean
  /** More functions, declared but not implemented. */
  functions: readonly SpecFunction[]
}

export interface SpecFunction {
  name: string
  overloads: readonly {
    id: string
    params: readonly TypeName[]
    result: TypeName
    method: boolean
  }[]
}

export type CelRequest = PolicyRequest | SpecRequest

export const PROFILES: readonly Profile[] = ['kubernetes', 'kyverno', 'spec']

/**
 * The request that a JSON object stands for; `profile` is taken where it names none. Members it does not know are passed
 * over, so that whole cases can be given. Throws `CONFIG_INVALID` that names the member which is not what it must be.
 */
export function toCelRequest(value: JsonValue, profile: Profile): CelRequest {
  const members = new Members(value, '')
  const named = members.optional('profile', text) ?? profile
  const chosen = PROFILES.find((each) => each === named)
  if (chosen === undefined) throw invalid(`profile must be one of ${PROFILES.join(', ')}`)
  return chosen === 'spec' ? specRequest(members) : policyRequest(members, chosen)
}

function policyRequest(members: Members, profile: PolicyRequest['profile']): PolicyRequest {
  const input = members.optional('input', inputOf)
  return {
    profile,
    expr: members.required('expr', text),
    variables: members.optional('variables', listOf(variable)) ?? [],
    ...(input === undefined ? {} : { input }),
  }
}

function specRequest(members: Members): SpecRequest {
  return {
    profile: 'spec',
    expr: members.required('expr', text),
    vars: members.optional('vars', mapOf(text)) ?? {},
    bindings: members.optional('bindings', mapOf(tagged)) ?? {},
    container: members.optional('container', text) ?? '',
    disableCheck: members.optional('disableCheck', flag) ?? false,
    checkOnly: members.optional('checkOnly', flag) ?? false,
    functions: members.optional('functions', listOf(specFunction)) ?? [],
  }
}

/** Reads a value found at a path, or throws what is wrong with it. */
type Read<T> = (value: JsonValue, path: string) => T

/** The members of an object, by name. Null is the same as absent. */
class Members {
  readonly #object: { [key: string]: JsonValue }
  readonly #path: string

  constructor(value: JsonValue, path: string) {
    if (!isJsonObject(value)) throw invalid(`${path === '' ? 'a line' : path} must be an object`)
    this.#object = value
    this.#path = path
  }

  optional<T>(name: string, read: Read<T>): T | undefined {
    const value = getOwn(this.#object, name)
    return value === undefined || value === null ? undefined : read(value, this.#at(name))
  }

  required<T>(name: string, read: Read<T>): T {
    const value = getOwn(this.#object, name)
    if (value === undefined) throw invalid(`${this.#at(name)} is missing`)
    return read(value, this.#at(name))
  }

  #at(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`
  }
}

const text: Read<string> = (value, path) => {
  if (typeof value !== 'string') throw invalid(`${path} must be a string`)
  return value
}

const flag: Read<boolean> = (value, path) => {
  if (typeof value !== 'boolean') throw invalid(`${path} must be true or false`)
  return value
}

const tagged: Read<CelValue> = (value, path) => {
  try {
    return fromTagged(value)
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown
    throw invalid(`${path} is no tagged value such as {"int": "1"}`)
  }
}

const variable: Read<PolicyVariable> = (value, path) => {
  const members = new Members(value, path)
  return { name: members.required('name', text), expr: members.required('expr', text) }
}

const specFunction: Read<SpecFunction> = (value, path) => {
  const members = new Members(value, path)
  return {
    name: members.required('name', text),
    overloads: members.required(
      'overloads',
      listOf((each, at) => {
        const overload = new Members(each, at)
        return {
          id: overload.required('id', text),
          params: overload.required('params', listOf(text)),
          result: overload.required('result', text),
          method: overload.optional('method', flag) ?? false,
        }
      }),
    ),
  }
}

/** A misspelt name would be an object that is silently null. */
const inputOf: Read<Input> = (value, path) => {
  if (!isJsonObject(value)) throw invalid(`${path} must be an object`)
  const unknown = Object.keys(value).find((key) => !INPUT_NAMES.some((name) => name === key))
  if (unknown === undefined) return value
  throw invalid(`${path} has no ${unknown}, only ${INPUT_NAMES.join(', ')}`)
}

function listOf<T>(read: Read<T>): Read<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw invalid(`${path} must be a list`)
    return value.map((item, i) => read(item, `${path}[${i}]`))
  }
}

function mapOf<T>(read: Read<T>): Read<Readonly<Record<string, T>>> {
  return (value, path) => {
    if (!isJsonObject(value)) throw invalid(`${path} must be an object`)
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, read(item, `${path}.${key}`)]),
    )
  }
}

function invalid(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}
