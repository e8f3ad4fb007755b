import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_GLOB_CHARS } from '#shared/limits.ts'
import { compileGlob } from '#shared/policy/glob.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`

describe('compileGlob', () => {
  test.each([
    { name: 'a star crosses slashes', glob: 'ghcr.io/*', text: 'ghcr.io/org/app:1', is: true },
    { name: 'a star matches nothing', glob: 'ghcr.io/*', text: 'ghcr.io/', is: true },
    {
      name: 'a star in the middle is anchored',
      glob: 'ghcr.io/*/foo',
      text: 'ghcr.io/org/app',
      is: false,
    },
    { name: 'text is taken as written', glob: 'docker.io/*', text: 'nginx:1', is: false },
    {
      name: 'a lone star matches everything',
      glob: '*',
      text: `registry.test:5000/a/b@${DIGEST}`,
      is: true,
    },
    { name: 'a lone star matches the empty text', glob: '*', text: '', is: true },
    {
      name: 'the end is anchored',
      glob: 'registry.test/app',
      text: 'registry.test/app:1',
      is: false,
    },
    { name: 'the start is anchored', glob: 'app:1', text: 'registry.test/app:1', is: false },
    {
      name: 'braces give alternatives',
      glob: 'registry.test/{a,b}:*',
      text: 'registry.test/b:2',
      is: true,
    },
    { name: 'none of the alternatives', glob: '{a,b}:*', text: 'c:2', is: false },
    { name: 'an alternative may be empty', glob: 'a{,-debug}', text: 'a', is: true },
    { name: 'alternatives nest', glob: '{a,b{c,d}}e', text: 'bde', is: true },
    { name: 'alternatives hold stars', glob: '{a*,b}/x', text: 'a/y/x', is: true },
    { name: 'two stars are one', glob: 'ghcr.io/**', text: 'ghcr.io/a/b', is: true },
    { name: 'a question mark is one character', glob: 'a?c', text: 'a/c', is: true },
    { name: 'a question mark is not nothing', glob: 'a?c', text: 'ac', is: false },
    { name: 'a question mark is one code point', glob: 'a?c', text: 'a😀c', is: true },
    { name: 'a list', glob: '[abc]x', text: 'bx', is: true },
    { name: 'not in the list', glob: '[abc]x', text: 'dx', is: false },
    { name: 'a negated list', glob: '[!abc]x', text: 'dx', is: true },
    { name: 'a negated list still is one character', glob: '[!abc]x', text: 'x', is: false },
    { name: 'a range', glob: 'v[0-9]', text: 'v7', is: true },
    { name: 'outside a range', glob: 'v[0-9]', text: 'vx', is: false },
    { name: 'a negated range', glob: '[!a-z]x', text: 'Mx', is: true },
    { name: 'a list may hold a dash', glob: '[ab-]', text: '-', is: true },
    { name: 'a list may hold an escaped bracket', glob: '[\\]]', text: ']', is: true },
    { name: 'an escaped star is a star', glob: 'a\\*', text: 'a*', is: true },
    { name: 'an escaped star is nothing else', glob: 'a\\*', text: 'ab', is: false },
    { name: 'case matters', glob: 'ghcr.io/*', text: 'GHCR.io/a', is: false },
    { name: 'a comma outside braces is a comma', glob: 'a,b', text: 'a,b', is: true },
    { name: 'a closing brace alone is itself', glob: 'a}', text: 'a}', is: true },
    { name: 'a dot is a dot', glob: 'ghcr.io/a', text: 'ghcrxio/a', is: false },
    { name: 'a line break is a character', glob: 'a*b', text: 'a\nb', is: true },
  ])('$name: $glob on $text is $is', ({ glob, text, is }) => {
    expect(compileGlob(glob).matches(text)).toBe(is)
  })

  test.each([
    { glob: '', message: 'glob "": the pattern is empty' },
    { glob: 'a{b', message: 'glob "a{b" at character 2: "{" is never closed' },
    { glob: '{a,{b}', message: 'glob "{a,{b}" at character 1: "{" is never closed' },
    { glob: 'a[b', message: 'glob "a[b" at character 2: "[" is never closed' },
    { glob: 'a[]', message: 'glob "a[]" at character 2: a set is empty' },
    { glob: 'a[!]', message: 'glob "a[!]" at character 2: a set is empty' },
    {
      glob: '[a-z0-9]',
      message:
        'glob "[a-z0-9]" at character 1: a set is either one range, "[a-z]", or a list, "[abc]"',
    },
    {
      glob: '[a-]',
      message: 'glob "[a-]" at character 1: a set is either one range, "[a-z]", or a list, "[abc]"',
    },
    {
      glob: '[z-a]',
      message: 'glob "[z-a]" at character 1: range "z-a" is the wrong way round',
    },
    { glob: 'a\\', message: 'glob "a\\\\" at character 2: nothing follows the last "\\"' },
    {
      glob: 'x'.repeat(MAX_GLOB_CHARS + 1),
      message: `glob of ${MAX_GLOB_CHARS + 1} characters is longer than ${MAX_GLOB_CHARS}`,
    },
  ])('refuses $glob', ({ glob, message }) => {
    expect(() => compileGlob(glob)).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', message }),
    )
  })

  test('a pattern that would take a backtracking matcher for ever gets its answer', () => {
    expect(compileGlob(`${'*a'.repeat(200)}b`).matches('a'.repeat(800))).toBe(false)
  })

  test('agrees with a naive matcher on everything', () => {
    fc.assert(
      fc.property(
        pattern(),
        fc.string({ unit: fc.constantFrom(...'ab/:😀'), maxLength: 8 }),
        (p, text) => {
          expect(compileGlob(p.text).matches(text)).toBe(
            p.match([...text]).some((n) => n === [...text].length),
          )
        },
      ),
      { numRuns: 2000 },
    )
  })

  test('never throws anything but its own fault', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'ab*?[]{}!-,\\/'), maxLength: 12 }),
        fc.string({ maxLength: 6 }),
        (glob, text) => {
          try {
            expect(typeof compileGlob(glob).matches(text)).toBe('boolean')
          } catch (error) {
            expect(error).toBeInstanceOf(AdmissionError)
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})

/** A pattern and, for a text, every length of a prefix that it matches: slow and obvious. */
interface Naive {
  text: string
  match: (characters: string[]) => number[]
}

function pattern(): fc.Arbitrary<Naive> {
  const { node } = fc.letrec<{ node: Naive; leaf: Naive }>((tie) => ({
    leaf: fc.oneof(
      fc.constantFrom(...'ab/:').map((c) => one(c, (x) => x === c)),
      fc.constant(one('?', () => true)),
      fc.constant(one('[ab]', (x) => x === 'a' || x === 'b')),
      fc.constant(one('[!ab]', (x) => x !== 'a' && x !== 'b')),
      fc.constant(one('[a-b]', (x) => x === 'a' || x === 'b')),
      fc.constant(one('\\*', (x) => x === '*')),
      fc
        .constantFrom('*', '**')
        .map((text) => ({ text, match: (c: string[]) => [...c.keys(), c.length] })),
    ),
    node: fc.oneof(
      { maxDepth: 3 },
      tie('leaf'),
      fc.array(tie('node'), { minLength: 1, maxLength: 4 }).map(sequence),
      fc.array(tie('node'), { minLength: 1, maxLength: 3 }).map(alternatives),
    ),
  }))
  return node
}

function one(text: string, accepts: (character: string) => boolean): Naive {
  return { text, match: ([first]) => (first !== undefined && accepts(first) ? [1] : []) }
}

function sequence(parts: Naive[]): Naive {
  return {
    text: parts.map((part) => part.text).join(''),
    match: (characters) =>
      parts.reduce<number[]>(
        (ends, part) => [
          ...new Set(ends.flatMap((at) => part.match(characters.slice(at)).map((n) => at + n))),
        ],
        [0],
      ),
  }
}

function alternatives(parts: Naive[]): Naive {
  return {
    text: `{${parts.map((part) => part.text).join(',')}}`,
    match: (characters) => [...new Set(parts.flatMap((part) => part.match(characters)))],
  }
}
