import { describe, expect, test } from 'vitest'
import { parseOnly } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { chainsOf, rewritePrefix } from '#shared/cel/ranges.ts'

const environment = createEnvironment({ profile: 'spec', variables: {} })

function tree(source: string) {
  const result = parseOnly(source, environment)
  if (!result.ok) throw new Error(result.issues[0]?.message)
  return result.ast
}

describe('chains rooted at object', () => {
  test.each([
    ['object', ['object']],
    ['object.a.b == object.c', ['object.a.b', 'object.c']],
    ["object['a'].b[0].c", ["object['a'].b[0].c"]],
    ['object.?a[?"b"].c', ['object.?a[?"b"].c']],
    ['object.a.all(x, x.b == object.c)', ['object.a', 'object.c']],
    ['object.a[object.b].c', ['object.a[object.b].c', 'object.b']],
    ['has(object.a.b)', ['object.a.b']],
    ['has( ( object.a ).`b-c` /2)'.replace(' /2', ' '), ['( object.a ).`b-c`']],
    ['object.a.size() + f(object.b)', ['object.a', 'object.b']],
    ['object.?a.optMap(x, x + object.b)', ['object.?a', 'object.b']],
    ['oldObject.a + other.object.b', []],
    ['[1].all(object, object.a > 1)', []],
    ['[1].all(i, object, object.a > 1)', []],
    ['object.a.map(object, object.b)', ['object.a']],
    ['cel.bind(object, object.a, object.b)', ['object.a']],
    ['cel.bind(x, object.a, object.b)', ['object.a', 'object.b']],
    ['{object.a: [object.b, T{f: object.c}]}', ['object.a', 'object.b', 'object.c']],
  ])('%s', (source, texts) => {
    const chains = chainsOf(tree(source), 'object')
    expect(chains.map(({ pos }) => source.slice(...pos))).toEqual(texts)
  })

  test('each step has its key and how it was written', () => {
    const source = 'object.a[?"b"][0][x].?c'
    const [chain] = chainsOf(tree(source), 'object')
    expect(chain?.steps.map((s) => [s.key, s.optional, s.index, source.slice(...s.pos)])).toEqual([
      ['a', false, false, 'object.a'],
      ['b', true, true, 'object.a[?"b"]'],
      ['0', false, true, 'object.a[?"b"][0]'],
      [undefined, false, true, 'object.a[?"b"][0][x]'],
      ['c', true, false, 'object.a[?"b"][0][x].?c'],
    ])
  })

  test('what has() asks about is marked', () => {
    const source = 'has(object.a) && object.b'
    expect(chainsOf(tree(source), 'object').map(({ test }) => test)).toEqual([true, false])
  })
})

describe('rewriting object.spec to object.spec.template.spec', () => {
  const from = ['object', 'spec'] as const
  const to = ['object', 'spec', 'template', 'spec'] as const

  test.each([
    ['object.spec.a', 'object.spec.template.spec.a'],
    ['object.spec == object.metadata', 'object.spec.template.spec == object.metadata'],
    ['object.specs.a', 'object.specs.a'],
    ['has(object.spec)', 'has(object.spec.template.spec)'],
    [
      'has(object.spec.a) || object . spec . b // why',
      'has(object.spec.template.spec.a) || object.spec.template.spec . b // why',
    ],
    ["object['spec'].a", 'object.spec.template.spec.a'],
    ['object.?spec.?a', 'object.?spec.?template.?spec.?a'],
    ['object.spec.?a', 'object.spec.template.spec.?a'],
    ['object[?"spec"].a', 'object.?spec.?template.?spec.a'],
    ['object.spec[object.spec.a]', 'object.spec.template.spec[object.spec.template.spec.a]'],
    [
      'object.spec.a.all(c, object.spec.b == c.spec)',
      'object.spec.template.spec.a.all(c, object.spec.template.spec.b == c.spec)',
    ],
    ['[object].all(object, object.spec.a)', '[object].all(object, object.spec.a)'],
    ['object.?spec.optMap(s, s.a)', 'object.?spec.?template.?spec.optMap(s, s.a)'],
    ["'object.spec' + object.spec.a", "'object.spec' + object.spec.template.spec.a"],
    ['(object).spec.a', 'object.spec.template.spec.a'],
    ['has((object).spec)', 'has(object.spec.template.spec)'],
    ['has((object.spec).a)', 'has((object.spec.template.spec).a)'],
    ['((object.spec)).a', '((object.spec.template.spec)).a'],
  ])('%s', (source, expected) => {
    expect(rewritePrefix(source, tree(source), from, to)).toBe(expected)
  })

  test('a whole variable can become another', () => {
    const source = 'object.a == object || has(object.b)'
    expect(rewritePrefix(source, tree(source), ['object'], ['params', 'a-b'])).toBe(
      'params.`a-b`.a == params.`a-b` || has(params.`a-b`.b)',
    )
  })
})
