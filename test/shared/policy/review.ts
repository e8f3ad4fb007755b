import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'

/** A CREATE of a Pod called web in namespace shop, changed as a test needs it. */
export function review(changes: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    uid: '3f1d5c0e-0000-4000-8000-000000000001',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    requestKind: { group: '', version: 'v1', kind: 'Pod' },
    requestResource: { group: '', version: 'v1', resource: 'pods' },
    name: 'web',
    namespace: 'shop',
    operation: 'CREATE',
    userInfo: { username: 'dev' },
    object: pod('registry.test/app:1'),
    oldObject: null,
    options: null,
    ...changes,
  }
}

/** A Pod called web whose containers have these images. */
export function pod(...images: string[]): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop', labels: { app: 'web' } },
    spec: { containers: images.map((image, index) => ({ name: `c${index}`, image })) },
  }
}

/** The same object with other metadata. */
export function withMetadata(object: JsonObject, metadata: JsonObject): JsonObject {
  return { ...object, metadata }
}
