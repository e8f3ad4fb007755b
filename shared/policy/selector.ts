import type { AdmissionRequest, JsonObject } from '../admission/types.ts'
import { unreachable } from '../errors.ts'
import { getOwn, isJsonObject } from '../json.ts'
import type { LabelSelector } from './types.ts'

/** Labels as a selector sees them. */
export type Labels = Readonly<Record<string, string>>

/** The one label of a namespace that a review tells: its name. */
const NAMESPACE_NAME = 'kubernetes.io/metadata.name'

/** True when every term of the selector holds; a selector without terms matches everything. */
export function matchesLabels(selector: LabelSelector, labels: Labels): boolean {
  const wanted = Object.entries(selector.matchLabels ?? {})
  return (
    wanted.every(([key, value]) => label(labels, key) === value) &&
    (selector.matchExpressions ?? []).every((term) => holds(term, label(labels, term.key)))
  )
}

type Term = NonNullable<LabelSelector['matchExpressions']>[number]

/** `NotIn` also holds when the label is absent, as in the API server. */
function holds(term: Term, value: string | undefined): boolean {
  const { operator, values = [] } = term
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      return unreachable(operator)
  }
}

/**
 * True when the labels of the new or of the old object match (kubernetes-admission.md 2.3). An object without metadata,
 * such as the options of a CONNECT, never matches a selector that says something.
 */
export function matchesObject(
  selector: LabelSelector | undefined,
  request: AdmissionRequest,
): boolean {
  if (selector === undefined || isEmpty(selector)) return true
  return [request.object, request.oldObject].some((object) => {
    const labels = labelsOf(object)
    return labels !== undefined && matchesLabels(selector, labels)
  })
}

/**
 * True when the namespace of the request matches. Objects outside namespaces always match; a Namespace is matched by its
 * own name. The API server keeps the name label of every namespace equal to the name, so the name alone decides.
 */
export function matchesNamespace(
  selector: LabelSelector | undefined,
  request: AdmissionRequest,
): boolean {
  if (selector === undefined || isEmpty(selector)) return true
  const namespace = namespaceOf(request)
  return namespace === undefined || matchesLabels(selector, { [NAMESPACE_NAME]: namespace })
}

function namespaceOf(request: AdmissionRequest): string | undefined {
  if (request.namespace !== undefined && request.namespace !== '') return request.namespace
  return request.resource.resource === 'namespaces' ? (request.name ?? '') : undefined
}

function isEmpty(selector: LabelSelector): boolean {
  return (
    Object.keys(selector.matchLabels ?? {}).length === 0 &&
    (selector.matchExpressions ?? []).length === 0
  )
}

/** The labels of an object, or undefined without metadata. Labels that are not all strings count as none. */
function labelsOf(object: JsonObject | null): Labels | undefined {
  const metadata = object === null ? undefined : getOwn(object, 'metadata')
  if (!isJsonObject(metadata)) return undefined
  const labels = getOwn(metadata, 'labels')
  return isJsonObject(labels) && isLabels(labels) ? labels : {}
}

function isLabels(labels: JsonObject): labels is Record<string, string> {
  return Object.values(labels).every((value) => typeof value === 'string')
}

function label(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined
}
