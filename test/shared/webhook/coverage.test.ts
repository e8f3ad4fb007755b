import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import { matchesConstraints } from '#shared/policy/match.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { generateWebhooks } from '#shared/webhook/generate.ts'
import type { Webhook, WebhookOptions } from '#shared/webhook/types.ts'
import { compiled, type PolicyText } from './policies.ts'

const OPTIONS: WebhookOptions = {
  target: { kind: 'url', base: 'https://admission.example.com/v1/prod/token' },
  namespaceSelector: {
    matchExpressions: [
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
    ],
  },
}

const NAMESPACES = ['team-a', 'team-b', 'kube-system']
const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE'] as const
const RESOURCES = [
  { group: '', resource: 'pods' },
  { group: '', resource: 'pods', subResource: 'ephemeralcontainers' },
  { group: 'apps', resource: 'deployments' },
  { group: 'batch', resource: 'cronjobs' },
]
const LABELS = [{}, { tier: 'gold' }, { tier: 'lead' }]

/** Every request there is in a small cluster. */
const REQUESTS: readonly AdmissionRequest[] = RESOURCES.flatMap(
  ({ group, resource, subResource }) =>
    OPERATIONS.flatMap((operation) =>
      NAMESPACES.flatMap((namespace) =>
        LABELS.map((labels) => {
          const object = { metadata: { name: 'x', labels } }
          const request = {
            uid: 'u',
            resource: { group, version: 'v1', resource },
            ...(subResource && { subResource }),
            operation,
            namespace,
            name: 'x',
            object: operation === 'DELETE' ? null : object,
            oldObject: operation === 'CREATE' ? null : object,
          }
          // What matching looks at, and no more.
          return request as unknown as AdmissionRequest
        }),
      ),
    ),
)

const rule = fc.record({
  apiGroups: fc.constantFrom([''], ['apps'], ['*'], ['', 'batch']),
  apiVersions: fc.constantFrom(['v1'], ['*']),
  operations: fc.constantFrom(['CREATE'], ['UPDATE', 'CREATE'], ['*']),
  resources: fc.constantFrom(
    ['pods'],
    ['pods'],
    ['pods', 'pods/ephemeralcontainers'],
    ['*'],
    ['*/*'],
    ['deployments', 'cronjobs'],
  ),
})
const selector = fc.constantFrom(undefined, {}, { matchLabels: { tier: 'gold' } })
const spec = fc.record({
  failurePolicy: fc.constantFrom('Fail', 'Ignore'),
  matchConstraints: fc.record({
    resourceRules: fc.array(rule, { minLength: 1, maxLength: 2 }),
    objectSelector: selector,
    matchPolicy: fc.constantFrom(undefined, 'Exact', 'Equivalent'),
  }),
  webhookConfiguration: fc.constantFrom(undefined, { timeoutSeconds: 3 }),
})
const policies = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    namespace: fc.constantFrom(undefined, 'team-a', 'team-b'),
    spec,
  }),
  { minLength: 1, maxLength: 5, selector: ({ name, namespace }) => `${namespace}/${name}` },
)

/** The API server calls it: its rules and selectors are those of the engine's matching. */
function isCalled(
  { rules, namespaceSelector, objectSelector }: Webhook,
  request: AdmissionRequest,
): boolean {
  const constraints = {
    resourceRules: rules,
    excludeResourceRules: [],
    namespaceSelector,
    objectSelector,
  }
  return matchesConstraints(constraints, request)
}

function calls({ clientConfig }: Webhook, { name, namespace }: CompiledPolicy): boolean {
  const [, route, names = ''] = /\/(n?ivpol)\/validate\/(.*)$/.exec(clientConfig.url ?? '') ?? []
  return (route === 'nivpol') === (namespace !== undefined) && names.split('/').includes(name)
}

function isAbout(policy: CompiledPolicy, request: AdmissionRequest): boolean {
  return (
    request.namespace !== 'kube-system' &&
    (policy.namespace === undefined || policy.namespace === request.namespace) &&
    matchesConstraints(policy.matchConstraints, request)
  )
}

describe('the webhooks of any set of policies', () => {
  test('a policy is called for whatever it is about, once, and never in a namespace that is left out', async () => {
    await fc.assert(
      fc.asyncProperty(policies, async (documents) => {
        // Absent members are absent in JSON, too.
        const read = await compiled(...(JSON.parse(JSON.stringify(documents)) as PolicyText[]))
        const { validating, faults } = await generateWebhooks(read, OPTIONS)
        expect(faults).toEqual([])
        for (const request of REQUESTS) {
          const called = validating.webhooks.filter((webhook) => isCalled(webhook, request))
          for (const policy of read) {
            const times = called.filter(
              (webhook) =>
                calls(webhook, policy) &&
                (policy.namespace ?? request.namespace) === request.namespace,
            ).length
            expect(times).toBeLessThanOrEqual(1)
            if (isAbout(policy, request)) expect(times).toBe(1)
          }
          if (request.namespace === 'kube-system') expect(called).toEqual([])
        }
      }),
      { numRuns: 40 },
    )
  })
})
