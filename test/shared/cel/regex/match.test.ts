import { describe, expect, test } from 'vitest'
import { loadRegex } from '#shared/cel/regex.ts'

const engine = await loadRegex()

const none = undefined

describe('matches: the leftmost, and of those the one a backtracking search finds first', () => {
  test.each([
    { pattern: 'a|ab', text: 'ab', gives: [['a']] },
    { pattern: 'ab|a', text: 'ab', gives: [['ab']] },
    { pattern: 'a+?', text: 'aaa', gives: [['a'], ['a'], ['a']] },
    { pattern: '(?U)a+', text: 'aa', gives: [['a'], ['a']] },
    { pattern: '(?U)a+?', text: 'aa', gives: [['aa']] },
    {
      pattern: '(a+)(b+)?',
      text: 'aab a',
      gives: [
        ['aab', 'aa', 'b'],
        ['a', 'a', none],
      ],
    },
    {
      pattern: '(a*)*',
      text: 'b',
      gives: [
        ['', ''],
        ['', ''],
      ],
    },
    { pattern: '(a|b)*', text: 'ab', gives: [['ab', 'b']] },
    { pattern: '(?:(a)|b)*', text: 'ab', gives: [['ab', 'a']] },
    {
      pattern: '(|a)*',
      text: 'aa',
      gives: [
        ['', ''],
        ['', ''],
        ['', ''],
      ],
    },
    {
      pattern: '(|a)+',
      text: 'aa',
      gives: [
        ['', ''],
        ['', ''],
        ['', ''],
      ],
    },
    { pattern: '(a|)+', text: 'aa', gives: [['aa', 'a']] },
    { pattern: '(a){0}b', text: 'ab', gives: [['b', none]] },
    { pattern: '(a){2,3}', text: 'aaaa', gives: [['aaa', 'a']] },
    { pattern: '(x)?y', text: 'y', gives: [['y', none]] },
    { pattern: '(x*)y', text: 'y', gives: [['y', '']] },
    { pattern: '', text: 'ab', gives: [[''], [''], ['']] },
    { pattern: 'a*', text: 'baac', gives: [[''], ['aa'], ['']] },
    { pattern: 'a*|b', text: 'b', gives: [[''], ['']] },
    { pattern: '', text: '🚀', gives: [[''], ['']] },
    { pattern: '.', text: 'a🚀\n', gives: [['a'], ['🚀']] },
    { pattern: '(?s).', text: '\n', gives: [['\n']] },
    { pattern: '[^a]', text: 'a\nb', gives: [['\n'], ['b']] },
    { pattern: '[^\\x00-\\x{10FFFF}]', text: 'a', gives: [] },
    { pattern: '\\bfoo\\b', text: 'foo food foo', gives: [['foo'], ['foo']] },
    { pattern: '\\b', text: 'é a', gives: [[''], ['']] },
    { pattern: '\\B', text: 'ab', gives: [['']] },
    { pattern: '(?m)^.*$', text: 'a\nbc\n', gives: [['a'], ['bc'], ['']] },
    { pattern: '^', text: 'a\nb', gives: [['']] },
    { pattern: '$', text: 'a\n', gives: [['']] },
    { pattern: '(?m)\\A.', text: 'a\nb', gives: [['a']] },
    { pattern: '(?m).\\z', text: 'a\nb', gives: [['b']] },
    { pattern: '(?i)straße', text: 'STRAẞE', gives: [['STRAẞE']] },
    { pattern: '(?i)k', text: 'kK\u212a', gives: [['k'], ['K'], ['\u212a']] },
    { pattern: '(?i)[[:lower:]]+', text: 'aZſ\u212a', gives: [['aZſ\u212a']] },
    { pattern: '(?i)\\W', text: 'ſ-', gives: [['-']] },
    { pattern: '\\w+', text: 'aſ', gives: [['a']] },
    { pattern: '(?i)[^k]', text: 'K\u212ax', gives: [['x']] },
    { pattern: '(?i)Σ', text: 'ςσ', gives: [['ς'], ['σ']] },
    { pattern: '(?i:a)b', text: 'Ab aB', gives: [['Ab']] },
    { pattern: '\\s', text: '\v\f', gives: [['\f']] },
    { pattern: '[[:space:]]', text: '\v\f', gives: [['\v'], ['\f']] },
    { pattern: '\\p{Greek}\\P{Greek}', text: 'aαb', gives: [['αb']] },
    { pattern: '[\\p{^Lu}]', text: 'Aa', gives: [['a']] },
  ])('$pattern in $text', ({ pattern, text, gives }) => {
    const regex = engine.compile(pattern)
    expect(regex.matches(text)).toEqual(gives)
    expect(regex.matches(text, 1)).toEqual(gives.slice(0, 1))
    expect(regex.test(text)).toBe(gives.length > 0)
  })

  test.each([
    ['a half of a pair is U+FFFD, as Go decodes it', '\\x{FFFD}', '\ud800', ['\ud800']],
    ['so is the other half', '^\\x{FFFD}$', '\udc00', ['\udc00']],
    ['two halves in the wrong order are two', '.', '\udc00\ud800', ['\udc00', '\ud800']],
    ['a half in a pattern is U+FFFD too', '\ud800', '\ufffd', ['\ufffd']],
    ['no text has a half that is named', '[\\x{D800}-\\x{DFFF}]', '\ud800\udc00\ud800', []],
    ['a pair is not taken apart', '[^a]', '🚀', ['🚀']],
  ])('%s', (_, pattern, text, wholes) => {
    const regex = engine.compile(pattern)
    expect(regex.matches(text).map(([whole]) => whole)).toEqual(wholes)
    expect(regex.test(text)).toBe(wholes.length > 0)
  })
})

describe('replace', () => {
  test.each([
    ['every match', 'b+', 'abbab', '-', 'a-a-'],
    ['groups by number', '(a)(b)?', 'abac', '<\\2\\1\\0>', '<baab><aa>c'],
    ['a backslash', 'a', 'a', '\\\\', '\\'],
    ['empty matches too', 'x*', 'ab', '-', '-a-b-'],
    ['none behind another match', 'a*', 'baac', '-', '-b-c-'],
  ])('%s', (_, pattern, text, replacement, gives) => {
    expect(engine.compile(pattern).replace(text, replacement)).toBe(gives)
  })

  test('at most as many as asked for', () => {
    expect(engine.compile('a').replace('aaa', 'b', 2)).toBe('bba')
    expect(engine.compile('a').replace('aaa', 'b', 0)).toBe('aaa')
  })

  test.each([
    ['a group that is not there', '\\2', /references group 2 but regex has only 1 group/],
    ['a letter behind the backslash', '\\n', /must be followed by a digit or/],
    ['nothing behind the backslash', '\\', /must be followed by a digit or/],
  ])('%s is refused, but only when something would be replaced', (_, replacement, message) => {
    const regex = engine.compile('(a)')
    expect(() => regex.replace('a', replacement)).toThrow(message)
    expect(regex.replace('b', replacement)).toBe('b')
  })
})

test('the pattern that comes again is not compiled again', () => {
  const regex = engine.compile('a[bc]')
  expect(engine.compile('a[bc]')).toBe(regex)
  expect(engine.compile('a[bd]')).not.toBe(regex)
})
