import type { JsonValue } from '../json.ts'

/** `admission.k8s.io/v1` with its JSON names. */
export const ADMISSION_API_VERSION = 'admission.k8s.io/v1'

export interface GroupVersionKind {
  group: string
  version: string
  kind: string
}

export interface GroupVersionResource {
  group: string
  version: string
  resource: string
}

export interface UserInfo {
  username?: string
  uid?: string
  groups?: string[]
  extra?: Record<string, string[]>
}

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

export type JsonObject = { [key: string]: JsonValue }

/** A checked AdmissionRequest. `object` and `oldObject` are null where the API server sends null. */
export interface AdmissionRequest {
  uid: string
  kind: GroupVersionKind
  resource: GroupVersionResource
  subResource?: string
  requestKind?: GroupVersionKind
  requestResource?: GroupVersionResource
  requestSubResource?: string
  /** Absent while `generateName` has not been resolved (mutating phase). */
  name?: string
  namespace?: string
  operation: Operation
  userInfo: UserInfo
  object: JsonObject | null
  oldObject: JsonObject | null
  dryRun?: boolean
  options: JsonValue
}

/** `metav1.Status` as far as a denial uses it. `code` is at least 400. */
export interface AdmissionStatus {
  status: 'Failure'
  code: number
  reason: string
  message: string
  details?: { causes: { reason: string; message: string; field?: string }[] }
}

export interface AdmissionResponse {
  uid: string
  allowed: boolean
  status?: AdmissionStatus
  /** base64 of the JSON patch. */
  patch?: string
  patchType?: 'JSONPatch'
  warnings?: string[]
  auditAnnotations?: Record<string, string>
}

/** RFC 6902 operations that the engine emits and applies. */
export type JsonPatchOperation =
  | { op: 'add' | 'replace' | 'test'; path: string; value: JsonValue }
  | { op: 'remove'; path: string }
  | { op: 'move' | 'copy'; from: string; path: string }

/** What the engine decided for one request, before it becomes an AdmissionResponse. */
export interface Decision {
  allowed: boolean
  /** Present exactly when `allowed` is false. */
  status?: AdmissionStatus
  patch: readonly JsonPatchOperation[]
  warnings: readonly string[]
  auditAnnotations: Readonly<Record<string, string>>
  /** For the one log line of this decision: policies, images, digests, cache and seal use, calls made. */
  record: Readonly<Record<string, unknown>>
}
