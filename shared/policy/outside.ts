import type { CheckedExpression } from '../cel/types.ts'
import { NAMESPACE_NEED } from './prepare.ts'
import { asksLabels } from './selector.ts'
import type { CompiledPolicy } from './types.ts'

/** Something a policy needs that the operator has to provide. */
export interface OutsideNeed {
  /** The connection to the API server of each of its clusters, or hosts that policies may ask. */
  of: 'cluster' | 'http'
  /** Where in the policy: `spec.validations[0].expression`. */
  path: string
  /** What it is there: `namespaceObject`. */
  what: string
}

/** What a policy needs beside registries and keys, each place once, in the order of the document. */
export function outsideNeeds(policy: CompiledPolicy): OutsideNeed[] {
  const selecting: OutsideNeed = {
    of: 'cluster',
    path: 'spec.matchConstraints.namespaceSelector',
    what: 'labels of namespaces',
  }
  return [
    ...(selectsByLabels(policy) ? [selecting] : []),
    ...expressionsIn(policy).flatMap(({ path, expression }) => needsOf(path, expression)),
  ]
}

/** What answers a policy that asks for more than images: ports by name, and `namespaceObject` for whatever reads the namespace. */
export function contextNeeds(policy: CompiledPolicy): ReadonlySet<string> {
  const needs = expressionsIn(policy).flatMap(({ expression }) => expression.needs)
  return new Set([
    ...(selectsByLabels(policy) ? [NAMESPACE_NEED] : []),
    ...needs.filter((need) => CONTEXT.has(need)),
  ])
}

const CONTEXT: ReadonlySet<string> = new Set([
  NAMESPACE_NEED,
  'resource',
  'http',
  'yaml',
  'gzip',
  'random',
  'time',
])

function selectsByLabels({ matchConstraints: { namespaceSelector } }: CompiledPolicy): boolean {
  return namespaceSelector !== undefined && asksLabels(namespaceSelector)
}

function needsOf(path: string, { needs }: CheckedExpression): OutsideNeed[] {
  const found: OutsideNeed[] = []
  if (needs.includes(NAMESPACE_NEED)) found.push({ of: 'cluster', path, what: 'namespaceObject' })
  if (needs.includes('resource')) found.push({ of: 'cluster', path, what: 'resource.*' })
  if (needs.includes('http')) found.push({ of: 'http', path, what: 'http.*' })
  return found
}

/** Every expression of a policy with its place: checked expressions are told by what they are, wherever they stand. */
function expressionsIn(policy: CompiledPolicy): { path: string; expression: CheckedExpression }[] {
  const { exceptions, ...spec } = policy
  const ofExceptions = exceptions.flatMap(({ name, matchConditions }) =>
    within(matchConditions, `exception ${name}: spec.matchConditions`),
  )
  return [...within(spec, 'spec'), ...ofExceptions]
}

function within(value: unknown, path: string): { path: string; expression: CheckedExpression }[] {
  if (typeof value !== 'object' || value === null) return []
  if (isExpression(value)) return [{ path, expression: value }]
  return Object.entries(value).flatMap(([key, part]) =>
    within(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`),
  )
}

function isExpression(value: object): value is CheckedExpression {
  return 'ast' in value && 'needs' in value && 'source' in value
}
