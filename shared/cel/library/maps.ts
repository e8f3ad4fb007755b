import { any, type Library, map, overload } from '../implementation.ts'
import {
  CelError,
  CelMap,
  type CelResult,
  type CelValue,
  debugText,
  mapEntries,
} from '../values.ts'

type AnyMap = CelMap | { [key: string]: CelValue }

function copy(source: AnyMap): CelMap {
  const out = new CelMap()
  for (const [key, value] of mapEntries(source)) out.set(key, value)
  return out
}

/** Puts a value under a new key; an error when the key is there. */
export function insertEntry(out: CelMap, key: CelValue, value: CelValue): CelError | undefined {
  if (out.find(key) !== undefined) {
    return new CelError(`insert failed: key ${debugText(key)} already exists`)
  }
  out.set(key, value)
  return undefined
}

function insert(source: AnyMap, key: CelValue, value: CelValue): CelResult {
  const out = copy(source)
  return insertEntry(out, key, value) ?? out
}

/** Puts all entries of a map in; an error at the first key that is there. */
export function insertMap(out: CelMap, entries: AnyMap): CelError | undefined {
  for (const [key, value] of mapEntries(entries)) {
    const fault = insertEntry(out, key, value)
    if (fault !== undefined) return fault
  }
  return undefined
}

function insertAll(source: AnyMap, entries: AnyMap): CelResult {
  const out = copy(source)
  return insertMap(out, entries) ?? out
}

/** What the two-variable macros that make maps expand to. */
export const mapInsert: Library = {
  '@mapInsert_map_key_value': overload('cel.@mapInsert', [map, any, any], insert),
  '@mapInsert_map_map': overload('cel.@mapInsert', [map, map], insertAll),
}
