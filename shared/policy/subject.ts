import type { AdmissionRequest, JsonObject } from '../admission/types.ts'
import type { Activation } from '../cel/frame.ts'
import { KYVERNO_CONTEXT_VALUES } from '../cel/library/kyverno-context.ts'
import { CelError } from '../cel/values.ts'
import { AdmissionError } from '../errors.ts'
import { type Extraction, extractImages } from '../image/extract.ts'
import type { JsonValue } from '../json.ts'
import { isNamespace, namespaceOf } from './selector.ts'

/** A request as policies look at it. Lives as long as the request; what is found out about it once is kept here. */
export interface Subject {
  readonly request: AdmissionRequest
  /** The variables every expression may use: `object`, `oldObject`, `request`, `namespaceObject` and the libraries of Kyverno. */
  readonly activation: Activation
  /** The images of the object, or why they cannot be read. Every policy that is applied needs them. */
  readonly extraction: { status: 'ok'; found: Extraction } | { status: 'error'; message: string }
  /** Where what is known of its namespace is kept: one place for all subjects of a request. */
  readonly namespace: { state: NamespaceState }
  /** Results by policy, so that evaluating again does not match every image again. */
  readonly memo: WeakMap<object, Map<string, unknown>>
}

/** The namespace of a request, where a policy asked for it: null when there is none, or why it is not known. */
export type NamespaceState =
  | { status: 'unasked' }
  | { status: 'known'; object: JsonObject | null }
  | { status: 'unknown'; message: string }

/**
 * The subject of a request. An object that is not there is null, as for the API server's own match conditions; Kyverno makes it an
 * empty object, which turns every `object != null` around and every DELETE into an error (image-validating-policy.md 2.4).
 * What is known of the namespace is shared with `before`, the same request with another object.
 */
export function subjectOf(request: AdmissionRequest, before?: Subject): Subject {
  const object = presentObject(request)
  const namespace = before?.namespace ?? { state: initialState(request) }
  return {
    request,
    activation: {
      ...KYVERNO_CONTEXT_VALUES,
      object,
      oldObject: request.oldObject,
      request: requestValue(request, object),
      namespaceObject: () => namespaceValue(namespace.state),
    },
    extraction: extractionOf(request),
    namespace,
    memo: new WeakMap(),
  }
}

/**
 * False on DELETE: the images are those of an object that goes away, so nothing asks for their digests or for evidence, or no object from
 * before the policy could ever be deleted. The validations still decide.
 */
export function runsImages({ request }: Subject): boolean {
  return request.operation !== 'DELETE'
}

/** Outside namespaces there is none, and a Namespace is in none, although its request names itself. */
function initialState(request: AdmissionRequest): NamespaceState {
  const isOutside = isNamespace(request) || namespaceOf(request) === undefined
  return isOutside ? { status: 'known', object: null } : { status: 'unasked' }
}

function namespaceValue(state: NamespaceState): JsonValue | CelError {
  if (state.status === 'known') return state.object
  return new CelError(
    state.status === 'unknown' ? state.message : 'namespaceObject was not looked up',
  )
}

/** On DELETE Go clients may send `{}` for no object. */
function presentObject({ operation, object }: AdmissionRequest): JsonValue {
  const isEmpty = operation === 'DELETE' && object !== null && Object.keys(object).length === 0
  return isEmpty ? null : object
}

/** The CEL variable `request`: like the JSON of the review, what is empty there is not set here. */
function requestValue(request: AdmissionRequest, object: JsonValue): Record<string, unknown> {
  const { userInfo, operation, kind, resource, oldObject } = request
  const value: Record<string, unknown> = {
    uid: request.uid,
    kind,
    resource,
    operation,
    userInfo,
    object,
    oldObject,
  }
  const optional = {
    subResource: request.subResource,
    requestKind: request.requestKind,
    requestResource: request.requestResource,
    requestSubResource: request.requestSubResource,
    name: request.name,
    namespace: request.namespace,
    dryRun: request.dryRun,
    options: request.options,
  }
  for (const [name, member] of Object.entries(optional)) {
    if (member !== undefined && member !== '' && member !== null) value[name] = member
  }
  return value
}

function extractionOf(request: AdmissionRequest): Subject['extraction'] {
  try {
    return { status: 'ok', found: extractImages(request) }
  } catch (error) {
    if (error instanceof AdmissionError) return { status: 'error', message: error.message }
    throw error
  }
}
