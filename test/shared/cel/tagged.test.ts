import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import { fromTagged, sameTagged, type TaggedValue, toTagged } from '#shared/cel/tagged.ts'

const environment = createEnvironment({ profile: 'kubernetes', variables: {}, patchTypes: true })

function resultOf(source: string): TaggedValue {
  const result = compile(source, environment)
  if (!result.ok) throw new Error(result.issues[0]?.message)
  const planned = plan(result.checked, {
    profile: 'kubernetes',
    implementations: kubernetesLibrary,
  })
  if (!planned.ok) throw new Error(planned.message)
  const outcome = planned.program.evaluate({})
  if (outcome.kind === 'error') throw new Error(outcome.message)
  return toTagged(outcome.value)
}

describe('values with their types', () => {
  test.each<[string, string, TaggedValue]>([
    ['an int', '9223372036854775807', { int: '9223372036854775807' }],
    ['a small int', '-1', { int: '-1' }],
    ['a uint', '18446744073709551615u', { uint: '18446744073709551615' }],
    ['a double that could be an int', '2.0', { double: '2' }],
    ['a double', '-0.5', { double: '-0.5' }],
    ['a string', '"ä"', { string: 'ä' }],
    ['a bool', 'true', { bool: true }],
    ['bytes', String.raw`b'\x00\xff'`, { bytes: 'AP8=' }],
    [
      'a map, whatever the order it was written in',
      '{"b": 1, "a": 2}',
      {
        map: [
          [{ string: 'a' }, { int: '2' }],
          [{ string: 'b' }, { int: '1' }],
        ],
      },
    ],
    ['null', 'null', { null: true }],
    ['a list', '[1, 2]', { list: [{ int: '1' }, { int: '2' }] }],
    ['a map of ints', '{2: "b"}', { map: [[{ int: '2' }, { string: 'b' }]] }],
    ['a type', 'type(1)', { type: 'int' }],
    ['a timestamp', 'timestamp("2024-01-01T00:00:00.5Z")', { timestamp: '2024-01-01T00:00:00.5Z' }],
    ['a duration', 'duration("90s")', { duration: '90s' }],
    ['an optional', 'optional.of(1)', { optional: { int: '1' } }],
    ['nothing', 'optional.none()', { optional: null }],
    ['an address', 'ip("::1")', { opaque: 'net.IP', str: '::1' }],
    [
      'a message',
      'JSONPatch{op: "test"}',
      { message: 'JSONPatch', fields: [['op', { string: 'test' }]] },
    ],
  ])('%s', (_, source, tagged) => {
    expect(resultOf(source)).toEqual(tagged)
  })
})

describe('a tag that stands for no value is refused', () => {
  test.each<[string, unknown]>([
    ['no object', 1],
    ['nothing', null],
    ['no tag', {}],
    ['an unknown tag', { integer: '1' }],
    ['a number that is not text', { int: 1 }],
    ['a fraction', { int: '1.5' }],
    ['an int that is too large', { int: '9223372036854775808' }],
    ['an int that is too small', { int: '-9223372036854775809' }],
    ['a negative uint', { uint: '-1' }],
    ['a uint that is too large', { uint: '18446744073709551616' }],
    ['more digits than any number has', { uint: '0'.repeat(100) }],
    ['a double that is none', { double: 'one' }],
    ['an empty double', { double: '' }],
    ['a bool that is text', { bool: 'true' }],
    ['a list that is none', { list: 'abc' }],
    ['a map of something else than pairs', { map: [[{ int: '1' }]] }],
    ['a wrong element', { list: [{ int: 'x' }] }],
    ['a wrong timestamp', { timestamp: 'yesterday' }],
    ['a wrong duration', { duration: '1 hour' }],
    ['an opaque value', { opaque: 'net.IP', str: '::1' }],
  ])('%s', (_, tagged) => {
    expect(() => fromTagged(tagged)).toThrow(TypeError)
  })
})

describe('two tagged values are the same', () => {
  test.each<[string, TaggedValue, TaggedValue, boolean]>([
    [
      'when only the order of a map differs',
      {
        map: [
          [{ int: '1' }, { int: '2' }],
          [{ int: '3' }, { int: '4' }],
        ],
      },
      {
        map: [
          [{ int: '3' }, { int: '4' }],
          [{ int: '1' }, { int: '2' }],
        ],
      },
      true,
    ],
    ['when a double is spelled otherwise', { double: '1e3' }, { double: '1000' }, true],
    ['not when an int is a uint', { int: '1' }, { uint: '1' }, false],
    [
      'not when the order of a list differs',
      { list: [{ int: '1' }, { int: '2' }] },
      { list: [{ int: '2' }, { int: '1' }] },
      false,
    ],
    ['not when one is absent', { optional: null }, { optional: { null: true } }, false],
  ])('%s', (_, a, b, same) => {
    expect(sameTagged(a, b)).toBe(same)
  })
})

const scalar: fc.Arbitrary<TaggedValue> = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => ({ int: `${n}` })),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((n) => ({ uint: `${n}` })),
  fc.double().map((n) => ({ double: String(n) })),
  fc.string({ unit: 'binary' }).map((text) => ({ string: text })),
  fc.boolean().map((bool) => ({ bool })),
  fc.constant<TaggedValue>({ null: true }),
)

const { tagged } = fc.letrec<{ tagged: TaggedValue }>((tie) => ({
  tagged: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('tagged'), { maxLength: 3 }).map((list) => ({ list })),
    fc
      .uniqueArray(fc.string(), { maxLength: 3 })
      .chain((keys) =>
        fc.tuple(
          ...keys.map((key) =>
            tie('tagged').map((value): [TaggedValue, TaggedValue] => [{ string: key }, value]),
          ),
        ),
      )
      .map((map) => ({ map })),
    fc.option(tie('tagged')).map((optional) => ({ optional })),
  ),
}))

test('what is read is written the same', () => {
  fc.assert(fc.property(tagged, (value) => sameTagged(toTagged(fromTagged(value)), value)))
})
