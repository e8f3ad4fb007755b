import { covers, isKnownNamespaced } from '../policy/impossible.ts'
import type { CompiledPolicy, ResourceRule } from '../policy/types.ts'

/** Resources of these are the same objects in another group (kubernetes-admission.md 2.2). */
const COHABITING: ReadonlyMap<string, string> = new Map([
  ['', 'events.k8s.io'],
  ['events.k8s.io', ''],
])

/**
 * True when the API server may send these policies an object in another version or group than it was written in: where rules name versions
 * of what there may be several of. Pods and what controls them are served in one.
 */
export function mayConvert(policies: readonly CompiledPolicy[]): boolean {
  return policies.some(
    ({ matchConstraints: { matchPolicy, resourceRules } }) =>
      matchPolicy !== 'Exact' && resourceRules.some(wantsVersion),
  )
}

function wantsVersion(rule: ResourceRule): boolean {
  const isAny = rule.apiGroups.includes('*') && rule.apiVersions.includes('*')
  return !isAny && !isKnownNamespaced(rule)
}

/**
 * True when the first policy would miss requests in one webhook with the other: the API server converts an object to what a webhook asks for
 * only while none of its rules takes the object as it is. A policy about `v1` beside one about `v2` is sent `v2`, which it is not about.
 */
export function isShadowed(
  policies: readonly CompiledPolicy[],
  others: readonly CompiledPolicy[],
): boolean {
  const rules = rulesOf(policies)
  return rulesOf(others).some(
    (other) =>
      !rules.some((rule) => covers(rule, other)) &&
      rules.some((rule) => wantsVersion(rule) && !hasForms(rule, other) && mayMeet(rule, other)),
  )
}

/** Without names, which webhooks do not know. */
function rulesOf(policies: readonly CompiledPolicy[]): ResourceRule[] {
  return policies.flatMap(({ matchConstraints }) =>
    matchConstraints.resourceRules.map(({ resourceNames: _, ...rule }) => rule),
  )
}

/** Every form that the other rule takes is one of this rule's. */
function hasForms(rule: ResourceRule, other: ResourceRule): boolean {
  return hasAll(rule.apiGroups, other.apiGroups) && hasAll(rule.apiVersions, other.apiVersions)
}

function hasAll(list: readonly string[], items: readonly string[]): boolean {
  return list.includes('*') || items.every((item) => list.includes(item))
}

/** Both may be about one object, written in different ways. */
function mayMeet(rule: ResourceRule, other: ResourceRule): boolean {
  return (
    meet(rule.operations, other.operations) &&
    meetGroups(rule.apiGroups, other.apiGroups) &&
    rule.resources.some((entry) => other.resources.some((each) => meetResources(entry, each)))
  )
}

/** True when both groups may have one resource. */
export function meetGroups(groups: readonly string[], others: readonly string[]): boolean {
  const cohabiting = others.flatMap((group) => COHABITING.get(group) ?? [])
  return meet(groups, others) || meet(groups, cohabiting)
}

function meet(list: readonly string[], items: readonly string[]): boolean {
  return list.includes('*') || items.includes('*') || items.some((item) => list.includes(item))
}

function meetResources(entry: string, other: string): boolean {
  const [resource = '', subresource = ''] = entry.split('/')
  const [otherResource = '', otherSubresource = ''] = other.split('/')
  return meet([resource], [otherResource]) && meet([subresource], [otherSubresource])
}
