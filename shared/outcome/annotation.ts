import { escapePointer } from '../admission/pointer.ts'
import type { JsonObject, JsonPatchOperation } from '../admission/types.ts'
import { utf8 } from '../bytes.ts'
import { getOwn, isJsonObject, type JsonValue } from '../json.ts'
import { MAX_ANNOTATIONS_BYTES } from '../limits.ts'

/** The readable record of what the mutate phase found. It decides nothing. */
export const OUTCOMES_ANNOTATION = 'kyverno.io/image-verification-outcomes'
/** The sealed facts of the mutate phase. */
export const SEAL_ANNOTATION = 'countersign.dev/seal'

/** What the two annotations are to hold; undefined means that there must be none. */
export interface OutcomeAnnotations {
  outcomes?: string | undefined
  seal?: string | undefined
}

/** The text of an annotation of an object, or undefined. */
export function annotationOf(object: JsonObject | null, key: string): string | undefined {
  const annotations = object === null ? undefined : annotationsOf(object)
  const value = annotations && getOwn(annotations, key)
  return typeof value === 'string' ? value : undefined
}

/** True when the object has an annotation at all, of any name. */
export function hasAnnotations(object: JsonObject | null): boolean {
  const annotations = object === null ? undefined : annotationsOf(object)
  return annotations !== undefined && Object.keys(annotations).length > 0
}

/**
 * Patches after which the object has exactly these values under our two keys, whatever came in: what is there is overwritten or, when
 * there is nothing to write, removed. `/metadata/annotations` is created only where it is absent or null. Empty for no object
 * (DELETE) and when everything is already as it should be. A value that would take the object past the API server's
 * limit for annotations is not written, the record before the seal: the object would be refused for it.
 */
export function annotationPatch(
  object: JsonObject | null,
  values: OutcomeAnnotations,
): JsonPatchOperation[] {
  if (object === null) return []
  const current = annotationsOf(object)
  const wanted = fitting(current ?? {}, values)
  const operations = [
    ...setOrRemove(current ?? {}, OUTCOMES_ANNOTATION, wanted.outcomes),
    ...setOrRemove(current ?? {}, SEAL_ANNOTATION, wanted.seal),
  ]
  if (operations.length === 0 || current !== undefined) return operations
  return [...createAnnotations(object), ...operations]
}

function annotationsOf(object: JsonObject): JsonObject | undefined {
  const metadata = getOwn(object, 'metadata')
  const annotations = isJsonObject(metadata) ? getOwn(metadata, 'annotations') : undefined
  return isJsonObject(annotations) ? annotations : undefined
}

function createAnnotations(object: JsonObject): JsonPatchOperation[] {
  const create: JsonPatchOperation = { op: 'add', path: '/metadata/annotations', value: {} }
  return isJsonObject(getOwn(object, 'metadata'))
    ? [create]
    : [{ op: 'add', path: '/metadata', value: {} }, create]
}

function setOrRemove(
  current: JsonObject,
  key: string,
  wanted: string | undefined,
): JsonPatchOperation[] {
  const path = `/metadata/annotations/${escapePointer(key)}`
  const found = getOwn(current, key)
  if (found === wanted) return []
  if (wanted === undefined) return [{ op: 'remove', path }]
  return [{ op: found === undefined ? 'add' : 'replace', path, value: wanted }]
}

function fitting(current: JsonObject, { outcomes, seal }: OutcomeAnnotations): OutcomeAnnotations {
  const others = Object.entries(current).filter(
    ([key]) => key !== OUTCOMES_ANNOTATION && key !== SEAL_ANNOTATION,
  )
  let free = MAX_ANNOTATIONS_BYTES
  for (const [key, value] of others) free -= sizeOf(key, value)
  const sealSize = sizeOf(SEAL_ANNOTATION, seal)
  const sealFits = seal !== undefined && sealSize <= free
  if (sealFits) free -= sealSize
  const outcomesFit = outcomes !== undefined && sizeOf(OUTCOMES_ANNOTATION, outcomes) <= free
  return { outcomes: outcomesFit ? outcomes : undefined, seal: sealFits ? seal : undefined }
}

function sizeOf(key: string, value: JsonValue | undefined): number {
  return utf8(key).length + (typeof value === 'string' ? utf8(value).length : 0)
}
