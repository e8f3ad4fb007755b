import type { AdmissionRequest } from '#shared/admission/types.ts'
import { compile } from '#shared/cel/compile.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import type { Program } from '#shared/cel/program.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import { webhookEnvironment } from '#shared/webhook/conditions.ts'
import type { Webhook } from '#shared/webhook/types.ts'

/** What somebody asks the API server for, in the version they wrote it in. */
export interface Asked {
  group: string
  version: string
  resource: string
  kind: string
  subResource: string
  operation: 'CREATE' | 'UPDATE' | 'DELETE'
  /** Empty for what is in no namespace. */
  namespace: string
  labels: Record<string, string>
  user: string
}

/** A version and group that the API server would convert the object to. */
export interface Form {
  group: string
  version: string
  kind: string
}

/** What a request is sent as; `matching` was not found out, and the API server refuses the request. */
export type Call = { sent: Form } | 'not called' | 'refused'

/** Resources that are served in more than one way; all others in one. */
const SERVED: Readonly<Record<string, readonly Form[]>> = {
  widgets: [
    { group: 'example.com', version: 'v1', kind: 'Widget' },
    { group: 'example.com', version: 'v2', kind: 'Widget' },
  ],
  events: [
    { group: '', version: 'v1', kind: 'Event' },
    { group: 'events.k8s.io', version: 'v1', kind: 'Event' },
  ],
}

/** Labels of the namespaces of this cluster, but for their names. */
const NAMESPACES: Readonly<Record<string, Record<string, string>>> = {
  'team-a': { tier: 'gold' },
  'team-b': {},
  'kube-system': { tier: 'gold' },
}

/** The other forms of what is asked for, in the order in which they are tried. */
export function equivalents({ group, version, resource }: Asked): readonly Form[] {
  const all = Object.hasOwn(SERVED, resource) ? (SERVED[resource] ?? []) : []
  return all.filter((form) => form.group !== group || form.version !== version)
}

/** A rule of a webhook or a policy, as far as it decides what is sent. */
export interface Rule {
  apiGroups: readonly string[]
  apiVersions: readonly string[]
  operations: readonly string[]
  resources: readonly string[]
  scope?: string
}

/** The form in which a list of rules wants a request (kubernetes-admission.md 2.2 and 2.4). */
export function formFor(
  rules: readonly Rule[],
  matchPolicy: string,
  asked: Asked,
): Form | undefined {
  const own: Form = asked
  if (rules.some((rule) => ruleMatches(rule, asked, own))) return own
  if (matchPolicy !== 'Equivalent') return undefined
  for (const rule of rules) {
    const found = equivalents(asked).find((form) => ruleMatches(rule, asked, form))
    if (found !== undefined) return found
  }
  return undefined
}

function ruleMatches(rule: Rule, asked: Asked, form: Form): boolean {
  const has = (list: readonly string[], value: string) => list.includes('*') || list.includes(value)
  const isNamespaces = form.group === '' && asked.resource === 'namespaces'
  const isCluster = isNamespaces || asked.namespace === ''
  const inScope =
    rule.scope === undefined || rule.scope === '*' || (rule.scope === 'Cluster') === isCluster
  return (
    inScope &&
    has(rule.operations, asked.operation) &&
    has(rule.apiGroups, form.group) &&
    has(rule.apiVersions, form.version) &&
    rule.resources.some((entry) => {
      const [resource, sub = ''] = entry.split('/')
      return (
        (resource === '*' || resource === asked.resource) &&
        (sub === '*' || sub === asked.subResource)
      )
    })
  )
}

type Selector = Webhook['namespaceSelector']

function selects(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key]
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      const isListed = value !== undefined && values.includes(value)
      return operator === 'In' ? isListed : !isListed
    })
  )
}

/** Labels of the namespace that a request is in; of a Namespace its own. */
export function namespaceLabels(asked: Asked): Record<string, string> {
  const labels = asked.resource === 'namespaces' ? asked.labels : NAMESPACES[asked.namespace]
  return { ...labels, 'kubernetes.io/metadata.name': asked.namespace }
}

export function selectsNamespace(selector: Selector, asked: Asked): boolean {
  if (asked.namespace === '' && asked.resource !== 'namespaces') return true
  return selects(selector, namespaceLabels(asked))
}

/** The review that a call sends. */
export function reviewOf(asked: Asked, form: Form): AdmissionRequest {
  const { group, version, kind, resource, operation, namespace, labels, subResource } = asked
  const apiVersion = form.group === '' ? form.version : `${form.group}/${form.version}`
  const name = resource === 'namespaces' ? namespace : 'x'
  const object = { apiVersion, kind: form.kind, metadata: { name, labels }, spec: {} }
  return {
    uid: 'u',
    kind: { group: form.group, version: form.version, kind: form.kind },
    resource: { group: form.group, version: form.version, resource },
    ...(subResource !== '' && { subResource, requestSubResource: subResource }),
    requestKind: { group, version, kind },
    requestResource: { group, version, resource },
    name,
    ...(namespace !== '' && { namespace }),
    operation,
    userInfo: { username: asked.user },
    object: operation === 'DELETE' ? null : object,
    oldObject: operation === 'CREATE' ? null : object,
    dryRun: false,
    options: null,
  }
}

const programs = new Map<string, Program>()

async function programOf(expression: string): Promise<Program> {
  const known = programs.get(expression)
  if (known !== undefined) return known
  const regex = await loadRegex()
  const compiled = compile(expression, webhookEnvironment(undefined, regex), {
    allowedTypes: ['bool'],
  })
  if (!compiled.ok) throw new TypeError(`${expression}: ${JSON.stringify(compiled.issues)}`)
  const planned = plan(compiled.checked, {
    profile: 'kubernetes',
    implementations: kubernetesLibrary,
    regex,
  })
  if (!planned.ok) throw new TypeError(planned.message)
  programs.set(expression, planned.program)
  return planned.program
}

/** Whether and how an API server calls a webhook (kubernetes-admission.md 2.2 to 2.5). */
export async function callOf(webhook: Webhook, asked: Asked): Promise<Call> {
  if (!selectsNamespace(webhook.namespaceSelector, asked)) return 'not called'
  // Labels of the object are the same before and after here.
  if (!selects(webhook.objectSelector, asked.labels)) return 'not called'
  const sent = formFor(webhook.rules, webhook.matchPolicy, asked)
  if (sent === undefined) return 'not called'
  const review = reviewOf(asked, sent)
  const { object, oldObject, options: _, ...request } = review
  // The object is converted, the resource stays the one that was asked for; there is never a namespace.
  const { requestResource } = review
  const activation = {
    object,
    oldObject,
    request: { ...request, resource: requestResource ?? review.resource },
    namespaceObject: null,
  }
  let hasErrors = false
  for (const { expression } of webhook.matchConditions ?? []) {
    const result = (await programOf(expression)).evaluate(activation)
    if (result.kind === 'error') hasErrors = true
    else if (result.value !== true) return 'not called'
  }
  if (!hasErrors) return { sent }
  return webhook.failurePolicy === 'Fail' ? 'refused' : 'not called'
}
