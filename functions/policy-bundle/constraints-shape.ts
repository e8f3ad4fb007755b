import type { LabelSelector, MatchConstraints, ResourceRule } from '#shared/policy/types.ts'
import { among, type Check, isObject } from './checks.ts'

/** Names each member once, so that the compiler asks for what is added. */
type Members<T> = Readonly<Record<keyof T, Check>>

const isText: Check = (value) => typeof value === 'string'
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)

/** An object of these members and no other: one more may say what a policy is not about. */
function objectOf<T>(members: Members<T>): Check {
  const checks = new Map<string, Check>(Object.entries(members))
  return (value) => {
    if (!isObject(value)) return false
    const own = new Map<string, unknown>(Object.entries(value))
    return (
      [...own.keys()].every((name) => checks.has(name)) &&
      [...checks].every(([name, check]) => check(own.get(name)))
    )
  }
}

const isLabels: Check = (value) => isObject(value) && Object.values(value).every(isText)

const isRequirement = objectOf<NonNullable<LabelSelector['matchExpressions']>[number]>({
  key: isText,
  operator: among('In', 'NotIn', 'Exists', 'DoesNotExist'),
  values: optional(listOf(isText)),
})

const isSelector = objectOf<LabelSelector>({
  matchLabels: optional(isLabels),
  matchExpressions: optional(listOf(isRequirement)),
})

const isRule = objectOf<ResourceRule>({
  apiGroups: listOf(isText),
  apiVersions: listOf(isText),
  operations: listOf(isText),
  resources: listOf(isText),
  resourceNames: optional(listOf(isText)),
  scope: optional(among('Cluster', 'Namespaced', '*')),
})

/** True for constraints as the compiler of this version makes them: nothing looks at them before a request comes. */
export const isConstraints: Check = objectOf<MatchConstraints>({
  resourceRules: listOf(isRule),
  excludeResourceRules: listOf(isRule),
  matchPolicy: optional(among('Exact', 'Equivalent')),
  objectSelector: optional(isSelector),
  namespaceSelector: optional(isSelector),
})
