import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TrustEntry } from '#functions/config.ts'
import { TufRepository } from '#functions/local/tuf.ts'
import { publicGoodSeed } from '#functions/trust/seed.ts'
import { loadTrust } from '#functions/trust/store.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import { SIGNED_AT, SigstoreWorld } from '#test/fakes/sigstore.ts'

const DAY = 86_400_000
const HOUR = 3_600_000
const NOW = SIGNED_AT * 1000
/** The world's timestamp authority ends a hundred hours after, its certificate authority a thousand. */
const TSA_ENDS = NOW + 100 * HOUR
const CA_ENDS = NOW + 1000 * HOUR
const PUBLIC_GOOD = 'https://tuf-repo-cdn.sigstore.dev'
const GITHUB = 'https://tuf-repo.github.com'

const world = new SigstoreWorld()
const repository = new TufRepository()
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  const put = async (name: string, content: string | Uint8Array) => {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), content)
  }
  const root = world.trustedRoot()
  await put('root.json', JSON.stringify(root))
  await put(
    'open.json',
    JSON.stringify({ ...root, certificateAuthorities: [], timestampAuthorities: [] }),
  )
  for (const log of root.tlogs) log.publicKey.validFor.end = new Date(NOW).toISOString()
  await put('logs-end.json', JSON.stringify({ ...root, timestampAuthorities: [] }))
  await put('large.json', new Uint8Array(1024 * 1024 + 1))
  await put('tuf-root.json', repository.root)
  await put('kept.json', JSON.stringify({ ...root, tlogs: world.trustedRoot().tlogs }))
  const expires = new Date(NOW - 90 * DAY).toISOString()
  const timestamp = { signed: { _type: 'timestamp', version: 3, expires }, signatures: [] }
  await put('kept.tuf/timestamp.json', JSON.stringify(timestamp))
})

afterAll(() => rm(folder, { recursive: true }))

const load = (entries: TrustEntry[], now = NOW) => loadTrust(entries, folder, now)

describe('loadTrust', () => {
  test.each([undefined, PUBLIC_GOOD, `${PUBLIC_GOOD}/`])(
    'knows the public-good instance as %s without any entry',
    async (mirror) => {
      const { options } = await load([])
      const seed = publicGoodSeed()
      expect(options.trustedRoot(mirror)).toBe(new TextDecoder().decode(seed.trustedRoot))
      expect(options.tufRootHash(mirror)).toBe(hashOf(seed.root))
    },
  )

  test('has a public-good root that the functions can read', async () => {
    const { trustedRoot } = publicGoodSeed()
    await expect(loadTrustedRoot(trustedRoot)).resolves.toMatchObject({ logs: expect.any(Array) })
  })

  test.each([undefined, PUBLIC_GOOD, `${PUBLIC_GOOD}/`])(
    'prefers an entry for %s to what came with the package',
    async (mirror) => {
      const { options, notes } = await load([
        { ...(mirror && { mirror }), trustedRoot: 'open.json', root: 'tuf-root.json' },
      ])
      expect(JSON.parse(options.trustedRoot(undefined) ?? '').certificateAuthorities).toEqual([])
      expect(options.tufRootHash(PUBLIC_GOOD)).toBe(hashOf(repository.root))
      expect(notes()).toEqual([])
    },
  )

  test('finds the root of another mirror, with or without a slash, and no hash without a TUF root', async () => {
    const { options } = await load([{ mirror: GITHUB, trustedRoot: 'root.json' }])
    expect(options.trustedRoot(`${GITHUB}/`)).toBe(options.trustedRoot(GITHUB))
    expect(JSON.parse(options.trustedRoot(GITHUB) ?? '').ctlogs).toHaveLength(1)
    expect(options.tufRootHash(GITHUB)).toBeUndefined()
  })

  test.each([
    'https://tuf.example.com',
    '',
    `${PUBLIC_GOOD}/other`,
    'http://tuf-repo-cdn.sigstore.dev',
  ])('knows nothing of "%s"', async (mirror) => {
    const { options } = await load([{ mirror: GITHUB, trustedRoot: 'root.json' }])
    expect([options.trustedRoot(mirror), options.tufRootHash(mirror)]).toEqual([
      undefined,
      undefined,
    ])
  })
})

describe('loadTrust names every fault, where', () => {
  const file = (name: string) => path.join(folder, name)
  const command = (name: string) => `\`countersign trust --mirror ${GITHUB} --out ${file(name)}\``
  test.each([
    {
      name: 'the file is missing',
      entry: { trustedRoot: 'nowhere.json' },
      message: () => `no file ${file('nowhere.json')}; ${command('nowhere.json')} writes it`,
    },
    {
      name: 'the file is a folder',
      entry: { trustedRoot: 'kept.tuf' },
      message: () => `no file ${file('kept.tuf')}; ${command('kept.tuf')} writes it`,
    },
    {
      name: 'the file is too large',
      entry: { trustedRoot: 'large.json' },
      message: () => `${file('large.json')} has 1048577 bytes; at most 1048576 are read`,
    },
    {
      name: 'the file is no trusted root',
      entry: { trustedRoot: 'tuf-root.json' },
      message: () => expect.stringMatching(/^trusted root: /),
    },
    {
      name: 'every certificate authority has ended',
      entry: { trustedRoot: 'root.json' },
      now: CA_ENDS + 1,
      message: () =>
        `${file('root.json')}: all of its certificate authorities have ended, the last on 2025-07-27; ${command('root.json')} writes it`,
    },
    {
      name: 'every log has ended and nobody makes timestamps',
      entry: { trustedRoot: 'logs-end.json' },
      now: NOW + 1,
      message: () =>
        `${file('logs-end.json')}: all of its logs and timestamp authorities have ended, the last on 2025-06-15; ${command('logs-end.json')} writes it`,
    },
  ])('$name', async ({ entry, now, message }) => {
    const loading = load([{ trustedRoot: 'open.json' }, { mirror: GITHUB, ...entry }], now)
    await expect(loading).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      faults: [{ path: 'trust[1].trustedRoot', message: message() }],
    })
  })

  test.each([
    {
      root: 'nowhere.json',
      message: /^no file .*nowhere\.json; it is 1\.root\.json or a later one of the mirror$/,
    },
    { root: 'root.json', message: /^root\.json is no TUF root: it has no signed version and end$/ },
    { root: 'kept.tuf/timestamp.json', message: /is no TUF root/ },
  ])('the TUF root is $root', async ({ root, message }) => {
    await expect(load([{ trustedRoot: 'root.json', root }])).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      faults: [{ path: 'trust[0].root', message: expect.stringMatching(message) }],
    })
  })

  test('nothing has ended at the very last millisecond', async () => {
    await expect(
      load([{ mirror: GITHUB, trustedRoot: 'root.json' }], CA_ENDS),
    ).resolves.toBeDefined()
  })
})

describe('notes', () => {
  const notesAt = async (entry: TrustEntry, now: number) => {
    const { options, notes } = await load([entry], now)
    expect(notes()).toEqual([])
    options.trustedRoot(entry.mirror)
    return notes().map(
      ({ path: where, message }) => `${where}: ${message.replace(/^\S+: /, '').replace(/;.*/, '')}`,
    )
  }
  const world = { mirror: GITHUB, trustedRoot: 'root.json' }

  test.each([
    { name: 'more than 30 days before the end', now: TSA_ENDS - 30 * DAY - 1, says: [] },
    {
      name: '30 days before the end',
      now: TSA_ENDS - 30 * DAY,
      says: ['trust[0].trustedRoot: its last timestamp authority ends on 2025-06-19'],
    },
    {
      name: 'after the end of one and close to that of another',
      now: TSA_ENDS + 10 * DAY,
      says: [
        'trust[0].trustedRoot: its last certificate authority ends on 2025-07-27',
        'trust[0].trustedRoot: its last timestamp authority ended on 2025-06-19',
      ],
    },
  ])('say nothing until the root is in use, and then $says $name', async ({ now, says }) => {
    expect(await notesAt(world, now)).toEqual(says)
  })

  test.each([
    { name: '90 days after its metadata ended', now: NOW - 20 * DAY, says: false },
    { name: 'later', now: NOW + 1, says: true },
  ])('say that a root was not refreshed: $says, $name', async ({ now, says }) => {
    const found = await notesAt({ mirror: GITHUB, trustedRoot: 'kept.json' }, now)
    const stale = 'trust[0].trustedRoot: the metadata it came with ended on 2025-03-17'
    expect(found.includes(stale)).toBe(says)
  })

  test('say how old the copy of the package is once it is in use, with what helps', async () => {
    const { options, notes } = await load([], Date.parse('2026-11-30T00:00:00Z'))
    expect(notes()).toEqual([])
    options.trustedRoot(undefined)
    expect(notes()).toEqual([
      {
        path: 'trust',
        message: expect.stringMatching(
          /^the trusted root of the public-good instance that came with this package: the metadata it came with ended on 2026-\d\d-\d\d; `countersign trust` fetches/,
        ),
      },
    ])
  })
})
