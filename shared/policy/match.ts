import type { AdmissionRequest, Operation } from '../admission/types.ts'
import { getOwn, isJsonObject } from '../json.ts'
import { isNamespace, matchesNamespace, matchesObject } from './selector.ts'
import type { MatchConstraints, ResourceRule } from './types.ts'

/**
 * True when a policy is about this request (image-validating-policy.md 3.4): both selectors match, no exclude rule does, and
 * one resource rule does. Rules see `request.resource` and `subResource`: under `matchPolicy: Equivalent` the API
 * server has already converted the object to what a rule asked for, and `requestResource` is what it converted from.
 *
 * A namespace selector that the review alone does not decide counts as matching here: `matchConditions` asks it again, with the labels
 * of the namespace, which are looked up for policies that everything else matches.
 */
export function matchesConstraints(
  constraints: MatchConstraints,
  request: AdmissionRequest,
): boolean {
  return (
    matchesNamespace(constraints.namespaceSelector, request) !== false &&
    matchesObject(constraints.objectSelector, request) &&
    !constraints.excludeResourceRules.some((rule) => matchesRule(rule, request)) &&
    constraints.resourceRules.some((rule) => matchesRule(rule, request))
  )
}

/** Scope, operation, group, version, resource and name must all match (kubernetes-admission.md 2.4). */
function matchesRule(rule: ResourceRule, request: AdmissionRequest): boolean {
  const { group, version } = request.resource
  return (
    matchesScope(rule.scope, request) &&
    matchesOperation(rule.operations, request.operation) &&
    hasOrAll(rule.apiGroups, group) &&
    hasOrAll(rule.apiVersions, version) &&
    rule.resources.some((entry) => matchesResource(entry, request)) &&
    matchesName(rule.resourceNames, request)
  )
}

/** Core `namespaces` are cluster-scoped although their requests carry a namespace. */
function matchesScope(scope: ResourceRule['scope'], request: AdmissionRequest): boolean {
  if (scope === undefined || scope === '*') return true
  const isNamespaced = !isNamespace(request) && (request.namespace ?? '') !== ''
  return isNamespaced === (scope === 'Namespaced')
}

function matchesOperation(operations: readonly string[], operation: Operation): boolean {
  return hasOrAll(operations, operation)
}

function hasOrAll(entries: readonly string[], value: string): boolean {
  return entries.includes('*') || entries.includes(value)
}

/** `pods` is no subresource, `pods/*` is pods and all of them, `*` every resource without one, `*` with `/*` everything. */
function matchesResource(entry: string, request: AdmissionRequest): boolean {
  const slash = entry.indexOf('/')
  const resource = slash < 0 ? entry : entry.slice(0, slash)
  const subresource = slash < 0 ? '' : entry.slice(slash + 1)
  return (
    (resource === '*' || resource === request.resource.resource) &&
    (subresource === '*' || subresource === (request.subResource ?? ''))
  )
}

/** While the API server has not made up the name yet, a listed name matches as the beginning of `generateName`. */
function matchesName(names: readonly string[] | undefined, request: AdmissionRequest): boolean {
  if (names === undefined || names.length === 0) return true
  const name = request.name ?? ''
  if (name !== '') return names.includes(name)
  const generateName = generateNameOf(request)
  return generateName !== '' && names.some((listed) => generateName.startsWith(listed))
}

function generateNameOf(request: AdmissionRequest): string {
  const metadata = request.object === null ? undefined : getOwn(request.object, 'metadata')
  const generateName = isJsonObject(metadata) ? getOwn(metadata, 'generateName') : undefined
  return typeof generateName === 'string' ? generateName : ''
}
