import { describe, expect, test } from 'vitest'
import type { LabelSelector } from '#shared/policy/types.ts'
import { mergeSelectors, selectorHash } from '#shared/webhook/selectors.ts'

const inNamespace = (name: string): LabelSelector => ({
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [name] }],
})

describe('selectorHash', () => {
  test.each<[string, LabelSelector | undefined, string]>([
    ['none', undefined, '95cb9b4f84ceff132cc7a875d8c192bf4997016a939ee64141c1fd628c0e8738'],
    [
      'production',
      { matchLabels: { environment: 'production' } },
      'ef2a104e338b69deeb0c6739cec42f99f03f4cdea9e6f7beddad190fb411d765',
    ],
    [
      'staging',
      { matchLabels: { environment: 'staging' } },
      'a59258bb2d018e099897ec9f2b24f6a7752a715db5b2f9a5333510f8dbad53dd',
    ],
    [
      'team-a',
      inNamespace('team-a'),
      '6fe1636dc63517dee4d35306051bb2335d149565e0cb06e096ed52a296f43c80',
    ],
    [
      'team-b',
      inNamespace('team-b'),
      'abd5c9e29b71dabdfe06123eb603bb0d9f50c421bfe428412dc8e78cf8d967d1',
    ],
    ['empty', {}, 'f430e673d93ac3f880c8b552c72b8d1e23c514e35f65d778f856f6f67f1263b8'],
    [
      'empty parts',
      { matchLabels: {}, matchExpressions: [] },
      'f430e673d93ac3f880c8b552c72b8d1e23c514e35f65d778f856f6f67f1263b8',
    ],
  ])('of %s is the one computed from the rule', async (_, namespaceSelector, hash) => {
    expect(await selectorHash({ namespaceSelector, objectSelector: undefined })).toBe(hash)
  })

  test('labels in another order are the same selector', async () => {
    const one = {
      namespaceSelector: { matchLabels: { a: '1', b: '2' } },
      objectSelector: undefined,
    }
    const other = {
      namespaceSelector: { matchLabels: { b: '2', a: '1' } },
      objectSelector: undefined,
    }
    expect(await selectorHash(one)).toBe(await selectorHash(other))
  })
})

describe('mergeSelectors', () => {
  test.each<
    [string, LabelSelector | undefined, LabelSelector | undefined, LabelSelector | undefined]
  >([
    ['nothing and nothing is nothing', undefined, undefined, undefined],
    ['one alone is kept', { matchLabels: { a: '1' } }, undefined, { matchLabels: { a: '1' } }],
    ['empty parts are dropped', { matchLabels: {} }, { matchExpressions: [] }, {}],
    [
      'labels are united and terms follow each other',
      { matchLabels: { b: '1' }, ...inNamespace('x') },
      { matchLabels: { a: '1', b: '1' }, ...inNamespace('y') },
      {
        matchLabels: { a: '1', b: '1' },
        matchExpressions: [
          ...(inNamespace('x').matchExpressions ?? []),
          ...(inNamespace('y').matchExpressions ?? []),
        ],
      },
    ],
    [
      'a contradiction is kept, so that nothing matches',
      { matchLabels: { a: '1' } },
      { matchLabels: { a: '2' } },
      { matchLabels: { a: '2' }, matchExpressions: [{ key: 'a', operator: 'In', values: ['1'] }] },
    ],
  ])('%s', (_, a, b, merged) => {
    expect(mergeSelectors(a, b)).toEqual(merged)
  })
})
