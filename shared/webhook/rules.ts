import { isKnownNamespaced } from '../policy/impossible.ts'
import { type CompiledPolicy, compareTexts, type ResourceRule } from '../policy/types.ts'
import type { WebhookRule } from './types.ts'

/**
 * The rules of policies and their variants as webhooks have them: each once, in the order of groups, versions, resources, operations and
 * scope, and so are the lists inside (specs/image-validating-policy.md 7.8). `resourceNames` and `excludeResourceRules` have no counterpart
 * in a webhook: the function looks at both.
 */
export function webhookRules(policies: readonly CompiledPolicy[]): WebhookRule[] {
  const rules = policies.flatMap(({ namespace, matchConstraints }) =>
    matchConstraints.resourceRules
      .flatMap((rule) => (namespace === undefined ? [rule] : boundRules(rule)))
      .map(
        ({ scope = '*', ...rule }): WebhookRule => ({
          apiGroups: sorted(rule.apiGroups),
          apiVersions: sorted(rule.apiVersions),
          operations: sorted(rule.operations),
          resources: sorted(rule.resources),
          scope,
        }),
      ),
  )
  const byText = new Map(rules.map((rule) => [JSON.stringify(rule), rule]))
  return [...byText.values()].sort(compareRules)
}

/**
 * What a rule of a namespaced policy comes to. No selector of namespaces keeps out what is in none: with `*` as scope, a policy of one
 * namespace that is about all resources would have nodes wait for its webhook. Namespaces are in none either, but are selected by their
 * own labels, so that the policy is asked about the one that it is in.
 */
function boundRules(rule: ResourceRule): ResourceRule[] {
  const { scope = '*' } = rule
  if (scope === 'Cluster') return namespacesIn(rule)
  if (scope === 'Namespaced' || isKnownNamespaced(rule)) return [rule]
  const others = rule.resources.filter((entry) => entry.split('/')[0] !== 'namespaces')
  const bound: ResourceRule[] =
    others.length === 0 ? [] : [{ ...rule, resources: others, scope: 'Namespaced' }]
  return [...bound, ...namespacesIn(rule)]
}

/** The part of a rule that is about Namespaces. */
function namespacesIn(rule: ResourceRule): ResourceRule[] {
  const { apiGroups, apiVersions } = rule
  const isCore = apiGroups.some((group) => group === '' || group === '*')
  const isFirst = apiVersions.some((version) => version === 'v1' || version === '*')
  const resources = rule.resources.flatMap((entry) => {
    const [resource, ...subresource] = entry.split('/')
    const isNamespaces = resource === 'namespaces' || resource === '*'
    return isNamespaces ? [['namespaces', ...subresource].join('/')] : []
  })
  if (!isCore || !isFirst || resources.length === 0) return []
  return [{ ...rule, apiGroups: [''], apiVersions: ['v1'], resources }]
}

function sorted(items: readonly string[]): string[] {
  return [...new Set(items)].sort()
}

function compareRules(a: WebhookRule, b: WebhookRule): number {
  return (
    compareLists(a.apiGroups, b.apiGroups) ||
    compareLists(a.apiVersions, b.apiVersions) ||
    compareLists(a.resources, b.resources) ||
    compareLists(a.operations, b.operations) ||
    compareTexts(a.scope, b.scope)
  )
}

/** Shorter lists first, then item by item, as upstream: `batch [cronjobs]` stands before `batch [jobs]`. */
function compareLists(a: readonly string[], b: readonly string[]): number {
  if (a.length !== b.length) return a.length - b.length
  for (const [index, item] of a.entries()) {
    const order = compareTexts(item, b[index] ?? '')
    if (order !== 0) return order
  }
  return 0
}
