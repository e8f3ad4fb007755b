import type {
  AdmissionRequest,
  GroupVersionKind,
  GroupVersionResource,
  JsonObject,
  Operation,
  UserInfo,
} from '#shared/admission/types.ts'
import { isJsonObject, type JsonValue } from '#shared/json.ts'

/** What a client asks the API server to do. */
export interface Submission {
  operation: Operation
  /** The new object; null on DELETE. */
  object: JsonObject | null
  /** The object as stored; null on CREATE. */
  oldObject?: JsonObject | null
  /** `ephemeralcontainers`, `status`, `scale`; the object itself when absent. */
  subResource?: string
  /** Where the object's `metadata.namespace` is not set. */
  namespace?: string
  userInfo?: UserInfo
  dryRun?: boolean
}

/** Resource names of the kinds that the demo and the tests submit; any other kind is lower-cased with an `s`. */
const RESOURCES: Readonly<Record<string, string>> = { NetworkPolicy: 'networkpolicies' }

/** User of a submission that names none. */
const DEVELOPER: UserInfo = { username: 'dev@example.com', groups: ['system:authenticated'] }

/**
 * The AdmissionRequest an API server builds for one webhook call (`object` and `oldObject` as they are at that moment). Every
 * call gets its own uid, so a uid never links two phases. `name` is left out while the object has none: that is what a mutating webhook
 * sees under `generateName`.
 */
export function toAdmissionRequest(
  submission: Submission,
  object: JsonObject | null,
): AdmissionRequest {
  const oldObject = submission.oldObject ?? null
  const subject = object ?? oldObject ?? {}
  const metadata = metadataOf(subject)
  const kind = kindOf(subject)
  const resource = resourceOf(kind)
  const namespace = stringOf(metadata.namespace) ?? submission.namespace
  const name = stringOf(metadata.name)
  return {
    uid: crypto.randomUUID(),
    kind,
    resource,
    requestKind: kind,
    requestResource: resource,
    ...(submission.subResource === undefined
      ? {}
      : { subResource: submission.subResource, requestSubResource: submission.subResource }),
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    operation: submission.operation,
    userInfo: submission.userInfo ?? DEVELOPER,
    object,
    oldObject,
    dryRun: submission.dryRun ?? false,
    options: optionsOf(submission.operation),
  }
}

/** An object's metadata, or an empty record. */
function metadataOf(object: JsonObject): JsonObject {
  const metadata = object.metadata
  return isJsonObject(metadata) ? metadata : {}
}

function kindOf(object: JsonObject): GroupVersionKind {
  const [version = '', group = ''] = (stringOf(object.apiVersion) ?? '').split('/').reverse()
  return { group, version, kind: stringOf(object.kind) ?? '' }
}

function resourceOf({ group, version, kind }: GroupVersionKind): GroupVersionResource {
  return { group, version, resource: RESOURCES[kind] ?? `${kind.toLowerCase()}s` }
}

function optionsOf(operation: Operation): JsonValue {
  if (operation === 'CONNECT') return null
  const kinds = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' }
  return { kind: kinds[operation], apiVersion: 'meta.k8s.io/v1' }
}

function stringOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

const NAME_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
/** The generated part of a name, characters, and what a prefix is cut to so that both fit into 63. */
const RANDOM_CHARS = 5
const MAX_PREFIX_CHARS = 58

/** The object as the store completes it between the two phases: a name from `generateName`, uid, creationTimestamp. */
export function withStoreFields(object: JsonObject, now: number): JsonObject {
  const metadata = metadataOf(object)
  const { name, generateName } = metadata
  const generated =
    !name && typeof generateName === 'string' && generateName !== ''
      ? { name: generateName.slice(0, MAX_PREFIX_CHARS) + randomName() }
      : {}
  const creationTimestamp = `${new Date(now).toISOString().slice(0, 19)}Z`
  return {
    ...object,
    metadata: { ...metadata, ...generated, uid: crypto.randomUUID(), creationTimestamp },
  }
}

function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(RANDOM_CHARS))
  return Array.from(bytes, (byte) => NAME_ALPHABET[byte % NAME_ALPHABET.length]).join('')
}
