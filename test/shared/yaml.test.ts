import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import { JsonDouble, type JsonValue, parseJson, stringifyJson } from '#shared/json.ts'
import { parseJsonOrYaml, parseYaml } from '#shared/yaml.ts'

const one = (text: string): JsonValue | undefined => parseYaml(`v: ${text}`).map(memberOf)[0]

function memberOf(document: JsonValue): JsonValue {
  // Every text of the table is a map of one key.
  return (document as { v: JsonValue }).v
}

function faultOf(read: () => unknown): string {
  try {
    return `read as ${JSON.stringify(read())}`
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return `${thrown.code}: ${thrown.message}`
    throw thrown
  }
}

describe('a plain scalar is what Go makes of it and the API server then reads', () => {
  test.each<[string, JsonValue]>([
    ['1', 1],
    ['-7', -7],
    ['+7', 7],
    ['0', 0],
    ['-0', 0],
    ['1_000', 1000],
    ['017', 15],
    ['-017', -15],
    ['0o17', 15],
    ['0x1F', 31],
    ['-0x1f', -31],
    ['0b101', 5],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['9223372036854775807', 9_223_372_036_854_775_807n],
    ['-9223372036854775808', -9_223_372_036_854_775_808n],
    ['9223372036854775808', new JsonDouble(2 ** 63)],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['1.', 1],
    ['1.0', 1],
    ['-0.0', 0],
    ['1e3', 1000],
    ['09', 9],
    ['1e18', 1_000_000_000_000_000_000n],
    ['1e20', new JsonDouble(1e20)],
    ['1e21', new JsonDouble(1e21)],
    ['1e-7', 1e-7],
    ['1e400', '1e400'],
    ['1_0.5', 10.5],
    ['._5', '._5'],
    ['!!timestamp 2001-12-14', '2001-12-14'],
    ['+', '+'],
    ['1.2.3', '1.2.3'],
    ['12:30', '12:30'],
    ['0xZ', '0xZ'],
    ['2001-12-14', '2001-12-14'],
    ['yes', true],
    ['On', true],
    ['y', true],
    ['TRUE', true],
    ['tRUE', 'tRUE'],
    ['off', false],
    ['NO', false],
    ['n', false],
    ['', null],
    ['~', null],
    ['Null', null],
    ['nULL', 'nULL'],
    ['"1"', '1'],
    ["'yes'", 'yes'],
    ['|\n  1\n', '1\n'],
    ['!!str 1', '1'],
    ['!!int "5"', 5],
    ['!!float 3', 3],
    ['!!float 3.5', 3.5],
    ['!!bool "yes"', true],
    ['!!null ""', null],
    ['!!binary aGk=', 'hi'],
    ['!custom 1', '1'],
    ['[1, 1.5, yes]', [1, 1.5, true]],
    ['{a: {b: 2}}', { a: { b: 2 } }],
  ])('%j', (text, value) => {
    expect(one(text)).toEqual(value)
  })

  test.each([
    ['.inf', 'YAML_INVALID: YAML is not valid at 1:4: .inf is not a JSON number'],
    ['-.INF', 'YAML_INVALID: YAML is not valid at 1:4: -.INF is not a JSON number'],
    ['.nan', 'YAML_INVALID: YAML is not valid at 1:4: .nan is not a JSON number'],
    ['!!int x', 'YAML_INVALID: YAML is not valid at 1:10: cannot decode str as int'],
    ['!!bool 1', 'YAML_INVALID: YAML is not valid at 1:11: cannot decode int as bool'],
    ['!!binary "*"', 'YAML_INVALID: YAML is not valid at 1:13: not base64'],
    ['!!binary /w==', 'YAML_INVALID: YAML is not valid at 1:13: binary that is not UTF-8 text'],
  ])('%s is refused', (text, message) => {
    expect(faultOf(() => one(text))).toBe(message)
  })

  test('a number of more digits than a float has is refused, and at once', () => {
    expect(faultOf(() => one('1'.repeat(350)))).toMatch(/111 is not a JSON number$/)
    expect(faultOf(() => one('1'.repeat(1_000_000)))).toMatch(/111 is not a JSON number$/)
  })
})

describe('maps', () => {
  test.each<[string, string, JsonValue]>([
    [
      'numbers and booleans as keys are text',
      '{1: a, 1.5: b, yes: c}',
      { 1: 'a', 1.5: 'b', true: 'c' },
    ],
    ['a key may be called like a member of every object', '{constructor: 1}', { constructor: 1 }],
    [
      'a merged map gives what the map itself does not have',
      'base: &b {x: 1, z: 2}\nv: {<<: *b, z: 3}',
      { base: { x: 1, z: 2 }, v: { x: 1, z: 3 } },
    ],
    [
      'of several merged maps the first wins',
      'a: &a {x: 1}\nb: &b {x: 2, z: 2}\nv: {<<: [*a, *b]}',
      { a: { x: 1 }, b: { x: 2, z: 2 }, v: { x: 1, z: 2 } },
    ],
    ['a quoted merge key is an ordinary one', '{"<<": 1}', { '<<': 1 }],
  ])('%s', (_, text, value) => {
    expect(parseYaml(text)).toEqual([value])
  })

  test('__proto__ is a key like any other', () => {
    const [value] = parseYaml('{__proto__: {a: 1}}')
    expect(Object.keys(value as object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  test.each([
    ['a key that occurs twice', 'a: 1\nb: 2\na: 3', '3:1: key "a" occurs twice'],
    ['a number that is the same key as a text', '1: a\n"1": b', '2:1: key "1" occurs twice'],
    ['null as a key', '~: 1', '1:1: a key must be a string, a number or a boolean'],
    ['a list as a key', '[a]: 1', '1:1: a key must be a string, a number or a boolean'],
    [
      'a merge of something else',
      '<<: 1',
      '1:1: map merge requires map or sequence of maps as the value',
    ],
    ['an alias of nothing', 'a: *b', '1:4: '],
    ['a syntax error', 'a: [1', '1:6: '],
  ])('%s is refused with its place', (_, text, message) => {
    expect(faultOf(() => parseYaml(text))).toContain(
      `YAML_INVALID: YAML is not valid at ${message}`,
    )
  })
})

describe('documents', () => {
  test('every one that holds something', () => {
    expect(parseYaml('---\na: 1\n---\n---\n# nothing\n---\n- 2\n')).toEqual([{ a: 1 }, [2]])
    expect(parseYaml('')).toEqual([])
  })

  test('aliases are expanded so often, and no more', () => {
    const bomb = [
      'a: &a [x, x]',
      'b: &b [*a, *a]',
      'c: &c [*b, *b]',
      'd: &d [*c, *c]',
      'e: &e [*d, *d]',
    ]
    expect(faultOf(() => parseYaml([...bomb, 'f: [*e, *e, *e, *e]'].join('\n')))).toMatch(
      /more than 100 aliases/,
    )
  })

  test('nesting has a bound', () => {
    expect(faultOf(() => parseYaml('['.repeat(600) + ']'.repeat(600)))).toMatch(
      /nested deeper than 500/,
    )
    expect(faultOf(() => parseYaml('['.repeat(200_000)))).toMatch(/^YAML_INVALID: /)
  })
})

describe('JSON or YAML', () => {
  test.each<[string, string, JsonValue[]]>([
    ['JSON keeps its doubles', '{"a": 1.0, "b": 1}', [{ a: new JsonDouble(1), b: 1 }]],
    ['YAML has none of integral value', 'a: 1.0', [{ a: 1 }]],
    ['braces may be YAML', '{a: yes}', [{ a: true }]],
    ['JSON documents one after the other', '{"a": 1}\n---\n{"a": 2}', [{ a: 1 }, { a: 2 }]],
  ])('%s', (_, text, value) => {
    expect(parseJsonOrYaml(text)).toEqual(value)
  })
})

describe('whatever the text', () => {
  test('JSON without integral doubles reads the same as YAML', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const json = parseJson(JSON.stringify({ value }))
        fc.pre(!/\.0\b|e[+-]?\d/i.test(stringifyJson(json)))
        expect(parseYaml(JSON.stringify({ value }))).toEqual([json])
      }),
    )
  })

  test('nothing but YAML_INVALID is thrown', () => {
    const part = fc.constantFrom(
      ...[
        'a',
        ':',
        ' ',
        '\n',
        '-',
        '[',
        ']',
        '{',
        '}',
        '&a',
        '*a',
        '<<',
        '!!int',
        '"',
        "'",
        '|',
        '1',
        '?',
        '#',
        '%',
        '\t',
      ],
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        expect(faultOf(() => parseYaml(parts.join('')))).toMatch(/^(read as|YAML_INVALID: )/)
      }),
      { numRuns: 500 },
    )
  })
})
