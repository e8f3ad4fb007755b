import { sha256, toHex, utf8 } from '../bytes.ts'
import { compile } from '../cel/compile.ts'
import { loadRegex } from '../cel/regex.ts'
import { OUTCOMES_ANNOTATION, SEAL_ANNOTATION } from '../outcome/annotation.ts'
import { compareTexts, type LabelSelector } from '../policy/types.ts'
import { webhookEnvironment } from './conditions.ts'
import { mergeSelectors } from './selectors.ts'
import type {
  Webhook,
  WebhookCondition,
  WebhookConfiguration,
  WebhookNote,
  WebhookOptions,
  WebhookRule,
} from './types.ts'
import { STATIC_SUFFIX } from './validate.ts'
import { meetGroups } from './versions.ts'

/** A ValidatingAdmissionPolicy. */
export interface CompanionPolicy {
  apiVersion: 'admissionregistration.k8s.io/v1'
  kind: 'ValidatingAdmissionPolicy'
  metadata: { name: string; labels: Record<string, string> }
  spec: {
    failurePolicy: 'Fail' | 'Ignore'
    matchConstraints: {
      matchPolicy: 'Exact' | 'Equivalent'
      namespaceSelector: LabelSelector
      objectSelector: LabelSelector
      resourceRules: WebhookRule[]
    }
    matchConditions?: WebhookCondition[]
    validations: { expression: string; message: string }[]
  }
}

/** A ValidatingAdmissionPolicyBinding. */
export interface CompanionBinding {
  apiVersion: 'admissionregistration.k8s.io/v1'
  kind: 'ValidatingAdmissionPolicyBinding'
  metadata: { name: string; labels: Record<string, string> }
  spec: { policyName: string; validationActions: ('Deny' | 'Warn' | 'Audit')[] }
}

/** Policies that the API server evaluates itself beside the webhooks, what they cannot do, and what is wrong with them. */
export interface Companion {
  objects: readonly (CompanionPolicy | CompanionBinding)[]
  notes: readonly WebhookNote[]
  faults: readonly WebhookNote[]
}

/**
 * ValidatingAdmissionPolicies that say what can be known about our two annotations inside an API server. It evaluates them after all
 * mutating webhooks, so that they see what the mutate phase wrote, and have no key to tell it from what a user wrote:
 * - where the mutate phase is called, it replaces or removes both annotations, and there is nothing to forbid;
 * - where it is called for some updates only, as match conditions say, both are still replaced before they count, and nothing here could tell
 *   who wrote them: pinning an image may turn an update that it was called for into one that the conditions leave out;
 * - where it is never called for updates, whatever an update changes in them was written by somebody else: it is denied, in the namespaces where
 *   the mutate phase is called when the object is created. They may be removed, and
 *   may be written by the controllers of the cluster, which copy the annotations of a Deployment to its ReplicaSets, and by rollbacks, which
 *   copy them back;
 * - where it may fail open, an object without outcomes is one that it did not look at, or that no policy is about: a warning and an audit
 *   annotation. Outcomes that a user wrote then look like ours here; the validate phase opens the seal and takes no other word.
 * A validating webhook that fails open is called after these policies: the API server's own `failed-open.` audit annotation tells of it.
 */
export async function companionPolicies(
  mutating: WebhookConfiguration,
  options: WebhookOptions,
): Promise<Companion> {
  const updates = notUpdated(mutating.webhooks)
  const forbidding = await Promise.all(updates.map((each) => writing(each, options)))
  const ignoring = mutating.webhooks.filter(({ failurePolicy }) => failurePolicy === 'Ignore')
  const showing = await Promise.all(ignoring.map((webhook) => failedOpen(webhook, options)))
  const objects = [...forbidding, ...showing].flat()
  const notes: WebhookNote[] = []
  const path = 'companion policies'
  if (updates.length === 0) {
    const message = `nothing has to keep users from writing ${SEAL_ANNOTATION} and ${OUTCOMES_ANNOTATION}: the mutate phase is called for updates of all that its policies are about, and replaces both`
    notes.push({ path, message })
  }
  if (mutating.webhooks.some(mayLeaveOutUpdates)) {
    const message =
      'updates that match conditions or object selectors leave out can write both annotations, and no policy can tell who did: what they say never counts unless the seal opens'
    notes.push({ path, message })
  }
  if (ignoring.length === 0) {
    notes.push({
      path,
      message: 'no mutating webhook fails open, so that there is nothing to show',
    })
  }
  return { objects, notes, faults: await expressionFaults(objects, options) }
}

/** What is left alone when it is updated, in the namespaces of one selector. */
interface NotUpdated {
  namespaceSelector: LabelSelector
  rules: WebhookRule[]
}

/** What the mutate phase is called for when it is created and not when it is updated, in no webhook; by namespaces. */
function notUpdated(webhooks: readonly Webhook[]): NotUpdated[] {
  const updated = webhooks.flatMap(({ rules }) => rules.filter(hasUpdate))
  const found = new Map<string, NotUpdated>()
  for (const { namespaceSelector, rules } of webhooks) {
    const left = rules.flatMap((rule) => leftAlone(rule, updated))
    if (left.length === 0) continue
    const key = JSON.stringify(namespaceSelector)
    const others = found.get(key)?.rules ?? []
    found.set(key, { namespaceSelector, rules: eachOnce([...others, ...left]) })
  }
  return [...found].sort(([a], [b]) => compareTexts(a, b)).map(([, each]) => each)
}

function leftAlone(rule: WebhookRule, updated: readonly WebhookRule[]): WebhookRule[] {
  if (hasUpdate(rule) || !rule.operations.includes('CREATE')) return []
  const resources = ownResources(rule).filter(
    (resource) => !updated.some((other) => mayCover(other, rule, resource)),
  )
  return resources.length === 0 ? [] : [{ ...rule, operations: ['UPDATE'], resources }]
}

function eachOnce(rules: readonly WebhookRule[]): WebhookRule[] {
  const byText = new Map(rules.map((rule) => [JSON.stringify(rule), rule]))
  return [...byText].sort(([a], [b]) => compareTexts(a, b)).map(([, rule]) => rule)
}

/** Whoever makes an object can have an update of it pass by. */
function mayLeaveOutUpdates({ rules, matchConditions, objectSelector }: Webhook): boolean {
  const isPartial = matchConditions !== undefined || Object.keys(objectSelector).length > 0
  return isPartial && rules.some(hasUpdate)
}

function hasUpdate({ operations }: WebhookRule): boolean {
  return operations.includes('UPDATE') || operations.includes('*')
}

/** Resources without what is below them: subresources are answered without annotations. `pods/*` is Pods, too. */
function ownResources({ resources }: WebhookRule): string[] {
  const own = resources.flatMap((entry) => {
    const [resource = '', subresource] = entry.split('/')
    return subresource === undefined || subresource === '*' ? [resource] : []
  })
  return [...new Set(own)]
}

/** True when an update of the resource may reach the other rule; versions are converted to each other. */
function mayCover(other: WebhookRule, { apiGroups }: WebhookRule, resource: string): boolean {
  return (
    meetGroups(other.apiGroups, apiGroups) &&
    ownResources(other).some((each) => each === resource || each === '*' || resource === '*')
  )
}

const KEYS = `['${SEAL_ANNOTATION}', '${OUTCOMES_ANNOTATION}']`

const UNCHANGED =
  `${KEYS}.all(key, object.metadata.?annotations[?key].orValue('') in ` +
  `['', oldObject.metadata.?annotations[?key].orValue('')])`

/** The garbage collector, the Deployment controller and kubelets write objects of others. */
const NOT_BY_CONTROLLERS: WebhookCondition = {
  name: 'not-by-controllers',
  expression:
    "request.userInfo.username != 'system:kube-controller-manager' && " +
    "!request.userInfo.?groups.orValue([]).exists(group, group in ['system:nodes', 'system:serviceaccounts:kube-system'])",
}

/**
 * `kubectl rollout undo` gives a Deployment the annotations of the ReplicaSet it goes back to, together with its template. What other groups
 * call a Deployment may have none.
 */
const NO_ROLLBACK: WebhookCondition = {
  name: 'no-rollback',
  expression:
    "request.kind.group != 'apps' || request.kind.kind != 'Deployment' || object.spec.template == oldObject.spec.template",
}

async function writing(
  { namespaceSelector, rules }: NotUpdated,
  options: WebhookOptions,
): Promise<(CompanionPolicy | CompanionBinding)[]> {
  return withBinding(
    {
      name: nameOf(await writingName(namespaceSelector, options), options),
      failurePolicy: 'Fail',
      actions: ['Deny'],
      matchConstraints: {
        matchPolicy: 'Equivalent',
        namespaceSelector,
        objectSelector: {},
        resourceRules: rules,
      },
      matchConditions: [NOT_BY_CONTROLLERS, NO_ROLLBACK],
      expression: UNCHANGED,
      message: `${SEAL_ANNOTATION} and ${OUTCOMES_ANNOTATION} are written by image verification alone; they may be removed`,
    },
    options,
  )
}

/** The namespaces of the cluster have no hash in their name; those of policies that are about fewer have. */
async function writingName(
  namespaceSelector: LabelSelector,
  options: WebhookOptions,
): Promise<string> {
  const own = JSON.stringify(namespaceSelector)
  const whole = mergeSelectors(undefined, options.namespaceSelector) ?? {}
  if (own === JSON.stringify(whole)) return 'annotations.countersign.dev'
  return `annotations-${toHex(await sha256(utf8(own))).slice(0, 8)}.countersign.dev`
}

const SEAL = `object.metadata.?annotations[?'${SEAL_ANNOTATION}']`

/** What the mutate phase leaves behind: an outcome, and a seal that looks like one or none at all. */
const SEEN =
  `object.metadata.?annotations[?'${OUTCOMES_ANNOTATION}'].hasValue() && (!${SEAL}.hasValue() || ` +
  `${SEAL}.value().matches('^v1[.][a-z0-9-]{1,32}[.][A-Za-z0-9_-]+[.][A-Za-z0-9_-]{43}$'))`

async function failedOpen(
  webhook: Webhook,
  options: WebhookOptions,
): Promise<(CompanionPolicy | CompanionBinding)[]> {
  const { name, matchPolicy, namespaceSelector, objectSelector, matchConditions } = webhook
  const resourceRules = webhook.rules.flatMap((rule): WebhookRule[] => {
    const resources = ownResources(rule)
    const operations = rule.operations.filter((each) => each !== 'DELETE' && each !== 'CONNECT')
    const changing = operations.includes('*') ? ['CREATE', 'UPDATE'] : operations
    if (resources.length === 0 || changing.length === 0) return []
    return [{ ...rule, operations: changing, resources }]
  })
  if (resourceRules.length === 0) return []
  return withBinding(
    {
      name: nameOf(await shortName(`failed-open.${name}`), options),
      failurePolicy: 'Ignore',
      actions: ['Warn', 'Audit'],
      matchConstraints: { matchPolicy, namespaceSelector, objectSelector, resourceRules },
      ...(matchConditions === undefined ? {} : { matchConditions }),
      expression: SEEN,
      message:
        'no outcome of image verification: the mutate webhook did not answer and fails open, or no policy is about these images',
    },
    options,
  )
}

interface Described {
  name: string
  failurePolicy: 'Fail' | 'Ignore'
  actions: CompanionBinding['spec']['validationActions']
  matchConstraints: CompanionPolicy['spec']['matchConstraints']
  matchConditions?: WebhookCondition[]
  expression: string
  message: string
}

function withBinding(
  {
    name,
    failurePolicy,
    actions,
    matchConstraints,
    matchConditions,
    expression,
    message,
  }: Described,
  { labels = {} }: WebhookOptions,
): (CompanionPolicy | CompanionBinding)[] {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const metadata = { name, labels: { ...labels } }
  return [
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        failurePolicy,
        matchConstraints,
        ...(matchConditions === undefined ? {} : { matchConditions }),
        validations: [{ expression, message }],
      },
    },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name, labels: { ...labels } },
      spec: { policyName: name, validationActions: actions },
    },
  ]
}

function nameOf(name: string, { isStatic }: WebhookOptions): string {
  return isStatic ? `${name}${STATIC_SUFFIX}` : name
}

/** A name that is one with the suffix as well. */
async function shortName(name: string): Promise<string> {
  const room = 253 - STATIC_SUFFIX.length
  if (name.length <= room) return name
  const hash = toHex(await sha256(utf8(name))).slice(0, 16)
  return `failed-open-${hash}.countersign.dev`
}

/** What the API server would find wrong with the expressions. */
async function expressionFaults(
  objects: Companion['objects'],
  { minor }: WebhookOptions,
): Promise<WebhookNote[]> {
  const environment = webhookEnvironment(minor, await loadRegex())
  return objects.flatMap((object) => {
    if (object.kind !== 'ValidatingAdmissionPolicy') return []
    const { validations, matchConditions = [] } = object.spec
    return [...matchConditions, ...validations].flatMap(({ expression }) => {
      const compiled = compile(expression, environment, { allowedTypes: ['bool'] })
      if (compiled.ok) return []
      const said = compiled.issues.map(({ message }) => message).join('; ')
      return [{ path: `ValidatingAdmissionPolicy ${object.metadata.name}`, message: said }]
    })
  })
}
