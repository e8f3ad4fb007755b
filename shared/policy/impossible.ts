import type { CheckedExpression } from '../cel/types.ts'
import type { PolicyDocument } from './schema.ts'
import { NAMESPACE_NAME_LABEL } from './selector.ts'
import { type Faults, formatPath, type Path } from './shape.ts'
import type { LabelSelector, MatchConstraints, ResourceRule } from './types.ts'

const SWITCH = 'to switch a policy off, write evaluation.admission.enabled: false'

/** Adds a fault for whatever keeps a policy from ever being about anything: it looks like protection and is none. */
export function addImpossible(
  { spec, namespace }: PolicyDocument,
  compiled: ReadonlyMap<string, CheckedExpression>,
  path: Path,
  faults: Faults,
): void {
  const never = (at: Path, reason: string) =>
    faults.add([...path, ...at], `Invalid value: the policy can never match: ${reason}; ${SWITCH}`)
  const isFalse = (...at: (string | number)[]) => {
    const ast = compiled.get(formatPath([...path, ...at]))?.ast
    return ast?.k === 'const' && 'bool' in ast.value && !ast.value.bool
  }
  for (const index of spec.matchConditions.keys()) {
    const at = ['matchConditions', index, 'expression']
    if (isFalse(...at)) never(at, 'the condition is false for every request')
  }
  const references = spec.matchImageReferences
  const isNoImage = (_: unknown, index: number) =>
    isFalse('matchImageReferences', index, 'expression')
  if (references.length > 0 && references.every(isNoImage)) {
    never(['matchImageReferences'], 'the expressions are false for every image')
  }
  for (const [at, reason] of impossibleConstraints(spec.matchConstraints, namespace)) {
    never(['matchConstraints', ...at], reason)
  }
}

function* impossibleConstraints(
  constraints: MatchConstraints,
  namespace: string | undefined,
): Generator<[Path, string]> {
  const { resourceRules, excludeResourceRules, objectSelector, namespaceSelector } = constraints
  const objects = contradiction(objectSelector)
  if (objects !== undefined) yield [['objectSelector'], objects]
  // Objects outside of namespaces match whatever the selector says.
  const isInNamespaces = resourceRules.every(isNamespaced)
  const namespaces = contradiction(namespaceSelector, namespace)
  if (namespaces !== undefined && (isInNamespaces || namespace !== undefined)) {
    yield [['namespaceSelector'], namespaces]
  }
  const isExcluded = (rule: ResourceRule) =>
    excludeResourceRules.some((other) => covers(other, rule))
  if (resourceRules.length > 0 && resourceRules.every(isExcluded)) {
    yield [['excludeResourceRules'], 'they exclude all that the resource rules name']
  }
  if (resourceRules.length > 0 && resourceRules.every(isMisplaced)) {
    yield [
      ['resourceRules', 0, 'scope'],
      'these resources belong to namespaces, not to the cluster',
    ]
  }
}

/** Why no labels can satisfy a selector, `name` being the namespace it is about if there is only one; undefined when some can. */
export function contradiction(
  selector: LabelSelector | undefined,
  name?: string,
): string | undefined {
  const keys = new Map<string, LabelNeeds>()
  const needs = (key: string) => {
    const known = keys.get(key) ?? { forbidden: new Set() }
    keys.set(key, known)
    return known
  }
  if (name !== undefined) narrow(needs(NAMESPACE_NAME_LABEL), [name])
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {}))
    narrow(needs(key), [value])
  for (const { key, operator, values = [] } of selector?.matchExpressions ?? []) {
    const known = needs(key)
    if (operator === 'In') narrow(known, values)
    else if (operator === 'NotIn') for (const value of values) known.forbidden.add(value)
    else if (operator === 'Exists') known.present = true
    else known.absent = true
  }
  const [key] = [...keys].find(([, known]) => isContradictory(known)) ?? []
  return key === undefined ? undefined : `no value of label ${JSON.stringify(key)} is allowed`
}

interface LabelNeeds {
  /** Undefined: any. */
  allowed?: ReadonlySet<string>
  forbidden: Set<string>
  present?: true
  absent?: true
}

function narrow(needs: LabelNeeds, values: readonly string[]): void {
  const { allowed } = needs
  needs.allowed = new Set(values.filter((value) => allowed === undefined || allowed.has(value)))
}

function isContradictory({ allowed, forbidden, present, absent }: LabelNeeds): boolean {
  if (absent) return present === true || allowed !== undefined
  return allowed !== undefined && [...allowed].every((value) => forbidden.has(value))
}

/** True when the first rule matches whatever the second one does. */
export function covers(wide: ResourceRule, narrowRule: ResourceRule): boolean {
  const all = (list: readonly string[], items: readonly string[]) =>
    list.includes('*') || items.every((item) => list.includes(item))
  const isAnyScope = wide.scope === undefined || wide.scope === '*'
  const names = wide.resourceNames ?? []
  const narrowNames = narrowRule.resourceNames ?? []
  return (
    all(wide.apiGroups, narrowRule.apiGroups) &&
    all(wide.apiVersions, narrowRule.apiVersions) &&
    all(wide.operations, narrowRule.operations) &&
    (isAnyScope || wide.scope === narrowRule.scope) &&
    (names.length === 0 ||
      (narrowNames.length > 0 && narrowNames.every((name) => names.includes(name)))) &&
    narrowRule.resources.every((entry) =>
      wide.resources.some((each) => coversResource(each, entry)),
    )
  )
}

function coversResource(wide: string, entry: string): boolean {
  const [resource = '', subresource = ''] = wide.split('/')
  const [ownResource = '', ownSubresource = ''] = entry.split('/')
  return (
    (resource === '*' || resource === ownResource) &&
    (subresource === '*' || subresource === ownSubresource)
  )
}

/** Resources that are known to be in namespaces, by group. */
const NAMESPACED: Readonly<Record<string, readonly string[]>> = {
  '': ['pods', 'replicationcontrollers', 'podtemplates'],
  apps: ['daemonsets', 'deployments', 'replicasets', 'statefulsets'],
  batch: ['jobs', 'cronjobs'],
}

/** True for a rule about nothing but resources that are known to be in namespaces. */
export function isKnownNamespaced({
  apiGroups,
  resources,
}: Pick<ResourceRule, 'apiGroups' | 'resources'>): boolean {
  return apiGroups.every((group) => {
    const known = Object.hasOwn(NAMESPACED, group) ? (NAMESPACED[group] ?? []) : []
    return resources.every((entry) => known.includes(entry.split('/')[0] ?? ''))
  })
}

function isNamespaced(rule: ResourceRule): boolean {
  return rule.scope === 'Namespaced' || isKnownNamespaced(rule)
}

function isMisplaced(rule: ResourceRule): boolean {
  return rule.scope === 'Cluster' && isKnownNamespaced(rule)
}
