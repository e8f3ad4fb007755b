import { describe, expect, test } from 'vitest'
import type { CallNode, Node } from '#shared/cel/ast.ts'
import { compile, formatIssues } from '#shared/cel/compile.ts'
import { fn, member, overload } from '#shared/cel/declarations.ts'
import { createEnvironment, type EnvironmentOptions } from '#shared/cel/environment.ts'
import { childrenOf } from '#shared/cel/tree.ts'
import { short } from '#test/shared/cel/short.ts'

const VARIABLES = {
  d: 'dyn',
  b: 'bool',
  i: 'int',
  u: 'uint',
  s: 'string',
  t: 'timestamp',
  o: 'optional_type(string)',
  li: 'list(int)',
  ld: 'list(dyn)',
  ms: 'map(string, int)',
  w: 'wrapper(int)',
  any: 'any',
  p: 'example.Pod',
  ip: 'net.IP',
  'deep.name': 'int',
  'deep.name.longer': 'string',
}

const OPTIONS: EnvironmentOptions = {
  profile: 'spec',
  variables: VARIABLES,
  objectTypes: {
    'example.Pod': {
      name: 'string',
      next: 'example.Pod',
      labels: 'map(string, string)',
      count: 'wrapper(int)',
    },
  },
  declare: [
    fn('pair', overload('pair_A_B', ['A', 'B'], 'pair(A, B)')),
    fn('firstOf', member('pair_first', ['pair(A, B)'], 'A')),
    fn(
      'only',
      overload('only_list', ['list(int)'], 'int'),
      overload('only_map', ['map(string, int)'], 'string'),
    ),
    fn('ns.f', overload('ns_f', [], 'string')),
    fn(
      'nullable',
      overload('nullable_pod', ['example.Pod'], 'bool'),
      overload('nullable_int', ['int'], 'int'),
    ),
  ],
}
const environment = createEnvironment(OPTIONS)

function outcome(source: string, options: EnvironmentOptions = OPTIONS): string {
  const result = compile(source, options === OPTIONS ? environment : createEnvironment(options))
  return result.ok
    ? result.checked.type
    : result.issues.map((i) => `${i.line}:${i.column} ${i.message}`).join('\n')
}

/** Overloads of the calls of a checked tree by function, outermost first. */
function overloads(source: string): Record<string, string[]> {
  const result = compile(source, environment)
  const found: Record<string, string[]> = {}
  const visit = (node: Node) => {
    if (node.k === 'call') found[node.fn] ??= (node as CallNode).overloads ?? []
    for (const child of childrenOf(node)) visit(child)
  }
  if (result.ok) visit(result.checked.ast)
  return found
}

describe('the type of', () => {
  test.each([
    // literals
    ['null', 'null'],
    ['[1, 2]', 'list(int)'],
    ["[1, 'a']", 'list(dyn)'],
    ['[1, d]', 'list(dyn)'],
    ['[]', 'list(dyn)'],
    ['[[], [1]]', 'list(list(int))'],
    ['[[1], []]', 'list(list(int))'],
    ['[[[]], []]', 'list(list(list(dyn)))'],
    ['{}', 'map(dyn, dyn)'],
    ["{'a': 1}", 'map(string, int)'],
    ["{'a': 1, 2: 'b'}", 'map(dyn, dyn)'],
    ['[?o, s]', 'list(string)'],
    ['{?s: o}', 'map(string, string)'],
    ["example.Pod{name: 'a', ?labels: optional.of({})}", 'example.Pod'],
    // null goes with what can be null
    ['[null, p]', 'list(example.Pod)'],
    ['[p, null]', 'list(null)'],
    ['[null, 1]', 'list(dyn)'],
    ['[null, t]', 'list(timestamp)'],
    ['[w, null, 1]', 'list(dyn)'],
    ['[w, 1]', 'list(wrapper(int))'],
    ['nullable(null)', 'bool'],
    // selection
    ['d.a.b', 'dyn'],
    ['p.next.next.name', 'string'],
    ['p.labels.anything', 'string'],
    ['ms.a', 'int'],
    ['p.count', 'wrapper(int)'],
    ['any.a', 'dyn'],
    ['optional.of(p).next', 'optional_type(example.Pod)'],
    ['p.?next.name', 'optional_type(string)'],
    ['has(p.name)', 'bool'],
    ['[].map(x, x)[0].a', 'dyn'],
    // names
    ['deep.name', 'int'],
    ['deep.name.longer', 'string'],
    ['ns.f()', 'string'],
    ['int', 'type(int)'],
    ['list', 'type(list(dyn))'],
    ['net.IP', 'type(net.IP)'],
    ['google.protobuf.Timestamp', 'type(timestamp)'],
    ['example.Pod', 'type(example.Pod)'],
    ['type(1)', 'type(int)'],
    ['type(type(1))', 'type(type(int))'],
    ['type', 'type(type)'],
    // calls
    ['i + 1', 'int'],
    ["s + 'x'", 'string'],
    ['d + 1', 'int'],
    ['d + d', 'dyn'],
    ['li + [d]', 'list(dyn)'],
    ['[] + [1]', 'list(int)'],
    ['b ? 1 : d', 'dyn'],
    ['b ? [] : [1]', 'list(int)'],
    ['b ? p : null', 'example.Pod'],
    ['b ? null : p', 'null'],
    ['li[0]', 'int'],
    ["ms['a']", 'int'],
    ['ms[?s]', 'optional_type(int)'],
    ['optional.of(li)[0]', 'optional_type(int)'],
    ['d[0]', 'dyn'],
    ['only(d)', 'dyn'],
    ['only(li)', 'int'],
    ['i < 1.5', 'bool'],
    ['d == 1', 'bool'],
    ['o.orValue(s)', 'string'],
    ['optional.none().orValue(1)', 'int'],
    ['optional.none()', 'optional_type(dyn)'],
    ['pair(1, [s]).firstOf()', 'int'],
    ['pair(s, d)', 'pair(string, dyn)'],
    ['dyn(1)', 'dyn'],
    // folds
    ['li.map(x, string(x))', 'list(string)'],
    ['ms.map(k, k)', 'list(string)'],
    ['li.filter(x, x > 1)', 'list(int)'],
    ['ms.exists_one(k, k == s)', 'bool'],
    ['li.transformList(i, v, v + i)', 'list(int)'],
    ['ms.transformMap(k, v, k + string(v))', 'map(string, string)'],
    ['d.map(x, x.y)', 'list(dyn)'],
    ['[].exists(x, x.y == 1)', 'bool'],
    ['o.optMap(x, size(x))', 'optional_type(int)'],
    ['o.optFlatMap(x, optional.of(size(x)))', 'optional_type(int)'],
    ['cel.bind(x, li, x[0])', 'int'],
    ['li.sortBy(x, -x)', 'list(int)'],
  ])('%s is %s', (source, type) => {
    expect(outcome(source)).toBe(type)
  })
})

describe('what does not check, and where', () => {
  test.each([
    ['a name nobody declared', 'x', "1:1 undeclared reference to 'x' (in container '')"],
    ['a function nobody declared', 'x(1)', "1:2 undeclared reference to 'x' (in container '')"],
    ['a method nobody declared', 's.x(1)', "1:4 undeclared reference to 'x' (in container '')"],
    ['a message nobody declared', 'X{}', "1:2 undeclared reference to 'X' (in container '')"],
    [
      'no overload',
      "1 + 'a'",
      "1:3 found no matching overload for '_+_' applied to '(int, string)'",
    ],
    [
      'no overload of a method',
      's.size(1)',
      "1:7 found no matching overload for 'size' applied to 'string.(int)'",
    ],
    [
      'a method called as a function',
      'contains(s, s)',
      "1:9 found no matching overload for 'contains' applied to '(string, string)'",
    ],
    [
      'operands of && that are no bools',
      'i && s',
      "1:1 expected type 'bool' but found 'int'\n1:6 expected type 'bool' but found 'string'",
    ],
    [
      'equality of different types',
      "1 == 'a'",
      "1:3 found no matching overload for '_==_' applied to '(int, string)'",
    ],
    [
      'a key of another type',
      'ms[1]',
      "1:3 found no matching overload for '_[_]' applied to '(map(string, int), int)'",
    ],
    [
      'branches of different types',
      'b ? 1 : s',
      "1:3 found no matching overload for '_?_:_' applied to '(bool, int, string)'",
    ],
    [
      'a condition that is no bool',
      'i ? 1 : 2',
      "1:3 found no matching overload for '_?_:_' applied to '(int, int, int)'",
    ],
    ['a field nobody declared', 'p.nmae', "1:2 undefined field 'nmae'"],
    ['a field of an int', 'i.a', "1:2 type 'int' does not support field selection"],
    ['a field of an opaque value', 'ip.a', "1:3 type 'net.IP' does not support field selection"],
    ['a predicate that is no bool', 'li.all(x, x)', "1:11 expected type 'bool' but found 'int'"],
    [
      'a loop over a number',
      'i.all(x, true)',
      "1:1 expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    ],
    [
      'a loop variable after its loop',
      'li.all(x, true) && x',
      "1:20 undeclared reference to 'x' (in container '')",
    ],
    [
      'an optional element that is not optional',
      '[?1]',
      "1:3 expected type 'optional_type(int)' but found 'int'",
    ],
    [
      'an optional entry that is not optional',
      '{?s: 1}',
      "1:6 expected type 'optional_type(int)' but found 'int'",
    ],
    [
      'a field of the wrong type',
      'example.Pod{name: 1}',
      "1:17 expected type of field 'name' is 'string' but provided type is 'int'",
    ],
    ['a field a message does not have', 'example.Pod{nmae: 1}', "1:17 undefined field 'nmae'"],
    ['a message of a type without fields', 'int{}', "1:4 'int' is not a message type"],
    ['a message of a variable', 's{}', "1:2 's' is not a type".replace("'s'", "'string'")],
    [
      'null where nothing can be null',
      'nullable(null) == 1',
      "1:16 found no matching overload for '_==_' applied to '(bool, int)'",
    ],
    [
      'a constant that is a type name',
      'int + 1',
      "1:5 found no matching overload for '_+_' applied to '(type(int), int)'",
    ],
  ])('%s', (_, source, faults) => {
    expect(outcome(source)).toBe(faults)
  })

  test('an unknown name does not bring further faults with it', () => {
    expect(outcome('x.y(z).all(v, v + 1 > q)')).toBe(
      [
        "1:1 undeclared reference to 'x' (in container '')",
        "1:4 undeclared reference to 'y' (in container '')",
        "1:5 undeclared reference to 'z' (in container '')",
        "1:23 undeclared reference to 'q' (in container '')",
      ].join('\n'),
    )
  })

  test('faults are printed as cel-go prints them', () => {
    const source = "i +\n\t'ä😀' + x"
    const result = compile(source, environment)
    expect(result.ok ? '' : formatIssues(source, result.issues)).toBe(
      [
        "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'",
        ' | i +',
        ' | ..^',
        "ERROR: <input>:2:9: undeclared reference to 'x' (in container '')",
        " |  'ä😀' + x",
        ' | ..．．....^'.replace('..．．....', '..．．....'),
      ].join('\n'),
    )
  })
})

describe('which overloads a call may use', () => {
  test.each([
    ['one when the types are known', 'i + 1', { '_+_': ['add_int64'] }],
    ['one when one operand decides', 'd + 1', { '_+_': ['add_int64'] }],
    [
      'all that fit when nothing decides',
      'd.size()',
      { size: ['bytes_size', 'list_size', 'map_size', 'string_size'] },
    ],
    [
      'both of an index',
      'd[d]',
      {
        '_[_]': ['index_list', 'index_map', 'optional_list_index_int', 'optional_map_index_value'],
      },
    ],
    ['both of membership', 'd in d', { '@in': ['in_list', 'in_map'] }],
    ['logical operators have one', 'd && b', { '_&&_': ['logical_and'] }],
    ['a namespaced function', 'ns.f()', { 'ns.f': ['ns_f'] }],
    ['an optional selection', 'd.?a', { '_?._': ['select_optional_field'] }],
    ['a mixed comparison', 'u < i', { '_<_': ['less_uint64_int64'] }],
    ['what a macro calls', 'li.map(x, x)', { '_+_': ['add_list'] }],
  ])('%s', (_, source, expected) => {
    expect(overloads(source)).toMatchObject(expected)
  })
})

describe('names', () => {
  const inContainer = {
    ...OPTIONS,
    container: 'a.b',
    variables: {
      'a.b.x': 'int',
      'a.x': 'string',
      x: 'bool',
      'a.y': 'uint',
      y: 'bytes',
      'x.z': 'double',
    },
  }

  test.each([
    ['the innermost container comes first', 'x', 'int'],
    ['then the outer ones', 'y', 'uint'],
    ['a leading dot leaves the container', '.x', 'bool'],
    ['a dot and a longer name', '.x.z', 'double'],
    ['a loop variable hides the container', '[b"1"].map(x, x)', 'list(bytes)'],
    ['a loop variable hides a longer name', "[{'z': 1}].map(x, x.z)", 'list(int)'],
    ['a leading dot sees past a loop variable', '[1].map(x, .x)', 'list(bool)'],
  ])('%s', (_, source, type) => {
    expect(outcome(source, inContainer)).toBe(type)
  })

  test('the tree has full names, dotted ones as one identifier', () => {
    const result = compile("x == 1 && .x.z > 1.0 && ns.f() == ''", createEnvironment(inContainer))
    expect(result.ok && short(result.checked.ast)).toBe(
      '_&&_(_&&_(_==_(a.b.x, 1), _>_(x.z, 1)), _==_(ns.f(), ""))',
    )
  })

  test('a name hidden by a loop variable keeps its dot', () => {
    const result = compile('[1].all(x, .x)', createEnvironment(inContainer))
    expect(result.ok && short(result.checked.ast)).toContain('_&&_(@result, .x)')
  })

  test('names of JavaScript are ordinary names', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      expect(outcome(name)).toContain(`undeclared reference to '${name}'`)
      expect(outcome(`${name}()`)).toContain(`undeclared reference to '${name}'`)
      expect(outcome(`p.${name}`)).toContain(`undefined field '${name}'`)
    }
  })
})

describe('the result', () => {
  const allowed = (source: string, ...types: string[]) => {
    const result = compile(source, environment, { allowedTypes: types })
    return result.ok ? result.checked.type : result.issues[0]?.message
  }

  test.each([
    ['a bool', 'b', ['bool'], 'bool'],
    ['something else than the one type', 'i', ['bool'], 'must evaluate to bool but got int'],
    ['dyn is not bool', 'd', ['bool'], 'must evaluate to bool but got dyn'],
    ['null is one of two', 'null', ['string', 'null_type'], 'null'],
    [
      'neither of two',
      't',
      ['string', 'null_type'],
      'must evaluate to one of [string null_type] but got google.protobuf.Timestamp',
    ],
    ['a list', 'ld', ['list(string)'], 'must evaluate to list(string) but got list(dyn)'],
  ])('%s', (_, source, types, expected) => {
    expect(allowed(source, ...types)).toBe(expected)
  })

  test('is plain JSON that names what it needs', () => {
    const result = compile("s.matches('a') && s.size() > 1", environment)
    expect(result.ok && JSON.parse(JSON.stringify(result.checked))).toEqual(
      result.ok && result.checked,
    )
    expect(result.ok && result.checked.needs).toEqual(['regex'])
  })
})

describe('types that grow past every bound are refused, at a place and at once', () => {
  /** Bindings of `v1`, `v2`, …, each made of the one before it. */
  const nested = (levels: number, bound: (before: string) => string, innermost: string) => {
    let source = innermost
    for (let level = levels; level > 0; level--) {
      source = `cel.bind(v${level}, ${bound(`v${level - 1}`)}, ${source})`
    }
    return source
  }
  const loops = (levels: number) => {
    let source = 'true'
    for (let level = levels; level > 0; level--) {
      source = `[{v${level - 1}: v${level - 1}}].all(v${level}, ${source})`
    }
    return source
  }
  const equations = (levels: number) => {
    const names = Array.from({ length: levels }, (_, level) => `v${level}`)
    const pairs = names.slice(1).map((name, level) => `v${level} == [{${name}: ${name}}]`)
    const condition = `${pairs.join(' && ')} && [v0] == []`
    return names.reduceRight((source, name) => `cel.bind(${name}, [], ${source})`, condition)
  }

  test.each([
    ['maps of a value to itself', `cel.bind(v0, 1, ${nested(60, (v) => `{${v}: ${v}}`, 'true')})`],
    [
      'the same, of a type yet unknown',
      `cel.bind(v0, [], ${nested(60, (v) => `{${v}: ${v}}`, 'v0')})`,
    ],
    ['comprehensions over them', `[1].all(v0, ${loops(60)})`],
    ['equations between types', equations(60)],
  ])('%s', (_, source) => {
    const result = compile(source, environment)
    if (result.ok) throw new Error('compiled')
    expect(result.issues).toHaveLength(1)
    expect(result.issues[0]).toMatchObject({
      message: 'expression is too complex: the types in it are too large',
      line: 1,
    })
    expect(result.issues[0]?.column).toBeGreaterThan(1)
  })

  test('a type of ordinary depth is fine', () => {
    expect(outcome(`cel.bind(v0, 1, ${nested(6, (v) => `{${v}: ${v}}`, 'v6.size()')})`)).toBe('int')
  })
})
