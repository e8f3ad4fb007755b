import { fromUtf8 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import {
  DOCUMENT_BYTES_PER_VALUE,
  MAX_DOCUMENT_VALUES,
  MAX_MANIFEST_DEPTH,
  MIN_DOCUMENT_VALUES,
} from '../limits.ts'

/** A JSON object from a registry. Ask it with `Object.hasOwn` semantics only: `field` does. */
export interface JsonObject {
  [key: string]: JsonValue
}

/** The object in the bytes; throws `REGISTRY_RESPONSE_INVALID` when they are not strict UTF-8, not JSON, too deep, too many values, or no object. */
export function parseJsonObject(bytes: Uint8Array, what: string): JsonObject {
  const value = parse(bytes, what)
  if (isObject(value)) return value
  throw new AdmissionError('REGISTRY_RESPONSE_INVALID', `${what}: not a JSON object`)
}

/** Values that a document of a registry may have, by its length. */
export function maxValuesOf(bytes: Uint8Array): number {
  const byLength = Math.floor(bytes.length / DOCUMENT_BYTES_PER_VALUE)
  return Math.min(Math.max(byLength, MIN_DOCUMENT_VALUES), MAX_DOCUMENT_VALUES)
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An own field of an object: `__proto__`, `constructor` and the like are fields here as any other. */
export function field(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function parse(bytes: Uint8Array, what: string): JsonValue {
  try {
    const text = fromUtf8(bytes)
    if (isTooComplex(text, maxValuesOf(bytes)))
      throw new RangeError('nested too deeply, or too many values')
    // JSON.parse gives a subset of JsonValue: no bigint, no JsonDouble.
    return JSON.parse(text) as JsonValue
  } catch (cause) {
    throw new AdmissionError('REGISTRY_RESPONSE_INVALID', `${what}: not readable as JSON`, {
      cause,
    })
  }
}

/** Objects and arrays take many times the memory of their text, so this is decided before there are any. */
function isTooComplex(text: string, maxValues: number): boolean {
  let depth = 0
  let values = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (inString) {
      if (char === '\\') at++
      else if (char === '"') inString = false
    } else if (char === '"') inString = true
    else if (char === ',') values++
    else if (char === '{' || char === '[') {
      values++
      if (++depth > MAX_MANIFEST_DEPTH) return true
    } else if (char === '}' || char === ']') depth--
    if (values > maxValues) return true
  }
  return false
}
