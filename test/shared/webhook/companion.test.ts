import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import { OUTCOMES_ANNOTATION, SEAL_ANNOTATION } from '#shared/outcome/annotation.ts'
import { type CompanionPolicy, companionPolicies } from '#shared/webhook/companion.ts'
import { webhookEnvironment } from '#shared/webhook/conditions.ts'
import { generateWebhooks } from '#shared/webhook/generate.ts'
import type { WebhookOptions } from '#shared/webhook/types.ts'
import { type Asked, formFor, selectsNamespace } from './api-server.ts'
import { compiled, POD_RULE, type PolicyText } from './policies.ts'

const OPTIONS: WebhookOptions = {
  target: { kind: 'url', base: 'https://admission.example.com/v1/prod/token' },
  namespaceSelector: {
    matchExpressions: [
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
    ],
  },
}
const NO_CONTROLLERS = { podControllers: { controllers: [] } }
const IGNORE = { failurePolicy: 'Ignore' }
const about = (operations: string[], more: object = {}) => ({
  matchConstraints: { resourceRules: [{ ...POD_RULE, operations, ...more }] },
})

async function companion(documents: readonly PolicyText[], options: Partial<WebhookOptions> = {}) {
  const all = { ...OPTIONS, ...options }
  const { mutating } = await generateWebhooks(await compiled(...documents), all)
  return { mutating, ...(await companionPolicies(mutating, all)) }
}

async function policyNamed(
  documents: readonly PolicyText[],
  start: string,
): Promise<CompanionPolicy> {
  const { objects, faults } = await companion(documents)
  expect(faults).toEqual([])
  const found = objects.find(
    ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name.startsWith(start),
  )
  // The kind was asked for above.
  return found as CompanionPolicy
}

interface Request {
  object?: object
  oldObject?: object
  username?: string
  groups?: string[]
  kind?: string
  group?: string
}

/** Whether the API server would find the object right: conditions first, then validations. */
async function allows(
  { spec }: CompanionPolicy,
  { object, oldObject, username, groups, kind, group }: Request,
): Promise<boolean | 'skipped'> {
  const regex = await loadRegex()
  const run = (source: string): unknown => {
    const result = compile(source, webhookEnvironment(undefined, regex), { allowedTypes: ['bool'] })
    if (!result.ok) throw new TypeError(JSON.stringify(result.issues))
    const planned = plan(result.checked, {
      profile: 'kubernetes',
      implementations: kubernetesLibrary,
      regex,
    })
    if (!planned.ok) throw new TypeError(planned.message)
    const outcome = planned.program.evaluate({
      object: object ?? null,
      oldObject: oldObject ?? null,
      request: {
        kind: { group: group ?? '', version: 'v1', kind: kind ?? 'Pod' },
        userInfo: { username: username ?? 'jane', ...(groups && { groups }) },
      },
    })
    if (outcome.kind === 'error') throw new TypeError(outcome.message)
    return outcome.value
  }
  if (!(spec.matchConditions ?? []).every(({ expression }) => run(expression) === true))
    return 'skipped'
  return spec.validations.every(({ expression }) => run(expression) === true)
}

const pod = (annotations?: Record<string, string>) => ({
  metadata: { name: 'p', ...(annotations && { annotations }) },
})
const SEAL = `v1.a1.e30.${'x'.repeat(43)}`
const BOTH = { [SEAL_ANNOTATION]: SEAL, [OUTCOMES_ANNOTATION]: '{}' }

const POD: Asked = {
  group: '',
  version: 'v1',
  resource: 'pods',
  kind: 'Pod',
  subResource: '',
  operation: 'UPDATE',
  namespace: 'team-a',
  labels: {},
  user: 'jane',
}
const DEPLOYMENT = { group: 'apps', resource: 'deployments', kind: 'Deployment' }

describe('a policy that keeps users from writing our annotations', () => {
  const documents = [{ spec: about(['CREATE']) }]

  test.each<{ name: string; request: Request; allowed: boolean | 'skipped' }>([
    {
      name: 'another annotation may be written',
      request: { object: pod({ ...BOTH, a: 'b' }), oldObject: pod(BOTH) },
      allowed: true,
    },
    {
      name: 'no annotations at all are fine',
      request: { object: pod(), oldObject: pod() },
      allowed: true,
    },
    {
      name: 'both may be removed, since nothing counts as verified without them',
      request: { object: pod(), oldObject: pod(BOTH) },
      allowed: true,
    },
    {
      name: 'a seal may not be added',
      request: { object: pod({ [SEAL_ANNOTATION]: SEAL }), oldObject: pod() },
      allowed: false,
    },
    {
      name: 'a seal may not be changed',
      request: { object: pod({ ...BOTH, [SEAL_ANNOTATION]: 'x' }), oldObject: pod(BOTH) },
      allowed: false,
    },
    {
      name: 'outcomes may not be changed',
      request: { object: pod({ ...BOTH, [OUTCOMES_ANNOTATION]: '{"a":1}' }), oldObject: pod(BOTH) },
      allowed: false,
    },
    {
      name: 'someone in other groups is no controller',
      request: {
        object: pod(BOTH),
        oldObject: pod(),
        groups: ['system:serviceaccounts', 'system:authenticated'],
      },
      allowed: false,
    },
    {
      name: 'controllers copy annotations',
      request: {
        object: pod(BOTH),
        oldObject: pod(),
        groups: ['system:serviceaccounts:kube-system'],
      },
      allowed: 'skipped',
    },
    {
      name: 'so do they without accounts of their own',
      request: { object: pod(BOTH), oldObject: pod(), username: 'system:kube-controller-manager' },
      allowed: 'skipped',
    },
    {
      name: 'and kubelets',
      request: { object: pod(BOTH), oldObject: pod(), groups: ['system:nodes'] },
      allowed: 'skipped',
    },
  ])('$name', async ({ request, allowed }) => {
    const policy = await policyNamed(documents, 'annotations.countersign.dev')
    expect(await allows(policy, request)).toBe(allowed)
  })

  test.each([
    { name: 'a Deployment of another group', kind: 'Deployment', spec: {}, allowed: true },
    { name: 'something without a spec', kind: 'Widget', spec: undefined, allowed: true },
  ])('$name has no template, and may be updated', async ({ kind, spec, allowed }) => {
    const everything = about(['CREATE'], { apiGroups: ['*'], resources: ['*'] })
    const policy = await policyNamed([{ spec: everything }], 'annotations.countersign.dev')
    const object = { ...pod(BOTH), ...(spec && { spec }) }
    const request = { kind, group: 'example.com', object, oldObject: object }
    expect(await allows(policy, request)).toBe(allowed)
  })

  test.each([
    {
      name: 'a rollback gives a Deployment the annotations of a ReplicaSet',
      image: 'b',
      allowed: 'skipped',
    },
    {
      name: 'an update of a Deployment that leaves its template alone is no rollback',
      image: 'a',
      allowed: false,
    },
  ])('$name', async ({ image, allowed }) => {
    const policy = await policyNamed(documents, 'annotations.countersign.dev')
    const deployment = (name: string, annotations?: Record<string, string>) => ({
      ...pod(annotations),
      spec: { template: { spec: { containers: [{ image: name }] } } },
    })
    const request = {
      kind: 'Deployment',
      group: 'apps',
      object: deployment(image, BOTH),
      oldObject: deployment('a'),
    }
    expect(await allows(policy, request)).toBe(allowed)
  })

  test('updates that conditions leave out are said aloud, since nothing can tell who wrote then', async () => {
    const { objects, notes } = await companion([
      {
        spec: {
          matchConditions: [
            { name: 'new', expression: 'oldObject == null || object.spec != oldObject.spec' },
          ],
        },
      },
    ])
    expect(objects).toEqual([])
    expect(notes.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(
        /^updates that match conditions or object selectors leave out can write/,
      ),
    )
  })

  test('it is about updates that the mutate phase is not called for, outside of the same namespaces, and denies', async () => {
    const { objects } = await companion(documents)
    const [policy, binding] = objects
    expect(policy).toMatchObject({
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          namespaceSelector: OPTIONS.namespaceSelector,
          resourceRules: [
            { apiGroups: [''], operations: ['UPDATE'], resources: ['pods'] },
            { apiGroups: ['apps'], operations: ['UPDATE'] },
            { apiGroups: ['batch'], operations: ['UPDATE'], resources: ['cronjobs'] },
            { apiGroups: ['batch'], operations: ['UPDATE'], resources: ['jobs'] },
          ],
        },
      },
    })
    expect(binding).toMatchObject({
      kind: 'ValidatingAdmissionPolicyBinding',
      spec: { policyName: 'annotations.countersign.dev', validationActions: ['Deny'] },
    })
  })

  test.each<{
    name: string
    asked: Partial<Asked>
    request: Request
    allowed: boolean | 'not asked'
  }>([
    {
      name: 'a Deployment is scaled',
      asked: { ...DEPLOYMENT, subResource: 'scale' },
      request: { kind: 'Scale', object: pod(), oldObject: pod() },
      allowed: 'not asked',
    },
    {
      name: 'a container is added for debugging',
      asked: { subResource: 'ephemeralcontainers' },
      request: { object: pod(BOTH), oldObject: pod(BOTH) },
      allowed: 'not asked',
    },
    {
      name: 'an object is made from one that was exported',
      asked: { operation: 'CREATE' },
      request: { object: pod(BOTH) },
      allowed: 'not asked',
    },
    {
      name: 'an object is deleted',
      asked: { operation: 'DELETE' },
      request: { oldObject: pod(BOTH) },
      allowed: 'not asked',
    },
    {
      name: 'a template has annotations of a Pod that was exported, which count for nothing there',
      asked: DEPLOYMENT,
      request: {
        kind: 'Deployment',
        group: 'apps',
        object: { ...pod(), spec: { template: pod(BOTH) } },
        oldObject: { ...pod(), spec: { template: pod(BOTH) } },
      },
      allowed: true,
    },
    {
      name: 'the template of a CronJob gets them',
      asked: { group: 'batch', resource: 'cronjobs', kind: 'CronJob' },
      request: {
        kind: 'CronJob',
        group: 'batch',
        object: { ...pod(), spec: { jobTemplate: { spec: { template: pod(BOTH) } } } },
        oldObject: { ...pod(), spec: { jobTemplate: { spec: { template: pod() } } } },
      },
      allowed: true,
    },
    {
      name: 'an exported object is applied over itself',
      asked: {},
      request: { object: pod({ ...BOTH, a: 'b' }), oldObject: pod(BOTH) },
      allowed: true,
    },
    {
      name: 'an object that got in while the webhook failed open is changed',
      asked: {},
      request: { object: pod({ a: 'b' }), oldObject: pod() },
      allowed: true,
    },
    {
      name: 'an exported object is applied over one that was made anew',
      asked: {},
      request: { object: pod({ ...BOTH, [SEAL_ANNOTATION]: `${SEAL}y` }), oldObject: pod(BOTH) },
      allowed: false,
    },
    {
      name: 'the same in a namespace that nobody is asked about',
      asked: { namespace: 'kube-system' },
      request: { object: pod({ ...BOTH, [SEAL_ANNOTATION]: `${SEAL}y` }), oldObject: pod(BOTH) },
      allowed: 'not asked',
    },
  ])('$name: $allowed', async ({ asked, request, allowed }) => {
    const policy = await policyNamed(documents, 'annotations.countersign.dev')
    const { resourceRules, matchPolicy, namespaceSelector } = policy.spec.matchConstraints
    const one = { ...POD, ...asked }
    const isAsked =
      selectsNamespace(namespaceSelector, one) &&
      formFor(resourceRules, matchPolicy, one) !== undefined
    expect(isAsked ? await allows(policy, request) : 'not asked').toBe(allowed)
  })

  test('it is about no namespace in which the mutate phase is never called', async () => {
    const gold = { matchLabels: { tier: 'gold' } }
    const { objects } = await companion([
      { name: 'all', spec: about(['CREATE']) },
      {
        name: 'gold',
        spec: {
          matchConstraints: {
            ...about(['CREATE'], { apiGroups: ['example.com'], resources: ['widgets'] })
              .matchConstraints,
            namespaceSelector: gold,
          },
        },
      },
      { name: 'pinned', namespace: 'team-a', spec: about(['CREATE'], { resources: ['events'] }) },
      { name: 'gone', spec: about(['DELETE'], { resources: ['secrets'] }) },
    ])
    const policies = objects.filter((object) => object.kind === 'ValidatingAdmissionPolicy')
    const found = policies.map(({ metadata, spec }) => ({
      name: metadata.name.replace(/[0-9a-f]{8}/, '…'),
      namespaces: spec.matchConstraints.namespaceSelector,
      resources: spec.matchConstraints.resourceRules.flatMap(({ resources }) => resources),
    }))
    const [system] = OPTIONS.namespaceSelector?.matchExpressions ?? []
    const pinned = { key: 'kubernetes.io/metadata.name', operator: 'In', values: ['team-a'] }
    expect(found).toEqual([
      {
        name: 'annotations-….countersign.dev',
        namespaces: { matchExpressions: [pinned, system] },
        resources: ['events'],
      },
      {
        name: 'annotations.countersign.dev',
        namespaces: OPTIONS.namespaceSelector,
        resources: [
          'pods',
          'daemonsets',
          'deployments',
          'replicasets',
          'statefulsets',
          'cronjobs',
          'jobs',
        ],
      },
      {
        name: 'annotations-….countersign.dev',
        namespaces: { ...gold, matchExpressions: [system] },
        resources: ['widgets'],
      },
    ])
    expect(new Set(policies.map(({ metadata }) => metadata.name)).size).toBe(3)
  })

  test.each([
    { name: 'Pods with all that is below them', resources: ['pods/*'], about: ['pods'] },
    { name: 'all there is', resources: ['*/*'], about: ['*'] },
    { name: 'all but what is below', resources: ['*', '*/scale'], about: ['*'] },
  ])(
    '$name is looked at without subresources, which are answered without annotations',
    async (row) => {
      for (const [start, spec] of [
        ['annotations.countersign.dev', {}],
        ['failed-open.', IGNORE],
      ] as const) {
        const policy = await policyNamed(
          [{ spec: { ...about(['CREATE'], { resources: row.resources }), ...spec } }],
          start,
        )
        const { resourceRules } = policy.spec.matchConstraints
        expect(resourceRules.map(({ resources }) => resources)).toEqual([row.about])
      }
    },
  )

  test.each([
    { name: 'the same webhook', documents: [{ spec: about(['CREATE', 'UPDATE']) }] },
    { name: 'every operation', documents: [{ spec: about(['*']) }] },
    {
      name: 'another policy',
      documents: [
        { name: 'a', spec: about(['CREATE'], { resources: ['pods', 'pods/exec'] }) },
        { name: 'b', spec: about(['UPDATE'], { apiGroups: ['*'], resources: ['*'] }) },
      ],
    },
    {
      name: 'another policy about all that is below, which is Pods as well',
      documents: [
        { name: 'a', spec: about(['CREATE']) },
        { name: 'b', spec: about(['UPDATE'], { apiGroups: ['*'], resources: ['*/*'] }) },
      ],
    },
    {
      name: 'another policy about Pods and what is below them',
      documents: [
        { name: 'a', spec: { ...about(['CREATE']), autogen: NO_CONTROLLERS } },
        { name: 'b', spec: about(['UPDATE'], { resources: ['pods/*'] }) },
      ],
    },
    {
      name: 'another policy about the same events in their other group',
      documents: [
        { name: 'a', spec: about(['CREATE'], { resources: ['events'] }) },
        {
          name: 'b',
          spec: about(['UPDATE'], { apiGroups: ['events.k8s.io'], resources: ['events'] }),
        },
      ],
    },
  ])(
    'there is none where updates are covered by $name: the mutate phase replaces what users write',
    async (row) => {
      const { objects, notes } = await companion(row.documents)
      expect(objects).toEqual([])
      expect(notes.map(({ message }) => message)).toEqual([
        expect.stringMatching(/the mutate phase is called for updates of all/),
        expect.stringMatching(/no mutating webhook fails open/),
      ])
    },
  )
})

describe('a policy that shows when the mutate webhook failed open', () => {
  const documents = [{ spec: IGNORE }]

  test.each<{ name: string; object: object; allowed: boolean }>([
    { name: 'outcomes and a seal are what it leaves behind', object: pod(BOTH), allowed: true },
    {
      name: 'outcomes alone are as well, for exempt images',
      object: pod({ [OUTCOMES_ANNOTATION]: '{}' }),
      allowed: true,
    },
    { name: 'nothing means that it did not look', object: pod(), allowed: false },
    {
      name: 'a seal alone is none of ours',
      object: pod({ [SEAL_ANNOTATION]: SEAL }),
      allowed: false,
    },
    {
      name: 'and so is a seal that does not look like one',
      object: pod({ ...BOTH, [SEAL_ANNOTATION]: 'v1.a.b' }),
      allowed: false,
    },
  ])('$name', async ({ object, allowed }) => {
    const policy = await policyNamed(documents, 'failed-open.')
    expect(await allows(policy, { object })).toBe(allowed)
  })

  test('it is asked about what the webhook is called for, warns, and is there for what fails open alone', async () => {
    const { objects, mutating } = await companion([
      ...documents,
      { name: 'closed' },
      {
        name: 'fine',
        spec: {
          ...IGNORE,
          matchConditions: [{ name: 'x', expression: 'object.metadata.name != "a"' }],
          matchConstraints: {
            resourceRules: [
              { ...POD_RULE, resources: ['pods', 'pods/ephemeralcontainers'], operations: ['*'] },
            ],
            matchPolicy: 'Exact',
          },
        },
      },
    ])
    const ignoring = mutating.webhooks.filter(({ failurePolicy }) => failurePolicy === 'Ignore')
    const policies = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
    expect(policies.map(({ metadata }) => metadata.name)).toEqual(
      ignoring.map(({ name }) => `failed-open.${name}`),
    )
    expect(policies.find(({ metadata }) => metadata.name.includes('fine'))).toMatchObject({
      spec: {
        failurePolicy: 'Ignore',
        matchConditions: [{ name: 'x' }],
        matchConstraints: {
          matchPolicy: 'Exact',
          resourceRules: [{ resources: ['pods'], operations: ['CREATE', 'UPDATE'] }],
        },
      },
    })
    expect(objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding')).toEqual(
      ignoring.map(({ name }) =>
        expect.objectContaining({
          spec: { policyName: `failed-open.${name}`, validationActions: ['Warn', 'Audit'] },
        }),
      ),
    )
  })

  test('names are those of manifest-based admission there, and never too long', async () => {
    const { objects } = await companion(
      [{ name: 'x'.repeat(200), spec: { ...IGNORE, webhookConfiguration: { timeoutSeconds: 3 } } }],
      { isStatic: true },
    )
    for (const { metadata } of objects) {
      expect(metadata.name).toMatch(/^failed-open-[0-9a-f]{16}\.countersign\.dev\.static\.k8s\.io$/)
    }
    expect(objects).toHaveLength(2)
  })
})
