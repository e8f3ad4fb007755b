import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import {
  apiHost,
  formatReference,
  isReference,
  parseReference,
  withDigest,
} from '#shared/image/reference.ts'

const D = `sha256:${'a'.repeat(64)}`

describe('parseReference', () => {
  test.each([
    { text: 'nginx', registry: 'index.docker.io', repository: 'library/nginx', tag: 'latest' },
    { text: 'nginx:1.25', registry: 'index.docker.io', repository: 'library/nginx', tag: '1.25' },
    { text: 'org/app', registry: 'index.docker.io', repository: 'org/app', tag: 'latest' },
    {
      text: 'docker.io/nginx',
      registry: 'index.docker.io',
      repository: 'library/nginx',
      tag: 'latest',
    },
    {
      text: 'index.docker.io/library/nginx:1',
      registry: 'index.docker.io',
      repository: 'library/nginx',
      tag: '1',
    },
    { text: 'ghcr.io/nginx', registry: 'ghcr.io', repository: 'nginx', tag: 'latest' },
    { text: 'localhost/tool:dev', registry: 'localhost', repository: 'tool', tag: 'dev' },
    {
      text: 'localhost:5000/app/web',
      registry: 'localhost:5000',
      repository: 'app/web',
      tag: 'latest',
    },
    { text: 'registry:5000/app', registry: 'registry:5000', repository: 'app', tag: 'latest' },
    {
      text: 'localhost:5000',
      registry: 'index.docker.io',
      repository: 'library/localhost',
      tag: '5000',
    },
    {
      text: `registry.test:5000/app:1@${D}`,
      registry: 'registry.test:5000',
      repository: 'app',
      tag: '1',
      digest: D,
    },
    { text: `nginx@${D}`, registry: 'index.docker.io', repository: 'library/nginx', digest: D },
    { text: '[::1]:5000/app:1', registry: '[::1]:5000', repository: 'app', tag: '1' },
    { text: '[fd00::a]/app', registry: '[fd00::a]', repository: 'app', tag: 'latest' },
    { text: '127.0.0.1:5000/app', registry: '127.0.0.1:5000', repository: 'app', tag: 'latest' },
    { text: 'Registry.Test/app', registry: 'Registry.Test', repository: 'app', tag: 'latest' },
    { text: 'a.b/c__d-e/f.g:V_1.2-x', registry: 'a.b', repository: 'c__d-e/f.g', tag: 'V_1.2-x' },
    { text: 'org.name/app', registry: 'org.name', repository: 'app', tag: 'latest' },
  ])('reads $text', (row) => {
    const { text, ...parts } = row
    expect(parseReference(text)).toEqual({ text, ...parts })
  })

  test.each([
    { name: 'nothing', text: '' },
    { name: 'white space in front', text: ' nginx' },
    { name: 'a line break behind', text: 'nginx\n' },
    { name: 'an upper-case repository', text: 'Registry.test/App:1' },
    { name: 'an upper-case first component, which is no registry', text: 'Org/app' },
    { name: 'one character', text: 'a' },
    { name: 'an empty tag', text: 'nginx:' },
    { name: 'a tag with a slash', text: 'nginx:a/b' },
    { name: 'a tag of 129 characters', text: `nginx:${'a'.repeat(129)}` },
    { name: 'a repository of 256 characters', text: 'a'.repeat(256) },
    { name: 'a text of 801 characters', text: `registry.test/${'a'.repeat(787)}` },
    { name: 'an empty digest', text: 'nginx@' },
    { name: 'a short digest', text: 'nginx@sha256:abc' },
    { name: 'a digest in upper case', text: `nginx@${D.toUpperCase()}` },
    { name: 'a digest with upper-case digits', text: `nginx@sha256:${'A'.repeat(64)}` },
    { name: 'another digest algorithm', text: `nginx@sha512:${'a'.repeat(128)}` },
    { name: 'two digests', text: `nginx@${D}@${D}` },
    { name: 'a digest alone', text: `@${D}` },
    { name: 'a digest before a tag', text: `nginx@${D}:1` },
    { name: 'two tags', text: 'nginx:1:2' },
    { name: 'a scheme', text: 'https://registry.test/app' },
    { name: 'a user', text: 'user@registry.test/app' },
    { name: 'a user with a password', text: 'user:password@registry.test/app' },
    { name: 'a registry without repository', text: 'registry.test/' },
    { name: 'an empty component', text: 'registry.test/a//b' },
    { name: 'a component at the end that is empty', text: 'registry.test/a/' },
    { name: 'a leading slash', text: '/nginx' },
    { name: 'a path that leaves the repository', text: 'registry.test/../../etc/passwd' },
    { name: 'a dot component', text: 'registry.test/a/./b' },
    { name: 'a query', text: 'registry.test/a?b' },
    { name: 'a fragment', text: 'registry.test/a#b' },
    { name: 'an escape in the host', text: '%41.test/app' },
    { name: 'a host outside ASCII', text: 'régistry.test/app' },
    { name: 'a port with letters', text: 'registry.test:http/app' },
    { name: 'a host with a leading hyphen', text: '-a.test/app' },
    { name: 'a host with an empty label', text: 'a..test/app' },
    { name: 'an address in brackets that is none', text: '[evil.test]/app' },
    { name: 'a NUL', text: 'nginx\u0000' },
  ])('refuses $name', ({ text }) => {
    expect(() => parseReference(text)).toThrow(
      expect.objectContaining({ code: 'IMAGE_REFERENCE_INVALID' }),
    )
    expect(isReference(text)).toBe(false)
  })

  test('shows a bounded part of what it refuses', () => {
    const text = 'A'.repeat(100_000)
    expect(() => parseReference(text)).toThrow(/^.{0,400}$/)
  })

  test('parse after format gives the same parts, and never throws anything else', () => {
    const piece = fc.constantFrom(
      'a',
      'b1',
      'A',
      '.',
      ':',
      '/',
      '@',
      '-',
      '_',
      '5000',
      'docker.io',
      'localhost',
      '[::1]',
      D,
      'library',
      '..',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const text = pieces.join('')
        try {
          const { text: _, ...parts } = parseReference(text)
          const formatted = formatReference(parts)
          expect(parseReference(formatted)).toEqual({ ...parts, text: formatted })
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(AdmissionError)
          expect(thrown).toMatchObject({ code: 'IMAGE_REFERENCE_INVALID' })
        }
      }),
      { numRuns: 2000 },
    )
  })
})

describe('withDigest', () => {
  test.each([
    { text: 'nginx', pinned: `nginx@${D}` },
    { text: 'docker.io/nginx:1', pinned: `docker.io/nginx:1@${D}` },
    { text: `nginx:1@${D}`, pinned: `nginx:1@${D}` },
  ])('keeps $text as it was written', ({ text, pinned }) => {
    expect(withDigest(text, D)).toBe(pinned)
    expect(parseReference(pinned).digest).toBe(D)
  })

  test.each([
    { name: 'another digest is there', text: `nginx@sha256:${'b'.repeat(64)}`, digest: D },
    { name: 'the text is not a reference', text: 'NGINX!', digest: D },
    { name: 'the digest is not one', text: 'nginx', digest: 'sha256:abc' },
  ])('refuses when $name', ({ text, digest }) => {
    expect(() => withDigest(text, digest)).toThrow(
      expect.objectContaining({ code: 'IMAGE_REFERENCE_INVALID' }),
    )
  })
})

describe('apiHost', () => {
  test.each([
    { text: 'nginx', host: 'registry-1.docker.io' },
    { text: 'docker.io/a/b', host: 'registry-1.docker.io' },
    { text: 'Registry.Test:5000/app', host: 'registry.test:5000' },
    { text: '[::1]:5000/app', host: '[::1]:5000' },
  ])('$text is at $host', ({ text, host }) => {
    expect(apiHost(parseReference(text))).toBe(host)
  })
})
