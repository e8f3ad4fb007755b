import type { Frame } from './frame.ts'
import {
  CelError,
  CelMap,
  type CelResult,
  type CelValue,
  debugText,
  isDouble,
  isList,
  isPlainMap,
  Message,
  ownField,
  toNumber,
  typeName,
  Uint,
} from './values.ts'

/** A map whose values are computed when they are looked up. Its lookups may spend from the frame's budget. */
export abstract class LazyMap extends CelMap {
  /** The value, undefined when there is no such key, or an error. */
  abstract lookup(key: CelValue, frame: Frame): CelResult | undefined
}

/** The value of `object[key]`, or the error cel-go gives. */
export function qualify(frame: Frame, object: CelValue, key: CelValue): CelResult {
  const found = qualifyIfPresent(frame, object, key)
  if (found !== undefined) return found
  return object instanceof Message ? unsetField(object.type, key) : missing(object, key)
}

/**
 * The value of `object[key]`, undefined when there is none, or an error. What is neither map nor list has no keys: asked
 * strictly or not, that is an absence, not a fault of its own.
 */
export function qualifyIfPresent(
  frame: Frame,
  object: CelValue,
  key: CelValue,
): CelResult | undefined {
  if (isPlainMap(object)) return typeof key === 'string' ? ownField(object, key) : undefined
  if (object instanceof LazyMap) return object.lookup(key, frame)
  if (object instanceof CelMap) return object.find(key)
  if (isList(object)) {
    const index = listIndex(key)
    if (index instanceof CelError) return index
    return Array.isArray(object) ? object[index] : object.at(index)
  }
  if (object instanceof Message) return typeof key === 'string' ? object.fields.get(key) : undefined
  return undefined
}

/** `has()` of one key: true, false or an error. */
export function testPresence(frame: Frame, object: CelValue, key: CelValue): boolean | CelError {
  const found = qualifyIfPresent(frame, object, key)
  return found instanceof CelError ? found : found !== undefined
}

/** The value of a message field that was not set: the checker has seen to it that there is such a field. */
function unsetField(type: string, field: CelValue): CelValue {
  return type === 'JSONPatch' && field !== 'value' ? '' : null
}

/** cel-go's words for a key that is not there. */
export function missing(object: CelValue, key: CelValue): CelError {
  return new CelError(
    isList(object) ? `index out of bounds: ${debugText(key)}` : `no such key: ${debugText(key)}`,
  )
}

/** The place a key means in a list (negative or past the end: none there), or an error for a key that is no index. */
export function listIndex(key: CelValue): number | CelError {
  if (typeof key === 'number' && Number.isSafeInteger(key)) return key
  if (typeof key === 'bigint') return -1
  if (key instanceof Uint) return key.value > 0xffff_ffffn ? -1 : Number(key.value)
  if (isDouble(key)) {
    const value = toNumber(key)
    if (Number.isSafeInteger(value)) return value
    return new CelError(`unsupported index value ${value} in list`)
  }
  return new CelError(`unsupported index type '${typeName(key)}' in list`)
}
