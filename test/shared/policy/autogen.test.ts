import { describe, expect, test } from 'vitest'
import { autogenVariants, rewriteForPods } from '#shared/policy/autogen.ts'
import { policyEnvironment } from '#shared/policy/environment.ts'

const { macros } = policyEnvironment(new Map())

const PODS = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }

function spec(constraints: object = {}, more: object = {}): Record<string, unknown> {
  return {
    matchConstraints: { resourceRules: [PODS], ...constraints },
    attestors: [],
    validations: [{ expression: 'object.spec.hostNetwork != true' }],
    ...more,
  }
}

describe('what an expression about a Pod is for its controllers', () => {
  test.each([
    ['the spec of the Pod', 'object.spec.a', 'object.spec.template.spec.a'],
    ['its metadata', 'object.metadata.labels.a', 'object.spec.template.metadata.labels.a'],
    ['the old object', 'oldObject.spec.a', 'oldObject.spec.template.spec.a'],
    ['the object of the request', 'request.object.spec.a', 'request.object.spec.template.spec.a'],
    ['all of the spec', 'has(object.spec)', 'has(object.spec.template.spec)'],
    ['brackets', 'object["spec"].a', 'object.spec.template.spec.a'],
    ['optional fields', 'object.?spec.a', 'object.?spec.?template.?spec.a'],
    ['white space', 'object .spec.a', 'object.spec.template.spec.a'],
    ['the namespace is the controller’s', 'object.metadata.namespace', 'object.metadata.namespace'],
    [
      'another field that begins like it',
      'object.metadata.namespaceFoo',
      'object.spec.template.metadata.namespaceFoo',
    ],
    ['a field that begins like spec', 'object.specFoo', 'object.specFoo'],
    ['the namespace object', 'namespaceObject.metadata.name', 'namespaceObject.metadata.name'],
    [
      'a text',
      "object.spec.a == 'object.spec.b'",
      "object.spec.template.spec.a == 'object.spec.b'",
    ],
    ['a comment', 'true // object.spec', 'true // object.spec'],
    ['a loop variable', '[1].all(object, object.spec)', '[1].all(object, object.spec)'],
    ['a variable', 'variables.spec.a', 'variables.spec.a'],
    [
      'what is about a controller already',
      'object.spec.template.spec.a || object.spec.jobTemplate.spec.b',
      'object.spec.template.spec.a || object.spec.jobTemplate.spec.b',
    ],
    [
      'Pods and controllers in one',
      "object.kind == 'Pod' ? object.spec.a : object.spec.template.spec.a",
      "object.kind == 'Pod' ? object.spec.template.spec.a : object.spec.template.spec.a",
    ],
    ['what cannot be parsed', 'object.spec.(', 'object.spec.('],
  ])('%s', (_name, source, expected) => {
    const rewritten = rewriteForPods(source, 'defaults', macros)
    expect(rewritten).toBe(expected)
    expect(rewriteForPods(rewritten, 'defaults', macros), 'a second time').toBe(expected)
  })

  test('a CronJob has its Pod deeper down', () => {
    expect(rewriteForPods('has(object.metadata.a) && object.spec.a', 'cronjobs', macros)).toBe(
      'has(object.spec.jobTemplate.spec.template.metadata.a) && object.spec.jobTemplate.spec.template.spec.a',
    )
  })
})

describe('which policies are about controllers as well', () => {
  const all = ['defaults', 'cronjobs']
  const controllers = (...list: string[]) => ({
    autogen: { podControllers: { controllers: list } },
  })

  test.each<[string, Record<string, unknown>, string[]]>([
    ['one rule for Pods', spec(), all],
    ['with a namespace selector', spec({ namespaceSelector: { matchLabels: { a: 'b' } } }), all],
    ['with an empty object selector', spec({ objectSelector: {} }), all],
    ['with an object selector', spec({ objectSelector: { matchLabels: { a: 'b' } } }), []],
    ['with excluded resources', spec({ excludeResourceRules: [PODS] }), []],
    ['with none excluded', spec({ excludeResourceRules: [] }), all],
    ['with two rules', spec({ resourceRules: [PODS, PODS] }), []],
    ['with names', spec({ resourceRules: [{ ...PODS, resourceNames: ['a'] }] }), []],
    ['about subresources', spec({ resourceRules: [{ ...PODS, resources: ['pods/*'] }] }), []],
    ['about more', spec({ resourceRules: [{ ...PODS, resources: ['pods', 'services'] }] }), []],
    ['of any version', spec({ resourceRules: [{ ...PODS, apiVersions: ['*'] }] }), []],
    ['of another group', spec({ resourceRules: [{ ...PODS, apiGroups: ['apps'] }] }), []],
    ['without constraints', { validations: [] }, []],
    ['with no controllers', spec({}, controllers()), []],
    ['with CronJobs only', spec({}, controllers('cronjobs')), ['cronjobs']],
    ['with unknown controllers', spec({}, controllers('all', 'none')), []],
    ['without a list of them', spec({}, { autogen: {} }), all],
  ])('a policy %s', (_name, source, configs) => {
    expect(autogenVariants(source, macros).map(({ config }) => config)).toEqual(configs)
  })

  test('every expression is rewritten, and nothing else is', () => {
    const source = spec(
      { namespaceSelector: { matchLabels: { a: 'b' } }, matchPolicy: 'Exact' },
      {
        matchConditions: [{ name: 'a', expression: 'object.spec.a' }],
        images: [{ name: 'b', expression: '[object.spec.b]' }],
        variables: [{ name: 'c', expression: 'object.spec.c' }],
        auditAnnotations: [{ key: 'd', valueExpression: 'object.spec.d' }],
        validations: [
          {
            expression: 'object.spec.e',
            message: 'object.spec',
            messageExpression: 'object.spec.f',
          },
        ],
        ...controllers('jobs', 'deployments', 'statefulsets'),
      },
    )
    const before = structuredClone(source)
    expect(autogenVariants(source, macros)).toEqual([
      {
        config: 'defaults',
        targets: [
          { group: 'apps', version: 'v1', kind: 'Deployment', resource: 'deployments' },
          { group: 'apps', version: 'v1', kind: 'StatefulSet', resource: 'statefulsets' },
          { group: 'batch', version: 'v1', kind: 'Job', resource: 'jobs' },
        ],
        spec: {
          ...source,
          matchConstraints: {
            namespaceSelector: { matchLabels: { a: 'b' } },
            resourceRules: [
              {
                apiGroups: ['apps'],
                apiVersions: ['v1'],
                operations: ['CREATE'],
                resources: ['deployments', 'statefulsets'],
              },
              {
                apiGroups: ['batch'],
                apiVersions: ['v1'],
                operations: ['CREATE'],
                resources: ['jobs'],
              },
            ],
          },
          matchConditions: [{ name: 'a', expression: 'object.spec.template.spec.a' }],
          images: [{ name: 'b', expression: '[object.spec.template.spec.b]' }],
          variables: [{ name: 'c', expression: 'object.spec.template.spec.c' }],
          auditAnnotations: [{ key: 'd', valueExpression: 'object.spec.template.spec.d' }],
          validations: [
            {
              expression: 'object.spec.template.spec.e',
              message: 'object.spec',
              messageExpression: 'object.spec.template.spec.f',
            },
          ],
        },
      },
    ])
    expect(source, 'the policy itself').toEqual(before)
  })
})
