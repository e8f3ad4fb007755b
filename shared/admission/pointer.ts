import { AdmissionError } from '../errors.ts'
import { getOwn, isJsonObject, type JsonValue, setOwn } from '../json.ts'
import type { JsonObject } from './types.ts'

/** One segment of a JSON pointer, `~` and `/` escaped. */
export function escapePointer(segment: string): string {
  return segment.replaceAll('~', '~0').replaceAll('/', '~1')
}

/** A segment of a JSON pointer as the key it names. */
export function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** What a pointer can lead into. */
export type Container = JsonObject | JsonValue[]

/** Where a pointer leads: the container, the key in it, and how to get a document in which the container is another. */
export interface Target {
  parent: Container
  key: string
  rebuild: (parent: Container) => Container
}

/** The target of a pointer, or undefined when its parent does not exist; what is before the first slash is ignored. */
export function locate(document: Container, path: string): Target | undefined {
  const segments = path.split('/').slice(1).map(unescapePointer)
  const key = segments.pop()
  if (key === undefined) return undefined
  let parent = document
  const trail: { container: Container; key: string | number }[] = []
  for (const segment of segments) {
    const step = Array.isArray(parent) ? arrayIndex(segment, parent.length) : segment
    if (typeof step === 'object') return undefined
    const next = Array.isArray(parent) ? parent[Number(step)] : getOwn(parent, segment)
    if (!Array.isArray(next) && !isJsonObject(next)) return undefined
    trail.push({ container: parent, key: step })
    parent = next
  }
  const rebuild = (changed: Container): Container =>
    trail.reduceRight<Container>(
      (child, { container, key: at }) =>
        Array.isArray(container)
          ? container.with(Number(at), child)
          : withMember(container, String(at), child),
      changed,
    )
  return { parent, key, rebuild }
}

/** The value at a target; undefined for a missing object key. Throws for an array index that does not exist. */
export function valueAt({ parent, key }: Target, doing: string): JsonValue | undefined {
  if (!Array.isArray(parent)) return getOwn(parent, key)
  const index = arrayIndex(key, parent.length)
  if (typeof index === 'object') throw patchInvalid(`${doing}: ${index.problem}`)
  return parent[index]
}

/** The container with the value added at the target: set in an object, inserted into an array. */
export function inserted({ parent, key }: Target, value: JsonValue, doing: string): Container {
  if (!Array.isArray(parent)) return withMember(parent, key, value)
  if (key === '-') return [...parent, value]
  // An index may be one past the end, and a negative one counts from the end of the grown array.
  const index = arrayIndex(key, parent.length + 1)
  if (typeof index === 'object') {
    const prefix = index.isNumber ? '' : `value was not a proper array index: '${key}': `
    throw patchInvalid(`${doing}: ${prefix}${index.problem}`)
  }
  return parent.toSpliced(index, 0, value)
}

/** The container without what is at the target. */
export function removed({ parent, key }: Target, doing: string): Container {
  if (Array.isArray(parent)) {
    const index = arrayIndex(key, parent.length)
    if (typeof index === 'object') throw patchInvalid(`${doing}: ${index.problem}`)
    return parent.toSpliced(index, 1)
  }
  if (!Object.hasOwn(parent, key)) {
    throw missing(`${doing}: Unable to remove nonexistent key: ${key}`)
  }
  const { [key]: _, ...rest } = parent
  return rest
}

/** The object with one member set, whatever its name. */
export function withMember(parent: JsonObject, key: string, value: JsonValue): JsonObject {
  const changed = { ...parent }
  setOwn(changed, key, value)
  return changed
}

/** The index that a key names in an array of this length, or what Go says about it. */
export function arrayIndex(
  key: string,
  length: number,
): number | { problem: string; isNumber: boolean } {
  if (!/^[+-]?[0-9]+$/.test(key)) {
    const problem = `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`
    return { problem, isNumber: false }
  }
  const index = Number(key)
  if (!Number.isSafeInteger(index)) {
    const problem = `strconv.Atoi: parsing ${JSON.stringify(key)}: value out of range`
    return { problem, isNumber: false }
  }
  if (index >= length || index < -length) {
    const problem = `Unable to access invalid index: ${index}: invalid index referenced`
    return { problem, isNumber: true }
  }
  return index < 0 ? index + length : index
}

/** `PATCH_INVALID` for something that does not exist. */
export function missing(message: string): AdmissionError {
  return patchInvalid(`${message}: missing value`)
}

/** `PATCH_INVALID` with the API server's message. */
export function patchInvalid(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError('PATCH_INVALID', message, { cause })
}
