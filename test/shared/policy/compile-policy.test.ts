import { describe, expect, test } from 'vitest'
import { autogenStatus } from '#shared/policy/autogen-status.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { keyAttestor, load, policyDocument, said } from './documents.ts'

const PODS = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }
const podPolicy = (spec: object = {}) =>
  policyDocument({ matchConstraints: { resourceRules: [PODS] }, ...spec })
const controllers = (...list: string[]) => ({ autogen: { podControllers: { controllers: list } } })

describe('a policy about Pods stands for their controllers as well', () => {
  test.each([
    { expression: '(object != null ? object : oldObject).spec.x == 1', told: 'object' },
    { expression: 'dyn(oldObject).spec.x == 1', told: 'oldObject' },
    { expression: '[object].all(o, o.spec.x == 1)', told: 'object' },
    { expression: 'request.object == request.oldObject', told: 'request.object' },
    { expression: 'object == oldObject', told: 'object' },
    { expression: 'object != null && null != oldObject && object.spec.x == 1', told: undefined },
    { expression: '[object.spec].all(object, object == 1)', told: undefined },
    { expression: "object['spec'].x == 1 && request.object.spec.x == 1", told: undefined },
    { expression: 'request.object != null && has(request.object.spec)', told: undefined },
    { expression: 'request.operation == "CREATE"', told: undefined },
  ])('$expression: what is not rewritten for them is noted', async ({ expression, told }) => {
    const { warnings, faults } = await load([podPolicy({ validations: [{ expression }] })])
    expect(said(faults)).toEqual([])
    const notes = said(warnings).filter(({ path }) => path === 'spec.validations[0].expression')
    expect(notes.map(({ message }) => message)).toEqual(
      told === undefined
        ? []
        : [
            `${told} is used as a whole: for Pod controllers that is the controller and not its Pod, so what is taken from it is not what this says of Pods`,
          ],
    )
    const alone = [podPolicy({ validations: [{ expression }], ...controllers() })]
    expect(said((await load(alone)).warnings)).not.toContainEqual(notes[0])
  })

  test('as policies of the same key, each with its own rules, expressions and hash', async () => {
    const { policies, faults } = await load([
      podPolicy({
        matchConditions: [{ name: 'a', expression: 'has(object.metadata.labels)' }],
        validations: [{ expression: 'object.spec.x == 1', message: 'object.spec is wrong' }],
      }),
    ])
    expect(said(faults)).toEqual([])
    expect(
      policies.map(({ name, autogen, matchConstraints, matchConditions, validations }) => ({
        name,
        autogen,
        resources: matchConstraints.resourceRules.map(({ apiGroups, resources }) => [
          ...apiGroups,
          ...resources,
        ]),
        condition: matchConditions[0]?.expression.source,
        validation: validations[0]?.expression.source,
        message: validations[0]?.message,
      })),
    ).toEqual([
      {
        name: 'must-sign',
        autogen: undefined,
        resources: [['', 'pods']],
        condition: 'has(object.metadata.labels)',
        validation: 'object.spec.x == 1',
        message: 'object.spec is wrong',
      },
      {
        name: 'must-sign',
        autogen: 'defaults',
        resources: [
          ['apps', 'daemonsets', 'deployments', 'replicasets', 'statefulsets'],
          ['batch', 'jobs'],
        ],
        condition: 'has(object.spec.template.metadata.labels)',
        validation: 'object.spec.template.spec.x == 1',
        message: 'object.spec is wrong',
      },
      {
        name: 'must-sign',
        autogen: 'cronjobs',
        resources: [['batch', 'cronjobs']],
        condition: 'has(object.spec.jobTemplate.spec.template.metadata.labels)',
        validation: 'object.spec.jobTemplate.spec.template.spec.x == 1',
        message: 'object.spec is wrong',
      },
    ])
    expect(new Set(policies.map(({ hash }) => hash)).size).toBe(3)
  })

  test.each<{ name: string; spec: object; variants: (string | undefined)[] }>([
    { name: 'all of them when nothing is said', spec: {}, variants: ['defaults', 'cronjobs'] },
    { name: 'none of an empty list', spec: controllers(), variants: [] },
    { name: 'those of a list', spec: controllers('cronjobs'), variants: ['cronjobs'] },
    { name: 'none of a list without any', spec: controllers('none'), variants: [] },
  ])('$name', async ({ spec, variants }) => {
    const { policies } = await load([podPolicy(spec)])
    expect(policies.map(({ autogen }) => autogen)).toEqual([undefined, ...variants])
  })

  test('in a namespaced policy too', async () => {
    const { policies } = await load([
      {
        ...podPolicy(controllers('jobs')),
        kind: 'NamespacedImageValidatingPolicy',
        metadata: { name: 'a', namespace: 'shop' },
      },
    ])
    expect(policies.map(({ kind, namespace, autogen }) => [kind, namespace, autogen])).toEqual([
      ['NamespacedImageValidatingPolicy', 'shop', undefined],
      ['NamespacedImageValidatingPolicy', 'shop', 'defaults'],
    ])
  })

  test('not when it is switched off at admission', async () => {
    const { policies } = await load([podPolicy({ evaluation: { admission: { enabled: false } } })])
    expect(policies).toEqual([])
  })

  test('keys of attestors are told once, not for each variant', async () => {
    const attestors = [keyAttestor('release', { data: 'no key' })]
    const { faults } = await load([podPolicy({ attestors })])
    expect(faults).toHaveLength(1)
  })

  test('what does not compile for a controller is told where it was written', async () => {
    // A term of this many selections is as deep as an expression may be; the way to the Pod makes it deeper.
    const depth = await deepest()
    const text = JSON.stringify(
      podPolicy({ ...controllers('jobs', 'cronjobs'), ...selecting(depth) }),
    )
    const { policies, faults } = await loadPolicies([{ name: 'a.json', text }])
    expect(policies).toEqual([])
    expect(
      faults.map(({ path, line, column, message }) => ({ path, line, column, message })),
    ).toEqual(
      ['jobs', 'cronjobs'].map((names) => ({
        path: 'spec.validations[0].expression',
        line: 1,
        column: text.indexOf('"object.spec.x') + 1,
        message: expect.stringMatching(
          new RegExp(`^for ${names}, where it is "object\\.spec\\..*template\\.spec\\.x\\.`),
        ),
      })),
    )
  })

  const selecting = (depth: number) => ({
    validations: [{ expression: `object.spec${'.x'.repeat(depth)} == 1` }],
  })

  /** The most selections that compile for Pods. */
  async function deepest(): Promise<number> {
    let [right, wrong] = [1, 2000]
    while (wrong - right > 1) {
      const middle = Math.floor((right + wrong) / 2)
      const { faults } = await load([podPolicy({ ...controllers(), ...selecting(middle) })])
      if (faults.length === 0) right = middle
      else wrong = middle
    }
    return right
  }
})

describe('status.autogen', () => {
  const { spec } = podPolicy()

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a document without a spec', { kind: 'ImageValidatingPolicy' }],
    ['a policy that is about more than Pods', policyDocument()],
    ['an empty list', podPolicy(controllers())],
    ['a spec that is none', { spec: ['a'] }],
  ])('%s gives nothing', (_name, document) => {
    expect(autogenStatus(document)).toEqual({})
  })

  test('is the spec with the defaults of the API server, about the controllers that are listed', () => {
    const document = podPolicy({
      ...controllers('cronjobs', 'deployments'),
      validationConfigurations: { required: false, verifyDigest: null },
      evaluation: { admission: {}, background: { enabled: false } },
      credentials: { providers: ['amazon'] },
      webhookConfiguration: { timeoutSeconds: 20 },
    })
    const common = {
      ...document.spec,
      validationConfigurations: { mutateDigest: true, verifyDigest: true, required: false },
      evaluation: { admission: { enabled: true }, background: { enabled: false } },
      credentials: { providers: ['amazon'], allowInsecureRegistry: false },
    }
    const about = (group: string, resource: string) => ({
      resourceRules: [
        { apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE'], resources: [resource] },
      ],
    })
    const before = structuredClone(document)
    expect(autogenStatus(document)).toEqual({
      configs: {
        defaults: {
          targets: [{ group: 'apps', version: 'v1', kind: 'Deployment', resource: 'deployments' }],
          spec: { ...common, matchConstraints: about('apps', 'deployments') },
        },
        cronjobs: {
          targets: [{ group: 'batch', version: 'v1', kind: 'CronJob', resource: 'cronjobs' }],
          spec: { ...common, matchConstraints: about('batch', 'cronjobs') },
        },
      },
    })
    expect(document).toEqual(before)
  })

  test('has the defaults when nothing is said', () => {
    const { configs } = autogenStatus({ spec })
    expect(configs?.cronjobs?.spec).toMatchObject({
      validationConfigurations: { mutateDigest: true, verifyDigest: true, required: true },
    })
    expect(Object.keys(configs?.cronjobs?.spec ?? {})).not.toContain('credentials')
  })
})
