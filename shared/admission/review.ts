import { copyJson, getOwn, isJsonObject, type JsonValue } from '../json.ts'
import { MAX_IDENTIFIER_CHARS } from '../limits.ts'
import { describe, isAbsent, quote, Reader } from './reader.ts'
import {
  ADMISSION_API_VERSION,
  type AdmissionRequest,
  type GroupVersionKind,
  type GroupVersionResource,
  type JsonObject,
  type Operation,
  type UserInfo,
} from './types.ts'

const OPERATIONS: readonly string[] = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT']

/**
 * The checked request of an AdmissionReview as the API server sends it (specs/kubernetes-admission.md 4). Throws `REVIEW_INVALID` with
 * every bad path. What it keeps is copied, so that later changes to the envelope do not reach it; only `object` and
 * `oldObject` are adopted as they are. Members it does not know are ignored: a newer API server may send more.
 */
export function parseReview(value: JsonValue): AdmissionRequest {
  const reader = new Reader()
  const review = reader.object('(review)', value)
  if (review !== undefined) {
    readApiVersion(reader, getOwn(review, 'apiVersion'))
    if (getOwn(review, 'kind') !== 'AdmissionReview') {
      reader.fault('kind', `must be "AdmissionReview", is ${describe(getOwn(review, 'kind'))}`)
    }
  }
  const request = review && reader.object('request', getOwn(review, 'request'))
  const parsed = request && readRequest(reader, request)
  if (parsed === undefined || reader.hasFaults) throw reader.error()
  return parsed
}

/** The uid of an AdmissionReview that may be wrong in every other way, so that the answer can still be well-formed. */
export function readUid(value: JsonValue): string | undefined {
  const request = isJsonObject(value) ? getOwn(value, 'request') : undefined
  const uid = isJsonObject(request) ? getOwn(request, 'uid') : undefined
  return typeof uid === 'string' && uid !== '' && uid.length <= MAX_IDENTIFIER_CHARS
    ? uid
    : undefined
}

const HEAD =
  /^\s*\{\s*"kind"\s*:\s*"AdmissionReview"\s*,\s*"apiVersion"\s*:\s*"[^"\\]{1,64}"\s*,\s*"request"\s*:\s*\{\s*"uid"\s*:\s*"([A-Za-z0-9-]{1,128})"/

/**
 * The uid at the beginning of a body that could not be parsed (too large, cut short, nested too deeply), in the member
 * order the API server writes. Good for refusing only: nothing else of such a body is believed.
 */
export function peekUid(head: string): string | undefined {
  return HEAD.exec(head.slice(0, 1024))?.[1]
}

function readApiVersion(reader: Reader, value: JsonValue | undefined): void {
  if (value === ADMISSION_API_VERSION) return
  reader.fault(
    'apiVersion',
    value === 'admission.k8s.io/v1beta1'
      ? 'admission.k8s.io/v1beta1 is not supported; list "v1" first in admissionReviewVersions of the webhook'
      : `must be "${ADMISSION_API_VERSION}", is ${describe(value)}`,
  )
}

function readRequest(reader: Reader, request: JsonObject): AdmissionRequest | undefined {
  const at = (key: string) => [`request.${key}`, getOwn(request, key)] as const
  const uid = reader.identifier(...at('uid'))
  const kind = readKind(reader, ...at('kind'))
  const resource = readResource(reader, ...at('resource'))
  const operation = readOperation(reader, ...at('operation'))
  const userInfo = readUserInfo(reader, ...at('userInfo'))
  const object = readObject(reader, ...at('object'))
  const oldObject = readObject(reader, ...at('oldObject'))
  const options = reader.nullableObject(...at('options'))
  const optional = readOptional(reader, at)
  if (operation !== undefined) checkOperation(reader, operation, object, oldObject)
  if (
    uid === undefined ||
    kind === undefined ||
    resource === undefined ||
    operation === undefined ||
    userInfo === undefined ||
    object === undefined ||
    oldObject === undefined ||
    options === undefined
  ) {
    return undefined
  }
  return {
    uid,
    kind,
    resource,
    operation,
    userInfo,
    object,
    oldObject,
    options: copyJson(options),
    ...optional,
  }
}

type Optional = Pick<
  AdmissionRequest,
  | 'subResource'
  | 'requestKind'
  | 'requestResource'
  | 'requestSubResource'
  | 'name'
  | 'namespace'
  | 'dryRun'
>

function readOptional(
  reader: Reader,
  at: (key: string) => readonly [string, JsonValue | undefined],
): Optional {
  const out: Optional = {}
  for (const key of ['subResource', 'requestSubResource', 'name', 'namespace'] as const) {
    const text = reader.optionalText(...at(key))
    if (text !== undefined && text !== '') out[key] = text
  }
  const [kindPath, kind] = at('requestKind')
  const requestKind = isAbsent(kind) ? undefined : readKind(reader, kindPath, kind)
  if (requestKind !== undefined) out.requestKind = requestKind
  const [resourcePath, resource] = at('requestResource')
  const requestResource = isAbsent(resource)
    ? undefined
    : readResource(reader, resourcePath, resource)
  if (requestResource !== undefined) out.requestResource = requestResource
  const [dryRunPath, dryRun] = at('dryRun')
  if (typeof dryRun === 'boolean') out.dryRun = dryRun
  else if (!isAbsent(dryRun)) reader.fault(dryRunPath, `must be a boolean, is ${describe(dryRun)}`)
  return out
}

function readKind(
  reader: Reader,
  path: string,
  value: JsonValue | undefined,
): GroupVersionKind | undefined {
  const object = reader.object(path, value)
  if (object === undefined) return undefined
  const group = reader.text(`${path}.group`, getOwn(object, 'group'))
  const version = reader.identifier(`${path}.version`, getOwn(object, 'version'))
  const kind = reader.identifier(`${path}.kind`, getOwn(object, 'kind'))
  return group === undefined || version === undefined || kind === undefined
    ? undefined
    : { group, version, kind }
}

function readResource(
  reader: Reader,
  path: string,
  value: JsonValue | undefined,
): GroupVersionResource | undefined {
  const object = reader.object(path, value)
  if (object === undefined) return undefined
  const group = reader.text(`${path}.group`, getOwn(object, 'group'))
  const version = reader.identifier(`${path}.version`, getOwn(object, 'version'))
  const resource = reader.identifier(`${path}.resource`, getOwn(object, 'resource'))
  return group === undefined || version === undefined || resource === undefined
    ? undefined
    : { group, version, resource }
}

function readOperation(
  reader: Reader,
  path: string,
  value: JsonValue | undefined,
): Operation | undefined {
  // Every member of OPERATIONS is an Operation.
  if (typeof value === 'string' && OPERATIONS.includes(value)) return value as Operation
  reader.fault(path, `must be one of ${OPERATIONS.join(', ')}, is ${describe(value)}`)
  return undefined
}

function readUserInfo(
  reader: Reader,
  path: string,
  value: JsonValue | undefined,
): UserInfo | undefined {
  const object = reader.object(path, value)
  if (object === undefined) return undefined
  const out: UserInfo = {}
  for (const key of ['username', 'uid'] as const) {
    const member = getOwn(object, key)
    if (typeof member === 'string') out[key] = member
    else if (!isAbsent(member)) {
      reader.fault(`${path}.${key}`, `must be a string, is ${describe(member)}`)
    }
  }
  const groups = getOwn(object, 'groups')
  if (!isAbsent(groups)) out.groups = reader.texts(`${path}.groups`, groups)
  const extra = getOwn(object, 'extra')
  if (!isAbsent(extra)) {
    // Keys come from outside: without a prototype none of them can mean anything.
    const lists: Record<string, string[]> = Object.create(null)
    for (const [key, member] of Object.entries(reader.object(`${path}.extra`, extra) ?? {})) {
      lists[key] = isAbsent(member) ? [] : reader.texts(`${path}.extra[${quote(key)}]`, member)
    }
    out.extra = lists
  }
  return out
}

/** An object or null, and the parts of its metadata that selectors, seals and patches rely on. */
function readObject(
  reader: Reader,
  path: string,
  value: JsonValue | undefined,
): JsonObject | null | undefined {
  const object = reader.nullableObject(path, value)
  const metadata = object ? getOwn(object, 'metadata') : undefined
  if (isAbsent(metadata)) return object
  const fields = reader.object(`${path}.metadata`, metadata)
  if (fields === undefined) return undefined
  for (const key of ['name', 'namespace', 'generateName']) {
    reader.optionalText(`${path}.metadata.${key}`, getOwn(fields, key))
  }
  for (const key of ['labels', 'annotations']) {
    reader.textMap(`${path}.metadata.${key}`, getOwn(fields, key))
  }
  return object
}

/** Which of the two objects the API server sends for an operation (specs/kubernetes-admission.md 4, "Per operation"). */
function checkOperation(
  reader: Reader,
  operation: Operation,
  object: JsonObject | null | undefined,
  oldObject: JsonObject | null | undefined,
): void {
  if (operation === 'DELETE') {
    if (object) reader.fault('request.object', 'must be null on DELETE')
    return
  }
  if (object === null) reader.fault('request.object', `must be an object on ${operation}, is null`)
  if (operation !== 'UPDATE' && oldObject) {
    reader.fault('request.oldObject', `must be null on ${operation}`)
  }
}
