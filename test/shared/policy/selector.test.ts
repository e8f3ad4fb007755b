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
  ])('$name', ({ request, is }) => {
    expect(matchesNamespace(notSystem, request)).toBe(is)
  })
})
