import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Node } from '#shared/cel/ast.ts'
import { parseOnly } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { print } from '#shared/cel/print.ts'
import { short } from '#test/shared/cel/short.ts'

const environment = createEnvironment({ profile: 'spec', variables: {} })

function tree(source: string): Node {
  const result = parseOnly(source, environment)
  if (!result.ok) throw new Error(`${source}: ${result.issues[0]?.message}`)
  return result.ast
}

describe('a tree as source', () => {
  test.each([
    ['brackets only where they are needed', '((a + b) * c) - (d)', '(a + b) * c - d'],
    ['brackets on the right of equals', 'a - (b - c)', 'a - (b - c)'],
    ['and of relations', 'a == (b == c)', 'a == (b == c)'],
    ['chains without brackets', '(a && b) && c', 'a && b && c'],
    ['chains that were not chains', 'a && (b && c)', 'a && (b && c)'],
    ['or within and', '(a || b) && c', '(a || b) && c'],
    [
      'conditionals in conditionals',
      '(a ? b : c) ? d : (e ? f : g)',
      '(a ? b : c) ? d : e ? f : g',
    ],
    ['a negated sum', '!(a == b)', '!(a == b)'],
    ['twice negated', '!(!a)', '!(!a)'],
    ['a negated number', '-(1)', '-(1)'],
    ['a negated negative number', '-(-1)', '-(-1)'],
    ['a number selected from', '(1).b', '(1).b'],
    ['a conditional selected from', '(a ? b : c).d', '(a ? b : c).d'],
    ['macros', 'a.all(x,has(x.b)).exists(i,v,v>i)', 'a.all(x, has(x.b)).exists(i, v, v > i)'],
    ['all spellings of one macro as one', 'a.existsOne(x, x)', 'a.exists_one(x, x)'],
    ['a filter that is a map', 'a.map(x, x > 1, x)', 'a.filter(x, x > 1)'],
    ['optional macros', 'a.?b.optMap(x, x).optFlatMap(y, y)', 'a.?b.optMap(x, x).optFlatMap(y, y)'],
    ['bindings', 'cel.bind(x, 1, x + x)', 'cel.bind(x, 1, x + x)'],
    ['sorting', 'a.sortBy(x, -x)', 'a.sortBy(x, -x)'],
    [
      'variadic macros',
      'math.greatest(1, 2, 3) + math.bitOr(1, 2, 3)',
      'math.greatest([1, 2, 3]) + math.bitOr(1, 2, 3)',
    ],
    ['fields that need quotes', 'a.`b-c`.?`in`', 'a.`b-c`.?`in`'],
    ['messages', 'a.B{c: 1, ?d: e}', 'a.B{c: 1, ?d: e}'],
    [
      'strings with what must be escaped',
      String.raw`'\'"\\\n\u0000ä😀'`,
      String.raw`"'\"\\\u000a\u0000ä😀"`,
    ],
    ['bytes', String.raw`b'a"\xff'`, String.raw`b"a\x22\xff"`],
    ['doubles', '[1.0, 1e100, -0.0, 0.1]', '[1.0, 1e+100, -0.0, 0.1]'],
    ['uints', '1u', '1u'],
  ])('%s', (_, source, printed) => {
    expect(print(tree(source))).toBe(printed)
    expect(short(tree(printed))).toBe(short(tree(source)))
  })

  test('a fold no macro makes has no source', () => {
    const fold = tree('a.all(x, x)')
    expect(() => print({ ...fold, accuVar: 'other' } as Node)).toThrow(TypeError)
  })
})

/** Expressions by the grammar, every node kind among them. */
const { expression } = fc.letrec<{ expression: string; name: string }>((tie) => {
  const e = tie('expression')
  const pair = fc.tuple(e, e)
  const infix = fc.constantFrom('+', '-', '*', '/', '%', '==', '!=', '<', '>=', 'in', '&&', '||')
  const loop = fc.constantFrom('all', 'exists', 'exists_one', 'map', 'filter')
  const pairLoop = fc.constantFrom(
    'all',
    'exists',
    'transformList',
    'transformMap',
    'transformMapEntry',
  )
  return {
    name: fc.constantFrom('a', 'b', '_c1', 'object', '.d'),
    expression: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      tie('name'),
      fc.constantFrom('1', '-1', '2u', '1.5', '-0.5', 'true', 'null', "'s'", "b'\\x00'", '""'),
      fc
        .string({ maxLength: 4 })
        .map((text) => JSON.stringify(text).replace(/\\u00(..)/g, '\\x$1')),
      fc.tuple(e, infix, e).map(([a, op, b]) => `${a} ${op} ${b}`),
      e.map((a) => `(${a})`),
      e.map((a) => `!(${a})`),
      e.map((a) => `-(${a})`),
      fc.tuple(e, e, e).map(([a, b, c]) => `(${a}) ? (${b}) : ${c}`),
      e.map((a) => `(${a}).f`),
      e.map((a) => `(${a}).?\`g-h\``),
      e.map((a) => `has((${a}).f)`),
      pair.map(([a, b]) => `(${a})[${b}]`),
      pair.map(([a, b]) => `(${a})[?${b}]`),
      pair.map(([a, b]) => `f(${a}, ${b})`),
      pair.map(([a, b]) => `(${a}).g(${b})`),
      pair.map(([a, b]) => `[${a}, ?${b}]`),
      pair.map(([a, b]) => `{${a}: ${b}, ?'k': a}`),
      pair.map(([a, b]) => `x.T{f: ${a}, ?\`in\`: ${b}}`),
      fc.tuple(e, loop, e).map(([a, macro, b]) => `(${a}).${macro}(x, ${b})`),
      fc.tuple(e, pairLoop, e).map(([a, macro, b]) => `(${a}).${macro}(x, y, ${b})`),
      fc.tuple(e, e, e).map(([a, b, c]) => `(${a}).map(x, ${b}, ${c})`),
      pair.map(([a, b]) => `(a.?b).optMap(x, ${a}).optFlatMap(y, ${b})`),
      pair.map(([a, b]) => `cel.bind(x, ${a}, ${b})`),
      e.map((a) => `math.greatest(a, ${a.length}, 2)`),
    ),
  }
})

test('what is printed parses to the same tree', () => {
  fc.assert(
    fc.property(expression, (source) => {
      const result = parseOnly(source, environment)
      fc.pre(result.ok)
      if (result.ok) expect(short(tree(print(result.ast)))).toBe(short(result.ast))
    }),
    { numRuns: 1000 },
  )
})
