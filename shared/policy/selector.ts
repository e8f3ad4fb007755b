import type { AdmissionRequest, JsonObject } from '../admission/types.ts'
import { unreachable } from '../errors.ts'
import { getOwn, isJsonObject } from '../json.ts'
import type { LabelSelector } from './types.ts'

/** Labels as a selector sees them. */
export type Labels = Readonly<Record<string, string>>

/** The label every namespace has by itself, and the only one that a review tells: its own name. */
export const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name'

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
 * Whether the namespace of the request matches. Objects outside namespaces always match; a Namespace is matched by its own labels. Of any
 * other namespace a review tells the name only: undefined when that does not decide and its `labels` are not given.
 */
export function matchesNamespace(
  selector: LabelSelector | undefined,
  request: AdmissionRequest,
  labels?: Labels,
): boolean | undefined {
  if (selector === undefined || isEmpty(selector)) return true
  const name = namespaceOf(request)
  if (name === undefined) return true
  const known = (isNamespace(request) ? ownLabels(request) : undefined) ?? labels
  // The API server keeps this label of every namespace equal to the name.
  const all = { ...known, [NAMESPACE_NAME_LABEL]: name }
  if (known !== undefined) return matchesLabels(selector, all)
  if (!matchesLabels(onlyName(selector), all)) return false
  return asksLabels(selector) ? undefined : true
}

function ownLabels({ object, oldObject }: AdmissionRequest): Labels | undefined {
  return labelsOf(object) ?? labelsOf(oldObject)
}

/** True when a namespace selector asks for more than the name, which no review tells. */
export function asksLabels({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
  return keys.some((key) => key !== NAMESPACE_NAME_LABEL)
}

/** The terms of a selector that the name of a namespace decides. */
function onlyName({ matchLabels = {}, matchExpressions = [] }: LabelSelector): LabelSelector {
  const name = label(matchLabels, NAMESPACE_NAME_LABEL)
  return {
    ...(name === undefined ? {} : { matchLabels: { [NAMESPACE_NAME_LABEL]: name } }),
    matchExpressions: matchExpressions.filter(({ key }) => key === NAMESPACE_NAME_LABEL),
  }
}

/** The name of the namespace that a request is in, or that it is about; undefined outside namespaces. */
export function namespaceOf(request: AdmissionRequest): string | undefined {
  if (isNamespace(request)) return request.name ?? request.namespace ?? ''
  return request.namespace === '' ? undefined : request.namespace
}

/** True for requests about Namespace objects, which the API server gives their own name as their namespace. */
export function isNamespace({ resource }: AdmissionRequest): boolean {
  return resource.group === '' && resource.resource === 'namespaces'
}

function isEmpty(selector: LabelSelector): boolean {
  return (
    Object.keys(selector.matchLabels ?? {}).length === 0 &&
    (selector.matchExpressions ?? []).length === 0
  )
}

/** The labels of an object that is there. */
export function labelsIn(object: JsonObject): Labels {
  return labelsOf(object) ?? {}
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
