import { describe, expect, test } from 'vitest'
import { load, POD_RULE, policyDocument, said } from './documents.ts'

const NAME = 'kubernetes.io/metadata.name'
const never = (path: string, reason: string) => [
  {
    code: 'POLICY_INVALID',
    path: `spec.${path}`,
    message: `Invalid value: the policy can never match: ${reason}; to switch a policy off, write evaluation.admission.enabled: false`,
  },
]
const constraints = (more: object) => ({ matchConstraints: { resourceRules: [POD_RULE], ...more } })
const term = (key: string, operator: string, ...values: string[]) => ({
  key,
  operator,
  ...(values.length === 0 ? {} : { values }),
})
const objects = (matchLabels: object, ...matchExpressions: object[]) =>
  constraints({ objectSelector: { matchLabels, matchExpressions } })
const namespaces = (...matchExpressions: object[]) => ({ namespaceSelector: { matchExpressions } })

describe('a policy that can never match is a fault', () => {
  const LABEL = never('matchConstraints.objectSelector', 'no value of label "a" is allowed')
  const NAMESPACE = never(
    'matchConstraints.namespaceSelector',
    `no value of label "${NAME}" is allowed`,
  )
  const EXCLUDED = never(
    'matchConstraints.excludeResourceRules',
    'they exclude all that the resource rules name',
  )

  test.each<{ name: string; spec: object; is: object[] }>([
    {
      name: 'a label of two values',
      spec: objects({ a: 'x' }, term('a', 'In', 'y', 'z')),
      is: LABEL,
    },
    {
      name: 'two lists without a common value',
      spec: objects({}, term('a', 'In', 'x'), term('a', 'In', 'y')),
      is: LABEL,
    },
    {
      name: 'a value that is forbidden',
      spec: objects({ a: 'x' }, term('a', 'NotIn', 'x')),
      is: LABEL,
    },
    {
      name: 'a label that is there and is not',
      spec: objects({}, term('a', 'Exists'), term('a', 'DoesNotExist')),
      is: LABEL,
    },
    {
      name: 'a label with a value that is not there',
      spec: objects({ a: 'x' }, term('a', 'DoesNotExist')),
      is: LABEL,
    },
    {
      name: 'a namespace of two names',
      spec: constraints(namespaces(term(NAME, 'In', 'a'), term(NAME, 'NotIn', 'a'))),
      is: NAMESPACE,
    },
    {
      name: 'its own rule excluded',
      spec: constraints({ excludeResourceRules: [POD_RULE] }),
      is: EXCLUDED,
    },
    {
      name: 'everything excluded',
      spec: constraints({
        excludeResourceRules: [
          { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] },
        ],
      }),
      is: EXCLUDED,
    },
    {
      name: 'all of a resource excluded',
      spec: constraints({ excludeResourceRules: [{ ...POD_RULE, resources: ['pods/*'] }] }),
      is: EXCLUDED,
    },
    {
      name: 'Pods outside of namespaces',
      spec: { matchConstraints: { resourceRules: [{ ...POD_RULE, scope: 'Cluster' }] } },
      is: never(
        'matchConstraints.resourceRules[0].scope',
        'these resources belong to namespaces, not to the cluster',
      ),
    },
    {
      name: 'a condition that is false',
      spec: { matchConditions: [{ name: 'off', expression: 'false' }] },
      is: never('matchConditions[0].expression', 'the condition is false for every request'),
    },
    {
      name: 'no image',
      spec: { matchImageReferences: [{ expression: 'false' }] },
      is: never('matchImageReferences', 'the expressions are false for every image'),
    },
  ])('$name', async ({ spec, is }) => {
    const { policies, faults } = await load([policyDocument(spec)])
    expect(policies).toEqual([])
    expect(said(faults)).toEqual(is)
  })

  test('a namespaced policy about another namespace', async () => {
    const document = {
      ...policyDocument(constraints(namespaces(term(NAME, 'In', 'b')))),
      kind: 'NamespacedImageValidatingPolicy',
      metadata: { name: 'a', namespace: 'a' },
    }
    expect(said((await load([document])).faults)).toEqual(NAMESPACE)
  })
})

describe('a policy that matches something is none', () => {
  test.each<{ name: string; spec: object }>([
    { name: 'a label and others forbidden', spec: objects({ a: 'x' }, term('a', 'NotIn', 'y')) },
    {
      name: 'two lists with a common value',
      spec: objects({}, term('a', 'In', 'x', 'y'), term('a', 'In', 'y', 'z')),
    },
    {
      name: 'values forbidden of a label that may be missing',
      spec: objects({}, term('a', 'NotIn', 'x'), term('a', 'DoesNotExist')),
    },
    {
      name: 'objects outside of namespaces, which no selector of namespaces is about',
      spec: {
        matchConstraints: {
          resourceRules: [{ ...POD_RULE, apiGroups: ['shop.test'], resources: ['stores'] }],
          ...namespaces(term(NAME, 'In', 'a'), term(NAME, 'NotIn', 'a')),
        },
      },
    },
    {
      name: 'one operation excluded',
      spec: constraints({ excludeResourceRules: [{ ...POD_RULE, operations: ['UPDATE'] }] }),
    },
    {
      name: 'one name excluded',
      spec: constraints({ excludeResourceRules: [{ ...POD_RULE, resourceNames: ['a'] }] }),
    },
    {
      name: 'a subresource left',
      spec: constraints({ excludeResourceRules: [{ ...POD_RULE, resources: ['pods'] }] }),
    },
    {
      name: 'one of two rules excluded',
      spec: {
        matchConstraints: {
          resourceRules: [
            POD_RULE,
            { ...POD_RULE, apiGroups: ['apps'], resources: ['deployments'] },
          ],
          excludeResourceRules: [POD_RULE],
        },
      },
    },
    {
      name: 'a condition that may be true',
      spec: { matchConditions: [{ name: 'a', expression: 'object.a == false' }] },
    },
    {
      name: 'a glob beside an expression that is false',
      spec: { matchImageReferences: [{ glob: '*' }, { expression: 'false' }] },
    },
  ])('$name', async ({ spec }) => {
    const { policies, faults } = await load([policyDocument(spec)])
    expect(said(faults)).toEqual([])
    expect(policies).toHaveLength(1)
  })
})
