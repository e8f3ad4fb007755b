import { type Fault, unreachable } from '#shared/errors.ts'

/** The part of JSON Schema 2020-12 that `checkSchema` understands; nothing else may stand in a schema of ours. */
export type Schema = TypedSchema | AnyOf

/** A schema of one type. */
type TypedSchema =
  | (Notes & {
      type: 'string'
      pattern?: string
      /** Checked by the function of this name; other readers of the schema may ignore it. */
      format?: string
      enum?: readonly string[]
      default?: string
    })
  | (Notes & { type: 'integer'; minimum: number; maximum: number; default?: number })
  | (Notes & { type: 'boolean'; const?: true; default?: boolean })
  | (Notes & {
      type: 'array'
      items: Schema
      minItems?: number
      maxItems?: number
      uniqueItems?: true
      /** Keys whose values no two items share. */
      'x-uniqueKeys'?: readonly string[]
      default?: readonly []
    })
  | (Notes & {
      type: 'object'
      properties: { readonly [key: string]: Schema }
      additionalProperties: false
      required?: readonly string[]
      /** Exactly one of these sets of keys has to be there. */
      oneOf?: readonly Alternative[]
      default?: Readonly<Record<string, never>>
    })

/** Schemas of different types: the one of the value's own type counts. */
type AnyOf = Notes & { type?: undefined; anyOf: readonly TypedSchema[]; default?: undefined }

interface Alternative {
  readonly required: readonly string[]
  readonly maxProperties?: number
}

interface Notes {
  description?: string
  /** What editors and `checkSchema` say when pattern or format do not match: the fix, not the rule. */
  patternErrorMessage?: string
}

/** Checks behind `format`, by name. */
export type Formats = Readonly<Record<string, (text: string) => boolean>>

/** Where faults go while a value is walked. */
interface Walk {
  formats: Formats
  fault(path: string, message: string): void
}

/** The TypeScript type of the values a schema accepts. */
export type FromSchema<S> = S extends { anyOf: readonly (infer A)[] }
  ? FromSchema<A>
  : S extends { enum: readonly (infer E)[] } | { const: infer E }
    ? E
    : S extends { type: 'string' }
      ? string
      : S extends { type: 'integer' }
        ? number
        : S extends { type: 'boolean' }
          ? boolean
          : S extends { type: 'array'; items: infer I }
            ? FromSchema<I>[]
            : S extends { type: 'object'; properties: infer P }
              ? Flat<
                  { -readonly [K in Sure<S, P>]: FromSchema<P[K]> } & {
                    -readonly [K in Exclude<keyof P, Sure<S, P>>]?: FromSchema<P[K]>
                  }
                >
              : never

type Flat<T> = { [K in keyof T]: T[K] }
/** Keys that are there once defaults are filled in: required ones and those with a default. */
type Sure<S, P> = {
  [K in keyof P]: P[K] extends { default: unknown }
    ? K
    : S extends { required: readonly (infer R)[] }
      ? K extends R
        ? K
        : never
      : never
}[keyof P]

/** A copy of the value with the schema's defaults filled in, and every fault that was found. */
export interface Checked<S> {
  value: FromSchema<S>
  faults: readonly Fault[]
}

/**
 * Checks a value against a schema and fills in defaults. All faults are reported, unknown keys included; `value` is
 * only meaningful when there are none.
 */
export function checkSchema<const S extends Schema>(
  schema: S,
  value: unknown,
  formats: Formats = {},
): Checked<S> {
  const faults: Fault[] = []
  const walk: Walk = {
    formats,
    fault: (path, message) => faults.push({ path: path === '' ? '(document)' : path, message }),
  }
  // The shape was just checked key by key against the schema this type is derived from.
  return { value: check(schema, value, '', walk) as FromSchema<S>, faults }
}

type Of<T> = Schema & { type: T }

function check(schema: Schema, value: unknown, path: string, walk: Walk): unknown {
  switch (schema.type) {
    case 'string':
      return checkString(schema, value, path, walk)
    case 'integer':
      return checkInteger(schema, value, path, walk)
    case 'boolean':
      if (typeof value !== 'boolean' || value !== (schema.const ?? value)) {
        const allowed = schema.const === undefined ? 'true or false' : 'true'
        walk.fault(path, `expected ${allowed}, found ${shown(value)}`)
      }
      return value
    case 'array':
      return checkArray(schema, value, path, walk)
    case 'object':
      return checkObject(schema, value, path, walk)
    case undefined:
      return checkAny(schema, value, path, walk)
    default:
      return unreachable(schema)
  }
}

function checkAny({ anyOf }: AnyOf, value: unknown, path: string, walk: Walk): unknown {
  const own = anyOf.find((each) => hasType(each, value))
  if (own !== undefined) return check(own, value, path, walk)
  walk.fault(path, `expected ${anyOf.map(typeName).join(' or ')}, found ${shown(value)}`)
  return value
}

function hasType(schema: TypedSchema, value: unknown): boolean {
  switch (schema.type) {
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isRecord(value)
    case 'integer':
      return typeof value === 'number'
    case 'boolean':
      return typeof value === 'boolean' && value === (schema.const ?? value)
    default:
      return typeof value === schema.type
  }
}

function typeName(schema: TypedSchema): string {
  switch (schema.type) {
    case 'array':
      return 'a list'
    case 'object':
      return 'an object'
    case 'integer':
      return 'a whole number'
    case 'boolean':
      return schema.const === undefined ? 'true or false' : 'true'
    default:
      return 'a string'
  }
}

function checkString(schema: Of<'string'>, value: unknown, path: string, walk: Walk): unknown {
  if (typeof value !== 'string') {
    walk.fault(path, `expected a string, found ${kindOf(value)}`)
  } else if (schema.enum !== undefined && !schema.enum.includes(value)) {
    const allowed = schema.enum.map((word) => JSON.stringify(word)).join(' or ')
    walk.fault(path, `expected ${allowed}`)
  } else if (
    (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value)) ||
    (schema.format !== undefined && walk.formats[schema.format]?.(value) === false)
  ) {
    // The value itself stays out: somebody may have pasted a secret where its name belongs.
    const rule = `does not match ${schema.pattern ?? schema.format}`
    walk.fault(path, schema.patternErrorMessage ?? rule)
  }
  return value
}

function checkInteger(schema: Of<'integer'>, value: unknown, path: string, walk: Walk): unknown {
  const { minimum, maximum } = schema
  if (!Number.isSafeInteger(value) || Number(value) < minimum || Number(value) > maximum) {
    const isQuoted = typeof value === 'string' && /^-?\d+$/.test(value)
    const found = `${shown(value)}${isQuoted ? ': leave the quotes out' : ''}`
    walk.fault(path, `expected a whole number from ${minimum} to ${maximum}, found ${found}`)
  }
  return value
}

function checkArray(schema: Of<'array'>, value: unknown, path: string, walk: Walk): unknown {
  if (!Array.isArray(value)) {
    walk.fault(path, `expected a list, found ${shown(value)}`)
    return value
  }
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema
  if (value.length < minItems) {
    walk.fault(path, `expected at least ${minItems} entries, found ${value.length}`)
  }
  if (value.length > maxItems) {
    walk.fault(path, `expected at most ${maxItems} entries, found ${value.length}`)
  }
  if (schema.uniqueItems) checkUnique(value, path, '', walk)
  for (const key of schema['x-uniqueKeys'] ?? []) {
    const values = value.map((item) => (isRecord(item) ? item[key] : undefined))
    checkUnique(values, path, `.${key}`, walk)
  }
  return value.map((item, index) => check(schema.items, item, `${path}[${index}]`, walk))
}

function checkUnique(values: readonly unknown[], path: string, suffix: string, walk: Walk): void {
  for (const [index, value] of values.entries()) {
    const first = values.indexOf(value)
    if (typeof value !== 'string' || first === index) continue
    walk.fault(`${path}[${index}]${suffix}`, `repeats ${path}[${first}]${suffix}`)
  }
}

function checkObject(schema: Of<'object'>, value: unknown, path: string, walk: Walk): unknown {
  if (!isRecord(value)) {
    walk.fault(path, `expected an object, found ${shown(value)}`)
    return value
  }
  const given = new Map(Object.entries(value))
  const known = Object.keys(schema.properties)
  for (const key of given.keys()) {
    if (!known.includes(key)) walk.fault(join(path, key), unknownKey(key, known))
  }
  for (const key of schema.required ?? []) {
    if (!given.has(key)) walk.fault(join(path, key), 'is required')
  }
  if (schema.oneOf !== undefined) checkAlternatives(schema.oneOf, given, path, walk)
  const entries: [string, unknown][] = []
  for (const [key, part] of Object.entries(schema.properties)) {
    const item = given.has(key) ? (given.get(key) ?? null) : structuredClone(part.default)
    if (item !== undefined) entries.push([key, check(part, item, join(path, key), walk)])
  }
  return Object.fromEntries(entries)
}

function checkAlternatives(
  alternatives: readonly Alternative[],
  given: ReadonlyMap<string, unknown>,
  path: string,
  walk: Walk,
): void {
  const met = alternatives.filter(
    ({ required, maxProperties = given.size }) =>
      given.size <= maxProperties && required.every((key) => given.has(key)),
  )
  if (met.length === 1) return
  const names = alternatives.map(({ required }) => required.join(' and '))
  walk.fault(path, `give either ${names.join(', or ')}`)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function join(path: string, key: string): string {
  if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `${path}[${JSON.stringify(key.slice(0, 80))}]`
  return path === '' ? key : `${path}.${key}`
}

/** What was found, without its content: a secret may stand where something else was expected. */
function shown(value: unknown): string {
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** What stands where a text should, without the value itself: it may be somebody's secret. */
function kindOf(value: unknown): string {
  if (typeof value === 'number') return 'a number: put it in quotes'
  return typeof value === 'boolean' ? 'true or false: put it in quotes' : shown(value)
}

function unknownKey(key: string, known: readonly string[]): string {
  const near = known.find((name) => distance(name.toLowerCase(), key.toLowerCase()) <= 2)
  const fix = near === undefined ? `known keys: ${known.join(', ')}` : `did you mean "${near}"?`
  return `unknown key; ${fix}`
}

/** Edits between two words, 3 or more being all the same to the caller. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 3
}
