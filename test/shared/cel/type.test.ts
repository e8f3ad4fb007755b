import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseType, printDeclaredType, printType } from '#shared/cel/type.ts'

describe('type names', () => {
  test.each([
    ['int', 'int', 'int'],
    ['null', 'null', 'null_type'],
    ['null_type', 'null', 'null_type'],
    ['timestamp', 'timestamp', 'google.protobuf.Timestamp'],
    ['google.protobuf.Duration', 'duration', 'google.protobuf.Duration'],
    ['list', 'list(dyn)', 'list(dyn)'],
    ['map', 'map(dyn, dyn)', 'map(dyn, dyn)'],
    [
      'list(map(string,list( int )))',
      'list(map(string, list(int)))',
      'list(map(string, list(int)))',
    ],
    ['optional_type(null)', 'optional_type(null)', 'optional_type(null_type)'],
    ['wrapper(int)', 'wrapper(int)', 'wrapper(int)'],
    ['type', 'type', 'type'],
    ['type(list(int))', 'type(list(int))', 'type(list(int))'],
    ['net.IP', 'net.IP', 'net.IP'],
    ['tuple(int, string, bool)', 'tuple(int, string, bool)', 'tuple(int, string, bool)'],
  ])('%s is checked as %s and declared as %s', (text, checked, declared) => {
    expect(printType(parseType(text))).toBe(checked)
    expect(printDeclaredType(parseType(text))).toBe(declared)
  })

  test.each(['', 'list(', 'list(int', 'list(int))', 'map(int,)', 'a b', '(int)', 'list()'])(
    '%j is not one',
    (text) => {
      expect(() => parseType(text)).toThrow(TypeError)
    },
  )

  test('a printed type reads back the same', () => {
    const { type } = fc.letrec<{ type: string; leaf: string }>((tie) => ({
      leaf: fc.constantFrom('int', 'dyn', 'string', 'null', 'duration', 'a.b.C', 'wrapper(bool)'),
      type: fc.oneof(
        { maxDepth: 4 },
        tie('leaf'),
        tie('type').map((t) => `list(${t})`),
        fc.tuple(tie('type'), tie('type')).map(([k, v]) => `map(${k}, ${v})`),
        tie('type').map((t) => `optional_type(${t})`),
        tie('type').map((t) => `type(${t})`),
      ),
    }))
    fc.assert(
      fc.property(type, (text) => {
        expect(printType(parseType(text))).toBe(text)
      }),
    )
  })

  test('any other text is a type or a TypeError', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseType(text)
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(TypeError)
        }
      }),
    )
  })
})
