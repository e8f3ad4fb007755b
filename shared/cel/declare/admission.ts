import type { TypeName } from '../types.ts'

/** Field tables of declared types: type name → field name → type. The field `*` stands for any other name. */
export type ObjectTypes = Readonly<Record<string, Readonly<Record<string, TypeName>>>>

const REQUEST: Readonly<Record<string, TypeName>> = {
  kind: 'kubernetes.GroupVersionKind',
  resource: 'kubernetes.GroupVersionResource',
  subResource: 'string',
  requestKind: 'kubernetes.GroupVersionKind',
  requestResource: 'kubernetes.GroupVersionResource',
  requestSubResource: 'string',
  name: 'string',
  namespace: 'string',
  operation: 'string',
  userInfo: 'kubernetes.UserInfo',
  dryRun: 'bool',
  options: 'dyn',
}

const SHARED: ObjectTypes = {
  'kubernetes.GroupVersionKind': { group: 'string', version: 'string', kind: 'string' },
  'kubernetes.GroupVersionResource': { group: 'string', version: 'string', resource: 'string' },
  'kubernetes.UserInfo': {
    username: 'string',
    uid: 'string',
    groups: 'list(string)',
    extra: 'map(string, list(string))',
  },
  'kubernetes.Namespace': {
    metadata: 'kubernetes.NamespaceMetadata',
    spec: 'kubernetes.NamespaceSpec',
    status: 'kubernetes.NamespaceStatus',
  },
  'kubernetes.NamespaceMetadata': {
    name: 'string',
    generateName: 'string',
    namespace: 'string',
    labels: 'map(string, string)',
    annotations: 'map(string, string)',
    UID: 'string',
    creationTimestamp: 'timestamp',
    deletionGracePeriodSeconds: 'int',
    deletionTimestamp: 'timestamp',
    generation: 'int',
    resourceVersion: 'string',
    finalizers: 'list(string)',
  },
  'kubernetes.NamespaceSpec': { finalizers: 'list(string)' },
  'kubernetes.NamespaceStatus': {
    conditions: 'list(kubernetes.NamespaceCondition)',
    phase: 'string',
  },
  'kubernetes.NamespaceCondition': {
    status: 'string',
    type: 'string',
    lastTransitionTime: 'timestamp',
    message: 'string',
    reason: 'string',
  },
}

/** `request` and `namespaceObject` as the API server declares them (kubernetes-admission.md 5.3). */
export const ADMISSION_TYPES: ObjectTypes = { ...SHARED, 'kubernetes.AdmissionRequest': REQUEST }

/** The same as Kyverno declares them: `request` has the objects too. */
export const KYVERNO_ADMISSION_TYPES: ObjectTypes = {
  ...SHARED,
  'kubernetes.AdmissionRequest': { ...REQUEST, object: 'dyn', oldObject: 'dyn' },
}

/** What mutating admission policies build: any field of `Object` and of the types under it, and JSON patch operations. */
export const PATCH_TYPES: ObjectTypes = {
  JSONPatch: { op: 'string', path: 'string', from: 'string', value: 'dyn' },
  Object: { '*': 'dyn' },
}

/** The name under which the types of an object's fields start, as in `Object.spec.template`. */
export const PATCH_OBJECT = 'Object'

/** The variables of a validation without params (kubernetes-admission.md 5.3). */
export const ADMISSION_VARIABLES: Readonly<Record<string, TypeName>> = {
  object: 'dyn',
  oldObject: 'dyn',
  request: 'kubernetes.AdmissionRequest',
  namespaceObject: 'kubernetes.Namespace',
  authorizer: 'kubernetes.authorization.Authorizer',
  'authorizer.requestResource': 'kubernetes.authorization.ResourceCheck',
}
