import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ConditionsResult, matchConditions } from '#shared/policy/evaluate.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { matchesConstraints } from '#shared/policy/match.ts'
import { loadRuntime, type PreparedPolicy, preparePolicy } from '#shared/policy/prepare.ts'
import { subjectOf } from '#shared/policy/subject.ts'
import { type CompiledPolicy, policyKey } from '#shared/policy/types.ts'
import { companionPolicies } from '#shared/webhook/companion.ts'
import { generateWebhooks } from '#shared/webhook/generate.ts'
import type { Webhook, WebhookOptions, WebhookPhase } from '#shared/webhook/types.ts'
import {
  type Asked,
  callOf,
  type Form,
  formFor,
  namespaceLabels,
  reviewOf,
  selectsNamespace,
} from './api-server.ts'
import { type PolicyText, policyDocument } from './policies.ts'

const NOT_SYSTEM = {
  matchExpressions: [
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn' as const, values: ['kube-system'] },
  ],
}
const BASE = 'https://admission.example.com/v1/prod/token'
const options: fc.Arbitrary<WebhookOptions> = fc.record({
  target: fc.constant({ kind: 'url' as const, base: BASE }),
  namespaceSelector: fc.constant(NOT_SYSTEM),
  baseName: fc.constantFrom('countersign.dev', 'kyverno.svc'),
  excludeBootstrap: fc.boolean(),
})

const THINGS = [
  { group: '', version: 'v1', resource: 'pods', kind: 'Pod' },
  { group: '', version: 'v1', resource: 'pods', kind: 'Pod', subResource: 'ephemeralcontainers' },
  { group: 'apps', version: 'v1', resource: 'deployments', kind: 'Deployment' },
  { group: 'apps', version: 'v1', resource: 'replicasets', kind: 'ReplicaSet' },
  { group: 'batch', version: 'v1', resource: 'cronjobs', kind: 'CronJob' },
  { group: 'batch', version: 'v1', resource: 'jobs', kind: 'Job' },
  { group: 'example.com', version: 'v1', resource: 'widgets', kind: 'Widget' },
  { group: 'example.com', version: 'v2', resource: 'widgets', kind: 'Widget' },
  { group: '', version: 'v1', resource: 'events', kind: 'Event' },
  { group: 'events.k8s.io', version: 'v1', resource: 'events', kind: 'Event' },
  { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace' },
  { group: '', version: 'v1', resource: 'nodes', kind: 'Node', isCluster: true },
]

const FORMS = THINGS.filter(({ resource }) => resource === 'widgets' || resource === 'events')

const askedOf = (things: typeof THINGS): fc.Arbitrary<Asked> =>
  fc
    .record({
      thing: fc.constantFrom(...things),
      operation: fc.constantFrom('CREATE' as const, 'UPDATE' as const, 'DELETE' as const),
      namespace: fc.constantFrom('team-a', 'team-b', 'kube-system'),
      labels: fc.constantFrom({}, { tier: 'gold' }, { tier: 'lead', app: 'shop' }),
      user: fc.constantFrom('jane', 'bot'),
    })
    .map(({ thing: { isCluster, subResource = '', ...thing }, namespace, labels, ...rest }) => ({
      ...thing,
      ...rest,
      subResource,
      // Whoever needs none of these keys must not find them undefined.
      labels: labels as Record<string, string>,
      namespace: isCluster ? '' : namespace,
    }))
const asked = askedOf(THINGS)

const NO_SCOPE = {
  requiredKeys: ['apiGroups', 'apiVersions', 'operations', 'resources'] as (
    | 'apiGroups'
    | 'apiVersions'
    | 'operations'
    | 'resources'
  )[],
}
const operations = fc.constantFrom(['CREATE'], ['UPDATE', 'CREATE'], ['*'], ['DELETE', 'CREATE'])
const scope = fc.constantFrom('*', 'Namespaced', 'Cluster')
const wideRule = fc.record(
  {
    apiGroups: fc.constantFrom([''], ['apps'], ['*'], ['', 'batch'], ['example.com']),
    apiVersions: fc.constantFrom(['v1'], ['*'], ['v2'], ['v1', 'v2']),
    operations,
    resources: fc.constantFrom(
      ['pods'],
      ['pods', 'pods/ephemeralcontainers'],
      ['*'],
      ['*/*'],
      ['deployments', 'cronjobs'],
      ['namespaces'],
      ['nodes', 'namespaces'],
    ),
    scope,
  },
  NO_SCOPE,
)
/** What there is in two forms. */
const formRule = fc.record(
  {
    apiGroups: fc.constantFrom(['example.com'], ['*'], [''], ['events.k8s.io']),
    apiVersions: fc.constantFrom(['v1'], ['v2'], ['*']),
    operations,
    resources: fc.constantFrom(['widgets'], ['events'], ['*']),
    scope,
  },
  NO_SCOPE,
)
const rule = fc.oneof(wideRule, formRule)
const podRule = fc.record({
  apiGroups: fc.constant(['']),
  apiVersions: fc.constant(['v1']),
  operations: fc.constantFrom(['CREATE'], ['CREATE', 'UPDATE'], ['*'], ['DELETE', 'CREATE']),
  resources: fc.constant(['pods']),
})
const selector = fc.constantFrom(
  {},
  { matchLabels: { tier: 'gold' } },
  { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
  { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['gold'] }] },
)
const nameSelector = fc.constantFrom(
  {},
  { matchLabels: { tier: 'gold' } },
  { matchLabels: { 'kubernetes.io/metadata.name': 'team-a' } },
)
const condition = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'cronjobs-a', 'exclude-bootstrap-resources', 'x'.repeat(60)),
  expression: fc.constantFrom(
    'true',
    "request.userInfo.username != 'bot'",
    "request.operation == 'DELETE' || object.metadata.?labels.?tier.orValue('') != 'lead'",
    // An error on whatever has no labels, and on DELETE.
    "object.metadata.labels.tier == 'gold'",
    "request.kind.kind != 'Deployment'",
    "request.resource.version == 'v1'",
    "request.resource.group != 'example.com' || request.resource.version != 'v2'",
    "namespaceObject == null || namespaceObject.metadata.?labels.?tier.orValue('') == 'gold'",
    "request.object.metadata.name == 'x'",
    "image('a').registry() != 'b'",
    "variables.x == 'b'",
    'has(object.spec.template) || !has(object.spec.template)',
    "object.apiVersion != 'example.com/v2'",
    "has(request.namespace) && request.namespace == 'team-a'",
  ),
})
const spec = fc.record(
  {
    failurePolicy: fc.constantFrom('Fail', 'Ignore'),
    matchConstraints: fc.record(
      {
        resourceRules: fc.oneof(
          fc.array(podRule, { minLength: 1, maxLength: 1 }),
          fc.array(rule, { minLength: 1, maxLength: 2 }),
        ),
        excludeResourceRules: fc.array(rule, { maxLength: 1 }),
        objectSelector: selector,
        namespaceSelector: nameSelector,
        matchPolicy: fc.constantFrom('Exact', 'Equivalent', 'Equivalent'),
      },
      { requiredKeys: ['resourceRules'] },
    ),
    matchConditions: fc.oneof(
      fc.constant([]),
      fc.uniqueArray(condition, { maxLength: 3, selector: ({ name }) => name }),
    ),
    autogen: fc.constantFrom(
      { podControllers: { controllers: ['deployments'] } },
      { podControllers: { controllers: [] } },
      { podControllers: { controllers: ['cronjobs', 'none'] } },
    ),
    webhookConfiguration: fc.constantFrom({}, {}, { timeoutSeconds: 3 }, { timeoutSeconds: 30 }),
    validationConfigurations: fc.record({ mutateDigest: fc.boolean() }),
    evaluation: fc.constantFrom({}, {}, {}, { admission: { enabled: false } }, { mode: 'JSON' }),
    validationActions: fc.constantFrom(['Deny'], ['Audit'], ['Warn', 'Audit']),
  },
  { requiredKeys: ['failurePolicy', 'matchConstraints'] },
)
const documentsOf = (specs: fc.Arbitrary<object>) =>
  fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'a.b', 'team-a'),
      namespace: fc.constantFrom(undefined, 'team-a', 'team-b'),
      spec: specs,
    }),
    { minLength: 1, maxLength: 6, selector: ({ name, namespace }) => `${namespace}/${name}` },
  )
const documents = documentsOf(spec)
/** Policies that share webhooks, about what there is in two forms. */
const converted = documentsOf(
  fc.record({
    matchConstraints: fc.record({
      resourceRules: fc.array(formRule, { minLength: 1, maxLength: 2 }),
    }),
  }),
)

/** The policies of those documents that can be loaded: some are about nothing at all. */
async function loaded(texts: readonly PolicyText[]): Promise<CompiledPolicy[]> {
  const found: CompiledPolicy[] = []
  for (const [index, document] of texts.entries()) {
    // Absent members are absent in JSON, too.
    const text = JSON.stringify(policyDocument(document))
    const { policies } = await loadPolicies([{ name: `${index}.yaml`, text }])
    found.push(...policies)
  }
  return found
}

/** What one policy says about a request when nobody else has one: in which form it wants it, and whether it then is about it. */
async function wanted(policies: readonly CompiledPolicy[], one: Asked) {
  const [first] = policies
  if (first === undefined) throw new TypeError('no policy')
  const { matchPolicy = 'Equivalent' } = first.matchConstraints
  const rules = policies.flatMap(({ matchConstraints }) => matchConstraints.resourceRules)
  const form = formFor(rules, matchPolicy, one)
  if (form === undefined) return { form, matched: [] }
  return { form, matched: await matching(policies, one, form) }
}

const prepared = new WeakMap<CompiledPolicy, PreparedPolicy>()

/** The policies and variants that the engine applies to a request that is sent like this. */
async function matching(policies: readonly CompiledPolicy[], one: Asked, form: Form) {
  const request = reviewOf(one, form)
  const found: { policy: CompiledPolicy; status: ConditionsResult['status'] }[] = []
  for (const policy of policies) {
    if (policy.namespace !== undefined && policy.namespace !== request.namespace) continue
    if (!matchesConstraints(policy.matchConstraints, request)) continue
    const subject = subjectOf(request)
    const object = { metadata: { name: one.namespace, labels: namespaceLabels(one) } }
    if (subject.namespace.state.status === 'unasked') {
      subject.namespace.state = { status: 'known', object }
    }
    const ready = prepared.get(policy) ?? preparePolicy(policy, await loadRuntime(policy))
    prepared.set(policy, ready)
    found.push({ policy, status: matchConditions(ready, subject).status })
  }
  return found
}

/** The names in the path of a webhook are of this policy's kind, and its own is among them. */
function names(
  { clientConfig }: Webhook,
  phase: WebhookPhase,
  { name, namespace }: CompiledPolicy,
) {
  const path = (clientConfig.url ?? '').slice(BASE.length)
  const [, route, verb, ...rest] = path.split('/')
  return (
    verb === phase &&
    route === (namespace === undefined ? 'ivpol' : 'nivpol') &&
    rest.includes(name)
  )
}

async function check(
  policies: readonly CompiledPolicy[],
  webhooks: readonly Webhook[],
  phase: WebhookPhase,
  one: Asked,
) {
  const calls = await Promise.all(webhooks.map((webhook) => callOf(webhook, one)))
  const keys = new Set(policies.map(policyKey))
  for (const key of keys) {
    const forms = policies.filter((policy) => policyKey(policy) === key)
    const [policy] = forms
    if (policy === undefined || policy.mode === 'JSON') continue
    if (phase === 'mutate' && !policy.mutateDigest) continue
    if (policy.namespace !== undefined && policy.namespace !== one.namespace) continue
    const naming = webhooks.flatMap((webhook, index) => {
      const call = calls[index]
      return names(webhook, phase, policy) && call !== undefined && call !== 'not called'
        ? [{ webhook, call }]
        : []
    })
    const evaluated: { webhook: Webhook; form: Form }[] = []
    for (const { webhook, call } of naming) {
      if (call === 'refused') continue
      if ((await matching(forms, one, call.sent)).some(({ status }) => status !== 'unmatched')) {
        evaluated.push({ webhook, form: call.sent })
      }
    }
    const about = `${key} of ${phase}`
    expect(evaluated.length, `${about}: evaluated once`).toBeLessThanOrEqual(1)
    for (const { webhook } of naming) {
      expect(webhook.failurePolicy, about).toBe(policy.failurePolicy)
    }
    const alone = await wanted(forms, one)
    if (!selectsNamespace(NOT_SYSTEM, one)) {
      expect(
        calls.every((call) => call === 'not called'),
        `${about}: left out`,
      ).toBe(true)
      continue
    }
    const isApplied = alone.matched.some(({ status }) => status === 'matched')
    const isFailing = alone.matched.some(({ status }) => status === 'error')
    const isRefused = naming.some(({ call }) => call === 'refused')
    if (isApplied) {
      expect(isRefused || evaluated.length === 1, `${about}: a miss`).toBe(true)
      if (!isRefused)
        expect(evaluated[0]?.form, about).toMatchObject({ version: alone.form?.version })
    }
    // Whoever fails closed is asked, or the API server refuses by itself.
    if (isFailing) expect(isRefused || evaluated.length === 1, `${about}: open`).toBe(true)
    // The API server refuses nothing that the function would have admitted.
    const mayRefuse = isFailing && policy.validationActions.includes('Deny')
    // What conditions about namespaces leave out is not known where the others fail: that is said aloud.
    const isBlind = policy.matchConditions.some(({ expression }) =>
      expression.source.includes('namespaceObject'),
    )
    if (isRefused && !isBlind) expect(mayRefuse, `${about}: locked out`).toBe(true)
  }
}

async function checkAll(texts: readonly object[], how: WebhookOptions, requests: readonly Asked[]) {
  const policies = await loaded(texts as PolicyText[])
  const { mutating, validating, faults } = await generateWebhooks(policies, how)
  const others = faults.filter(({ message }) => !message.startsWith('its rules are about nothing'))
  expect(others).toEqual([])
  for (const one of requests) {
    if (how.excludeBootstrap && one.resource === 'nodes') continue
    await check(policies, mutating.webhooks, 'mutate', one)
    await check(policies, validating.webhooks, 'validate', one)
  }
}

describe('the webhooks of any set of policies', () => {
  test('a policy is asked about whatever it is about, once, in the form that it wants, and never in a namespace that is left out', async () => {
    await fc.assert(
      fc.asyncProperty(
        documents,
        options,
        fc.array(asked, { minLength: 20, maxLength: 20 }),
        checkAll,
      ),
      { numRuns: 60 },
    )
    await fc.assert(
      fc.asyncProperty(
        converted,
        options,
        fc.array(askedOf(FORMS), { minLength: 20, maxLength: 20 }),
        checkAll,
      ),
      { numRuns: 60 },
    )
  }, 600_000)

  test('the companion never refuses what the mutate phase itself wrote', async () => {
    await fc.assert(
      fc.asyncProperty(
        documents,
        options,
        fc.array(asked, { minLength: 20, maxLength: 20 }),
        async (texts, how, requests) => {
          const { mutating } = await generateWebhooks(await loaded(texts as PolicyText[]), how)
          const { objects, faults } = await companionPolicies(mutating, how)
          expect(faults).toEqual([])
          const refusing = objects.flatMap((object) =>
            object.kind === 'ValidatingAdmissionPolicy' && object.spec.failurePolicy === 'Fail'
              ? [object.spec.matchConstraints]
              : [],
          )
          for (const one of requests) {
            const isAbout = refusing.some(
              ({ resourceRules, matchPolicy, namespaceSelector }) =>
                selectsNamespace(namespaceSelector, one) &&
                formFor(resourceRules, matchPolicy, one) !== undefined,
            )
            if (!isAbout) continue
            expect(one).toMatchObject({ operation: 'UPDATE', subResource: '' })
            const calls = await Promise.all(
              mutating.webhooks.map((webhook) => callOf(webhook, one)),
            )
            expect(calls.every((call) => call === 'not called')).toBe(true)
          }
        },
      ),
      { numRuns: 80 },
    )
  }, 600_000)

  test('what is written is the same to the byte for any order, and within every bound', async () => {
    await fc.assert(
      fc.asyncProperty(
        documents,
        options,
        fc.infiniteStream(fc.nat()),
        async (texts, how, order) => {
          const policies = await loaded(texts as PolicyText[])
          const shuffled = policies
            .map((policy) => ({ policy, at: order.next().value }))
            .sort((a, b) => a.at - b.at)
            .map(({ policy }) => policy)
          const [once, again] = [
            await generateWebhooks(policies, how),
            await generateWebhooks(shuffled, how),
          ]
          expect(JSON.stringify(again)).toBe(JSON.stringify(once))
          for (const { webhooks } of [once.mutating, once.validating]) {
            expect(new Set(webhooks.map(({ name }) => name)).size).toBe(webhooks.length)
            for (const { name, timeoutSeconds, matchConditions = [] } of webhooks) {
              expect(name).toMatch(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
              expect(name.length).toBeLessThanOrEqual(253)
              expect(timeoutSeconds).toBeGreaterThanOrEqual(1)
              expect(timeoutSeconds).toBeLessThanOrEqual(30)
              expect(matchConditions.length).toBeLessThanOrEqual(64)
            }
          }
        },
      ),
      { numRuns: 40 },
    )
  }, 600_000)
})
