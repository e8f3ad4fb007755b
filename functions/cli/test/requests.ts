import { toAdmissionRequest } from '#functions/local/submission.ts'
import type { AdmissionRequest, JsonObject, UserInfo } from '#shared/admission/types.ts'
import { getOwn, isJsonObject } from '#shared/json.ts'

/** What tests are created by unless they say otherwise. */
const ADMIN: UserInfo = {
  username: 'kubernetes-admin',
  groups: ['system:masters', 'system:authenticated'],
}

/** Kinds that are in no namespace; every other object without one is created in `default`. */
const CLUSTER_KINDS: ReadonlySet<string> = new Set([
  'APIService',
  'CertificateSigningRequest',
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'IngressClass',
  'MutatingWebhookConfiguration',
  'Namespace',
  'Node',
  'PersistentVolume',
  'PriorityClass',
  'RuntimeClass',
  'StorageClass',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingWebhookConfiguration',
])

/** Plurals that no rule gives. */
const PLURALS: Readonly<Record<string, string>> = { Endpoints: 'endpoints' }

/** The request that creating an object is, as an API server sends it to webhooks. */
export function creationOf(object: JsonObject, userInfo: UserInfo = ADMIN): AdmissionRequest {
  const inNamespace = { ...object, metadata: { ...metadataOf(object), ...namespaceOf(object) } }
  const request = toAdmissionRequest(
    { operation: 'CREATE', object: inNamespace, userInfo },
    inNamespace,
  )
  const resource = { ...request.resource, resource: pluralOf(request.kind.kind) }
  return { ...request, resource, requestResource: resource }
}

/** The request that policies about JSON are asked with: there is no cluster, only the payload. */
export function payloadOf(payload: JsonObject): AdmissionRequest {
  return toAdmissionRequest({ operation: 'CREATE', object: payload }, payload)
}

/** `metadata` of an object, empty where there is none. */
export function metadataOf(object: JsonObject): JsonObject {
  const metadata = getOwn(object, 'metadata')
  return isJsonObject(metadata) ? metadata : {}
}

/** A member that is text, or undefined. */
export function textAt(object: JsonObject, key: string): string | undefined {
  const value = getOwn(object, key)
  return typeof value === 'string' && value !== '' ? value : undefined
}

function namespaceOf(object: JsonObject): { namespace?: string } {
  if (CLUSTER_KINDS.has(textAt(object, 'kind') ?? '')) return {}
  return { namespace: textAt(metadataOf(object), 'namespace') ?? 'default' }
}

/** The resource of a kind by the rules that Kubernetes' own names follow: `networkpolicies`, `ingresses`, `pods`. */
export function pluralOf(kind: string): string {
  const known = PLURALS[kind]
  if (known !== undefined) return known
  const name = kind.toLowerCase()
  if (/(s|x|z|ch|sh)$/.test(name)) return `${name}es`
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`
}
