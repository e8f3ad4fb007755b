import { describe, expect, test } from 'vitest'
import type { LoadOptions } from '#shared/policy/load.ts'
import { load, policyDocument, said } from './documents.ts'

const GROUP = 'policies.kyverno.io'
const ONLY =
  'only ImageValidatingPolicy, NamespacedImageValidatingPolicy and PolicyException of policies.kyverno.io can be loaded'
const ADVICE = '; ignoreOtherKinds: true in the config leaves it out'

async function loaded(about: object, options?: LoadOptions) {
  const { policies, faults, warnings } = await load([{ ...policyDocument(), ...about }], options)
  return { count: policies.length, faults: said(faults), warnings: said(warnings) }
}

describe('an object of a folder', () => {
  test.each([
    { kind: 'ImageValidatingPolicy', version: 'v1' },
    { kind: 'ImageValidatingPolicy', version: 'v1beta1' },
    { kind: 'ImageValidatingPolicy', version: 'v1alpha1' },
    { kind: 'NamespacedImageValidatingPolicy', version: 'v1' },
    { kind: 'NamespacedImageValidatingPolicy', version: 'v1beta1' },
  ])('$kind of $version is loaded', async ({ kind, version }) => {
    const about = { apiVersion: `${GROUP}/${version}`, kind }
    expect(await loaded(about, { defaultNamespace: 'shop' })).toEqual({
      count: 1,
      faults: [],
      warnings: [],
    })
  })

  test.each([
    { kind: 'ImageValidatingPolicy', served: ['v1', 'v1beta1', 'v1alpha1'], version: 'v2' },
    { kind: 'ImageValidatingPolicy', served: ['v1', 'v1beta1', 'v1alpha1'], version: '' },
    { kind: 'NamespacedImageValidatingPolicy', served: ['v1', 'v1beta1'], version: 'v1alpha1' },
    { kind: 'PolicyException', served: ['v1', 'v1beta1', 'v1alpha1'], version: 'v2' },
  ])(
    '$kind of "$version" is not served, whatever is ignored',
    async ({ kind, served, version }) => {
      const apiVersion = version === '' ? GROUP : `${GROUP}/${version}`
      const values = served.map((each) => `"${GROUP}/${each}"`).join(', ')
      expect(await loaded({ apiVersion, kind }, { ignoreOtherKinds: true })).toEqual({
        count: 0,
        warnings: [],
        faults: [
          {
            code: 'POLICY_UNSUPPORTED',
            path: 'apiVersion',
            message: `Unsupported value: "${apiVersion}": supported values: ${values}`,
          },
        ],
      })
    },
  )

  test.each([
    { kind: 'ValidatingPolicy', apiVersion: `${GROUP}/v1` },
    { kind: 'NamespacedValidatingPolicy', apiVersion: `${GROUP}/v1` },
    { kind: 'ImageMutatingPolicy', apiVersion: `${GROUP}/v1` },
    { kind: 'ClusterPolicy', apiVersion: 'kyverno.io/v1' },
    { kind: 'PolicyException', apiVersion: 'kyverno.io/v2' },
    { kind: 'ConfigMap', apiVersion: 'v1' },
    { kind: 'toString', apiVersion: `${GROUP}/v1` },
  ])('$kind of $apiVersion is a fault, or left out with a note', async ({ kind, apiVersion }) => {
    const at = { path: 'kind' }
    const message = `${kind} of ${apiVersion}: ${ONLY}${ADVICE}`
    expect(await loaded({ kind, apiVersion })).toEqual({
      count: 0,
      faults: [{ ...at, code: 'POLICY_UNSUPPORTED', message }],
      warnings: [],
    })
    const note = `${kind} of ${apiVersion} is left out: it is no image policy`
    expect(await loaded({ kind, apiVersion }, { ignoreOtherKinds: true })).toEqual({
      count: 0,
      faults: [],
      warnings: [{ ...at, code: 'POLICY_NOTE', message: note }],
    })
  })

  test.each([
    { kind: 'ImageValidatingPolicy', apiVersion: 'policies.test/v1' },
    { kind: 'ImageValidatingPolicy', apiVersion: 'kyverno.io/v1' },
    { kind: 'imagevalidatingpolicy', apiVersion: `${GROUP}/v1` },
    { kind: 'ImageValidatingPolcy', apiVersion: `${GROUP}/v1` },
    { kind: 'ImageValidationPolicy', apiVersion: `${GROUP}/v1` },
    { kind: 'NamespaceImageValidatingPolicy', apiVersion: `${GROUP}/v1` },
    { kind: 'PolicyExeption', apiVersion: `${GROUP}/v1` },
    { kind: 'PolicyException', apiVersion: 'policies.test/v1' },
  ])('$kind of $apiVersion is a slip and never ignored', async ({ kind, apiVersion }) => {
    expect(await loaded({ kind, apiVersion }, { ignoreOtherKinds: true })).toEqual({
      count: 0,
      faults: [
        { code: 'POLICY_UNSUPPORTED', path: 'kind', message: `${kind} of ${apiVersion}: ${ONLY}` },
      ],
      warnings: [],
    })
  })

  test('without a kind is a fault, whatever is ignored', async () => {
    const { faults } = await loaded({ kind: 7, apiVersion: null }, { ignoreOtherKinds: true })
    expect(faults).toEqual([
      { code: 'POLICY_INVALID', path: 'apiVersion', message: 'Required value' },
      { code: 'POLICY_INVALID', path: 'kind', message: 'Required value' },
    ])
  })
})

describe('a namespaced policy', () => {
  const namespaced = (namespace?: unknown, name = 'sign', spec: object = {}) => ({
    ...policyDocument(spec),
    kind: 'NamespacedImageValidatingPolicy',
    metadata: { name, namespace },
  })
  const MISSING = {
    code: 'POLICY_INVALID',
    path: 'metadata.namespace',
    message: 'Required value: a NamespacedImageValidatingPolicy belongs to a namespace',
  }

  test.each<{ name: string; namespace: unknown; faults: object[] }>([
    { name: 'without a namespace', namespace: undefined, faults: [MISSING] },
    { name: 'with an empty one', namespace: '', faults: [MISSING] },
    {
      name: 'with one that no namespace can have',
      namespace: 'Shop.a',
      faults: [{ ...MISSING, message: 'Invalid value: "Shop.a": must be a DNS-1123 label' }],
    },
    {
      name: 'with one that is no text',
      namespace: 7,
      faults: [{ ...MISSING, message: 'Invalid value: "integer": must be of type string' }],
    },
  ])('$name is refused', async ({ namespace, faults }) => {
    const result = await load([namespaced(namespace)])
    expect(result.policies).toEqual([])
    expect(said(result.faults)).toEqual(faults)
  })

  test('is in the namespace that is given for those that name none', async () => {
    const { policies, faults } = await load([namespaced(), namespaced('a', 'own')], {
      defaultNamespace: 'shop',
    })
    expect(faults).toEqual([])
    expect(policies.map(({ name, namespace }) => ({ name, namespace }))).toEqual([
      { name: 'own', namespace: 'a' },
      { name: 'sign', namespace: 'shop' },
    ])
  })

  test('is another policy than those of its name elsewhere, in the order of keys', async () => {
    const { policies, faults } = await load([
      namespaced('b'),
      policyDocument({}, 'sign'),
      namespaced('a'),
    ])
    expect(faults).toEqual([])
    expect(policies.map(({ kind, namespace }) => [kind, namespace])).toEqual([
      ['NamespacedImageValidatingPolicy', 'a'],
      ['NamespacedImageValidatingPolicy', 'b'],
      ['ImageValidatingPolicy', undefined],
    ])
  })

  test('of one name twice in one namespace is a fault', async () => {
    const { policies, faults } = await load([namespaced('a'), namespaced('a')])
    expect(policies).toHaveLength(1)
    expect(faults.map(({ path, message }) => ({ path, message }))).toEqual([
      {
        path: 'metadata.name',
        message: 'Duplicate value: "a/sign": 1.json:1 and 0.json:1 define the same policy',
      },
    ])
  })

  test('must not make requests of its own, unless the config allows it', async () => {
    const HTTP = {
      code: 'POLICY_INVALID',
      message:
        'Forbidden: http.* is not allowed in namespaced policies; set --allowHTTPInNamespacedPolicies to enable (http.namespacedPolicies: true in the config)',
    }
    const get = (rest: string) => `http.Get("https://a.test").ok == ${rest}`
    const spec = {
      matchConditions: [{ name: 'c', expression: get('true') }],
      images: [{ name: 'i', expression: '[string(http.Get("https://a.test").image)]' }],
      variables: [{ name: 'v', expression: get('true') }],
      matchImageReferences: [{ expression: `${get('ref')}` }],
      validations: [
        { expression: `[1].all(http, http > 0) && "http.Get" != ""` },
        { expression: get('1'), messageExpression: 'string(http.Post("https://a.test", {}))' },
      ],
      auditAnnotations: [{ key: 'a', valueExpression: 'string(http.Get("https://a.test"))' }],
    }
    const { policies, faults } = await load([namespaced('a', 'sign', spec)])
    expect(policies).toEqual([])
    expect(said(faults).sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual(
      [
        'spec.auditAnnotations[0].valueExpression',
        'spec.images[0].expression',
        'spec.matchConditions[0].expression',
        'spec.matchImageReferences[0].expression',
        'spec.validations[1].expression',
        'spec.validations[1].messageExpression',
        'spec.variables[0].expression',
      ].map((path) => ({ ...HTTP, path })),
    )
    const allowed = await load([namespaced('a', 'sign', { variables: spec.variables })], {
      httpInNamespacedPolicies: true,
    })
    expect(said(allowed.faults)).not.toContainEqual(expect.objectContaining(HTTP))
  })
})

describe('a policy about files', () => {
  const json = (spec: object = {}) =>
    policyDocument({ evaluation: { mode: 'JSON' }, matchConstraints: undefined, ...spec })

  test('loads where it can run, without constraints, and stands for no controllers', async () => {
    const { policies, faults } = await load(
      [json({ images: [{ name: 'a', expression: '[object.image]' }] })],
      { jsonMode: true },
    )
    expect(faults).toEqual([])
    expect(policies).toMatchObject([
      { mode: 'JSON', matchConstraints: { resourceRules: [], excludeResourceRules: [] } },
    ])
  })

  test.each(['request.operation == ""', 'oldObject == null', 'variables.a == 1'])(
    'knows no request: %s',
    async (expression) => {
      const { policies, faults } = await load([json({ validations: [{ expression }] })], {
        jsonMode: true,
      })
      expect(policies).toEqual([])
      expect(faults.map(({ code }) => code)).toEqual(['CEL_CHECK'])
    },
  )
})
