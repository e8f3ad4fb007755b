import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plainSpellings, spellings } from '#shared/image/spelling.ts'

const D = `@sha256:${'a'.repeat(64)}`

describe('spellings', () => {
  test('of a Docker Hub image are all its names', () => {
    expect(spellings('nginx')).toEqual(
      [
        'nginx',
        'library/nginx',
        'docker.io/nginx',
        'docker.io/library/nginx',
        'index.docker.io/nginx',
        'index.docker.io/library/nginx',
        'registry-1.docker.io/nginx',
        'registry-1.docker.io/library/nginx',
        'registry.hub.docker.com/nginx',
        'registry.hub.docker.com/library/nginx',
      ].flatMap((name) => [name, `${name}:latest`]),
    )
  })

  test.each([
    { text: 'ghcr.io/app:1', also: ['ghcr.io/app:1', 'ghcr.io:443/app:1'] },
    {
      text: 'GHCR.io:443/app:1',
      also: ['GHCR.io:443/app:1', 'ghcr.io/app:1', 'ghcr.io:443/app:1'],
    },
    { text: 'r.example:5000/app:1', also: ['r.example:5000/app:1'] },
    { text: 'Registry/app:1', also: ['Registry/app:1', 'registry/app:1', 'registry:443/app:1'] },
    { text: '[::1]/app:1', also: ['[::1]/app:1'] },
  ])('of $text differ in the registry', ({ text, also }) => {
    expect(spellings(text)).toEqual(also)
  })

  test.each([
    { text: 'r.example:1/app', versions: ['', ':latest'] },
    { text: 'r.example:1/app:latest', versions: [':latest', ''] },
    { text: 'r.example:1/app:2', versions: [':2'] },
    { text: `r.example:1/app${D}`, versions: [D, '', ':latest'] },
    { text: `r.example:1/app:2${D}`, versions: [`:2${D}`, D, ':2'] },
    { text: `r.example:1/app:latest${D}`, versions: [`:latest${D}`, D, '', ':latest'] },
    { text: 'r.example:1/app@sha512:00', versions: ['@sha512:00', '', ':latest'] },
  ])('of $text differ in tag and digest', ({ text, versions }) => {
    expect(spellings(text).toSorted()).toEqual(
      versions.map((version) => `r.example:1/app${version}`).toSorted(),
    )
  })

  test.each([
    'org/app:1',
    'docker.io/org/app:1',
    'DOCKER.IO/org/app:1',
    'index.docker.io:443/org/app:1',
    'registry-1.docker.io/org/app:1',
    'registry.hub.docker.com/org/app:1',
  ])('of %s include all of the same image', (text) => {
    expect(spellings(text)).toEqual(
      expect.arrayContaining(['org/app:1', 'docker.io/org/app:1', 'index.docker.io/org/app:1']),
    )
  })
})

describe('plainSpellings', () => {
  test.each([
    { text: 'nginx', plain: ['nginx'] },
    { text: 'docker.io/nginx:1', plain: ['docker.io/nginx:1'] },
    { text: 'GHCR.IO:443/app:1', plain: ['GHCR.IO:443/app:1', 'ghcr.io/app:1'] },
    { text: `ghcr.io/app${D}`, plain: [`ghcr.io/app${D}`, 'ghcr.io/app'] },
    {
      text: `Ghcr.io/app:1${D}`,
      plain: [`Ghcr.io/app:1${D}`, `ghcr.io/app:1${D}`, 'ghcr.io/app:1'],
    },
  ])('of $text', ({ text, plain }) => {
    expect(plainSpellings(text)).toEqual(plain)
  })
})

test('any text is its own first spelling, and there are few others', () => {
  const piece = fc.constantFrom('a', 'B', '.', ':', '/', '@', 'docker.io', ':443', 'library/', ' ')
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((all) => all.join('')),
      ),
      (text) => {
        for (const found of [spellings(text), plainSpellings(text)]) {
          expect(found[0]).toBe(text)
          expect(found.length).toBeLessThan(50)
        }
      },
    ),
  )
})
