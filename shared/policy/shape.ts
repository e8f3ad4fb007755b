import { MAX_FAULTS } from '../limits.ts'
import type { PolicyFault } from './types.ts'

/** Keys and indices from the root of a document to a value. */
export type Path = readonly (string | number)[]

/** One thing wrong with a document, before it has a file and a line. */
export interface DocumentFault {
  code: PolicyFault['code']
  path: Path
  message: string
  /** Point at the key instead of its value: the key itself is what is wrong. */
  at?: 'key'
  /** Point at this character (UTF-16 offset) of the string. */
  offset?: number
}

/** Collects every fault of a document, so that one look at the list mends it; beyond `MAX_FAULTS` they are counted only. */
export class Faults {
  readonly found: DocumentFault[] = []
  count = 0

  report(fault: DocumentFault): void {
    this.count++
    if (this.found.length < MAX_FAULTS) this.found.push(fault)
  }

  add(path: Path, message: string, code: PolicyFault['code'] = 'POLICY_INVALID'): undefined {
    this.report({ code, path, message })
    return undefined
  }

  unknownField(path: Path): void {
    const message = `unknown field ${JSON.stringify(String(path.at(-1)))}`
    this.report({ code: 'POLICY_INVALID', path, message, at: 'key' })
  }
}

/**
 * Reads one kind of value: the value with its defaults, or undefined after adding to `faults`. Shapes work like a
 * structural schema of Kubernetes: null counts as absent, unknown fields are refused, and wording is the API server's.
 */
export type Shape<T> = (value: unknown, path: Path, faults: Faults) => T | undefined

/** `spec.validations[0].expression`; keys that are not plain words stand in brackets and quotes. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(step)) return `${text}[${JSON.stringify(step)}]`
    return text === '' ? step : `${text}.${step}`
  }, '')
}

/** Any string. */
export const text: Shape<string> = (value, path, faults) =>
  typeof value === 'string' ? value : wrongType(value, 'string', path, faults)

/** A string that says something: `Required value` when it is empty or blank. */
export const words: Shape<string> = (value, path, faults) => {
  const string = text(value, path, faults)
  return string?.trim() === '' ? faults.add(path, 'Required value') : string
}

/** The source of a CEL expression. Whether it compiles is asked later. */
export const expression: Shape<string> = (value, path, faults) => {
  const source = text(value, path, faults)
  return source?.trim() === ''
    ? faults.add(path, 'Required value: expression is not specified')
    : source
}

/** true or false. */
export const flag: Shape<boolean> = (value, path, faults) =>
  typeof value === 'boolean' ? value : wrongType(value, 'boolean', path, faults)

/** An integer between two bounds, both included. */
export function integer(least: number, most: number): Shape<number> {
  return (value, path, faults) => {
    if (typeof value !== 'number' || !Number.isInteger(value)) {
      return wrongType(value, 'integer', path, faults)
    }
    return value >= least && value <= most
      ? value
      : faults.add(path, `Invalid value: ${value}: must be between ${least} and ${most}`)
  }
}

/** One of these strings. */
export function oneOf<const T extends string>(...members: readonly T[]): Shape<T> {
  return (value, path, faults) => {
    const string = text(value, path, faults)
    if (string === undefined) return undefined
    const found = members.find((member) => member === string)
    return found ?? faults.add(path, unsupportedValue(string, members))
  }
}

/** `Unsupported value: "test": supported values: "Deny", "Audit", "Warn"`. */
export function unsupportedValue(found: string, members: readonly string[]): string {
  const supported = members.map((member) => JSON.stringify(member)).join(', ')
  return `Unsupported value: ${JSON.stringify(found)}: supported values: ${supported}`
}

/** Options of a list: `unique` names what must not occur twice, such as the name of each item. */
export interface ListOptions<T> {
  unique?: (item: T) => string | undefined
  /** Added to the path of the second occurrence: the field that holds the name. */
  uniqueField?: string
  most?: number
}

/** A list whose items all have one shape. */
export function listOf<T>(item: Shape<T>, options: ListOptions<T> = {}): Shape<T[]> {
  return (value, path, faults) => {
    if (!Array.isArray(value)) return wrongType(value, 'array', path, faults)
    const { most } = options
    if (most !== undefined && value.length > most) {
      return faults.add(path, `Too many: ${value.length}: must have at most ${most} items`)
    }
    const seen = new Set<string>()
    const items: T[] = []
    value.forEach((element, index) => {
      const read = item(element, [...path, index], faults)
      if (read === undefined) return
      items.push(read)
      const key = options.unique?.(read)
      if (key === undefined) return
      if (seen.has(key)) {
        const field = options.uniqueField === undefined ? [] : [options.uniqueField]
        faults.add([...path, index, ...field], `Duplicate value: ${JSON.stringify(key)}`)
      }
      seen.add(key)
    })
    return items
  }
}

/** Any keys, all values of one shape. */
export function mapOf<T>(item: Shape<T>): Shape<Record<string, T>> {
  return (value, path, faults) => {
    if (!isRecord(value)) return wrongType(value, 'object', path, faults)
    const map: Record<string, T> = Object.create(null)
    for (const [key, element] of Object.entries(value)) {
      const read = item(element, [...path, key], faults)
      if (read !== undefined) map[key] = read
    }
    return map
  }
}

/** A field of an object: how to read it and what an absent one means. */
interface Field<T> {
  shape: Shape<T>
  required: boolean
  /** Said after `Required value: `. */
  detail?: string
  fallback?: () => T
}

/** A field that must be there. */
export function required<T>(shape: Shape<T>, detail?: string): Field<T> & { required: true } {
  return { shape, required: true, ...(detail === undefined ? {} : { detail }) }
}

/** A field that may be absent. */
export function optional<T>(shape: Shape<T>): Field<T> & { required: false } {
  return { shape, required: false }
}

/** A field that stands for something when it is absent. */
export function defaulted<T>(shape: Shape<T>, fallback: () => T): Field<T> & { required: true } {
  return { shape, required: true, fallback }
}

type Fields = Record<string, Field<unknown>>
type Required<F extends Fields> = {
  [K in keyof F as F[K] extends { required: true } ? K : never]: F[K] extends Field<infer T>
    ? T
    : never
}
type Optional<F extends Fields> = {
  [K in keyof F as F[K] extends { required: true } ? never : K]?: F[K] extends Field<infer T>
    ? T
    : never
}
/** What an object of these fields reads as. */
export type ObjectOf<F extends Fields> = Required<F> & Optional<F>

/** What holds between the fields of an object. Sees them as they stand, so that it speaks up even when one is wrong. */
export type Rule = (fields: Record<string, unknown>, path: Path, faults: Faults) => void

/** An object with exactly these fields: every other one is named as unknown. */
export function object<F extends Fields>(fields: F, rule?: Rule): Shape<ObjectOf<F>> {
  return (value, path, faults) => {
    if (!isRecord(value)) return wrongType(value, 'object', path, faults)
    const before = faults.count
    rule?.(value, path, faults)
    for (const name of Object.keys(value)) {
      if (!Object.hasOwn(fields, name)) faults.unknownField([...path, name])
    }
    const read: Record<string, unknown> = {}
    for (const [name, field] of Object.entries(fields)) {
      const found = readField(own(value, name), field, [...path, name], faults)
      if (found !== undefined) read[name] = found
    }
    // Every field that is missing or wrong added a fault, so without one the object has all of them.
    return faults.count > before ? undefined : (read as ObjectOf<F>)
  }
}

function readField(value: unknown, field: Field<unknown>, path: Path, faults: Faults): unknown {
  if (value !== undefined && value !== null) return field.shape(value, path, faults)
  if (field.fallback !== undefined) return field.fallback()
  if (!field.required) return undefined
  return faults.add(path, `Required value${field.detail === undefined ? '' : `: ${field.detail}`}`)
}

/** Whatever is there is not supported yet; an empty list, object or string says nothing and is let through. */
export function refused(reason: string): Shape<never> {
  return (value, path, faults) =>
    saysNothing(value) ? undefined : faults.add(path, reason, 'POLICY_UNSUPPORTED')
}

/** Anything at all: a field that is known but that no verdict depends on. */
export const anything: Shape<unknown> = (value) => value

/** The items of a list that are right, and what must hold between them. `count` counts the wrong ones too. */
export function listRule<T>(
  shape: Shape<T[]>,
  rule: (items: T[], path: Path, faults: Faults, count: number) => void,
): Shape<T[]> {
  return (value, path, faults) => {
    const items = shape(value, path, faults)
    if (items !== undefined && Array.isArray(value)) rule(items, path, faults, value.length)
    return items
  }
}

/** True when a field is there and holds something: not null, not an empty list, object or string. */
export function isSet(fields: Record<string, unknown>, name: string): boolean {
  return isPresent(fields, name) && !saysNothing(own(fields, name))
}

/** True when a field is there, whatever it holds. */
export function isPresent(fields: Record<string, unknown>, name: string): boolean {
  const value = own(fields, name)
  return value !== undefined && value !== null
}

/** Exactly one of these fields is there: it says of what kind the object is. */
export function oneKind(...kinds: readonly string[]): Rule {
  const all = kinds.join(', ')
  return (fields, path, faults) => {
    const given = kinds.filter((kind) => isPresent(fields, kind))
    if (given.length === 0) faults.add(path, `Required value: one of ${all} must be set`)
    if (given.length > 1) faults.add(path, `Invalid value: only one of ${all} may be set`)
  }
}

/** True for an object that is not a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An own property, never one of a prototype. */
export function own(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined
}

function saysNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  return value === '' || (isRecord(value) && Object.keys(value).length === 0)
}

function wrongType(value: unknown, expected: string, path: Path, faults: Faults): undefined {
  return faults.add(
    path,
    `Invalid value: ${JSON.stringify(typeName(value))}: must be of type ${expected}`,
  )
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}
