import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { changesOf, dayOf, type Material, materialsOf } from '#functions/trust/material.ts'
import { stateOf } from '#functions/trust/metadata.ts'
import { isMirror, mirrorOf } from '#functions/trust/mirror.ts'
import { publicGoodSeed } from '#functions/trust/seed.ts'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { SigstoreWorld } from '#test/fakes/sigstore.ts'

const bytesOf = (value: unknown) => utf8(JSON.stringify(value))

describe('materialsOf', () => {
  test('names everything of a trusted root, and ends a chain with the first of its certificates', () => {
    const world = new SigstoreWorld()
    const id = expect.stringMatching(/^[0-9a-f]{16}$/)
    const from = '2025-05-25T19:06:40.000Z'
    expect(materialsOf(bytesOf(world.trustedRoot()))).toEqual([
      {
        kind: 'certificate authority',
        name: 'CN=Example CA',
        id,
        from,
        until: '2025-07-27T07:06:40.000Z',
      },
      { kind: 'log', name: 'https://rekor.example.com', id, from },
      { kind: 'log', name: 'https://log2.example.com', id, from },
      { kind: 'certificate log', name: 'https://ct.example.com', id, from },
      {
        kind: 'timestamp authority',
        name: 'CN=Example TSA',
        id,
        from,
        until: '2025-06-19T19:06:40.000Z',
      },
    ])
  })

  test('knows the public-good instance', () => {
    const named = materialsOf(publicGoodSeed().trustedRoot).map(
      ({ kind, name }) => `${kind} ${name}`,
    )
    expect(named).toContain('certificate authority https://fulcio.sigstore.dev')
    expect(named).toContain('log https://rekor.sigstore.dev')
    expect(named).toContain('certificate log https://ctfe.sigstore.dev/2022')
    expect(named).toContain('timestamp authority https://timestamp.sigstore.dev/api/v1/timestamp')
  })

  test('prefers the end the root gives when it is the earlier one', () => {
    const root = new SigstoreWorld().trustedRoot()
    root.certificateAuthorities[0].validFor.end = '2025-06-01T00:00:00Z'
    const [authority] = materialsOf(bytesOf(root))
    expect(authority?.until).toBe('2025-06-01T00:00:00.000Z')
  })

  test('throws nothing but JSON_INVALID, whatever it is given', () => {
    const members = ['certificateAuthorities', 'tlogs', 'ctlogs', 'timestampAuthorities']
    const document = fc.record(Object.fromEntries(members.map((name) => [name, fc.jsonValue()])))
    fc.assert(
      fc.property(fc.oneof(document.map(bytesOf), fc.uint8Array()), (bytes) => {
        try {
          for (const { kind, until } of materialsOf(bytes)) {
            expect(kind).toBeTypeOf('string')
            expect(dayOf(Date.parse(until ?? ''))).toBeTypeOf('string')
          }
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(AdmissionError)
          expect((thrown as AdmissionError).code).toBe('JSON_INVALID')
        }
      }),
    )
  })
})

describe('changesOf', () => {
  const log = (id: string, until?: string): Material => ({
    kind: 'log',
    name: 'https://log.example.com',
    id,
    from: '2025-01-01T00:00:00Z',
    ...(until && { until }),
  })

  test.each([
    { name: 'nothing for the same', before: [log('a')], after: [log('a')], changes: [] },
    {
      name: 'an addition',
      before: [],
      after: [log('a')],
      changes: [{ change: 'added', ...log('a') }],
    },
    {
      name: 'a removal',
      before: [log('a')],
      after: [],
      changes: [{ change: 'removed', ...log('a') }],
    },
    {
      name: 'another key under the same name as both',
      before: [log('a')],
      after: [log('b')],
      changes: [
        { change: 'added', ...log('b') },
        { change: 'removed', ...log('a') },
      ],
    },
    {
      name: 'an end that was set',
      before: [log('a')],
      after: [log('a', '2026-01-01T00:00:00Z')],
      changes: [
        {
          change: 'validity',
          ...log('a', '2026-01-01T00:00:00Z'),
          was: { from: '2025-01-01T00:00:00Z' },
        },
      ],
    },
    {
      name: 'the same key in another role as another',
      before: [log('a')],
      after: [{ ...log('a'), kind: 'certificate log' as const }],
      changes: [
        { change: 'added', ...log('a'), kind: 'certificate log' },
        { change: 'removed', ...log('a') },
      ],
    },
  ])('gives $name', ({ before, after, changes }) => {
    expect(changesOf(before, after)).toEqual(changes)
  })
})

describe('stateOf', () => {
  const signed = (fields: object) =>
    bytesOf({ signed: { _type: 'root', version: 3, expires: '2026-01-01T00:00:00Z', ...fields } })

  test('reads version and end', () => {
    expect(stateOf(signed({}), 'root')).toEqual({ version: 3, expires: '2026-01-01T00:00:00Z' })
  })

  test.each([
    { name: 'another role', bytes: signed({ _type: 'targets' }) },
    { name: 'a version that is no number', bytes: signed({ version: '3' }) },
    { name: 'an end that is no time', bytes: signed({ expires: 'never' }) },
    { name: 'no signed part', bytes: bytesOf({}) },
    { name: 'no JSON', bytes: utf8('<html>') },
  ])('gives nothing for $name', ({ bytes }) => {
    expect(stateOf(bytes, 'root')).toBeUndefined()
  })
})

describe('mirrors', () => {
  test.each([
    [undefined, 'https://tuf-repo-cdn.sigstore.dev'],
    ['https://tuf-repo-cdn.sigstore.dev', 'https://tuf-repo-cdn.sigstore.dev'],
    ['https://TUF-repo-cdn.sigstore.dev:443//', 'https://tuf-repo-cdn.sigstore.dev'],
    ['https://tuf.example.com/a/', 'https://tuf.example.com/a'],
    ['https://tuf.example.com/A', 'https://tuf.example.com/A'],
    ['no address', 'no address'],
  ])('%s is spelled %s', (mirror, spelling) => {
    expect(mirrorOf(mirror)).toBe(spelling)
  })

  test('one spelling is enough, and whatever is a mirror stays one', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl(), fc.string()), (text) => {
        expect(mirrorOf(mirrorOf(text))).toBe(mirrorOf(text))
        if (isMirror(text)) expect(isMirror(mirrorOf(text))).toBe(true)
      }),
    )
  })
})
