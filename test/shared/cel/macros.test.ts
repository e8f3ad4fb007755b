import { describe, expect, test } from 'vitest'
import { compile, parseOnly } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { short } from '#test/shared/cel/short.ts'

const spec = createEnvironment({ profile: 'spec', variables: { a: 'dyn', b: 'dyn' } })

function expanded(source: string): string {
  const result = parseOnly(source, spec)
  return result.ok ? short(result.ast) : `${result.issues[0]?.message}`
}

const R = '@result'

describe('each macro becomes the fold cel-go makes of it', () => {
  test.each([
    ['has(a.b.c)', 'has(a.b.c)'],
    ['a.all(x, x)', `fold(x of a; ${R} = true; @not_strictly_false(${R}); _&&_(${R}, x); ${R})`],
    [
      'a.exists(x, x)',
      `fold(x of a; ${R} = false; @not_strictly_false(!_(${R})); _||_(${R}, x); ${R})`,
    ],
    [
      'a.exists_one(x, x)',
      `fold(x of a; ${R} = 0; true; _?_:_(x, _+_(${R}, 1), ${R}); _==_(${R}, 1))`,
    ],
    [
      'a.existsOne(x, x)',
      `fold(x of a; ${R} = 0; true; _?_:_(x, _+_(${R}, 1), ${R}); _==_(${R}, 1))`,
    ],
    ['a.map(x, x + 1)', `fold(x of a; ${R} = []; true; _+_(${R}, [_+_(x, 1)]); ${R})`],
    [
      'a.map(x, x > 1, x)',
      `fold(x of a; ${R} = []; true; _?_:_(_>_(x, 1), _+_(${R}, [x]), ${R}); ${R})`,
    ],
    [
      'a.filter(x, x > 1)',
      `fold(x of a; ${R} = []; true; _?_:_(_>_(x, 1), _+_(${R}, [x]), ${R}); ${R})`,
    ],
    [
      'a.optMap(x, x + 1)',
      '_?_:_(hasValue(a; ), optional.of(fold(#unused of []; x = value(a; ); false; x; _+_(x, 1))), optional.none())',
    ],
    [
      'a.optFlatMap(x, x)',
      '_?_:_(hasValue(a; ), fold(#unused of []; x = value(a; ); false; x; x), optional.none())',
    ],
    ['cel.bind(x, a, x + x)', 'fold(#unused of []; x = a; false; x; _+_(x, x))'],
    [
      'a.all(i, x, x)',
      `fold(i, x of a; ${R} = true; @not_strictly_false(${R}); _&&_(${R}, x); ${R})`,
    ],
    [
      'a.exists(i, x, x)',
      `fold(i, x of a; ${R} = false; @not_strictly_false(!_(${R})); _||_(${R}, x); ${R})`,
    ],
    [
      'a.existsOne(i, x, x)',
      `fold(i, x of a; ${R} = 0; true; _?_:_(x, _+_(${R}, 1), ${R}); _==_(${R}, 1))`,
    ],
    [
      'a.transformList(i, x, i + x)',
      `fold(i, x of a; ${R} = []; true; _+_(${R}, [_+_(i, x)]); ${R})`,
    ],
    [
      'a.transformList(i, x, x > 1, i)',
      `fold(i, x of a; ${R} = []; true; _?_:_(_>_(x, 1), _+_(${R}, [i]), ${R}); ${R})`,
    ],
    [
      'a.transformMap(k, v, v + 1)',
      `fold(k, v of a; ${R} = {}; true; cel.@mapInsert(${R}, k, _+_(v, 1)); ${R})`,
    ],
    [
      'a.transformMap(k, v, v > 1, v)',
      `fold(k, v of a; ${R} = {}; true; _?_:_(_>_(v, 1), cel.@mapInsert(${R}, k, v), ${R}); ${R})`,
    ],
    [
      'a.transformMapEntry(k, v, {v: k})',
      `fold(k, v of a; ${R} = {}; true; cel.@mapInsert(${R}, {v: k}); ${R})`,
    ],
    [
      'a.transformMapEntry(k, v, b, {v: k})',
      `fold(k, v of a; ${R} = {}; true; _?_:_(b, cel.@mapInsert(${R}, {v: k}), ${R}); ${R})`,
    ],
    [
      'a.sortBy(x, x.b)',
      `fold(#unused of []; @__sortBy_input__ = a; false; @__sortBy_input__; @sortByAssociatedKeys(@__sortBy_input__; fold(x of @__sortBy_input__; ${R} = []; true; _+_(${R}, [x.b]); ${R})))`,
    ],
    ['math.greatest(a)', 'math.@max(a)'],
    ['math.greatest(a, 1)', 'math.@max(a, 1)'],
    ['math.least(a, 1, 2.0)', 'math.@min([a, 1, 2])'],
    ['math.least([1, 2])', 'math.@min([1, 2])'],
    ['math.bitOr(a)', 'math.@bitOr([a])'],
    ['math.bitAnd(a, 1)', 'math.@bitAnd(a, 1)'],
    ['math.bitXor(a, 1, 2)', 'math.@bitXor([a, 1, 2])'],
  ])('%s', (source, tree) => {
    expect(expanded(source)).toBe(tree)
  })
})

describe('what only looks like a macro stays a call', () => {
  test.each([
    ['all(a, b)', 'all(a, b)'],
    ['a.all(b)', 'all(a; b)'],
    ['a.has(b.c)', 'has(a; b.c)'],
    ['has(a.b, c)', 'has(a.b, c)'],
    ['a.bind(x, 1, x)', 'bind(a; x, 1, x)'],
    ['a.greatest(1, 2)', 'greatest(a; 1, 2)'],
    ['a.map(x)', 'map(a; x)'],
    ['.has(a.b)', '.has(a.b)'],
  ])('%s', (source, tree) => {
    expect(expanded(source)).toBe(tree)
  })
})

describe('which environment has which macro', () => {
  const unknown = (name: string) => `undeclared reference to '${name}' (in container '')`

  test.each([
    ['cel.bind in the API server', 'kubernetes', 37, 'cel.bind(x, 1, x)', unknown('cel')],
    ['cel.bind in Kyverno', 'kyverno', 37, 'cel.bind(x, 1, x)', 'int'],
    ['math.greatest in the API server', 'kubernetes', 37, 'math.greatest(1, 2)', unknown('math')],
    ['math.greatest in Kyverno', 'kyverno', 37, 'math.greatest(1, 2)', 'int'],
    ['two variables in 1.31', 'kubernetes', 31, '[1].all(i, v, true)', unknown('all')],
    ['two variables in 1.32', 'kubernetes', 32, '[1].all(i, v, true)', 'bool'],
    ['sortBy in 1.33', 'kubernetes', 33, '[1].sortBy(x, x)', unknown('sortBy')],
    ['sortBy in 1.34', 'kubernetes', 34, '[1].sortBy(x, x)', 'list(int)'],
    [
      'optMap in 1.30',
      'kubernetes',
      30,
      '[1].first().optMap(x, string(x))',
      'optional_type(string)',
    ],
  ] as const)('%s', (_, profile, minor, source, outcome) => {
    const environment = createEnvironment({ profile, minor, variables: {} })
    const result = compile(source, environment)
    expect(result.ok ? result.checked.type : result.issues[0]?.message).toBe(outcome)
  })
})
