import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'
import { CelError, type CelResult } from '#shared/cel/values.ts'
import { AdmissionError } from '#shared/errors.ts'
import { extractImages } from '#shared/image/extract.ts'
import { getOwn, isJsonObject, type JsonValue } from '#shared/json.ts'
import type { Input } from './request.ts'

/** The CEL variable `images`: the images of the object's Pod template, of the old object's where there is no object. */
export function imagesIn({ object, oldObject }: Input): CelResult {
  try {
    const { map } = extractImages(requestAbout(objectOf(object), objectOf(oldObject)))
    return Object.fromEntries(Object.entries(map).map(([name, images]) => [name, [...images]]))
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return new CelError(thrown.message)
    throw thrown
  }
}

function objectOf(value: JsonValue | undefined): JsonObject | null {
  return isJsonObject(value) ? value : null
}

/** As much of a request as says where the images are: its kind is the object's own. */
function requestAbout(object: JsonObject | null, oldObject: JsonObject | null): AdmissionRequest {
  const either = object ?? oldObject ?? {}
  const [version = '', group = ''] = textOf(either, 'apiVersion').split('/').reverse()
  return {
    uid: '',
    kind: { group, version, kind: textOf(either, 'kind') },
    resource: { group, version, resource: '' },
    operation: object === null ? 'DELETE' : 'CREATE',
    userInfo: {},
    object,
    oldObject,
    options: null,
  }
}

function textOf(object: JsonObject, key: string): string {
  const value = getOwn(object, key)
  return typeof value === 'string' ? value : ''
}
