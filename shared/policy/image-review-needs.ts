import type { CheckedExpression } from '../cel/types.ts'
import { FIXED, type Sense, type Value, wholeSense } from './carried.ts'
import { Reading } from './reading.ts'
import type { Group, Trace } from './trace.ts'
import type { CompiledCondition, CompiledPolicy, ResourceRule } from './types.ts'

/** Something a policy needs that no ImageReview carries. */
export interface ReviewNeed {
  /** Where in the policy: `spec.validations[0].expression`. */
  path: string
  /** What it is there: `object.metadata.labels`. */
  what: string
}

/** What image reviews mean for a policy. */
export interface ReviewNeeds {
  /** It is about the creation of Pods, so that it is asked. */
  isAsked: boolean
  /** Each place once, in the order of the document. A policy that has any cannot be decided by a review. */
  needs: readonly ReviewNeed[]
  /** Conditions of the policy depend on the lists: that they fail for the Pod of a review does not say that they do for the real one. */
  isAskedByImages?: true
}

/**
 * What a policy needs that no ImageReview carries (specs/kubernetes-admission.md 9.1). A review has images, a namespace and the annotations whose keys
 * contain `.image-policy.k8s.io/`; the namespace itself may be looked up. It does not say which list an image is in, so that a policy may only
 * become stricter by more images in a list. Nor does it have all images of a Pod that is updated: only those of the lists that may have changed,
 * so that what a policy says of the other ones must not decide about these. Policies that are not about Pods need nothing, because no review is about
 * anything else. `counting` names the exceptions that count, all of them when absent.
 */
export function reviewNeeds(policy: CompiledPolicy, counting?: ReadonlySet<string>): ReviewNeeds {
  const found = constraintNeeds(policy)
  if (found === undefined) return { isAsked: false, needs: [] }
  const needs = new Needs(policy)
  for (const { path, what } of found) needs.add(path, what)
  needs.addExpressions(counting)
  return {
    isAsked: true,
    needs: needs.found,
    ...(needs.isAskedByImages && { isAskedByImages: true }),
  }
}

/** Of what says which requests the policy is about; undefined when these are none that a review may stand for. */
function constraintNeeds({ matchConstraints }: CompiledPolicy): ReviewNeed[] | undefined {
  const { resourceRules, excludeResourceRules, objectSelector } = matchConstraints
  const at = (key: string) => `spec.matchConstraints.${key}`
  const needs: ReviewNeed[] = []
  const about = (of: Target) =>
    resourceRules.flatMap((rule, index) => (isAbout(rule, of) ? [{ rule, index }] : []))
  const isExcluded = (of: Target) =>
    excludeResourceRules.some((rule) => isAbout(rule, of) && !hasNames(rule))
  const creating = isExcluded(CREATE_POD) ? [] : about(CREATE_POD)
  if (creating.length === 0) {
    const others = REVIEWED.filter((of) => !isExcluded(of))
    const [other] = others.flatMap((of) => about(of).map(({ index }) => ({ index, of })))
    if (other === undefined) return undefined
    const { index, of } = other
    return [{ path: at(`resourceRules[${index}]`), what: `${of.operation} of ${of.resource}` }]
  }
  const [named] = creating
  if (named !== undefined && creating.every(({ rule }) => hasNames(rule))) {
    needs.push({ path: at(`resourceRules[${named.index}].resourceNames`), what: 'names of Pods' })
  }
  for (const [index, rule] of excludeResourceRules.entries()) {
    if (!hasNames(rule) || !isAbout(rule, CREATE_POD)) continue
    const path = at(`excludeResourceRules[${index}].resourceNames`)
    needs.push({ path, what: 'names of Pods' })
  }
  const { matchLabels = {}, matchExpressions = [] } = objectSelector ?? {}
  if (Object.keys(matchLabels).length + matchExpressions.length > 0) {
    needs.push({ path: at('objectSelector'), what: 'labels of Pods' })
  }
  return needs
}

/** Whose images reviews of what the policy is about do not have, since the Pod has them already. */
function othersOf({ matchConstraints }: CompiledPolicy): Set<Group> {
  const { resourceRules, excludeResourceRules } = matchConstraints
  const about = REVIEWED.filter(
    (of) =>
      resourceRules.some((rule) => isAbout(rule, of)) &&
      !excludeResourceRules.some((rule) => isAbout(rule, of) && !hasNames(rule)),
  )
  const others = about.map(({ resource }) => (resource === 'pods' ? 'ephemeral' : 'workload'))
  return new Set<Group>(others.length > 0 ? [...others, 'either'] : [])
}

interface Target {
  operation: 'CREATE' | 'UPDATE'
  resource: 'pods' | 'pods/ephemeralcontainers'
}

const CREATE_POD: Target = { operation: 'CREATE', resource: 'pods' }
/** What else a review may come from. */
const REVIEWED: readonly Target[] = [
  { operation: 'UPDATE', resource: 'pods' },
  { operation: 'UPDATE', resource: 'pods/ephemeralcontainers' },
]

function isAbout(rule: ResourceRule, { operation, resource }: Target): boolean {
  const has = (list: readonly string[], item: string) => list.includes('*') || list.includes(item)
  const [, subresource = ''] = resource.split('/')
  return (
    rule.scope !== 'Cluster' &&
    has(rule.apiGroups, '') &&
    has(rule.apiVersions, 'v1') &&
    has(rule.operations, operation) &&
    rule.resources.some((entry) => {
      const [of, sub = ''] = entry.split('/')
      return (of === '*' || of === 'pods') && (sub === '*' || sub === subresource)
    })
  )
}

function hasNames({ resourceNames = [] }: ResourceRule): boolean {
  return resourceNames.length > 0
}

const LISTS = 'the kind of container of each image'
const OTHERS = 'the images that a Pod has already'

/** Collects what the expressions of one policy need. */
class Needs {
  readonly #policy: CompiledPolicy
  readonly #found = new Map<string, ReviewNeed>()
  readonly #variables = new Map<string, Value>()
  readonly #extractors = new Map<string, Trace>()
  readonly #others: ReadonlySet<Group>
  #exceptions: Sense = 'none'
  isAskedByImages = false

  constructor(policy: CompiledPolicy) {
    this.#policy = policy
    this.#others = othersOf(policy)
  }

  get found(): ReviewNeed[] {
    return [...this.#found.values()]
  }

  add(path: string, what: string): void {
    this.#found.set(JSON.stringify([path, what]), { path, what })
  }

  addExpressions(counting: ReadonlySet<string> | undefined): void {
    const { matchConditions, images, attestors, validations, auditAnnotations } = this.#policy
    // Where it holds the policy is asked, so that more images must not make it false.
    const asked = this.#conditions('spec', matchConditions, 'up')
    this.isAskedByImages = asked !== 'none'
    for (const { name, matchConditions: conditions } of this.#policy.exceptions) {
      // Where they hold something is let in, so that more images must not make them true.
      if (counting?.has(name) === false) continue
      const sense = this.#conditions(`exception ${name}: spec`, conditions, 'down')
      if (sense !== 'none') this.#exceptions = 'any'
    }
    for (const [index, { name, expression }] of images.entries()) {
      this.#list(`spec.images[${index}].expression`, name, expression)
    }
    for (const [index, attestor] of attestors.entries()) {
      if (attestor.kind !== 'unresolved') continue
      for (const [which, { expression }] of attestor.expressions.entries()) {
        this.#read(`spec.attestors[${index}].expressions[${which}].expression`, expression, 'none')
      }
    }
    for (const [index, { expression, messageExpression }] of validations.entries()) {
      const { isJoint } = this.#read(`spec.validations[${index}].expression`, expression, 'down')
      if (isJoint) this.#needOthers(`spec.validations[${index}].expression`)
      if (messageExpression === undefined) continue
      this.#read(`spec.validations[${index}].messageExpression`, messageExpression)
    }
    for (const [index, { valueExpression }] of auditAnnotations.entries()) {
      this.#read(`spec.auditAnnotations[${index}].valueExpression`, valueExpression)
    }
  }

  #conditions(path: string, conditions: readonly CompiledCondition[], may: 'up' | 'down'): Sense {
    const senses = conditions.map(({ expression }, index) => {
      const at = `${path}.matchConditions[${index}].expression`
      const { sense, groups } = this.#read(at, expression, may)
      if (sense !== 'none' && [...groups].some((group) => this.#others.has(group))) {
        this.add(at, OTHERS)
      }
      return sense
    })
    return senses.every((sense) => sense === 'none') ? 'none' : may
  }

  #needOthers(path: string): void {
    if (this.#others.size > 0) this.add(path, OTHERS)
  }

  /** `may`: how its value may change with more images in a list; in any way when absent, and then it may as well be an error. */
  #read(path: string, { ast }: CheckedExpression, may?: Sense) {
    const reading = this.#reading(path)
    const sense = this.#whole(path, reading.value(ast))
    const { trace } = reading
    const { groups, isJoint } = trace
    if (may === undefined) return { sense, groups, isJoint }
    this.#sure(path, trace)
    if (sense !== 'none' && sense !== may) this.add(path, LISTS)
    return { sense, groups, isJoint }
  }

  /** For a Pod without such a field it is an error, and for that of a review it is not. */
  #sure(path: string, { absent }: Trace): void {
    for (const name of absent) this.add(path, `to know whether ${name} is there`)
  }

  #whole(path: string, value: Value): Sense {
    for (let at: Value | undefined = value; at !== undefined; at = at.element) {
      if (at.part !== undefined) this.add(path, `${at.part.name} as a whole`)
    }
    return wholeSense(value)
  }

  /** A list of images: it may have more of them. */
  #list(path: string, name: string, { ast }: CheckedExpression): void {
    const reading = this.#reading(path)
    const value = reading.value(ast)
    this.#whole(path, value)
    const isLonger = value.sense === 'none' || value.sense === 'up'
    if (!isLonger || wholeSense(value.element ?? FIXED) !== 'none') this.add(path, LISTS)
    if (reading.trace.isJoint) this.#needOthers(path)
    this.#sure(path, reading.trace)
    this.#extractors.set(name, reading.trace)
  }

  #reading(path: string): Reading {
    return new Reading({
      variable: (name) => this.#variable(name),
      variables: () => this.#policy.variables.flatMap(({ name }) => this.#variable(name) ?? []),
      extractor: (name) => this.#extractors.get(name),
      exceptions: this.#exceptions,
      missing: (what) => this.add(path, what),
    })
  }

  /** What nobody reads is never evaluated, so that it may need anything. */
  #variable(name: string): Value | undefined {
    const known = this.#variables.get(name)
    const index = this.#policy.variables.findIndex((each) => each.name === name)
    const variable = this.#policy.variables[index]
    if (known !== undefined || variable === undefined) return known
    const path = `spec.variables[${index}].expression`
    const reading = this.#reading(path)
    const value = { ...reading.value(variable.expression.ast), trace: reading.trace }
    this.#variables.set(name, value)
    return value
  }
}
