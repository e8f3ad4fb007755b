import type { GroupVersionKind } from '../admission/types.ts'
import type { MacroTable } from '../cel/parse.ts'
import { parse } from '../cel/parse.ts'
import { rewritePrefix } from '../cel/ranges.ts'
import { expressionsOf } from './expressions.ts'
import { isRecord, own, type Path } from './shape.ts'
import type { AutogenConfig } from './types.ts'

/** A kind of Pod controller, also by the name of its resource. */
export interface AutogenTarget extends GroupVersionKind {
  resource: string
}

/** What a policy about Pods means for the controllers of Pods. */
export interface AutogenVariant {
  config: AutogenConfig
  /** By group, version, resource. */
  targets: readonly AutogenTarget[]
  /** The spec of the policy, about these targets. */
  spec: Record<string, unknown>
}

const CONTROLLERS: Readonly<Record<AutogenConfig, readonly AutogenTarget[]>> = {
  defaults: [
    { group: 'apps', version: 'v1', kind: 'DaemonSet', resource: 'daemonsets' },
    { group: 'apps', version: 'v1', kind: 'Deployment', resource: 'deployments' },
    { group: 'apps', version: 'v1', kind: 'ReplicaSet', resource: 'replicasets' },
    { group: 'apps', version: 'v1', kind: 'StatefulSet', resource: 'statefulsets' },
    { group: 'batch', version: 'v1', kind: 'Job', resource: 'jobs' },
  ],
  cronjobs: [{ group: 'batch', version: 'v1', kind: 'CronJob', resource: 'cronjobs' }],
}

/** Where the Pod is in a controller. */
const TEMPLATES: Readonly<Record<AutogenConfig, readonly string[]>> = {
  defaults: ['spec', 'template'],
  cronjobs: ['spec', 'jobTemplate', 'spec', 'template'],
}

/** Names of every resource that `autogen.podControllers.controllers` can list. */
export const POD_CONTROLLERS: readonly string[] = Object.values(CONTROLLERS)
  .flat()
  .map(({ resource }) => resource)

/**
 * What the policy means for Pod controllers (specs/image-validating-policy.md 5.3 and 5.4), `defaults` first; nothing when it is not about Pods
 * alone or `autogen` says so. `spec` is the document's, with or without faults. Expressions are rewritten where their syntax tree says
 * `object.spec` or `object.metadata` (of `oldObject` and of `request` as well): texts, comments, other variables, `metadata.namespace`, and
 * what is written for a controller already stay as they are.
 */
export function autogenVariants(spec: unknown, macros: MacroTable): readonly AutogenVariant[] {
  const operations = podOperations(spec)
  if (operations === undefined || !isRecord(spec)) return []
  const wanted = wantedControllers(spec)
  return (['defaults', 'cronjobs'] as const).flatMap((config) => {
    const targets = CONTROLLERS[config].filter(({ resource }) => wanted(resource))
    if (targets.length === 0) return []
    return [{ config, targets, spec: specFor(spec, { config, targets, operations }, macros) }]
  })
}

/** The operations of a policy whose only rule is about Pods; undefined for any other. */
function podOperations(spec: unknown): unknown {
  const constraints = isRecord(spec) ? own(spec, 'matchConstraints') : undefined
  if (!isRecord(constraints)) return undefined
  const selector = own(constraints, 'objectSelector')
  if (isRecord(selector) && Object.values(selector).some(isFilled)) return undefined
  if (isFilled(own(constraints, 'excludeResourceRules'))) return undefined
  const rules = own(constraints, 'resourceRules')
  const [rule, ...others] = Array.isArray(rules) ? rules : []
  if (!isRecord(rule) || others.length > 0 || isFilled(own(rule, 'resourceNames'))) return undefined
  const isPods =
    isOnly(own(rule, 'apiGroups'), '') &&
    isOnly(own(rule, 'apiVersions'), 'v1') &&
    isOnly(own(rule, 'resources'), 'pods')
  return isPods ? (own(rule, 'operations') ?? undefined) : undefined
}

function isFilled(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return isRecord(value) && Object.keys(value).length > 0
}

function isOnly(list: unknown, value: string): boolean {
  return Array.isArray(list) && list.length === 1 && list[0] === value
}

/** No list means all of them, an empty one none; names that are no controllers mean nothing. */
function wantedControllers(spec: Record<string, unknown>): (resource: string) => boolean {
  const autogen = own(spec, 'autogen')
  const pods = isRecord(autogen) ? own(autogen, 'podControllers') : undefined
  const listed = isRecord(pods) ? own(pods, 'controllers') : undefined
  return (resource) => !Array.isArray(listed) || listed.includes(resource)
}

function specFor(
  spec: Record<string, unknown>,
  { config, targets, operations }: Omit<AutogenVariant, 'spec'> & { operations: unknown },
  macros: MacroTable,
): Record<string, unknown> {
  const copy = structuredClone(spec)
  const constraints = own(spec, 'matchConstraints')
  const selector = isRecord(constraints) ? own(constraints, 'namespaceSelector') : undefined
  copy.matchConstraints = {
    ...(selector === undefined ? {} : { namespaceSelector: structuredClone(selector) }),
    resourceRules: rulesFor(targets, operations),
  }
  for (const { path, source } of expressionsOf(spec, [])) {
    setAt(copy, path, rewriteForPods(source, config, macros))
  }
  return copy
}

/** Puts a text in the place of the one that is there. */
function setAt(value: unknown, [step, ...rest]: Path, text: string): void {
  const parent = isRecord(value) || Array.isArray(value) ? Object.entries(value) : []
  const [, child] = parent.find(([key]) => key === String(step)) ?? []
  if (rest.length > 0) setAt(child, rest, text)
  else if (isRecord(value) && step !== undefined) value[step] = text
}

/** One rule for each group and version. */
function rulesFor(targets: readonly AutogenTarget[], operations: unknown): unknown[] {
  const groups = [...new Set(targets.map(({ group }) => group))]
  return groups.map((group) => ({
    apiGroups: [group],
    apiVersions: ['v1'],
    operations: structuredClone(operations),
    resources: targets.filter((each) => each.group === group).map(({ resource }) => resource),
  }))
}

/** The expression about the Pod inside a controller. One that cannot be parsed is left as it is: it has a fault already. */
export function rewriteForPods(source: string, config: AutogenConfig, macros: MacroTable): string {
  const template = TEMPLATES[config]
  let text = source
  for (const root of ROOTS) {
    for (const part of ['spec', 'metadata'] as const) {
      const parsed = parse(text, macros)
      // What only rewriting has made too deep is told by whoever compiles it.
      if (!parsed.ok) return text
      const [first, ...rest] = root
      text = rewritePrefix(
        text,
        parsed.ast,
        [first, ...rest, part],
        [first, ...rest, ...template, part],
        (next) => (part === 'spec' ? CONTROLLER_FIELDS.has(next) : next === 'namespace'),
      )
    }
  }
  return text
}

const ROOTS: readonly [string, ...string[]][] = [
  ['object'],
  ['oldObject'],
  ['request', 'object'],
  ['request', 'oldObject'],
]

/** No Pod has these: whoever writes them means the controller. Upstream also leaves `spec.namespace`, which nothing has. */
const CONTROLLER_FIELDS: ReadonlySet<string | undefined> = new Set([
  'template',
  'jobTemplate',
  'namespace',
])
