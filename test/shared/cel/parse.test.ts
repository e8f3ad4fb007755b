import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Node } from '#shared/cel/ast.ts'
import { parseOnly } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { childrenOf } from '#shared/cel/tree.ts'
import { short } from '#test/shared/cel/short.ts'

const environment = createEnvironment({ profile: 'spec', variables: {} })

function parsed(source: string): string {
  const result = parseOnly(source, environment)
  return result.ok
    ? short(result.ast)
    : result.issues.map((i) => `${i.line}:${i.column} ${i.message}`).join('\n')
}

describe('what binds how', () => {
  test.each([
    ['a product binds tighter than a sum', '1 + 2 * 3', '_+_(1, _*_(2, 3))'],
    ['sums go from left to right', '1 - 2 - 3', '_-_(_-_(1, 2), 3)'],
    ['products go from left to right', '8 / 4 % 3', '_%_(_/_(8, 4), 3)'],
    ['brackets keep the right side together', '1 - (2 - 3)', '_-_(1, _-_(2, 3))'],
    ['relations go from left to right', 'a < b == c', '_==_(_<_(a, b), c)'],
    ['`in` is a relation', 'a in b || c', '_||_(@in(a, b), c)'],
    ['and binds tighter than or', 'a || b && c', '_||_(a, _&&_(b, c))'],
    [
      'a conditional is loosest, its last part open',
      'a ? b : c ? d : e',
      '_?_:_(a, b, _?_:_(c, d, e))',
    ],
    ['a chain of three is split in the middle', 'a && b && c', '_&&_(_&&_(a, b), c)'],
    ['a chain of four is split in the middle', 'a || b || c || d', '_||_(_||_(a, b), _||_(c, d))'],
    ['a chain of five too', 'a && b && c && d && e', '_&&_(_&&_(_&&_(a, b), c), _&&_(d, e))'],
    ['a minus before a number is part of it', '-1', '-1'],
    ['a minus between numbers is not', '1 -1', '_-_(1, 1)'],
    ['a second minus is', '1 - -1', '_-_(1, -1)'],
    ['two minuses cancel out', '--1', '1'],
    ['of three one is left', '---a', '-_(a)'],
    ['two negations cancel out', '!!a', 'a'],
    ['of three one is left', '!!!a', '!_(a)'],
    ['a negated call', '!a.b(c)', '!_(b(a; c))'],
    ['a number can be selected from', '-1.size()', 'size(-1; )'],
    ['negation of a negative number', '!-1', '!_(-1)'],
  ])('%s', (_, source, tree) => {
    expect(parsed(source)).toBe(tree)
  })
})

describe('what an operand can be', () => {
  test.each([
    ['selections, indexes and calls', 'a.b[c].d(e, f)', 'd(_[_](a.b, c); e, f)'],
    ['optional selection', 'a.?b', '_?._(a, "b")'],
    ['optional index', 'a[?b]', '_[?_](a, b)'],
    ['a back-quoted field', 'a.`b/c-d.e f`', 'a.b/c-d.e f'],
    ['an optional back-quoted field', 'a.?`in`', '_?._(a, "in")'],
    ['a leading dot', '.a.b', '.a.b'],
    ['a call with a leading dot', '.a(b)', '.a(b)'],
    ['words that are reserved as names are fields', 'a.namespace.if', 'a.namespace.if'],
    ['an empty list', '[]', '[]'],
    ['a list of a comma alone', '[,]', '[]'],
    ['a comma after the last element', '[1, 2,]', '[1, 2]'],
    ['optional elements', '[?a, b, ?c]', '[?a, b, ?c]'],
    ['a map', '{a: 1, "b": 2,}', '{a: 1, "b": 2}'],
    ['optional entries', '{?a: b}', '{?a: b}'],
    ['a map of a comma alone', '{,}', '{}'],
    ['a message', 'a.b.C{d: 1, ?e: f, `in`: 2}', 'a.b.C{d: 1, ?e: f, in: 2}'],
    ['a message of an absolute name', '.C{}', '.C{}'],
    ['a field of a message', 'C{d: 1}.d', 'C{d: 1}.d'],
    ['a message of a reserved name', 'import.package{}', 'import.package{}'],
    ['comments and white space', 'a // not b\n\t+\r\n\f1', '_+_(a, 1)'],
  ])('%s', (_, source, tree) => {
    expect(parsed(source)).toBe(tree)
  })
})

describe('literals', () => {
  test.each([
    ['the largest int', '9223372036854775807', '9223372036854775807'],
    ['the smallest int', '-9223372036854775808', '-9223372036854775808'],
    ['a hexadecimal int', '0x7fffffffffffffff', '9223372036854775807'],
    ['a negative hexadecimal int', '-0xFF', '-255'],
    ['leading zeros', '007', '7'],
    ['the largest uint', '18446744073709551615u', '18446744073709551615'],
    ['a hexadecimal uint', '0xFFU', '255'],
    ['a double', '1.50', '1.5'],
    ['a double without a whole part', '.5', '0.5'],
    ['a double with an exponent', '1e3', '1000'],
    ['a negative zero', '-0.0', '-0'],
    ['a double too small to be told from zero', '1e-999', '0'],
    [
      'escapes',
      String.raw`'\a\b\f\n\r\t\v\\\'\"\?\x41\x5A\101B\U0001F600'`,
      JSON.stringify('\x07\b\f\n\r\t\v\\\'"?AZAB😀').replace('\\u000b', '\\u000b'),
    ],
    ['a raw string', String.raw`r'\n\q'`, JSON.stringify('\\n\\q')],
    ['a raw string with capitals', String.raw`R"\d"`, JSON.stringify('\\d')],
    ['three quotes over lines', "'''a\r\nb''c'''", JSON.stringify("a\nb''c")],
    ['three double quotes', '"""a"b"""', JSON.stringify('a"b')],
    ['a raw string of three quotes', String.raw`r"""\"""`, JSON.stringify('\\')],
    [
      'half a surrogate pair is the replacement character',
      String.raw`"\ud800"`,
      JSON.stringify('\ufffd'),
    ],
    ['half a pair in the source too', '"\ud800x"', JSON.stringify('\ufffdx')],
    ['bytes as base64', "b'\u00ff'", 'w78='],
    ['bytes by escape', String.raw`b'\xff\377\a'`, '//8H'],
    ['raw bytes', String.raw`br'\x'`, 'XHg='],
    ['an empty string', "''", '""'],
    ['bytes of three quotes', 'b"""a\n"""', 'YQo='],
  ])('%s', (_, source, tree) => {
    expect(parsed(source)).toBe(tree)
  })
})

describe('what is refused, and where', () => {
  test.each([
    ['an int one too large', 'a + 9223372036854775808', '1:5 invalid int literal'],
    ['an int one too small', '-9223372036854775809', '1:1 invalid int literal'],
    ['a uint one too large', '18446744073709551616u', '1:1 invalid uint literal'],
    ['an infinite double', '1e999', '1:1 invalid double literal'],
    ['a code point beyond the last', String.raw`'\U00110000'`, '1:1 unable to unescape string'],
    ['a Unicode escape in bytes', String.raw`b'\u00ff'`, '1:1 unable to unescape string'],
    ['a reserved name', 'package + 1', '1:1 reserved identifier: package'],
    ['a call of a reserved name', 'if(a)', '1:1 reserved identifier: if'],
    [
      'a character that means nothing',
      'a @ b',
      "1:3 Syntax error: token recognition error at: '@'\n1:5 Syntax error: mismatched input 'b' expecting <EOF>",
    ],
    [
      'an escape that does not exist',
      String.raw`'\q'`,
      /^1:1 Syntax error: token recognition error at: ''/,
    ],
    [
      'a keyword as a field',
      'a.in',
      "1:3 Syntax error: mismatched input 'in' expecting IDENTIFIER",
    ],
    ['two operands in a row', 'a b', "1:3 Syntax error: mismatched input 'b' expecting <EOF>"],
    [
      'a bracket that is not closed',
      '(a',
      "1:3 Syntax error: mismatched input '<EOF>' expecting ')'",
    ],
    [
      'a comma after the last argument',
      'f(a,)',
      /^1:5 Syntax error: mismatched input '\)' expecting \{/,
    ],
    ['a negated negation of another kind', '-!a', /^1:2 Syntax error: mismatched input '!'/],
    ['nothing at all', '', /^1:1 Syntax error: mismatched input '<EOF>' expecting \{/],
    ['a comment alone', '// a', /^1:5 Syntax error/],
    ['a line break in a string', "'a\nb'", /^1:1 Syntax error: token recognition error/],
    [
      'a back-quoted name where a variable stands',
      '`a`',
      /^1:1 Syntax error: mismatched input '`a`'/,
    ],
    [
      'a message of a back-quoted name',
      'a.`b`{}',
      "1:6 Syntax error: mismatched input '{' expecting <EOF>",
    ],
    ['a message of a call', 'f(){}', "1:4 Syntax error: mismatched input '{' expecting <EOF>"],
    ['has() of something else than a field', 'has(a)', '1:5 invalid argument to has() macro'],
    ['has() of an optional field', 'has(a.?b)', '1:6 invalid argument to has() macro'],
    ['a loop variable that is not a name', 'a.all(b.c, d)', '1:8 argument must be a simple name'],
    ['a mapped variable that is not a name', 'a.map(1, d)', '1:7 argument is not an identifier'],
    ['two loop variables of one name', 'a.all(b, b, c)', '1:10 duplicate variable name: b'],
    [
      'an optMap variable that is not a name',
      'a.optMap(b(), c)',
      '1:11 optMap() variable name must be a simple identifier',
    ],
    [
      'a bound variable that is not a name',
      'cel.bind(a.b, 1, 2)',
      '1:11 cel.bind() variable names must be simple identifiers',
    ],
    [
      'the greatest of nothing',
      'math.greatest()',
      '1:1 math.greatest() requires at least one argument',
    ],
    ['the least of a string', "math.least('a')", '1:12 math.least() invalid single argument value'],
    [
      'the greatest of a string among others',
      "math.greatest(1, 'a', 2)",
      '1:18 math.greatest() simple literal arguments must be numeric',
    ],
  ])('%s', (_, source, issues) => {
    if (typeof issues === 'string') expect(parsed(source)).toBe(issues)
    else expect(parsed(source)).toMatch(issues)
  })

  test('every fault is reported, each at its own place', () => {
    expect(parsed('[1e999, f(, 2), {a b: 1}, has(c),\n 9223372036854775808]').split('\n')).toEqual([
      '1:2 invalid double literal',
      expect.stringMatching(/^1:11 Syntax error/),
      "1:20 Syntax error: mismatched input 'b' expecting ':'",
      '1:31 invalid argument to has() macro',
      '2:2 invalid int literal',
    ])
  })

  test('at most a hundred faults are reported', () => {
    const result = parseOnly(`[${new Array(300).fill('1e999').join(', ')}]`, environment)
    expect(result.ok ? 0 : result.issues.length).toBe(100)
  })

  test('columns count code points, offsets UTF-16 units', () => {
    const result = parseOnly("'😀' + 1e999", environment)
    expect(result.ok ? [] : result.issues).toEqual([
      { phase: 'parse', message: 'invalid double literal', offset: 7, line: 1, column: 7 },
    ])
  })
})

describe('limits', () => {
  const nested = (open: string, close: string, times: number) =>
    open.repeat(times) + (open === '{1: ' ? '1' : 'a') + close.repeat(times)

  test.each([
    ['brackets', nested('(', ')', 249), nested('(', ')', 250)],
    ['lists', nested('[', ']', 249), nested('[', ']', 250)],
    ['maps', nested('{1: ', '}', 249), nested('{1: ', '}', 250)],
    ['arguments', nested('f(', ')', 249), nested('f(', ')', 250)],
    ['indexes, two levels each', nested('a[', ']', 124), nested('a[', ']', 125)],
    ['selections', `a${'.b'.repeat(249)}`, `a${'.b'.repeat(250)}`],
    ['sums', `1${' + 1'.repeat(248)}`, `1${' + 1'.repeat(249)}`],
    ['relations', `1${' == 1'.repeat(248)}`, `1${' == 1'.repeat(249)}`],
    ['conditionals', `${'a ? b : '.repeat(249)}c`, `${'a ? b : '.repeat(250)}c`],
    [
      'sums within arguments, three levels each',
      `${'f(a + '.repeat(83)}1${')'.repeat(83)}`,
      `${'f(a + '.repeat(84)}1${')'.repeat(84)}`,
    ],
    [
      'rules that are not deep by themselves, together',
      `${'('.repeat(83)}a${' + 1 == 1).b'.repeat(83)}`,
      `${'('.repeat(84)}a${' + 1 == 1).b'.repeat(84)}`,
    ],
  ])('%s: the deepest that parses, and one level more', (_, deepest, deeper) => {
    expect(parsed(deepest)).not.toMatch(/limit/)
    expect(parsed(deeper)).toMatch(/expression recursion limit exceeded: 250$/)
  })

  test('chains of && and || have no depth', () => {
    expect(parsed(`a${' && a'.repeat(5000)}`)).not.toMatch(/limit/)
  })

  test('ten thousand levels are refused with a place', () => {
    const result = parseOnly('('.repeat(10_000), environment)
    expect(result.ok ? [] : result.issues).toEqual([
      {
        phase: 'parse',
        message: 'expression recursion limit exceeded: 250',
        offset: 250,
        line: 1,
        column: 251,
      },
    ])
  })

  test('a hundred thousand code points parse, one more does not', () => {
    const text = (length: number) => `'${'😀'.repeat(length - 2)}'`
    expect(parseOnly(text(100_000), environment).ok).toBe(true)
    expect(parsed(text(100_001))).toBe(
      '1:100001 expression code point size exceeds limit: size: 100001, limit 100000',
    )
  })

  test('a megabyte is refused at once', () => {
    const result = parseOnly('a+'.repeat(500_000), environment)
    expect(result.ok ? [] : result.issues).toHaveLength(1)
  })

  test('macros that copy cannot grow without bound', () => {
    expect(parsed(`a${'.optMap(b, b)'.repeat(60)}`)).toMatch(
      /expression count exceeds limit of 100000/,
    )
  })
})

describe('any text at all', () => {
  const piece = fc.constantFrom(
    ...[
      'a',
      '1',
      '0x',
      '1e5',
      '"',
      "'''",
      'b"',
      '\\',
      '(',
      ')',
      '[',
      ']',
      '{',
      '}',
      '.',
      ',',
      '?',
      ':',
    ],
    ...[
      '!',
      '-',
      '+',
      '&&',
      '||',
      '==',
      'in',
      'true',
      'has(',
      '.all(x, ',
      '`',
      '//',
      '\n',
      '\ud800',
      '😀',
    ],
  )

  test('parses or is refused with places inside it', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const source = pieces.join('')
        const result = parseOnly(source, environment)
        if (result.ok) return
        expect(result.issues.length).toBeGreaterThan(0)
        for (const { offset } of result.issues) {
          expect(offset).toBeGreaterThanOrEqual(0)
          expect(offset).toBeLessThanOrEqual(source.length)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

describe('ranges', () => {
  test.each([
    ['a.b + c.d(e)', ['a', 'a.b', 'c', 'e', 'c.d(e)', 'a.b + c.d(e)']],
    ['(a + b) * c', ['a', 'b', 'a + b', 'c', '(a + b) * c']],
    ['x && y && z', ['x', 'y', 'x && y', 'z', 'x && y && z']],
    ['[a, {b: -1}]', ['a', 'b', '-1', '{b: -1}', '[a, {b: -1}]']],
    ['T{f: 1}.g[?h]', ['1', 'T{f: 1}', 'T{f: 1}.g', 'h', 'T{f: 1}.g[?h]']],
    ['! a ? b : c', ['a', '! a', 'b', 'c', '! a ? b : c']],
  ])('every node of %s has the text it was read from', (source, texts) => {
    const result = parseOnly(source, environment)
    const found: string[] = []
    const visit = (node: Node) => {
      for (const child of childrenOf(node)) visit(child)
      found.push(source.slice(...node.pos))
    }
    if (result.ok) visit(result.ast)
    expect(found).toEqual(texts)
  })

  test('what a macro makes has the range of the call', () => {
    const source = 'a + b.exists(c, c.d)'
    const result = parseOnly(source, environment)
    const fold = result.ok && result.ast.k === 'call' ? result.ast.args[1] : undefined
    expect(
      fold?.k === 'fold' && [fold, fold.accuInit, fold.step].map((n) => source.slice(...n.pos)),
    ).toEqual(['b.exists(c, c.d)', 'b.exists(c, c.d)', 'b.exists(c, c.d)'])
  })

  test('ids are unique and start at one', () => {
    const result = parseOnly('a.optMap(b, b + 1).orValue([c.d, 1])', environment)
    const ids = [...JSON.stringify(result.ok && result.ast).matchAll(/"id":(\d+)/g)].map((m) =>
      Number(m[1]),
    )
    expect(new Set(ids).size).toBe(ids.length)
    expect(Math.min(...ids)).toBe(1)
  })
})
