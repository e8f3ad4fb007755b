import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Challenge, parseChallenges } from '#shared/registry/challenge.ts'

function challenge(scheme: string, params: Record<string, string>, token68?: string): Challenge {
  const parsed = { scheme, params: new Map(Object.entries(params)) }
  return token68 === undefined ? parsed : { ...parsed, token68 }
}

describe('parseChallenges', () => {
  test.each([
    {
      name: 'the challenge of a token service',
      header:
        'Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull"',
      expected: [
        challenge('bearer', {
          realm: 'https://auth.example/token',
          service: 'registry.example',
          scope: 'repository:a/b:pull',
        }),
      ],
    },
    {
      name: 'a comma inside quotes',
      header: 'Bearer realm="x", scope="repository:a:pull,push"',
      expected: [challenge('bearer', { realm: 'x', scope: 'repository:a:pull,push' })],
    },
    {
      name: 'several challenges in one header',
      header: 'Basic realm="a", charset="UTF-8", Bearer realm="b",service=c',
      expected: [
        challenge('basic', { realm: 'a', charset: 'UTF-8' }),
        challenge('bearer', { realm: 'b', service: 'c' }),
      ],
    },
    {
      name: 'schemes without parameters',
      header: 'Negotiate, NTLM , Basic realm="x"',
      expected: [
        challenge('negotiate', {}),
        challenge('ntlm', {}),
        challenge('basic', { realm: 'x' }),
      ],
    },
    {
      name: 'a token68',
      header: 'Negotiate YWJj==, Basic realm=x',
      expected: [challenge('negotiate', {}, 'YWJj=='), challenge('basic', { realm: 'x' })],
    },
    {
      name: 'space around the equals sign and empty list members',
      header: ' ,, Bearer realm = "x" ,, service="y",',
      expected: [challenge('bearer', { realm: 'x', service: 'y' })],
    },
    {
      name: 'escapes in a quoted string',
      header: 'Basic realm="a\\"b\\\\c"',
      expected: [challenge('basic', { realm: 'a"b\\c' })],
    },
    {
      name: 'names in any case',
      header: 'BEARER Realm="x"',
      expected: [challenge('bearer', { realm: 'x' })],
    },
    {
      name: 'a parameter named like something inherited',
      header: 'Bearer __proto__="x",constructor=y',
      expected: [
        {
          scheme: 'bearer',
          params: new Map([
            ['__proto__', 'x'],
            ['constructor', 'y'],
          ]),
        },
      ],
    },
    { name: 'an empty header', header: '', expected: [] },
    { name: 'a quote that never ends', header: 'Bearer realm="x', expected: undefined },
    { name: 'a backslash at the end', header: 'Bearer realm="x\\', expected: undefined },
    { name: 'a parameter twice', header: 'Bearer realm="x",REALM="y"', expected: undefined },
    { name: 'parameters without a scheme', header: 'realm="x"', expected: undefined },
    {
      name: 'parameters without a comma',
      header: 'Bearer realm="x" service="y"',
      expected: undefined,
    },
    { name: 'a control character', header: 'Bearer realm="x\u0001"', expected: undefined },
    { name: 'a line break', header: 'Bearer realm="x",\r\nservice="y"', expected: undefined },
    { name: 'more than 8 KiB', header: `Bearer realm="${'x'.repeat(8192)}"`, expected: undefined },
  ])('$name', ({ header, expected }) => {
    expect(parseChallenges(header)).toEqual(expected)
  })

  const word = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/)
  const value = fc.stringMatching(/^[\t -~\u00a0-\u00ff]{0,40}$/)
  const parsed = fc.array(
    fc.oneof(
      fc.record({
        scheme: word.map((text) => text.toLowerCase()),
        params: fc
          .dictionary(
            word.map((text) => text.toLowerCase()),
            value,
            { maxKeys: 5 },
          )
          .map((record) => new Map(Object.entries(record))),
      }),
      fc.record({
        scheme: word.map((text) => text.toLowerCase()),
        params: fc.constant(new Map<string, string>()),
        token68: fc.stringMatching(/^[A-Za-z0-9._~+/-]{1,20}={0,2}$/),
      }),
    ),
    { maxLength: 4 },
  )

  function format(challenges: readonly Challenge[]): string {
    const one = ({ scheme, params, token68 }: Challenge): string => {
      const written = [...params].map(
        ([name, text]) => `${name}="${text.replace(/["\\]/g, '\\$&')}"`,
      )
      return token68 === undefined
        ? [scheme, written.join(', ')].join(' ').trim()
        : `${scheme} ${token68}`
    }
    return challenges.map(one).join(', ')
  }

  test('gives back what was formatted', () => {
    fc.assert(
      fc.property(parsed, (challenges) => {
        expect(parseChallenges(format(challenges))).toEqual(challenges)
      }),
    )
  })

  test('never throws, and takes no longer for a header made to be slow', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('Bearer ', 'realm=', '"', '\\', ',', ' ', '=', '==', 'a', '\t', '\u0000'),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const challenges = parseChallenges(pieces.join(''))
        expect(challenges === undefined || Array.isArray(challenges)).toBe(true)
      }),
    )
    for (const slow of ['a=', ' ', 'a ', '"\\', 'a==', 'a,', '=']) {
      parseChallenges(`Bearer ${slow.repeat(8000 / slow.length)}`)
      parseChallenges(`Bearer realm="${slow.repeat(8000 / slow.length)}`)
    }
  })
})
