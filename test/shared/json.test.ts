import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import {
  canonicalJson,
  copyJson,
  decodeJson,
  getOwn,
  goJson,
  goJsonString,
  isJsonObject,
  JsonDouble,
  type JsonValue,
  parseJson,
  setOwn,
  stringifyJson,
} from '#shared/json.ts'
import { MAX_JSON_DEPTH } from '#shared/limits.ts'

/** Message of the `JSON_INVALID` that a function throws. */
function refusal(run: () => unknown): string {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof AdmissionError && thrown.code === 'JSON_INVALID') return thrown.message
    throw thrown
  }
  throw new Error('accepted')
}

/** Sends a text through the exact parser whatever else is in it. */
function parseExactly(text: string): JsonValue {
  const value = parseJson(`[1.0,${text}]`)
  return (value as JsonValue[])[1] as JsonValue
}

describe('parseJson', () => {
  test.each([
    { name: 'an ordinary object is plain', text: '{"a":[1,-2,0.5,1e-3,"x",true,false,null]}' },
    { name: 'white space is allowed everywhere', text: ' \t\r\n{ "a" : [ 1 , 2 ] } \n' },
    { name: 'escapes are decoded', text: '"\\u0041\\n\\"\\\\\\/\\ud83d\\ude00"' },
    { name: 'a string may end in an escaped backslash', text: '["a\\\\","b\\\\\\"c"]' },
    {
      name: 'digits and brackets inside strings do not count',
      text: '{"12345678901234567890":"[[1.0"}',
    },
    { name: 'an empty key is a key', text: '{"":1}' },
    { name: 'the largest safe integer stays a number', text: '9007199254740991' },
    { name: 'a long fraction stays a number', text: '0.12345678901234567890' },
  ])('$name', ({ text }) => {
    expect(parseJson(text)).toEqual(JSON.parse(text))
    expect(parseExactly(text)).toEqual(JSON.parse(text))
  })

  test.each([
    {
      name: 'an integer beyond 2^53 is a bigint',
      text: '9007199254740993',
      value: 9007199254740993n,
    },
    { name: 'so is the smallest int64', text: '-9223372036854775808', value: -(2n ** 63n) },
    { name: 'so is the largest int64', text: '9223372036854775807', value: 2n ** 63n - 1n },
    {
      name: 'an integer beyond int64 is a double',
      text: '9223372036854775808',
      value: new JsonDouble(2 ** 63),
    },
    { name: '1.0 is a double', text: '1.0', value: new JsonDouble(1) },
    { name: '1e3 is a double', text: '1e3', value: new JsonDouble(1000) },
    { name: '-0.0 is a double', text: '-0.0', value: new JsonDouble(-0) },
    { name: '-0 is an integer', text: '-0', value: -0 },
    { name: '1e-400 is zero and a double', text: '1e-400', value: new JsonDouble(0) },
  ])('$name', ({ text, value }) => {
    expect(parseJson(text)).toStrictEqual(value)
    expect(parseJson(`{"a":[${text}]}`)).toStrictEqual({ a: [value] })
  })

  test.each([
    {
      name: 'nothing',
      text: '',
      problem: 'offset 0 (line 1, column 1): expected a value, found the end',
    },
    {
      name: 'a cut object',
      text: '{"a":',
      problem: 'offset 5 (line 1, column 6): expected a value, found the end',
    },
    {
      name: 'a cut string',
      text: '{"a":"bc',
      problem: 'offset 5 (line 1, column 6): a string is not closed',
    },
    {
      name: 'a second document',
      text: '{}\n{}',
      problem: 'offset 3 (line 2, column 1): expected the end, found "{"',
    },
    {
      name: 'a trailing comma',
      text: '[1,]',
      problem: 'offset 3 (line 1, column 4): expected a value, found "]"',
    },
    {
      name: 'a missing comma',
      text: '{"a":1 "b":2}',
      problem: 'offset 7 (line 1, column 8): expected "}", found "\\""',
    },
    {
      name: 'an unquoted key',
      text: '{a:1}',
      problem: 'offset 1 (line 1, column 2): expected a key, found "a"',
    },
    {
      name: 'a leading zero',
      text: '01',
      problem: 'offset 1 (line 1, column 2): expected the end, found "1"',
    },
    {
      name: 'a leading plus',
      text: '+1',
      problem: 'offset 0 (line 1, column 1): expected a value, found "+"',
    },
    {
      name: 'a lonely minus',
      text: '[-]',
      problem: 'offset 1 (line 1, column 2): expected a number, found "-"',
    },
    {
      name: 'NaN',
      text: 'NaN',
      problem: 'offset 0 (line 1, column 1): expected a value, found "N"',
    },
    {
      name: 'a raw line break in a string',
      text: '"a\nb"',
      problem: 'offset 0 (line 1, column 1): a string has a raw control character or a bad escape',
    },
    {
      name: 'a bad escape',
      text: '["\\x41"]',
      problem: 'offset 1 (line 1, column 2): a string has a raw control character or a bad escape',
    },
    {
      name: 'a number without end',
      text: `1${'0'.repeat(400)}`,
      problem: 'offset 0 (line 1, column 1): a number is out of range',
    },
    {
      name: 'an infinite exponent',
      text: '1e400',
      problem: 'offset 0 (line 1, column 1): a number is out of range',
    },
    {
      name: 'a repeated key',
      text: '{"a":1,"b":{"c":1,"c":2}}',
      problem: 'offset 18 (line 1, column 19): key "c" occurs twice',
    },
    {
      name: 'a key repeated in another spelling',
      text: '{"a":1,"\\u0061":2}',
      problem: 'offset 7 (line 1, column 8): key "a" occurs twice',
    },
    {
      name: 'a repeated __proto__',
      text: '{"__proto__":1,"__proto__":2}',
      problem: 'offset 15 (line 1, column 16): key "__proto__" occurs twice',
    },
  ])('refuses $name and says where', ({ text, problem }) => {
    expect(refusal(() => parseJson(text))).toBe(`JSON is not valid at ${problem}`)
  })

  test('never quotes the body in its message', () => {
    const message = refusal(() => parseJson('{"token":"c2VjcmV0" x}'))
    expect(message).not.toContain('c2VjcmV0')
  })

  test.each([
    { name: 'arrays', open: '[', close: ']' },
    { name: 'objects', open: '{"a":', close: '}' },
  ])('refuses $name nested one level too deep, accepts the last one', ({ open, close }) => {
    const nested = (levels: number) => `${open.repeat(levels)}1${close.repeat(levels)}`
    expect(stringifyJson(parseJson(nested(MAX_JSON_DEPTH)))).toBe(nested(MAX_JSON_DEPTH))
    expect(refusal(() => parseJson(nested(MAX_JSON_DEPTH + 1)))).toContain(
      `nesting is deeper than ${MAX_JSON_DEPTH} levels`,
    )
    expect(refusal(() => parseJson(nested(3), { maxDepth: 2 }))).toContain('deeper than 2 levels')
    expect(refusal(() => parseJson(open.repeat(1_000_000)))).toContain('nesting is deeper')
  })

  test.each([
    { name: 'items', text: '[1,2]' },
    { name: 'members', text: '{"a":1,"b":2}' },
    { name: 'empty objects', text: '[{},{}]' },
    { name: 'empty arrays', text: '[[],[]]' },
    { name: 'values in each other', text: '[[[]]]' },
    { name: 'values that need the exact parser', text: '[1.0,12345678901234567890]' },
  ])('refuses one value more than it may hold: $name', ({ text }) => {
    expect(stringifyJson(parseJson(text, { maxValues: 3 }))).toBe(stringifyJson(parseJson(text)))
    expect(refusal(() => parseJson(text, { maxValues: 2 }))).toContain('holds more than 2 values')
  })

  test.each([
    { name: 'the fast parser', text: '{"__proto__":{"admin":true},"constructor":1}' },
    { name: 'the exact parser', text: '{"__proto__":{"admin":true},"constructor":1,"x":1.0}' },
  ])('$name keeps __proto__ an ordinary member', ({ text }) => {
    const value = parseJson(text)
    if (!isJsonObject(value)) throw new Error('not an object')
    expect(Object.keys(value)).toContain('__proto__')
    expect(getOwn(value, '__proto__')).toEqual({ admin: true })
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect('admin' in value).toBe(false)
    expect(stringifyJson(value)).toBe(text)
    expect(stringifyJson(copyJson(value))).toBe(text)
  })

  test('agrees with the platform about what ordinary JSON is and what it means', () => {
    fc.assert(
      fc.property(fc.json({ depthSize: 'large' }), (text) => {
        const expected: unknown = JSON.parse(text)
        const found = parseJson(text)
        expect(JSON.stringify(toPlain(found))).toBe(JSON.stringify(expected))
      }),
    )
  })

  test('throws nothing but JSON_INVALID, and only where the platform refuses or a key repeats', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      '1',
      '.',
      'e',
      '-',
      ' ',
      'null',
      '"a"',
      '\u0001',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('')
        const ours = attempt(() => parseJson(text))
        if (ours.error !== undefined) expect(ours.error).toBeInstanceOf(AdmissionError)
        else JSON.parse(text)
        const refusedOnPurpose = /occurs twice|out of range/.test(String(ours.error))
        if (ours.error !== undefined && !refusedOnPurpose) expect(() => JSON.parse(text)).toThrow()
      }),
      { numRuns: 2000 },
    )
  })
})

describe('decodeJson', () => {
  test('decodes UTF-8', () => {
    expect(decodeJson(utf8('{"ä":"😀"}'))).toEqual({ ä: '😀' })
  })

  test.each([
    {
      name: 'a byte order mark',
      bytes: [0xef, 0xbb, 0xbf, 0x7b, 0x7d],
      problem: 'JSON must not begin with a byte order mark',
    },
    {
      name: 'a truncated sequence',
      bytes: [0x22, 0xe2, 0x82, 0x22],
      problem: 'JSON is not valid UTF-8',
    },
    {
      name: 'an overlong sequence',
      bytes: [0x22, 0xc0, 0xaf, 0x22],
      problem: 'JSON is not valid UTF-8',
    },
    {
      name: 'a surrogate',
      bytes: [0x22, 0xed, 0xa0, 0x80, 0x22],
      problem: 'JSON is not valid UTF-8',
    },
    {
      name: 'UTF-16',
      bytes: [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00],
      problem: 'JSON is not valid UTF-8',
    },
  ])('refuses $name', ({ bytes, problem }) => {
    expect(refusal(() => decodeJson(new Uint8Array(bytes)))).toBe(problem)
  })
})

describe('stringifyJson', () => {
  test.each([
    { name: 'a double stays a double', value: new JsonDouble(1), text: '1.0' },
    { name: 'a large double keeps its exponent', value: new JsonDouble(1e300), text: '1e+300' },
    { name: 'a bigint keeps its digits', value: 9007199254740993n, text: '9007199254740993' },
    { name: 'an unsafe number is a double', value: 2 ** 60, text: '1152921504606847000.0' },
    {
      name: 'members keep their order',
      value: { b: 1, a: [true, null] },
      text: '{"b":1,"a":[true,null]}',
    },
  ])('$name', ({ value, text }) => {
    expect(stringifyJson(value)).toBe(text)
  })

  test.each([
    { name: 'NaN', value: Number.NaN },
    { name: 'infinity', value: new JsonDouble(Number.POSITIVE_INFINITY) },
    { name: 'undefined', value: { a: undefined } as unknown as JsonValue },
  ])('refuses $name as a mistake of the caller', ({ value }) => {
    expect(() => stringifyJson(value)).toThrow(TypeError)
  })

  test('parseJson gives back what stringifyJson wrote', () => {
    fc.assert(
      fc.property(jsonValue(), (value) => {
        expect(parseJson(stringifyJson(value))).toStrictEqual(value)
      }),
    )
  })
})

describe('canonicalJson', () => {
  test('is the same text whatever the order of the members', () => {
    expect(canonicalJson({ b: { d: 1, c: 2 }, a: 1.5 })).toBe('{"a":1.5,"b":{"c":2,"d":1}}')
    expect(canonicalJson({ a: 1.5, b: { c: 2, d: 1 } })).toBe('{"a":1.5,"b":{"c":2,"d":1}}')
  })

  test('tells 1 from 1.0', () => {
    expect(canonicalJson([1, new JsonDouble(1)])).toBe('[1,1.0]')
  })
})

describe('goJson', () => {
  test('sorts keys and escapes as Go does', () => {
    expect(goJson({ b: 'a<b>&c', a: '\u2028\u2029\b\f\n\u0001\u007f"\\' })).toBe(
      '{"a":"\\u2028\\u2029\\b\\f\\n\\u0001\u007f\\"\\\\","b":"a\\u003cb\\u003e\\u0026c"}',
    )
  })

  test('a lone surrogate is the replacement character', () => {
    expect(goJsonString('a\ud800b😀')).toBe('"a\ufffdb😀"')
  })
})

describe('copyJson', () => {
  test('shares nothing that can be changed', () => {
    const original: JsonValue = { a: [{ b: 1 }], c: new JsonDouble(2), d: 3n }
    const copy = copyJson(original)
    expect(copy).toStrictEqual(original)
    setOwn((original.a as { [key: string]: JsonValue }[])[0]!, 'b', 2)
    expect(copy).toStrictEqual({ a: [{ b: 1 }], c: new JsonDouble(2), d: 3n })
  })
})

function attempt(run: () => unknown): { error?: unknown } {
  try {
    run()
    return {}
  } catch (error) {
    return { error }
  }
}

/** The value as JSON.parse would give it. */
function toPlain(value: JsonValue): unknown {
  if (value instanceof JsonDouble) return value.value
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(toPlain)
  if (!isJsonObject(value)) return value
  const out: { [key: string]: JsonValue } = {}
  for (const [key, member] of Object.entries(value)) setOwn(out, key, toPlain(member) as JsonValue)
  return out
}

/** Any value that parseJson can give. */
function jsonValue(): fc.Arbitrary<JsonValue> {
  const double = fc.double({ noDefaultInfinity: true, noNaN: true })
  const scalar: fc.Arbitrary<JsonValue> = fc.oneof(
    fc.constant(null),
    fc.boolean(),
    fc.string({ unit: 'binary' }),
    fc.maxSafeInteger(),
    double.filter((value) => !Number.isInteger(value)),
    double.filter(Number.isInteger).map((value) => new JsonDouble(value)),
    fc
      .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
      .filter((value) => !Number.isSafeInteger(Number(value))),
  )
  const key = fc.oneof(fc.string({ unit: 'binary' }), fc.constant('__proto__'))
  return fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => {
        const out: { [name: string]: JsonValue } = {}
        for (const [name, member] of entries) setOwn(out, name, member)
        return out
      }),
    ),
  })).value
}
