import type { PolicySpec } from './schema.ts'
import type { Faults, Path } from './shape.ts'

/** Adds one note. */
export function addNote(notes: Faults, path: Path, message: string): void {
  notes.add(path, message, 'POLICY_NOTE')
}

/** Adds what is right but may not be meant: gaps that an operator should know about before relying on the policy. */
export function addNotes(spec: PolicySpec, path: Path, notes: Faults): void {
  const constraints: Path = [...path, 'matchConstraints', 'resourceRules']
  if (isDefaultAutogen(spec)) {
    addNote(
      notes,
      [...path, 'autogen'],
      'only Pods are covered so far: Kyverno would generate the policy for their controllers as well; write autogen.podControllers.controllers: [] if Pods are enough',
    )
  }
  if (spec.credentials?.allowInsecureRegistry === true) {
    addNote(
      notes,
      [...path, 'credentials', 'allowInsecureRegistry'],
      'only the registries in registries.plainHttp of the config are spoken to without TLS: Kyverno would do so with any',
    )
  }
  if (isEnforced(spec) && covers(spec, 'pods') && !covers(spec, 'pods/ephemeralcontainers')) {
    addNote(
      notes,
      constraints,
      'pods/ephemeralcontainers is not among the resources: containers added by kubectl debug are not checked',
    )
  }
  if (isEnforced(spec) && covers(spec, 'pods', 'CREATE') && !covers(spec, 'pods', 'UPDATE')) {
    addNote(
      notes,
      constraints,
      'UPDATE is not among the operations for pods: the image of a running Pod can be changed without a check',
    )
  }
}

/** True for a policy that Kyverno would generate for Pod controllers without being asked (image-validating-policy.md 5.3). */
function isDefaultAutogen({ autogen, matchConstraints }: PolicySpec): boolean {
  const { resourceRules, excludeResourceRules, objectSelector = {} } = matchConstraints
  const [rule, ...more] = resourceRules
  return (
    autogen?.podControllers?.controllers === undefined &&
    rule !== undefined &&
    more.length === 0 &&
    excludeResourceRules.length === 0 &&
    Object.keys(objectSelector.matchLabels ?? {}).length === 0 &&
    (objectSelector.matchExpressions ?? []).length === 0 &&
    (rule.resourceNames ?? []).length === 0 &&
    is(rule.apiGroups, '') &&
    is(rule.apiVersions, 'v1') &&
    is(rule.resources, 'pods')
  )
}

function is(list: readonly string[], only: string): boolean {
  return list.length === 1 && list[0] === only
}

function isEnforced({ validationActions }: PolicySpec): boolean {
  return validationActions.includes('Deny')
}

/** True when some rule is about this core resource, and this operation if one is given. */
function covers(spec: PolicySpec, resource: string, operation?: string): boolean {
  const isSubresource = resource.includes('/')
  return spec.matchConstraints.resourceRules.some(
    (rule) =>
      (rule.apiGroups.includes('') || rule.apiGroups.includes('*')) &&
      (operation === undefined ||
        rule.operations.includes(operation) ||
        rule.operations.includes('*')) &&
      rule.resources.some(
        (entry) =>
          entry === resource ||
          entry === '*/*' ||
          (isSubresource
            ? entry === 'pods/*' || entry === '*/ephemeralcontainers'
            : entry === '*' || entry === `${resource}/*`),
      ),
  )
}
