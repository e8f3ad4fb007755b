import { describe, expect, test } from 'vitest'
import { matchesLabels, matchesNamespace, matchesObject } from '#shared/policy/selector.ts'
import type { LabelSelector } from '#shared/policy/types.ts'
import { pod, review, withMetadata } from './review.ts'

type Term = NonNullable<LabelSelector['matchExpressions']>[number]

describe('matchesLabels', () => {
  const labels = { app: 'web', tier: '' }

  test.each<{ name: string; terms: Term[]; is: boolean }>([
    {
      name: 'In finds its value',
      terms: [{ key: 'app', operator: 'In', values: ['db', 'web'] }],
      is: true,
    },
    {
      name: 'In misses another value',
      terms: [{ key: 'app', operator: 'In', values: ['db'] }],
      is: false,
    },
    {
      name: 'In misses an absent label',
      terms: [{ key: 'x', operator: 'In', values: [''] }],
      is: false,
    },
    {
      name: 'NotIn misses a listed value',
      terms: [{ key: 'app', operator: 'NotIn', values: ['web'] }],
      is: false,
    },
    {
      name: 'NotIn takes another value',
      terms: [{ key: 'app', operator: 'NotIn', values: ['db'] }],
      is: true,
    },
    {
      name: 'NotIn takes an absent label',
      terms: [{ key: 'x', operator: 'NotIn', values: ['a'] }],
      is: true,
    },
    { name: 'Exists finds an empty label', terms: [{ key: 'tier', operator: 'Exists' }], is: true },
    { name: 'Exists misses an absent label', terms: [{ key: 'x', operator: 'Exists' }], is: false },
    {
      name: 'DoesNotExist takes an absent label',
      terms: [{ key: 'x', operator: 'DoesNotExist' }],
      is: true,
    },
    {
      name: 'DoesNotExist misses a present label',
      terms: [{ key: 'app', operator: 'DoesNotExist' }],
      is: false,
    },
    {
      name: 'an inherited name is not a label',
      terms: [{ key: 'toString', operator: 'Exists' }],
      is: false,
    },
    {
      name: 'all terms must hold',
      terms: [
        { key: 'app', operator: 'Exists' },
        { key: 'x', operator: 'Exists' },
      ],
      is: false,
    },
  ])('$name', ({ terms, is }) => {
    expect(matchesLabels({ matchExpressions: terms }, labels)).toBe(is)
  })

  test.each([
    { name: 'no terms match everything', selector: {}, is: true },
    { name: 'a label must be equal', selector: { matchLabels: { app: 'db' } }, is: false },
    {
      name: 'an empty label is not an absent one',
      selector: { matchLabels: { x: '' } },
      is: false,
    },
    {
      name: 'labels and expressions are both asked',
      selector: {
        matchLabels: { app: 'web' },
        matchExpressions: [{ key: 'app', operator: 'DoesNotExist' as const }],
      },
      is: false,
    },
  ])('$name', ({ selector, is }) => {
    expect(matchesLabels(selector, labels)).toBe(is)
  })
})

describe('matchesObject', () => {
  const web: LabelSelector = { matchLabels: { app: 'web' } }
  const other = withMetadata(pod('a'), { labels: { app: 'db' } })

  test.each([
    { name: 'the new object matches', selector: web, request: review(), is: true },
    {
      name: 'only the old object matches',
      selector: web,
      request: review({ object: other, oldObject: pod('a') }),
      is: true,
    },
    {
      name: 'neither matches',
      selector: web,
      request: review({ object: other, oldObject: other }),
      is: false,
    },
    {
      name: 'a deleted object is the old one',
      selector: web,
      request: review({ object: null, oldObject: pod('a') }),
      is: true,
    },
    { name: 'no object at all', selector: web, request: review({ object: null }), is: false },
    {
      name: 'an object without labels and NotIn',
      selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] },
      request: review({ object: withMetadata(pod('a'), {}) }),
      is: true,
    },
    {
      name: 'an object without metadata and NotIn',
      selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] },
      request: review({ object: { kind: 'PodExecOptions' } }),
      is: false,
    },
    {
      name: 'labels that are not strings count as none',
      selector: web,
      request: review({ object: withMetadata(pod('a'), { labels: { app: 'web', n: 1 } }) }),
      is: false,
    },
    {
      name: 'an empty selector takes an object without metadata',
      selector: {},
      request: review({ object: { kind: 'PodExecOptions' } }),
      is: true,
    },
    {
      name: 'an absent selector takes everything',
      selector: undefined,
      request: review({ object: null }),
      is: true,
    },
  ] satisfies {
    name: string
    selector: LabelSelector | undefined
    request: ReturnType<typeof review>
    is: boolean
  }[])('$name', ({ selector, request, is }) => {
    expect(matchesObject(selector, request)).toBe(is)
  })
})

describe('matchesNamespace', () => {
  const notSystem: LabelSelector = {
    matchExpressions: [
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
    ],
  }
  const namespaces = { group: '', version: 'v1', resource: 'namespaces' }
  const forged = {
    kind: 'Namespace',
    metadata: { name: 'shop', labels: { 'kubernetes.io/metadata.name': 'kube-system' } },
  }

  test.each([
    { name: 'another namespace', request: review({ namespace: 'shop' }), is: true },
    { name: 'the excluded namespace', request: review({ namespace: 'kube-system' }), is: false },
    {
      name: 'an object outside namespaces always matches',
      request: review({ namespace: '' }),
      is: true,
    },
    {
      name: 'a Namespace is matched by its name',
      request: review({ resource: namespaces, name: 'kube-system', namespace: 'kube-system' }),
      is: false,
    },
    {
      name: 'a Namespace is matched by its name where the request names no namespace',
      request: review({ resource: namespaces, name: 'kube-system', namespace: '' }),
      is: false,
    },
    {
      name: 'a label on a Namespace cannot change its name',
      request: review({ resource: namespaces, name: 'shop', namespace: 'shop', object: forged }),
      is: true,
    },
    {
      name: 'a Namespace without any object is matched by its name',
      request: review({ resource: namespaces, name: 'kube-system', object: null, oldObject: null }),
      is: false,
    },
  ])('$name', ({ request, is }) => {
    expect(matchesNamespace(notSystem, request)).toBe(is)
  })

  const prod: LabelSelector = { matchLabels: { env: 'prod' } }
  const prodShop: LabelSelector = {
    matchLabels: { env: 'prod', 'kubernetes.io/metadata.name': 'shop' },
  }
  const labelled = (labels: object) => ({ kind: 'Namespace', metadata: { name: 'shop', labels } })
  const about = (changes: object) => review({ resource: namespaces, name: 'shop', ...changes })

  test.each<
    [
      string,
      LabelSelector,
      ReturnType<typeof review>,
      Record<string, string> | undefined,
      boolean | undefined,
    ]
  >([
    [
      'labels that nobody gave do not decide',
      prod,
      review({ namespace: 'shop' }),
      undefined,
      undefined,
    ],
    [
      'nor does a name that would match',
      prodShop,
      review({ namespace: 'shop' }),
      undefined,
      undefined,
    ],
    [
      'a name that does not match decides',
      prodShop,
      review({ namespace: 'blog' }),
      undefined,
      false,
    ],
    ['labels that match', prod, review({ namespace: 'shop' }), { env: 'prod' }, true],
    ['labels that do not', prod, review({ namespace: 'shop' }), { env: 'dev' }, false],
    ['a namespace without labels', prod, review({ namespace: 'shop' }), {}, false],
    [
      'labels cannot change the name',
      notSystem,
      review({ namespace: 'kube-system' }),
      { 'kubernetes.io/metadata.name': 'shop' },
      false,
    ],
    ['outside namespaces labels do not count', prod, review({ namespace: '' }), undefined, true],
    [
      'a Namespace has its labels with it',
      prod,
      about({ object: labelled({ env: 'prod' }) }),
      undefined,
      true,
    ],
    [
      'those it will have',
      prod,
      about({ object: labelled({}), oldObject: labelled({ env: 'prod' }) }),
      { env: 'prod' },
      false,
    ],
    [
      'those it had when it goes',
      prod,
      about({ object: null, oldObject: labelled({ env: 'prod' }) }),
      undefined,
      true,
    ],
    [
      'also where a client sends an empty object',
      prod,
      about({ object: {}, oldObject: labelled({ env: 'prod' }) }),
      undefined,
      true,
    ],
    [
      'a Namespace of which the review tells nothing',
      prod,
      about({ object: null, oldObject: null }),
      undefined,
      undefined,
    ],
  ])('%s', (_, selector, request, labels, is) => {
    expect(matchesNamespace(selector, request, labels)).toBe(is)
  })
})
