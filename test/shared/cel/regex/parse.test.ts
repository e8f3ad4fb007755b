import { describe, expect, test } from 'vitest'
import { compileRegex } from '#shared/cel/regex/engine.ts'

function fault(pattern: string): string | undefined {
  try {
    compileRegex(pattern)
    return undefined
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(SyntaxError)
    return (thrown as SyntaxError).message
  }
}

const CLASS = 'invalid character class range'
const ESCAPE = 'invalid escape sequence'
const NAME = 'invalid named capture'
const PERL = 'invalid or unsupported Perl syntax'
const BRACKET = 'missing closing ]'
const PAREN = 'missing closing )'
const UNEXPECTED = 'unexpected )'
const ARGUMENT = 'missing argument to repetition operator'
const NESTED = 'invalid nested repetition operator'
const COUNT = 'invalid repeat count'

/** All of them were asked of Go 1.26. */
describe('a pattern is refused in the words of Go', () => {
  test.each([
    ['(', PAREN, '('],
    ['(a', PAREN, '(a'],
    ['(((((', PAREN, '((((('],
    [')', UNEXPECTED, ')'],
    ['a)b', UNEXPECTED, 'a)b'],
    ['(a|b))', UNEXPECTED, '(a|b))'],
    ['*', ARGUMENT, '*'],
    ['+?', ARGUMENT, '+?'],
    ['a|*', ARGUMENT, '*'],
    ['(?i)*', ARGUMENT, '*'],
    ['(*a)', ARGUMENT, '*'],
    ['{2}', ARGUMENT, '{2}'],
    ['a**', NESTED, '**'],
    ['a+?+?b', NESTED, '+?+?'],
    ['a{2}{3}', NESTED, '{2}{3}'],
    ['a*{2}', NESTED, '*{2}'],
    ['a{1001}', COUNT, '{1001}'],
    ['a{2,1}', COUNT, '{2,1}'],
    ['a{1,1001}?', COUNT, '{1,1001}'],
    ['a{99999999999}', COUNT, '{99999999999}'],
    ['(?:a{100}){11}', COUNT, '{11}'],
    ['((a{10}){10}){11}?', COUNT, '{11}?'],
    ['[', BRACKET, '['],
    ['a[]', BRACKET, '[]'],
    ['[^]a', BRACKET, '[^]a'],
    ['[a-', BRACKET, '[a-'],
    ['[[:alpha:]', BRACKET, '[[:alpha:]'],
    ['[z-a]', CLASS, 'z-a'],
    ['[[:foo:]]', CLASS, '[:foo:]'],
    ['[[:a]b:]]', CLASS, '[:a]b:]'],
    ['\\p', CLASS, '\\p'],
    ['\\p{Greek', CLASS, '\\p{Greek'],
    ['\\p{Foo}', CLASS, '\\p{Foo}'],
    ['\\pX', CLASS, '\\pX'],
    ['[\\P{^Foo}]', CLASS, '\\P{^Foo}'],
    ['[a-\\d]', ESCAPE, '\\d'],
    ['\\1', ESCAPE, '\\1'],
    ['(a)\\18', ESCAPE, '\\1'],
    ['\\8', ESCAPE, '\\8'],
    ['\\C', ESCAPE, '\\C'],
    ['\\Z', ESCAPE, '\\Z'],
    ['\\G', ESCAPE, '\\G'],
    ['\\E', ESCAPE, '\\E'],
    ['\\é', ESCAPE, '\\é'],
    ['[\\b]', ESCAPE, '\\b'],
    ['\\x', ESCAPE, '\\x'],
    ['\\x4', ESCAPE, '\\x4'],
    ['\\xg1', ESCAPE, '\\xg1'],
    ['\\x{}', ESCAPE, '\\x{}'],
    ['\\x{41', ESCAPE, '\\x{41'],
    ['\\x{4z}', ESCAPE, '\\x{4z'],
    ['\\x{110000}', ESCAPE, '\\x{110000'],
    ['\\', 'trailing backslash at end of expression', ''],
    ['[\\', 'trailing backslash at end of expression', ''],
    ['(?', PERL, '(?'],
    ['(?P', PERL, '(?P'],
    ['(?P<', PERL, '(?P'],
    ['(?<', PERL, '(?<'],
    ['(?=a)', PERL, '(?='],
    ['(?!a)', PERL, '(?!'],
    ['(?>a)', PERL, '(?>'],
    ['(?|a)', PERL, '(?|'],
    ['(?#a)', PERL, '(?#'],
    ['(?P=n)', PERL, '(?P'],
    ['(?z)', PERL, '(?z'],
    ['(?x)a', PERL, '(?x'],
    ['(?i', PERL, '(?i'],
    ['(?i-)', PERL, '(?i-)'],
    ['(?--i)', PERL, '(?--'],
    ['(?-i-s)', PERL, '(?-i-'],
    ['(?🚀)', PERL, '(?🚀'],
    ['(?<=a)', NAME, '(?<=a)'],
    ['(?<!a)>b', NAME, '(?<!a)>'],
    ['(?P<n', NAME, '(?P<n'],
    ['(?P<>a)', NAME, '(?P<>'],
    ['(?P<n-m>a)', NAME, '(?P<n-m>'],
    ['(?<é>a)', NAME, '(?<é>'],
  ])('%s: %s', (pattern, what, piece) => {
    expect(fault(pattern)).toBe(`error parsing regexp: ${what}: \`${piece}\``)
  })

  test.each([
    ['999 groups are bearable', 999, undefined],
    ['1000 are not', 1000, 'expression nests too deeply'],
    ['nor are 50000', 50_000, 'expression nests too deeply'],
  ])('%s', (_, depth, what) => {
    const pattern = `${'('.repeat(depth)}a${')'.repeat(depth)}`
    expect(fault(pattern)).toBe(what && `error parsing regexp: ${what}: \`${pattern}\``)
  })

  test('repeated loops nest as deep as groups', () => {
    expect(fault(`${'(?:'.repeat(999)}a${')*'.repeat(999)}`)).toBeUndefined()
    expect(fault(`${'(?:'.repeat(1000)}a${')*'.repeat(1000)}`)).toMatch(/nests too deeply/)
  })

  test('groups that are never closed are told of before their depth', () => {
    expect(fault('('.repeat(50_000))).toMatch(/missing closing \)/)
  })

  test('a program of more than 3.3 million instructions is too large', () => {
    const pattern = `(?:${'ab*'.repeat(1200)}){1000}`
    expect(fault(pattern)).toBe(`error parsing regexp: expression too large: \`${pattern}\``)
  })

  test('so are many copies of many groups, and very many large classes', () => {
    expect(fault('((?:x?){1000})'.repeat(100))).toMatch(/expression too large/)
    expect(
      fault(
        Array.from({ length: 1000 }, (_, i) => `[\\pL\\x{${(0xf0000 + i).toString(16)}}]`).join(''),
      ),
    ).toMatch(/expression too large/)
  })
})

describe('a pattern is taken', () => {
  test.each([
    ['a{,2}', 'a{,2}'],
    ['a{2', 'a{2'],
    ['a{02}', 'a{02}'],
    ['a{1,x}', 'a{1,x}'],
    ['{', '{'],
    ['}', '}'],
    [']', ']'],
    ['[]a]', ']'],
    ['[a-]', '-'],
    ['[-a]', '-'],
    ['[a-c-e]', '-'],
    ['[[=a=]]', '=]'],
    ['\\Qa.b\\E', 'a.b'],
    ['a\\Q\\E', 'a'],
    ['\\_', '_'],
    ['\\-', '-'],
    ['\\07', '\x07'],
    ['\\101', 'A'],
    ['\\777', '\u01ff'],
    ['\\08', '\x008'],
    ['\\x{1F680}', '🚀'],
    ['\\a\\f\\n\\r\\t\\v', '\x07\f\n\r\t\v'],
    ['(?P<n>a)(?<n>b)', 'ab'],
    ['(?)', ''],
    ['(?i)(?-i)(?s-i:a)', 'a'],
    ['a(?i)*', 'aaa'],
    ['^*', ''],
    ['(?:a{0}){1000}', ''],
    ['(?:a{10}){100}', 'a'.repeat(1000)],
    ['((a{100}){10}){1}', 'a'.repeat(1000)],
  ])('%s and matches %j whole', (pattern, text) => {
    expect(compileRegex(`^(?:${pattern})$`).test(text)).toBe(true)
  })

  test('what is quoted need not end', () => {
    expect(compileRegex('^\\Q(*').test('(*')).toBe(true)
    expect(compileRegex('^\\Q(*').test('(')).toBe(false)
  })

  test.each([
    ['', 0],
    ['(a)(?:b)(?P<c>c)(?<d>d)', 3],
    ['(a){0}', 1],
    ['((((a))))', 4],
    ['[(](?i:a)\\(', 0],
  ])('%j has %i groups', (pattern, groups) => {
    expect(compileRegex(pattern).groups).toBe(groups)
  })
})
