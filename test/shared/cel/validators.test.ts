import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import type { Profile } from '#shared/cel/types.ts'

const regex = await loadRegex()

function outcome(source: string, profile: Profile = 'kubernetes', withRegex = true): string {
  const environment = createEnvironment({
    profile,
    variables: { d: 'dyn', s: 'string', o: 'optional_type(int)' },
    ...(withRegex ? { regex } : {}),
  })
  const result = compile(source, environment)
  return result.ok
    ? result.checked.type
    : result.issues.map((i) => `${i.line}:${i.column} ${i.message}`).join('\n')
}

describe('list and map literals have one type', () => {
  test.each([
    ['elements', "[1, 'a', 2, true]", "1:5 expected type 'int' but found 'string'"],
    ['numbers too', '[1, 2.0]', "1:5 expected type 'int' but found 'double'"],
    ['dyn beside something else', '[s, d]', "1:5 expected type 'string' but found 'dyn'"],
    ['dyn alone', '[d, d.a]', 'list(dyn)'],
    ['null', "['a', null]", "1:7 expected type 'string' but found 'null'"],
    ['what is inside an optional', '[1, ?o]', 'list(int)'],
    ['nested lists', "[[1], ['a']]", "1:7 expected type 'list(int)' but found 'list(string)'"],
    ['an empty list takes the type of its neighbours', '[[], [1]]', 'list(list(int))'],
    ['keys', "{1: 1, 'a': 1}", "1:8 expected type 'int' but found 'string'"],
    ['values', "{1: 1, 2: 'a'}", "1:11 expected type 'int' but found 'string'"],
    [
      'keys and values, each at its place',
      "{1: 1, 'a': 'b'}",
      "1:8 expected type 'int' but found 'string'\n1:13 expected type 'int' but found 'string'",
    ],
    [
      'every literal by itself',
      "[1, 'a'] == [2, 'b']",
      "1:5 expected type 'int' but found 'string'\n1:17 expected type 'int' but found 'string'",
    ],
    ['through dyn() they may mix', "[dyn(1), dyn('a')]", 'list(dyn)'],
    ['arguments of format may mix', "'%d %s'.format([1, 'a'])", 'string'],
    ['and what is in them', "'%s'.format([[1, 'a']])", 'string'],
  ])('%s', (_, source, expected) => {
    expect(outcome(source)).toBe(expected)
  })

  test('cel-go itself lets them mix', () => {
    expect(outcome("[1, 'a']", 'spec')).toBe('list(dyn)')
  })
})

describe('constant arguments that can never be right', () => {
  test.each([
    ['a duration', "duration('1x')", '1:10 invalid duration argument'],
    ['a duration out of range', "duration('400000000000s')", '1:10 invalid duration argument'],
    ['a timestamp', "timestamp('2024-13-01T00:00:00Z')", '1:11 invalid timestamp argument'],
    [
      'a timestamp in seconds out of range',
      'timestamp(253402300800)',
      '1:11 invalid timestamp argument',
    ],
    ['a pattern', "s.matches('(')", '1:11 invalid matches argument'],
    ['a pattern RE2 does not have', "s.matches('(?=a)')", '1:11 invalid matches argument'],
    [
      'the text of the function form, as in cel-go',
      "matches('(', s)",
      '1:9 invalid matches argument',
    ],
    [
      'good ones',
      "duration('1h') > duration('1s') && timestamp(0) < timestamp('2024-01-01T00:00:00Z') && s.matches('a+')",
      'bool',
    ],
    ['what is no constant', 'duration(s) == timestamp(s) - timestamp(d)', 'bool'],
  ])('%s', (_, source, expected) => {
    expect(outcome(source)).toBe(expected)
  })

  test('without an engine patterns are left to the program', () => {
    expect(outcome("s.matches('(')", 'kubernetes', false)).toBe('bool')
  })

  test('cel-go itself leaves them to the program', () => {
    expect(outcome("duration('1x')", 'spec')).toBe('duration')
  })
})

describe('format strings and their arguments', () => {
  const during = 'error during formatting: '
  test.each([
    [
      '%d of a string',
      "'%d'.format(['a'])",
      `1:14 ${during}decimal clause can only be used on integers, was given string`,
    ],
    [
      '%d of a double',
      "'%d'.format([1.0])",
      `1:14 ${during}decimal clause can only be used on integers, was given double`,
    ],
    [
      '%f of an int',
      "'%f'.format([1])",
      `1:14 ${during}fixed-point clause can only be used on doubles, was given int`,
    ],
    [
      '%e of a bool',
      "'%.2e'.format([true])",
      `1:16 ${during}scientific clause can only be used on doubles, was given bool`,
    ],
    [
      '%b of a double',
      "'%b'.format([1.0])",
      `1:14 ${during}only integers and bools can be formatted as binary, was given double`,
    ],
    [
      '%X of a bool',
      "'%X'.format([true])",
      `1:14 ${during}only integers, byte buffers, and strings can be formatted as hex, was given bool`,
    ],
    [
      '%o of a string',
      "'%o'.format(['1'])",
      `1:14 ${during}octal clause can only be used on integers, was given string`,
    ],
    [
      '%s of an optional',
      "'%s'.format([o])",
      /^1:14 error during formatting: string clause can only be used on .* was given optional_type$/,
    ],
    ['%s of a list with one', "'%s'.format([[o]])", /^1:15 error during formatting: string clause/],
    [
      'a clause that does not exist',
      "'%a'.format([1])",
      '1:12 could not parse formatting clause: unrecognized formatting clause "a"',
    ],
    ['too few arguments', "'%d %d'.format([1])", '1:15 index 1 out of range'],
    [
      'too many arguments',
      "'%d'.format([1, 2, 3])",
      '1:12 too many arguments supplied to string.format (expected 1, got 3)',
    ],
    ['a percent sign at the end', "'100%'.format([1])", '1:14 unexpected end of string'],
    [
      'a precision without an end',
      "'%.2'.format([1])",
      /^1:13 could not parse formatting clause: error while parsing precision/,
    ],
    ['a doubled percent sign', "'100%% %s'.format(['a'])", 'string'],
    ['dyn is taken for anything', "'%d %f %x %s'.format([d, d, d, d])", 'string'],
    ['the second of two calls', "'%s'.format([1]) + '%d'.format([s])", /^1:33/],
    ['a string that is no constant', 's.format([1, 2])', 'string'],
  ])('%s', (_, source, expected) => {
    if (typeof expected === 'string') expect(outcome(source)).toBe(expected)
    else expect(outcome(source)).toMatch(expected)
  })

  test.each([
    ["'%d'.format([1.0])", 'string'],
    ["'%f'.format([1])", 'string'],
    [
      "'%d'.format(['a'])",
      `1:14 ${during}decimal clause can only be used on ints, uints, and doubles, was given string`,
    ],
  ])('the newer formatter takes any number: %s', (source, expected) => {
    expect(outcome(source, 'spec')).toBe(expected)
  })
})
