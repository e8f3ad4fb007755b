import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { generateWebhooks, ivpolsNeedingMutation } from '#shared/webhook/generate.ts'
import { policySources } from '#shared/webhook/sources.ts'
import type { GeneratedWebhooks, Webhook, WebhookOptions } from '#shared/webhook/types.ts'
import { compiled, POD_RULE, type PolicyText } from './policies.ts'

const OPTIONS: WebhookOptions = {
  target: { kind: 'url', base: 'https://admission.example.com/v1/prod/token' },
}
const UPSTREAM: WebhookOptions = { ...OPTIONS, baseName: 'kyverno.svc' }
const CONDITION = { name: 'yes', expression: 'true' }

async function generate(
  documents: readonly PolicyText[],
  options: Partial<WebhookOptions> = {},
): Promise<GeneratedWebhooks> {
  return generateWebhooks(await compiled(...documents), { ...OPTIONS, ...options })
}

async function generated(
  documents: readonly PolicyText[],
  options: Partial<WebhookOptions> = {},
): Promise<{ mutating: Webhook[]; validating: Webhook[]; notes: readonly { message: string }[] }> {
  const { mutating, validating, faults, notes } = await generate(documents, options)
  expect(faults).toEqual([])
  return { mutating: mutating.webhooks, validating: validating.webhooks, notes }
}

const rulesOf = ({ rules }: Webhook) =>
  rules.map(({ apiGroups, resources }) => `${apiGroups.join()}: ${resources.join()}`)
const ALL_RULES = [
  ': pods',
  'apps: daemonsets,deployments,replicasets,statefulsets',
  'batch: cronjobs',
  'batch: jobs',
]

describe('generateWebhooks', () => {
  test('more webhooks than an API server keeps connections for are told of', async () => {
    const [policy] = await compiled({ spec: { webhookConfiguration: { timeoutSeconds: 7 } } })
    const notesOn = async (count: number) => {
      const policies = Array.from({ length: count }, (_, index) => ({
        ...policy!,
        name: `p${index}`,
      }))
      return (await generateWebhooks(policies, OPTIONS)).notes.map(({ path, message }) => [
        path,
        message.slice(0, message.indexOf(':')),
      ])
    }
    expect(await notesOn(200)).toEqual([])
    const said = '201 webhooks are more than the 200 that an API server keeps connections for'
    expect(await notesOn(201)).toEqual([
      ['MutatingWebhookConfiguration', said],
      ['ValidatingWebhookConfiguration', said],
    ])
  })

  test('names that are the same end in hashes, and so does a policy that is called what such a name is', async () => {
    const spec = { webhookConfiguration: { timeoutSeconds: 7 } }
    const twins = [
      { name: 'b-c', namespace: 'a', spec },
      { name: 'c', namespace: 'a-b', spec },
    ]
    const namesOf = async (documents: readonly PolicyText[]) =>
      (await generated(documents, UPSTREAM)).validating.map(({ name }) => name)
    const names = await namesOf(twins)
    const start = 'nivpol.validate.kyverno.svc-fail-finegrained-a-b-c-'
    for (const name of names) expect(name).toMatch(new RegExp(`^${start}[0-9a-f]{16}$`))
    const [taken = ''] = names
    const third = { name: taken.slice(start.length - 'b-c-'.length), namespace: 'a', spec }
    const all = await namesOf([...twins, third])
    expect(new Set(all).size).toBe(3)
    expect(all).toEqual(expect.arrayContaining(names))
    expect(await namesOf([third, ...twins].toReversed())).toEqual(all)
  })

  test.each([
    { name: 'basic', spec: {} },
    { name: 'fine-grained by a condition', spec: { matchConditions: [CONDITION] } },
    {
      name: 'fine-grained by Exact',
      spec: { matchConstraints: { resourceRules: [POD_RULE], matchPolicy: 'Exact' } },
    },
    {
      name: 'fine-grained by a timeout',
      spec: { webhookConfiguration: { timeoutSeconds: 7 } },
    },
  ])(
    'WHK-01: controllers are covered alike by cluster and namespaced policies: $name',
    async ({ spec }) => {
      const { validating, mutating } = await generated([
        { name: 'c', spec },
        { name: 'n', namespace: 'team-a', spec },
      ])
      expect(validating.map(rulesOf)).toEqual([ALL_RULES, ALL_RULES])
      expect(mutating.map(rulesOf)).toEqual([ALL_RULES, ALL_RULES])
      expect(validating.map(({ clientConfig }) => clientConfig.url).sort()).toEqual([
        'https://admission.example.com/v1/prod/token/ivpol/validate/c',
        'https://admission.example.com/v1/prod/token/nivpol/validate/n',
      ])
    },
  )

  test('WHK-01: with controllers listed only those are added', async () => {
    const spec = {
      matchConditions: [CONDITION],
      autogen: { podControllers: { controllers: ['deployments'] } },
    }
    const { validating } = await generated([{ name: 'n', namespace: 'team-a', spec }])
    expect(validating.map(rulesOf)).toEqual([[': pods', 'apps: deployments']])
  })

  test.each(['countersign.dev', 'kyverno.svc'])(
    'WHK-02: no two webhooks of a configuration have one name, below %s',
    async (baseName) => {
      const fine = { webhookConfiguration: { timeoutSeconds: 3 } }
      const documents = [
        { name: 'c' },
        { name: 'c2', spec: { failurePolicy: 'Ignore' } },
        { name: 'n', namespace: 'team-a' },
        { name: 'n', namespace: 'team-b', spec: { failurePolicy: 'Ignore' } },
        { name: 'f', spec: fine },
        { name: 'f', namespace: 'team-a', spec: fine },
        { name: 'f', namespace: 'team-b', spec: fine },
        // `a` + `b-c` and `a-b` + `c` are one text in upstream's names.
        { name: 'b-c', namespace: 'a', spec: fine },
        { name: 'c', namespace: 'a-b', spec: fine },
      ]
      const { mutating, validating } = await generated(documents, { baseName })
      for (const webhooks of [mutating, validating]) {
        const names = webhooks.map(({ name }) => name)
        expect(new Set(names).size).toBe(9)
        expect(names).toEqual([...names].sort())
      }
    },
  )

  test('WHK-04: a namespaced policy is pinned to its namespace and a cluster policy keeps its selector, both before the global one', async () => {
    const NOT_SYSTEM = {
      key: 'kubernetes.io/metadata.name',
      operator: 'NotIn' as const,
      values: ['kube-system'],
    }
    const spec = {
      matchConstraints: {
        resourceRules: [POD_RULE],
        namespaceSelector: { matchExpressions: [{ key: 'tier', operator: 'In', values: ['b'] }] },
      },
    }
    const { validating } = await generated(
      [
        { name: 'c', spec },
        { name: 'n', namespace: 'team-a', spec },
      ],
      { namespaceSelector: { matchExpressions: [NOT_SYSTEM] } },
    )
    expect(validating.map(({ namespaceSelector }) => namespaceSelector)).toEqual([
      { matchExpressions: [{ key: 'tier', operator: 'In', values: ['b'] }, NOT_SYSTEM] },
      {
        matchExpressions: [
          { key: 'kubernetes.io/metadata.name', operator: 'In', values: ['team-a'] },
          NOT_SYSTEM,
        ],
      },
    ])
  })

  describe('WHK-05: order', () => {
    let policies: CompiledPolicy[]
    beforeAll(async () => {
      const fine = { matchConditions: [CONDITION] }
      policies = await compiled(
        { name: 'b', spec: fine },
        { name: 'a', spec: { ...fine, failurePolicy: 'Ignore' } },
        { name: 'x', namespace: 'team-a', spec: fine },
        { name: 'x', namespace: 'team-b', spec: fine },
        { name: 'z', spec: { webhookConfiguration: { timeoutSeconds: 3 } } },
        { name: 'basic-1' },
        { name: 'basic-2', spec: { failurePolicy: 'Ignore' } },
        {
          name: 'basic-3',
          spec: {
            matchConstraints: {
              resourceRules: [{ ...POD_RULE, operations: ['UPDATE', 'CREATE'] }],
              namespaceSelector: { matchLabels: { environment: 'production' } },
            },
          },
        },
      )
    })

    test('the output is the same to the byte for any order of the policies', async () => {
      for (const options of [OPTIONS, UPSTREAM]) {
        const wanted = JSON.stringify(await generateWebhooks(policies, options))
        await fc.assert(
          fc.asyncProperty(
            fc.shuffledSubarray(policies, { minLength: policies.length }),
            async (shuffled) => {
              expect(JSON.stringify(await generateWebhooks(shuffled, options))).toBe(wanted)
            },
          ),
          { numRuns: 20 },
        )
      }
    })

    test('entries are sorted by name, rules by groups, versions, resources and operations, each once', async () => {
      const { validating } = await generateWebhooks(policies, UPSTREAM)
      expect(validating.webhooks.map(({ name }) => name)).toEqual([
        'ivpol.validate.kyverno.svc-fail-95cb9b4f',
        'ivpol.validate.kyverno.svc-fail-ef2a104e',
        'ivpol.validate.kyverno.svc-fail-finegrained-b',
        'ivpol.validate.kyverno.svc-fail-finegrained-z',
        'ivpol.validate.kyverno.svc-ignore-95cb9b4f',
        'ivpol.validate.kyverno.svc-ignore-finegrained-a',
        'nivpol.validate.kyverno.svc-fail-finegrained-team-a-x',
        'nivpol.validate.kyverno.svc-fail-finegrained-team-b-x',
      ])
      expect(validating.webhooks[0]?.rules[0]).toEqual({ ...POD_RULE, scope: '*' })
    })
  })

  test('WHK-07: namespaceObject stays with the function, by the syntax tree and not by the text', async () => {
    const { validating, notes } = await generated([
      {
        spec: {
          autogen: { podControllers: { controllers: [] } },
          matchConditions: [
            { name: 'ns', expression: "'tier' in namespaceObject.metadata.labels" },
            { name: 'usr', expression: "request.userInfo.username != 'bot'" },
            { name: 'str', expression: "object.metadata.name != 'namespaceObject'" },
            { name: 'opt', expression: 'object.?spec.?hostNetwork.orValue(false) == false' },
          ],
        },
      },
    ])
    expect(validating.map(({ name }) => name)).toEqual(['p.ivpol-fail.validate.countersign.dev'])
    expect(validating[0]?.matchConditions?.map(({ name }) => name)).toEqual([
      'autogen-usr',
      'autogen-str',
      'autogen-opt',
    ])
    expect(notes).toEqual([
      {
        path: 'policy p (0.yaml:1)',
        message:
          'match condition "ns" stays with the function: it reads namespaceObject, which the API server does not give to webhooks: where another condition fails, it refuses also what this one leaves out',
      },
    ])
  })

  test('WHK-08: conditions about controllers are rewritten on the syntax tree', async () => {
    const { validating } = await generated([
      {
        spec: {
          autogen: { podControllers: { controllers: ['cronjobs'] } },
          matchConditions: [
            {
              name: 'x',
              expression:
                "object.metadata.namespace == 'a' && object.metadata.labels['t'] == 'object.spec'",
            },
          ],
        },
      },
    ])
    expect(validating[0]?.matchConditions).toEqual([
      {
        name: 'autogen-x',
        expression:
          "!((object.apiVersion == 'v1' && object.kind =='Pod')) || (object.metadata.namespace == 'a' && object.metadata.labels['t'] == 'object.spec')",
      },
      {
        name: 'autogen-cronjobs-x',
        expression:
          "!((object.apiVersion == 'batch/v1' && object.kind =='CronJob')) || (object.metadata.namespace == 'a' && object.spec.jobTemplate.spec.template.metadata.labels['t'] == 'object.spec')",
      },
    ])
  })

  test.each(['countersign.dev', 'kyverno.svc'])(
    'WHK-10: the mutating webhook repeats its twin and says that it is called again, below %s',
    async (baseName) => {
      const spec = {
        matchConstraints: {
          resourceRules: [POD_RULE],
          matchPolicy: 'Exact',
          namespaceSelector: { matchLabels: { a: 'b' } },
        },
        webhookConfiguration: { timeoutSeconds: 7 },
        matchConditions: [CONDITION],
      }
      const { mutating, validating } = await generated([{ spec }], { baseName })
      const [mutate] = mutating
      const [validate] = validating
      expect(mutate).toEqual({
        ...validate,
        name: mutate?.name,
        clientConfig: mutate?.clientConfig,
        reinvocationPolicy: 'IfNeeded',
      })
      expect(mutate).toMatchObject({ matchPolicy: 'Exact', timeoutSeconds: 7 })
      expect(validate).not.toHaveProperty('reinvocationPolicy')
    },
  )

  describe('the worked examples', () => {
    const PODS = {
      apiGroups: [''],
      apiVersions: ['v1'],
      operations: ['CREATE'],
      resources: ['pods'],
    }
    const spec = { matchConstraints: { resourceRules: [PODS] } }
    const timeout = { ...spec, webhookConfiguration: { timeoutSeconds: 20 } }

    test('a timeout is on both', async () => {
      const { mutating, validating } = await generated([{ spec: timeout }], {
        baseName: 'kyverno.svc',
      })
      expect([mutating[0]?.timeoutSeconds, validating[0]?.timeoutSeconds]).toEqual([20, 20])
      expect(mutating[0]?.name).toBe('ivpol.mutate.kyverno.svc-fail-finegrained-p')
    })

    test('basic stands before fine-grained', async () => {
      const documents = [
        { name: 'fine', spec: timeout },
        { name: 'basic', spec },
      ]
      const { validating } = await generated(documents, { baseName: 'kyverno.svc' })
      expect(validating.map(({ name }) => name)).toEqual([
        'ivpol.validate.kyverno.svc-fail',
        'ivpol.validate.kyverno.svc-fail-finegrained-fine',
      ])
    })

    test('subresources beside Pods are one rule, as they are listed', async () => {
      const resources = ['pods', 'pods/ephemeralcontainers']
      const rule = { ...PODS, operations: ['CREATE', 'UPDATE'], resources }
      const { validating } = await generated([
        { spec: { matchConstraints: { resourceRules: [rule] } } },
      ])
      expect(validating[0]?.rules).toEqual([{ ...rule, scope: '*' }])
    })
  })

  test.each([
    {
      name: 'everything',
      rule: { apiGroups: ['*'], resources: ['*'] },
      bound: ['*: * (Namespaced)', ': namespaces (*)'],
    },
    {
      name: 'what is in no namespace',
      rule: { resources: ['nodes'] },
      bound: [': nodes (Namespaced)'],
    },
    { name: 'namespaces', rule: { resources: ['namespaces'] }, bound: [': namespaces (*)'] },
    {
      name: 'all subresources',
      rule: { apiGroups: ['*'], resources: ['*/*'] },
      bound: ['*: */* (Namespaced)', ': namespaces/* (*)'],
    },
    {
      name: 'namespaces and nodes',
      rule: { resources: ['nodes', 'namespaces', 'namespaces/status'] },
      bound: [': nodes (Namespaced)', ': namespaces,namespaces/status (*)'],
    },
    {
      name: 'everything of another group',
      rule: { apiGroups: ['example.com'], resources: ['*'] },
      bound: ['example.com: * (Namespaced)'],
    },
    { name: 'Pods', rule: {}, bound: [': pods (*)'] },
    {
      name: 'what is in no namespace, by scope',
      rule: { apiGroups: ['*'], resources: ['*'], scope: 'Cluster' },
      bound: [': namespaces (Cluster)'],
    },
  ])(
    'a namespaced policy about $name has nothing outside of namespaces wait for it but its own Namespace',
    async ({ rule, bound }) => {
      const spec = {
        matchConstraints: { resourceRules: [{ ...POD_RULE, ...rule }] },
        autogen: { podControllers: { controllers: [] } },
      }
      const { validating } = await generated([{ spec }, { name: 'q', namespace: 'team-a', spec }])
      const texts = validating.map(({ rules }) =>
        rules.map(
          ({ apiGroups, resources, scope }) =>
            `${apiGroups.join()}: ${resources.join()} (${scope})`,
        ),
      )
      expect(texts[0]).toHaveLength(1)
      expect(texts[1]?.sort()).toEqual(bound.sort())
    },
  )

  const constraint = (changes: object, rule: object = {}) => ({
    resourceRules: [{ ...POD_RULE, ...rule }],
    ...changes,
  })
  test.each([
    {
      name: 'a namespace selector',
      constraints: constraint({ namespaceSelector: { matchLabels: { e: 'p' } } }),
      autogen: true,
    },
    {
      name: 'an empty object selector',
      constraints: constraint({ objectSelector: {} }),
      autogen: true,
    },
    {
      name: 'an object selector',
      constraints: constraint({ objectSelector: { matchLabels: { a: 'b' } } }),
      autogen: false,
    },
    {
      name: 'ephemeral containers beside pods',
      constraints: constraint({}, { resources: ['pods', 'pods/ephemeralcontainers'] }),
      autogen: false,
    },
    {
      name: 'two rules',
      constraints: { resourceRules: [POD_RULE, { ...POD_RULE, operations: ['DELETE'] }] },
      autogen: false,
    },
    { name: 'names', constraints: constraint({}, { resourceNames: ['x'] }), autogen: false },
    {
      name: 'excluded rules',
      constraints: constraint({ excludeResourceRules: [{ ...POD_RULE, resourceNames: ['x'] }] }),
      autogen: false,
    },
    { name: 'every version', constraints: constraint({}, { apiVersions: ['*'] }), autogen: false },
  ])('WHK-11: controllers with $name: $autogen', async ({ constraints, autogen }) => {
    const { validating } = await generated([{ spec: { matchConstraints: constraints } }])
    expect(validating[0]?.rules.some(({ apiGroups }) => apiGroups.includes('apps'))).toBe(autogen)
  })

  const widgets = (changes: object = {}) => ({
    matchConstraints: {
      resourceRules: [
        { ...POD_RULE, apiGroups: ['example.com'], resources: ['widgets'], ...changes },
      ],
    },
  })
  test.each([
    {
      name: 'versions of one resource',
      a: widgets(),
      b: widgets({ apiVersions: ['v2'] }),
      shared: false,
    },
    {
      name: 'one version and all',
      a: widgets(),
      b: widgets({ apiVersions: ['*'] }),
      shared: false,
    },
    {
      name: 'groups of one resource',
      a: widgets({ apiGroups: [''], resources: ['events'] }),
      b: widgets({ apiGroups: ['events.k8s.io'], resources: ['events'] }),
      shared: false,
    },
    { name: 'the same version', a: widgets(), b: widgets(), shared: true },
    {
      name: 'other operations',
      a: widgets({ operations: ['CREATE'] }),
      b: widgets({ operations: ['DELETE'], apiVersions: ['v2'] }),
      shared: true,
    },
    {
      name: 'other resources',
      a: widgets(),
      b: widgets({ apiVersions: ['v2'], resources: ['gadgets'] }),
      shared: true,
    },
    {
      name: 'Pods beside everything',
      a: {},
      b: widgets({ apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }),
      shared: true,
    },
  ])(
    'policies that want $name are in one webhook only where neither keeps the API server from converting for the other: $shared',
    async ({ a, b, shared }) => {
      const { validating, mutating } = await generated([
        { name: 'a', spec: a },
        { name: 'b', spec: b },
      ])
      for (const webhooks of [validating, mutating]) {
        expect(webhooks.length === 1).toBe(shared)
        const paths = webhooks.map(({ clientConfig }) => clientConfig.url?.split('ate/')[1])
        expect(paths.flatMap((path) => path?.split('/') ?? []).sort()).toEqual(['a', 'b'])
      }
    },
  )

  test('those that want the same version share a webhook, whoever else there is', async () => {
    const named = (names: string[], spec: Record<string, unknown>) =>
      names.map((name) => ({ name, spec }))
    const documents = [
      ...named(['a', 'd'], widgets()),
      ...named(['b', 'c'], widgets({ apiVersions: ['v2'] })),
      ...named(['everything'], widgets({ apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] })),
    ]
    const paths = ({ validating }: { validating: Webhook[] }) =>
      validating.map(({ clientConfig }) => clientConfig.url?.split('/validate/')[1]).sort()
    const all = await generated(documents)
    expect(paths(all)).toEqual(['a/d', 'b/c', 'everything'])
    const names = ({ validating }: { validating: Webhook[] }) => validating.map(({ name }) => name)
    const more = await generated([...documents, { name: 'z', spec: widgets() }])
    expect(names(more)).toEqual(names(all))
  })

  test('a group with both failure policies has two webhooks that each call their own policies', async () => {
    const { validating, mutating } = await generated(
      [{ name: 'a' }, { name: 'b', spec: { failurePolicy: 'Ignore' } }, { name: 'c' }],
      { baseName: 'kyverno.svc' },
    )
    expect(
      validating.map(({ name, failurePolicy, clientConfig }) => [
        name,
        failurePolicy,
        clientConfig.url,
      ]),
    ).toEqual([
      [
        'ivpol.validate.kyverno.svc-fail',
        'Fail',
        'https://admission.example.com/v1/prod/token/ivpol/validate/a/c',
      ],
      [
        'ivpol.validate.kyverno.svc-ignore',
        'Ignore',
        'https://admission.example.com/v1/prod/token/ivpol/validate/b',
      ],
    ])
    expect(mutating).toHaveLength(2)
  })

  test.each([
    { onMissing: 'verify' as const, paths: ['a'] },
    // Whatever mutate is not called for has no seal, and validate would deny all of it.
    { onMissing: 'deny' as const, paths: ['a/b'] },
  ])(
    'policies that pin nothing are called in the mutate phase where validate takes nothing but seals: $onMissing',
    async ({ onMissing, paths }) => {
      const { mutating } = await generated(
        [{ name: 'a' }, { name: 'b', spec: { validationConfigurations: { mutateDigest: false } } }],
        { onMissing },
      )
      const found = mutating.map(({ clientConfig }) => clientConfig.url?.split('/mutate/')[1])
      expect(found).toEqual(paths)
    },
  )

  test('only policies that have digests pinned are called in the mutate phase', async () => {
    const policies = await compiled(
      { name: 'a' },
      { name: 'b', spec: { validationConfigurations: { mutateDigest: false } } },
    )
    expect(ivpolsNeedingMutation(policySources(policies).sources).map(({ key }) => key)).toEqual([
      'a',
    ])
    const { mutating, validating } = await generateWebhooks(policies, OPTIONS)
    expect(mutating.webhooks[0]?.clientConfig.url).toMatch(/\/ivpol\/mutate\/a$/)
    expect(validating.webhooks[0]?.clientConfig.url).toMatch(/\/ivpol\/validate\/a\/b$/)
  })

  test('a forced Ignore wins over policies, and the bootstrap condition is on what fails closed only', async () => {
    const documents = [{ name: 'a' }, { name: 'b', spec: { failurePolicy: 'Ignore' } }]
    const forced = await generated(documents, { forceIgnore: true, baseName: 'kyverno.svc' })
    expect(forced.mutating.map(({ name, failurePolicy }) => [name, failurePolicy])).toEqual([
      ['ivpol.mutate.kyverno.svc-ignore', 'Ignore'],
    ])
    const started = await generated(documents, { excludeBootstrap: true })
    expect(
      started.validating.map(({ matchConditions }) => matchConditions?.map(({ name }) => name)),
    ).toEqual([['exclude-bootstrap-resources'], undefined])
  })

  test.each([
    { timeouts: {}, mutate: 10, validate: 10 },
    { timeouts: { mutateSeconds: 12, validateSeconds: 5 }, mutate: 12, validate: 5 },
    { timeouts: { mutateSeconds: 120, validateSeconds: 0 }, mutate: 30, validate: 1 },
  ])(
    'timeouts are those of the cluster, 1 to 30: $timeouts',
    async ({ timeouts, mutate, validate }) => {
      const { mutating, validating } = await generated([{}], { timeouts })
      expect([mutating[0]?.timeoutSeconds, validating[0]?.timeoutSeconds]).toEqual([
        mutate,
        validate,
      ])
    },
  )

  test('a Service is called at its path, and a Service of Kyverno at the path alone', async () => {
    const target = { kind: 'service' as const, namespace: 'kyverno', name: 'kyverno-svc' }
    const { validating } = await generated([{ name: 'a' }], {
      target,
      caBundle: btoa('-----BEGIN CERTIFICATE-----'),
    })
    expect(validating[0]?.clientConfig).toEqual({
      service: { namespace: 'kyverno', name: 'kyverno-svc', path: '/ivpol/validate/a', port: 443 },
      caBundle: btoa('-----BEGIN CERTIFICATE-----'),
    })
  })

  describe('match conditions', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ name: `c${index}`, expression: 'true' }))

    test.each([
      { name: 'as many as fit after autogen', options: {}, kept: 21, left: 1 },
      {
        name: 'one place less with the bootstrap condition',
        options: { excludeBootstrap: true },
        kept: 21,
        left: 1,
      },
    ])('$name', async ({ options, kept, left }) => {
      const { validating, notes } = await generated(
        [{ spec: { matchConditions: many(22) } }],
        options,
      )
      const names = validating[0]?.matchConditions?.map(({ name }) => name) ?? []
      expect(names.filter((name) => /^autogen-c\d+$/.test(name))).toHaveLength(kept)
      expect(names.length).toBeLessThanOrEqual(64)
      expect(notes).toHaveLength(left)
    })

    test('64 without controllers are all of them', async () => {
      const spec = {
        matchConditions: many(64),
        matchConstraints: {
          resourceRules: [{ ...POD_RULE, resources: ['pods', 'pods/ephemeralcontainers'] }],
        },
      }
      const { validating, notes } = await generated([{ spec }])
      expect(validating[0]?.matchConditions).toHaveLength(64)
      expect(notes).toEqual([])
    })

    test.each([
      {
        name: 'a function of Kyverno',
        expression: "image('a').registry() == 'b'",
        reason: /not known to the API server/,
      },
      {
        name: 'a function newer than the oldest Kubernetes',
        expression: "isSemver('1.2.3')",
        reason: /not known to the API server/,
      },
      {
        name: 'a function of the oldest Kubernetes that the one before it has not',
        expression: "isIP('10.0.0.1')",
        reason: /not known to the API server/,
      },
      {
        name: 'a function that came with the version of the cluster, whose API server stores it one version later',
        expression: "isSemver('1.2.3')",
        reason: /not known to the API server/,
        minor: 33,
      },
    ])('$name keeps all conditions with the function', async ({ expression, reason, minor }) => {
      const spec = { matchConditions: [{ name: 'x', expression }, CONDITION] }
      const { validating, notes } = await generated(
        [{ spec }],
        minor === undefined ? {} : { minor },
      )
      expect(validating[0]?.name).toBe('ivpol-fail-95cb9b4f.validate.countersign.dev')
      expect(validating[0]).not.toHaveProperty('matchConditions')
      expect(notes.map(({ message }) => message)).toEqual([expect.stringMatching(reason)])
    })

    test('a function that the version before that of the cluster knows is offloaded', async () => {
      const spec = { matchConditions: [{ name: 'x', expression: "isSemver('1.2.3')" }] }
      const { validating, notes } = await generated([{ spec }], { minor: 34 })
      expect(validating[0]?.matchConditions).toHaveLength(3)
      expect(notes).toEqual([])
    })

    test.each([
      { name: 'a name that gets too long', names: ['x'.repeat(60)], left: 1 },
      { name: 'names that get the same', names: ['x', 'cronjobs-x'], left: 1 },
      {
        name: 'the name of the bootstrap condition',
        names: ['exclude-bootstrap-resources'],
        spec: {
          autogen: { podControllers: { controllers: [] } },
          matchConstraints: constraint({ objectSelector: { matchLabels: { a: 'b' } } }),
        },
        left: 1,
      },
    ])('$name stays with the function', async ({ names, spec: more, left }) => {
      const spec = { ...more, matchConditions: names.map((name) => ({ name, expression: 'true' })) }
      const { notes } = await generated([{ spec }], { excludeBootstrap: true })
      expect(notes).toHaveLength(left)
    })

    test.each([
      { name: 'one that may fail', expression: "object.metadata.labels.tier == 'a'", kept: 0 },
      {
        name: 'one that may fail, of a policy that fails open',
        expression: "object.metadata.labels.tier == 'a'",
        more: { failurePolicy: 'Ignore' },
        kept: 3,
      },
      {
        name: 'a member that is left out where it is empty',
        expression: "request.name != 'a'",
        kept: 0,
      },
      { name: 'an index', expression: "request.userInfo.groups[0] != 'a'", kept: 0 },
      { name: 'a pattern', expression: "request.userInfo.username.matches('a')", kept: 0 },
      {
        name: 'one that never fails',
        expression:
          "request.userInfo.username != 'bot' && !(request.kind.kind in ['A', 'B']) || has(request.name) || request.operation.startsWith('C')",
        kept: 3,
      },
    ])(
      'beside one that stays, $name: $kept are conditions of the webhook',
      async ({ expression, more, kept }) => {
        const other = { name: 'x'.repeat(60), expression: "object.metadata.name != 'a'" }
        const spec = { ...more, matchConditions: [other, { name: 'y', expression }] }
        const { validating } = await generated([{ spec }])
        expect(validating[0]?.matchConditions?.length ?? 0).toBe(kept)
      },
    )

    test.each([
      {
        name: 'request.resource, where versions are converted',
        document: {
          spec: {
            ...widgets(),
            matchConditions: [{ name: 'x', expression: "request.resource.version == 'v1'" }],
          },
        },
        kept: false,
      },
      {
        name: 'request.resource of Exact',
        document: {
          spec: {
            matchConstraints: { ...widgets().matchConstraints, matchPolicy: 'Exact' },
            matchConditions: [{ name: 'x', expression: "request.resource.version == 'v1'" }],
          },
        },
        kept: true,
      },
      {
        name: 'request.resource of what there is in one version',
        document: {
          spec: {
            matchConditions: [{ name: 'x', expression: "request.resource.resource == 'pods'" }],
          },
        },
        kept: true,
      },
      {
        name: 'request.kind, which is converted in both places',
        document: {
          spec: {
            ...widgets(),
            matchConditions: [{ name: 'x', expression: "request.kind.version == 'v1'" }],
          },
        },
        kept: true,
      },
      {
        name: 'what excludeResourceRules leave out, of a policy that fails closed',
        document: {
          spec: {
            matchConstraints: {
              ...constraint({ excludeResourceRules: [{ ...POD_RULE, resourceNames: ['x'] }] }),
            },
            matchConditions: [{ name: 'x', expression: "object.metadata.labels.tier == 'a'" }],
          },
        },
        kept: false,
      },
      {
        name: 'other names than resourceNames',
        document: {
          spec: {
            matchConstraints: constraint({}, { resourceNames: ['x'] }),
            matchConditions: [{ name: 'x', expression: "object.metadata.labels.tier == 'a'" }],
          },
        },
        kept: false,
      },
      {
        name: 'other names than resourceNames, of a policy that fails open',
        document: {
          spec: {
            failurePolicy: 'Ignore',
            matchConstraints: constraint({}, { resourceNames: ['x'] }),
            matchConditions: [{ name: 'x', expression: "object.metadata.labels.tier == 'a'" }],
          },
        },
        kept: true,
      },
      {
        name: 'what a policy that fails closed only reports',
        document: {
          spec: {
            validationActions: ['Audit', 'Warn'],
            matchConditions: [{ name: 'x', expression: "object.metadata.labels.tier == 'a'" }],
          },
        },
        kept: false,
      },
      {
        name: 'what the selector of a namespaced policy leaves out',
        document: {
          namespace: 'team-a',
          spec: {
            matchConstraints: constraint({ namespaceSelector: { matchLabels: { e: 'p' } } }),
            matchConditions: [{ name: 'x', expression: "object.metadata.labels.tier == 'a'" }],
          },
        },
        kept: false,
      },
    ])('a condition about $name is one of the webhook: $kept', async ({ document, kept }) => {
      const { validating, notes } = await generated([document])
      expect(validating[0]?.matchConditions === undefined).toBe(!kept)
      expect(notes).toHaveLength(kept ? 0 : 1)
      expect(validating[0]?.name).toContain('p.')
    })

    test.each([['DELETE'], ['*']])(
      'a policy about %s asks for the kind of the request, since there is no object',
      async (operation) => {
        const spec = {
          autogen: { podControllers: { controllers: [] } },
          matchConstraints: { resourceRules: [{ ...POD_RULE, operations: [operation] }] },
          matchConditions: [CONDITION],
        }
        const { validating } = await generated([{ spec }])
        expect(validating[0]?.matchConditions?.[0]?.expression).toBe(
          "!((request.kind.group == '' && request.kind.version == 'v1' && request.kind.kind == 'Pod')) || (true)",
        )
      },
    )
  })

  describe('what is refused', () => {
    test('two policies of one name', async () => {
      const policies = [...(await compiled({ name: 'a' })), ...(await compiled({ name: 'a' }))]
      const { faults } = await generateWebhooks(policies, OPTIONS)
      expect(faults).toEqual([
        {
          path: 'policy a',
          message:
            'two policies have this name (0.yaml:1): a webhook would call both by it; rename one',
        },
      ])
    })

    test('a namespaced policy that is about nothing but what is in no namespace', async () => {
      const rule = { ...POD_RULE, resources: ['nodes'], scope: 'Cluster' }
      const spec = { matchConstraints: { resourceRules: [rule] } }
      const { faults } = await generate([{ name: 'n', namespace: 'team-a', spec }])
      expect(faults).toEqual([
        {
          path: 'policy team-a/n (0.yaml:1)',
          message:
            'its rules are about nothing that is in a namespace, so that the policy would never be enforced: write it as an ImageValidatingPolicy',
        },
      ])
    })

    test.each([
      {
        name: 'labels that contradict those of the cluster',
        document: {
          spec: {
            matchConstraints: {
              resourceRules: [POD_RULE],
              objectSelector: { matchLabels: { a: '1' } },
            },
          },
        },
        options: { objectSelector: { matchLabels: { a: '2' } } },
        message: /^objectSelector: no value of label "a" is allowed/,
      },
      {
        name: 'a policy in a namespace that the cluster leaves out',
        document: { namespace: 'kube-system' },
        options: {
          namespaceSelector: {
            matchExpressions: [
              {
                key: 'kubernetes.io/metadata.name',
                operator: 'NotIn' as const,
                values: ['kube-system'],
              },
            ],
          },
        },
        message: /^namespaceSelector: no value of label "kubernetes.io\/metadata.name" is allowed/,
      },
    ])('$name', async ({ document, options, message }) => {
      const { faults, validating } = await generate([document], options)
      expect(faults.map((fault) => fault.message)).toEqual([expect.stringMatching(message)])
      // Never widened: what is there matches nothing.
      expect(validating.webhooks).toHaveLength(1)
    })

    test('a URL that the API server or a gateway would refuse, in each webhook, without its text', async () => {
      const target = {
        kind: 'url' as const,
        base: 'http://user@admission.example.com/?token=secret',
      }
      const { faults } = await generate([{}], { target })
      expect(faults.map(({ path }) => path)).toEqual([
        ...Array(3).fill('MutatingWebhookConfiguration webhooks[0].clientConfig.url'),
        ...Array(3).fill('ValidatingWebhookConfiguration webhooks[0].clientConfig.url'),
      ])
      expect(JSON.stringify(faults)).not.toContain('secret')
      const names = Array.from({ length: 50 }, (_, index) => ({
        name: `${'x'.repeat(200)}-${index}`,
      }))
      const long = await generate(names)
      expect(long.faults.map(({ message }) => message)).toEqual([
        expect.stringMatching(/has 10\d+ characters/),
        expect.stringMatching(/has 10\d+ characters/),
      ])
    })
  })
})
