import { fromBase64 } from '../bytes.ts'
import type { ConstNode } from './ast.ts'
import type { Step } from './attribute.ts'
import type { Frame } from './frame.ts'
import {
  CelError,
  CelMap,
  type CelResult,
  type CelValue,
  double,
  Message,
  normalInt,
  Optional,
  typeName,
  Uint,
} from './values.ts'

/** Cost of making a list. */
export const LIST_COST = 10
/** Cost of making a map. */
export const MAP_COST = 30
/** Cost of making a message. */
const MESSAGE_COST = 40

/** The value of a literal. */
export function constValue(value: ConstNode['value']): CelValue {
  if ('string' in value) return value.string
  if ('bool' in value) return value.bool
  if ('int' in value) return normalInt(BigInt(value.int))
  if ('uint' in value) return new Uint(BigInt(value.uint))
  if ('double' in value) return double(Number(value.double))
  if ('bytes' in value) return fromBase64(value.bytes) ?? new Uint8Array()
  return null
}

/** A list literal; `optional` are the indices of elements written with `?`. */
export function listStep(elements: readonly Step[], optional: ReadonlySet<number>): Step {
  return (frame) => {
    const out: CelValue[] = []
    const fault = fillList(frame, elements, optional, out)
    frame.spend(LIST_COST)
    return fault ?? out
  }
}

function fillList(
  frame: Frame,
  elements: readonly Step[],
  optional: ReadonlySet<number>,
  out: CelValue[],
): CelError | undefined {
  for (const [index, element] of elements.entries()) {
    const value = element(frame)
    if (value instanceof CelError) return value
    if (!optional.has(index)) out.push(value)
    else if (!(value instanceof Optional)) return notOptional('list element', value)
    else if (value.value !== undefined) out.push(value.value)
  }
  return undefined
}

/** One entry of a map literal. */
export interface EntryStep {
  key: Step
  value: Step
  optional: boolean
}

/** A map literal. */
export function mapStep(entries: readonly EntryStep[]): Step {
  return (frame) => {
    const out = new CelMap()
    const fault = fillMap(frame, entries, out)
    frame.spend(MAP_COST)
    return fault ?? out
  }
}

function fillMap(frame: Frame, entries: readonly EntryStep[], out: CelMap): CelError | undefined {
  for (const entry of entries) {
    const key = entry.key(frame)
    if (key instanceof CelError) return key
    const value = entry.value(frame)
    if (value instanceof CelError) return value
    if (!entry.optional) out.set(key, value)
    else if (!(value instanceof Optional)) return notOptional('map entry', value)
    else if (value.value === undefined) out.delete(key)
    else out.set(key, value.value)
  }
  return undefined
}

/** Well-known messages that stand for the value they hold, with the value they have when it is not set. */
const WRAPPERS: ReadonlyMap<string, CelValue> = new Map<string, CelValue>([
  ['google.protobuf.BoolValue', false],
  ['google.protobuf.BytesValue', new Uint8Array()],
  ['google.protobuf.DoubleValue', double(0)],
  ['google.protobuf.FloatValue', double(0)],
  ['google.protobuf.Int32Value', 0],
  ['google.protobuf.Int64Value', 0],
  ['google.protobuf.StringValue', ''],
  ['google.protobuf.UInt32Value', new Uint(0n)],
  ['google.protobuf.UInt64Value', new Uint(0n)],
])

function made(name: string, fields: ReadonlyMap<string, CelValue>): CelValue {
  const zero = WRAPPERS.get(name)
  if (zero === undefined) return new Message(name, fields)
  const value = fields.get('value')
  return value === undefined ? zero : value
}

/** A message literal. */
export function messageStep(
  name: string,
  fields: readonly { name: string; value: Step; optional: boolean }[],
): Step {
  return (frame) => {
    const out = new Map<string, CelValue>()
    let fault: CelResult = null
    for (const field of fields) {
      fault = field.value(frame)
      if (fault instanceof CelError) break
      if (!field.optional) out.set(field.name, fault)
      else if (!(fault instanceof Optional)) {
        fault = notOptional('field', fault)
        break
      } else if (fault.value !== undefined) out.set(field.name, fault.value)
    }
    frame.spend(MESSAGE_COST)
    return fault instanceof CelError ? fault : made(name, out)
  }
}

function notOptional(what: string, value: CelValue): CelError {
  return new CelError(
    `cannot initialize optional ${what} from non-optional value ${typeName(value)}`,
  )
}
