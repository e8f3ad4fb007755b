import { compile } from '../cel/compile.ts'
import { ADMISSION_VARIABLES } from '../cel/declare/admission.ts'
import { createEnvironment, type Environment } from '../cel/environment.ts'
import type { MacroTable } from '../cel/parse.ts'
import { OLDEST_MINOR } from '../cel/profiles.ts'
import { chainsOf } from '../cel/ranges.ts'
import { walk } from '../cel/tree.ts'
import type { CheckedExpression, RegexEngine } from '../cel/types.ts'
import { MAX_MATCH_CONDITIONS } from '../limits.ts'
import { type AutogenTarget, autogenVariants } from '../policy/autogen.ts'
import { isQualifiedName } from '../policy/names.ts'
import type { CompiledCondition, CompiledPolicy } from '../policy/types.ts'
import { neverFails } from './certain.ts'
import type { PolicySource } from './sources.ts'
import type { WebhookCondition } from './types.ts'
import { mayConvert } from './versions.ts'

/** What the API server compiles new match conditions in; the oldest supported version where the cluster's is not known. */
export function webhookEnvironment(minor: number | undefined, regex: RegexEngine): Environment {
  return createEnvironment({
    profile: 'kubernetes',
    minor: minor ?? OLDEST_MINOR,
    isNew: true,
    variables: ADMISSION_VARIABLES,
    regex,
  })
}

/** The conditions of a policy that the API server evaluates before it calls. */
export interface Offloaded {
  /** The policy has conditions and all of them compile in the API server: it gets a webhook of its own. */
  isFineGrained: boolean
  conditions: WebhookCondition[]
  /** Why conditions are evaluated by the function alone. */
  notes: string[]
}

/**
 * The match conditions of a policy as its webhook has them (specs/image-validating-policy.md 7.7 and 5.5). Each is a filter before the call
 * and no more: the function evaluates all of them again, so that one left out here only means more calls. One that cannot be compiled
 * keeps all of them with the function, as upstream; one that reads `namespaceObject`, which webhooks have not, keeps itself. `reserved`: names
 * of conditions that the webhook has besides.
 */
export function offloadedConditions(
  source: PolicySource,
  environment: Environment,
  reserved: readonly string[] = [],
): Offloaded {
  const { base } = source
  const notes: string[] = []
  if (base.matchConditions.length === 0) return { isFineGrained: false, conditions: [], notes }
  const forms = [base, ...source.variants]
  const foreign = base.matchConditions.flatMap(({ name }, index) => {
    const fault = forms
      .map((form) => faultOf(form, index, environment))
      .find((each) => each !== undefined)
    return fault === undefined
      ? []
      : [`match condition ${JSON.stringify(name)} is not known to the API server (${fault})`]
  })
  if (foreign.length > 0) {
    notes.push(
      ...foreign.map(
        (text) =>
          `${text}: the function evaluates all conditions of the policy, and is called for what they leave out`,
      ),
    )
    return { isFineGrained: false, conditions: [], notes }
  }
  const conditions = inOrder(
    base.matchConditions.map((_, index) => {
      return wrapped(source, index)
    }),
    { base, environment, reserved, notes, reach: reachOf(source) },
  )
  return { isFineGrained: true, conditions, notes }
}

interface Choosing {
  base: CompiledPolicy
  environment: Environment
  reserved: readonly string[]
  notes: string[]
  reach: Reach
}

/** How what the webhook is called for differs from what its policy is about. */
interface Reach {
  /** It may be sent another version of an object than the one that was written. */
  converts: boolean
  /** What of a policy that fails closed lets requests in that the API server would refuse where a condition fails. */
  admitting: string | undefined
}

function reachOf({ base, variants }: PolicySource): Reach {
  const { namespace, matchConstraints, failurePolicy, validationActions } = base
  const { excludeResourceRules, resourceRules, namespaceSelector } = matchConstraints
  const parts: [string, boolean][] = [
    ['excludeResourceRules', excludeResourceRules.length > 0],
    ['resourceNames', resourceRules.some(({ resourceNames = [] }) => resourceNames.length > 0)],
    ['namespaceSelector', namespace !== undefined && namespaceSelector !== undefined],
    ['validationActions without Deny', !validationActions.includes('Deny')],
  ]
  const names = parts.flatMap(([name, isThere]) => (isThere ? [name] : []))
  const isOpen = failurePolicy === 'Ignore' || names.length === 0
  return {
    converts: mayConvert([base, ...variants]),
    admitting: isOpen ? undefined : names.join(' and '),
  }
}

/** Conditions with all of their forms or not at all: first those about Pods, then those of each group of controllers. */
function inOrder(all: readonly WebhookCondition[][], choosing: Choosing): WebhookCondition[] {
  const { base, notes } = choosing
  const taken = new Set(choosing.reserved)
  const offered = base.matchConditions.map((condition, index): Offered => {
    const forms = all[index] ?? []
    const stays = whyItStays(condition, forms, taken, choosing)
    if (stays === undefined) for (const form of forms) taken.add(form.name)
    return { ...condition, forms, stays }
  })
  const isPartial = offered.some(({ stays }) => stays !== undefined && stays !== NO_NAMESPACE)
  const chosen: WebhookCondition[][] = []
  for (const { name, expression, forms, ...each } of offered) {
    const mayRefuse = isPartial && deniesErrors(base) && !neverFails(expression.ast)
    const stays = each.stays ?? (mayRefuse ? NOT_ALONE : undefined)
    if (stays === undefined) chosen.push(forms)
    else notes.push(`match condition ${JSON.stringify(name)} stays with the function: ${stays}`)
  }
  const width = Math.max(0, ...chosen.map((forms) => forms.length))
  return Array.from({ length: width }, (_, at) => chosen.flatMap((forms) => forms[at] ?? [])).flat()
}

interface Offered extends CompiledCondition {
  forms: WebhookCondition[]
  /** Why the function alone evaluates it. */
  stays: string | undefined
}

const NO_NAMESPACE =
  'it reads namespaceObject, which the API server does not give to webhooks: where another condition fails, it refuses also what this one leaves out'

const NOT_ALONE =
  'where it fails, the API server would also refuse what another one leaves out that stays'

function whyItStays(
  { expression }: CompiledCondition,
  forms: readonly WebhookCondition[],
  taken: ReadonlySet<string>,
  { environment, reach }: Choosing,
): string | undefined {
  if (readsNamespaceObject(expression.source, environment)) return NO_NAMESPACE
  if (reach.converts && readsResource(expression)) {
    return 'it reads request.resource, which is here what the object was written as, and there what it was converted to'
  }
  if (reach.admitting !== undefined && !neverFails(expression.ast)) {
    return `where it fails, the API server would also refuse what ${reach.admitting} let in`
  }
  if (forms.some((form) => !isQualifiedName(form.name))) {
    return 'its name is too long once it says which controllers it is about'
  }
  if (forms.some((form) => taken.has(form.name))) {
    return 'another condition of the webhook has the same name, once both say which controllers they are about'
  }
  return taken.size + forms.length > MAX_MATCH_CONDITIONS
    ? `a webhook has at most ${MAX_MATCH_CONDITIONS} conditions`
    : undefined
}

/** An error in its conditions refuses a request here as there: unless another of them is false, which counts before any error. */
function deniesErrors({ failurePolicy, validationActions }: CompiledPolicy): boolean {
  return failurePolicy === 'Fail' && validationActions.includes('Deny')
}

/** What is wrong with a condition in the API server's environment; undefined when nothing is. */
function faultOf(
  form: CompiledPolicy,
  index: number,
  environment: Environment,
): string | undefined {
  const condition = form.matchConditions[index]
  if (condition === undefined) return undefined
  const compiled = compile(condition.expression.source, environment, { allowedTypes: ['bool'] })
  return compiled.ok ? undefined : compiled.issues[0]?.message
}

/** On the syntax tree: a text that says the word is none. */
function readsNamespaceObject(source: string, environment: Environment): boolean {
  const compiled = compile(source, environment)
  return !compiled.ok || mentions(compiled.checked, 'namespaceObject')
}

function readsResource({ ast }: CheckedExpression): boolean {
  return chainsOf(ast, 'request').some(
    ({ steps: [first] }) => (first?.key ?? 'resource') === 'resource',
  )
}

function mentions({ ast }: CheckedExpression, name: string): boolean {
  let found = false
  walk(ast, (node) => {
    if (node.k === 'ident' && (node.name === name || node.name === `.${name}`)) found = true
  })
  return found
}

/** Nothing is parsed for a spec without expressions. */
const NO_MACROS: MacroTable = new Map()

/** A condition, once for each kind of objects the policy is about: which of them holds depends on the object that is sent. */
function wrapped({ base, variants }: PolicySource, index: number): WebhookCondition[] {
  const condition = base.matchConditions[index]
  if (condition === undefined) return []
  const { name, expression } = condition
  const groups = autogenVariants({ matchConstraints: base.matchConstraints }, NO_MACROS)
  if (groups.length === 0) return [{ name, expression: expression.source }]
  const hasDelete = mayDelete(base)
  const pods = { name: `autogen-${name}`, expression: implied([POD], expression.source, hasDelete) }
  const controllers = variants.flatMap((variant): WebhookCondition[] => {
    const source = variant.matchConditions[index]?.expression.source
    const wanted = new Set(
      variant.matchConstraints.resourceRules.flatMap(({ resources }) => resources),
    )
    const targets = groups
      .filter(({ config }) => config === variant.autogen)
      .flatMap((group) => group.targets.filter(({ resource }) => wanted.has(resource)))
    if (source === undefined || targets.length === 0) return []
    return [
      {
        name: `autogen-${variant.autogen}-${name}`,
        expression: implied(targets, source, hasDelete),
      },
    ]
  })
  // Upstream's order: by the name of the group.
  return [pods, ...controllers.sort((a, b) => (a.name < b.name ? -1 : 1))]
}

const POD: AutogenTarget = { group: '', version: 'v1', kind: 'Pod', resource: 'pods' }

function mayDelete({ matchConstraints }: CompiledPolicy): boolean {
  return matchConstraints.resourceRules.some(({ operations }) =>
    operations.some((operation) => operation === 'DELETE' || operation === '*'),
  )
}

/** `!(it is one of these) || (condition)`. `object` is null in DELETE, so that policies about those look at the request: upstream's form would fail every one. */
function implied(targets: readonly AutogenTarget[], source: string, hasDelete: boolean): string {
  const kinds = targets.map(({ group, version, kind }) =>
    hasDelete
      ? `(request.kind.group == '${group}' && request.kind.version == '${version}' && request.kind.kind == '${kind}')`
      : `(object.apiVersion == '${group === '' ? version : `${group}/${version}`}' && object.kind =='${kind}')`,
  )
  return `!(${[...new Set(kinds)].sort().join(' || ')}) || (${source})`
}
