import type { Node } from '../cel/ast.ts'
import { walk } from '../cel/tree.ts'
import type { CheckedExpression } from '../cel/types.ts'
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

/** Adds what variants for Pod controllers take from the controller, because it is not written as a field of the object. */
export function addWholeObjectNotes(
  expressions: Iterable<readonly [Path, CheckedExpression]>,
  notes: Faults,
): void {
  for (const [path, { ast }] of expressions) {
    const [first] = wholeObjects(ast)
    if (first === undefined) continue
    const message = `${first} is used as a whole: for Pod controllers that is the controller and not its Pod, so what is taken from it is not what this says of Pods`
    addNote(notes, path, message)
  }
}

/** Objects of the request of which no field is selected and which are not just compared with null. */
function wholeObjects(ast: Node): string[] {
  const found: string[] = []
  walk(ast, (node, ancestors) => {
    const name = objectNamed(node)
    if (name === undefined || isLoopVariable(name, ancestors)) return
    const parent = ancestors.at(-1)
    if (parent?.k === 'select' || isSelectionFrom(parent, node) || isNullTest(parent)) return
    found.push(name)
  })
  return found
}

function objectNamed(node: Node): string | undefined {
  if (node.k === 'ident') return OBJECTS.has(node.name) ? node.name : undefined
  if (node.k !== 'select' || node.operand.k !== 'ident') return undefined
  return node.operand.name === 'request' && OBJECTS.has(node.field)
    ? `request.${node.field}`
    : undefined
}

const OBJECTS: ReadonlySet<string> = new Set(['object', 'oldObject'])

function isLoopVariable(name: string, ancestors: readonly Node[]): boolean {
  return ancestors.some((each) => each.k === 'fold' && [each.iterVar, each.iterVar2].includes(name))
}

const SELECTIONS: ReadonlySet<string> = new Set(['_[_]', '_[?_]', '_?._'])

function isSelectionFrom(parent: Node | undefined, node: Node): boolean {
  return parent?.k === 'call' && SELECTIONS.has(parent.fn) && parent.args[0] === node
}

function isNullTest(parent: Node | undefined): boolean {
  if (parent?.k !== 'call' || (parent.fn !== '_==_' && parent.fn !== '_!=_')) return false
  return parent.args.some((arg) => arg.k === 'const' && 'null' in arg.value)
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
