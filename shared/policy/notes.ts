import { POD_CONTROLLERS } from './autogen.ts'
import type { PolicySpec } from './schema.ts'
import type { Faults, Path } from './shape.ts'

/** Adds one note. */
export function addNote(notes: Faults, path: Path, message: string): void {
  notes.add(path, message, 'POLICY_NOTE')
}

const OF_ITS_OWN =
  '; a policy of its own can be about it: beside pods it would keep this one from standing for controllers'

/** Adds what is right but may not be meant: gaps that an operator should know about before relying on the policy. `isGenerated`: it has variants. */
export function addNotes(spec: PolicySpec, isGenerated: boolean, path: Path, notes: Faults): void {
  const constraints: Path = [...path, 'matchConstraints', 'resourceRules']
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
      `pods/ephemeralcontainers is not among the resources: containers added by kubectl debug are not checked${isGenerated ? OF_ITS_OWN : ''}`,
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

/** Adds what the list of Pod controllers says that means nothing. */
export function addAutogenNotes(
  { autogen }: PolicySpec,
  isGenerated: boolean,
  path: Path,
  notes: Faults,
): void {
  const listed = autogen?.podControllers?.controllers ?? []
  const at: Path = [...path, 'autogen', 'podControllers', 'controllers']
  const known = new Set(POD_CONTROLLERS)
  for (const [index, name] of listed.entries()) {
    if (known.has(name)) continue
    const message = `${JSON.stringify(name)} is no Pod controller and means nothing: known are ${POD_CONTROLLERS.join(', ')}`
    addNote(notes, [...at, index], message)
  }
  if (isGenerated || !listed.some((name) => known.has(name))) return
  addNote(
    notes,
    at,
    'nothing is generated for controllers: that takes a single resource rule, about pods of v1 alone, without names, excluded rules or an object selector',
  )
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
