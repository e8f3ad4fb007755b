import { type Apply, type FieldPath, fieldPath } from './field-path.ts'
import type { Frame } from './frame.ts'
import { qualify, qualifyIfPresent, testPresence } from './qualify.ts'
import {
  CelError,
  type CelResult,
  type CelValue,
  NONE,
  Optional,
  type TypeValue,
  typeName,
} from './values.ts'

/** One step of a planned program. */
export type Step = (frame: Frame) => CelResult

/**
 * A variable or computed value with the selections and indexes applied to it, in cel-go's sense: its selections cost one
 * each, and whoever evaluates it as a whole pays one more. Qualifiers are added while the tree is planned.
 */
export interface Attribute {
  readonly root: Root
  readonly qualifiers: Qualifier[]
}

type Root =
  | { kind: 'name'; name: string }
  | { kind: 'candidates'; names: readonly string[]; types: ReadonlyMap<string, TypeValue> }
  | { kind: 'local'; read: Step }
  | { kind: 'relative'; step: Step }
  | { kind: 'conditional'; condition: Step; truthy: Attribute; falsy: Attribute }

/** One `.field`, `[key]`, `.?field` or `[?key]`; `test` is the last step of `has()`. */
export type Qualifier =
  | { kind: 'key'; key: CelValue; optional: boolean; test: boolean }
  | { kind: 'computed'; key: Attribute; optional: boolean }

/** Adds a qualifier; a conditional passes it on to both its branches. */
export function addQualifier(attribute: Attribute, qualifier: Qualifier): void {
  if (attribute.root.kind === 'conditional') {
    addQualifier(attribute.root.truthy, qualifier)
    addQualifier(attribute.root.falsy, qualifier)
  } else attribute.qualifiers.push(qualifier)
}

/**
 * The step that gives the attribute's value and spends what its selections cost, and `own` more at the end: 1 when the
 * attribute is evaluated as a whole, 0 where it is a branch of a conditional or an index.
 */
export function resolver(attribute: Attribute, own: number): Step {
  const { root, qualifiers } = attribute
  if (root.kind === 'conditional') return paying(conditional(root), own)
  if (root.kind === 'candidates') return paying(candidates(root, qualifiers), own)
  return qualified(rootStep(root), qualifiers, own)
}

function paying(step: Step, own: number): Step {
  if (own === 0) return step
  return (frame) => {
    const value = step(frame)
    frame.spend(own)
    return value
  }
}

/** The step that applies the qualifiers to what the base gives. */
function qualified(base: Step, qualifiers: readonly Qualifier[], own: number): Step {
  if (qualifiers.length === 0) return paying(base, own)
  const compiled = qualifiers.map(compileQualifier)
  const slow: Apply = (frame, value, from) => apply(frame, value, compiled, from)
  const fields = fieldNames(qualifiers)
  if (fields !== undefined) return fieldPath(base, fields, own, slow)
  return paying((frame) => slow(frame, base(frame), 0), own)
}

/**
 * The qualifiers from `from` on applied one after the other. An optional one makes the rest optional, and so does an optional
 * value at the root of the attribute, which is looked into.
 */
function apply(
  frame: Frame,
  start: CelResult,
  qualifiers: readonly CompiledQualifier[],
  from: number,
): CelResult {
  let value = start
  if (value instanceof CelError) return value
  let optional = false
  if (from === 0 && value instanceof Optional) {
    if (value.value === undefined) return value
    value = value.value
    optional = true
  }
  for (let i = from; i < qualifiers.length; i++) {
    // i is below the length.
    const qualifier = qualifiers[i] as CompiledQualifier
    if (optional || qualifier.optional) {
      optional = true
      const next = qualifier.find(frame, value)
      if (next === undefined) return NONE
      value = next
    } else value = qualifier.get(frame, value)
    if (value instanceof CelError) return value
  }
  return optional ? new Optional(value) : value
}

/** The names of plain selections by field, the last of which may be a test; undefined when there is anything else. */
function fieldNames(qualifiers: readonly Qualifier[]): FieldPath | undefined {
  const names: string[] = []
  let test = false
  for (const qualifier of qualifiers) {
    if (qualifier.kind !== 'key' || qualifier.optional || test) return undefined
    if (typeof qualifier.key !== 'string') return undefined
    names.push(qualifier.key)
    test = qualifier.test
  }
  return { names, test }
}

/**
 * A name of an unchecked tree. `a.b.c` may be a variable of that whole name, or field `c` of the variable `a.b`, and so on:
 * the longest name that exists wins, and what became part of the name costs nothing.
 */
function candidates(
  root: Extract<Root, { kind: 'candidates' }>,
  qualifiers: readonly Qualifier[],
): Step {
  const attempts: { name: string; rest: Step }[] = []
  for (let count = nameParts(qualifiers).length; count >= 0; count--) {
    const suffix = nameParts(qualifiers).slice(0, count)
    for (const name of root.names) {
      const full = [name, ...suffix].join('.')
      const base: Step = (frame) => {
        const value = frame.resolve(full)
        return value === undefined ? (root.types.get(full) ?? new CelError(full)) : value
      }
      attempts.push({ name: full, rest: qualified(base, qualifiers.slice(count), 0) })
    }
  }
  return (frame) => {
    const known = attempts.find(
      ({ name }) => frame.resolve(name) !== undefined || root.types.has(name),
    )
    return known?.rest(frame) ?? new CelError(`no such attribute(s): ${root.names.join(', ')}`)
  }
}

/** The leading selections that could be part of a name. */
function nameParts(qualifiers: readonly Qualifier[]): string[] {
  const out: string[] = []
  for (const qualifier of qualifiers) {
    if (qualifier.kind !== 'key' || qualifier.optional || qualifier.test) break
    if (typeof qualifier.key !== 'string') break
    out.push(qualifier.key)
  }
  return out
}

function rootStep(root: Exclude<Root, { kind: 'conditional' | 'candidates' }>): Step {
  if (root.kind === 'local') return root.read
  if (root.kind === 'relative') return root.step
  const { name } = root
  return (frame) => {
    const value = frame.resolve(name)
    return value === undefined ? new CelError(`no such attribute(s): ${name}`) : value
  }
}

function conditional(root: Extract<Root, { kind: 'conditional' }>): Step {
  const { condition } = root
  const truthy = resolver(root.truthy, 0)
  const falsy = resolver(root.falsy, 0)
  return (frame) => {
    const chosen = condition(frame)
    if (chosen === true) return truthy(frame)
    if (chosen === false) return falsy(frame)
    return chosen instanceof CelError ? chosen : new CelError('no such overload')
  }
}

interface CompiledQualifier {
  readonly optional: boolean
  /** The value, or an error when there is none. */
  get(frame: Frame, value: CelValue): CelResult
  /** The value, undefined when there is none, or an error. */
  find(frame: Frame, value: CelValue): CelResult | undefined
}

function compileQualifier(qualifier: Qualifier): CompiledQualifier {
  if (qualifier.kind === 'computed') return computed(qualifier.key, qualifier.optional)
  const { key, optional } = qualifier
  if (qualifier.test) return presence(key, optional)
  return {
    optional,
    get: (frame, value) => {
      const found = qualify(frame, value, key)
      frame.spend(1)
      return found
    },
    find: (frame, value) => paidIfPresent(frame, qualifyIfPresent(frame, value, key)),
  }
}

function paidIfPresent(frame: Frame, found: CelResult | undefined): CelResult | undefined {
  if (found !== undefined && !(found instanceof CelError)) frame.spend(1)
  return found
}

/** The last step of `has()`: gives a bool, and inside an optional chain an absent value. */
function presence(key: CelValue, optional: boolean): CompiledQualifier {
  return {
    optional,
    get: (frame, value) => {
      const present = testPresence(frame, value, key)
      frame.spend(1)
      return present
    },
    find: (frame, value) => paidIfPresent(frame, qualifyIfPresent(frame, value, key)),
  }
}

function computed(attribute: Attribute, optional: boolean): CompiledQualifier {
  const step = resolver(attribute, 0)
  return {
    optional,
    get: (frame, value) => {
      const key = step(frame)
      const fault = key instanceof CelError ? key : invalidKey(key)
      const found = fault ?? qualify(frame, value, key as CelValue)
      frame.spend(1)
      return found
    },
    find: (frame, value) => {
      const key = step(frame)
      if (key instanceof CelError) return key
      return invalidKey(key) ?? paidIfPresent(frame, qualifyIfPresent(frame, value, key))
    },
  }
}

/** The error for a value that can be no key, or undefined. */
export function invalidKey(key: CelValue): CelError | undefined {
  switch (typeof key) {
    case 'string':
    case 'number':
    case 'bigint':
    case 'boolean':
      return undefined
    default:
      return isNumericObject(key) ? undefined : new CelError('invalid qualifier type')
  }
}

function isNumericObject(key: CelValue): boolean {
  const name = typeName(key)
  return name === 'uint' || name === 'double'
}
