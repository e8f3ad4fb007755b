import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { LocalSigstore } from '#functions/local/sigstore/authority.ts'
import { newTufKey, startTufMirror, type TufMirror, TufRepository } from '#functions/local/tuf.ts'
import { publicGoodSeed } from '#functions/trust/seed.ts'
import { utf8 } from '#shared/bytes.ts'
import { countersign } from './harness.ts'

/** Its certificates end in 2984, so that no clock of a machine matters. */
const sigstore = new LocalSigstore(32_000_000_000)
const ended = new LocalSigstore(1_000_000_000)
const rootOf = (world: LocalSigstore) => utf8(JSON.stringify(world.trustedRoot()))
const ROOT = rootOf(sigstore)
const OTHER = rootOf(new LocalSigstore(32_000_000_000))
const PAST = '2001-01-01T00:00:00Z'
const TARGET = 'trusted_root.json'

let folder: string
let repository: TufRepository
let mirror: TufMirror
const at = (name: string) => path.join(folder, name)

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  repository = new TufRepository()
  repository.publish({ [TARGET]: ROOT })
  mirror = await startTufMirror(repository)
  await writeFile(at('root.json'), repository.root)
})

afterEach(async () => {
  await mirror.close()
  await rm(folder, { recursive: true })
})

const named = () => ['--mirror', mirror.url, '--root', at('root.json'), '--out', at(TARGET)]

async function trust(...more: string[]) {
  return countersign(['trust', ...named(), ...more])
}

/** The only report, of JSON. */
async function reportOf(...more: string[]) {
  const { code, out } = await trust('--output', 'json', ...more)
  return { code, ...JSON.parse(out).trust[0] }
}

/** Everything below the folder by its name. */
async function contents(): Promise<Record<string, string>> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = names
    .filter((each) => each.isFile())
    .map((each) => path.join(each.parentPath, each.name))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  return Object.fromEntries(
    files.map((file, index) => [path.relative(folder, file), texts[index]!]),
  )
}

describe('trust', () => {
  test('writes the trusted root and the metadata it came with, and says what is new', async () => {
    const { code, out } = await trust()
    expect({ code, out: out.replaceAll(/\([0-9a-f]{16}\)/g, '(id)') }).toEqual({
      code: 0,
      out: [
        `${at(TARGET)}: updated`,
        `  ${mirror.url}`,
        '  + certificate authority CN=Example CA (id): 2983-12-25 to 2984-02-26',
        '  + log https://rekor.example.com (id): 2983-12-25 to open',
        '  + log https://log2.example.com (id): 2983-12-25 to open',
        '  + certificate log https://ct.example.com (id): 2983-12-25 to open',
        '  + timestamp authority CN=Example TSA (id): 2983-12-25 to 2984-01-19',
        '  root 1 until 2999-12-31, timestamp 1 until 2999-12-31, snapshot 1 until 2999-12-31, targets 1 until 2999-12-31',
        '',
      ].join('\n'),
    })
    expect(new Uint8Array(await readFile(at(TARGET)))).toEqual(new Uint8Array(ROOT))
    expect(Object.keys(await contents()).sort()).toEqual([
      'root.json',
      'trusted_root.json',
      'trusted_root.tuf/root.json',
      'trusted_root.tuf/snapshot.json',
      'trusted_root.tuf/targets.json',
      'trusted_root.tuf/timestamp.json',
    ])
  })

  test('has nothing to say when nothing is new, and keeps newer metadata', async () => {
    await trust()
    repository.publish({ [TARGET]: ROOT })
    const { code, status, changes, metadata } = await reportOf()
    expect({ code, status, changes }).toEqual({ code: 0, status: 'unchanged', changes: [] })
    expect(metadata.timestamp).toEqual({ version: 2, expires: '2999-12-31T00:00:00Z' })
    expect(JSON.parse((await contents())['trusted_root.tuf/timestamp.json']!).signed.version).toBe(
      2,
    )
  })

  test('says what was added, what was removed, and whose validity is another', async () => {
    await trust()
    const next = JSON.parse(new TextDecoder().decode(ROOT)) as {
      tlogs: { baseUrl: string; publicKey: { validFor: object } }[]
    }
    const [first] = next.tlogs
    first!.publicKey.validFor = { start: '2983-12-12T00:00:00Z', end: '2990-01-01T00:00:00Z' }
    const added = new LocalSigstore(32_000_000_000).trustedRoot() as typeof next
    next.tlogs = [first!, { ...added.tlogs[0]!, baseUrl: 'https://new.example.com' }]
    repository.publish({ [TARGET]: utf8(JSON.stringify(next)) })
    const { status, changes } = await reportOf()
    expect(status).toBe('updated')
    expect(changes).toEqual([
      {
        change: 'validity',
        kind: 'log',
        name: 'https://rekor.example.com',
        id: expect.any(String),
        from: '2983-12-12T00:00:00Z',
        until: '2990-01-01T00:00:00.000Z',
        was: { from: expect.any(String) },
      },
      expect.objectContaining({ change: 'added', kind: 'log', name: 'https://new.example.com' }),
      expect.objectContaining({ change: 'removed', kind: 'log', name: 'https://log2.example.com' }),
    ])
  })

  test('follows the root through a rotation of every key', async () => {
    await trust()
    const roles = ['root', 'timestamp', 'snapshot', 'targets'] as const
    repository.publishRoot(Object.fromEntries(roles.map((role) => [role, newTufKey()])))
    repository.publish({ [TARGET]: OTHER })
    const { code, status, metadata } = await reportOf()
    expect({ code, status, root: metadata.root.version }).toEqual({
      code: 0,
      status: 'updated',
      root: 2,
    })
  })

  test('needs no root for a mirror it has refreshed before', async () => {
    await trust()
    repository.publish({ [TARGET]: OTHER })
    const { code, out } = await countersign(['trust', '--mirror', mirror.url, '--out', at(TARGET)])
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('updated') })
  })

  test('prints the same as YAML and as JSON', async () => {
    const json = await trust('--output', 'json', '--check')
    const yaml = await trust('--output', 'yaml', '--check')
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out))
  })
})

/** Later metadata of the same repository with one thing wrong, after a first refresh. */
const REFUSED: { name: string; attack: () => void; reason: string | RegExp }[] = [
  ...(['timestamp', 'snapshot', 'targets'] as const).map((role) => ({
    name: `${role} has expired`,
    attack: () => repository.publish({ [TARGET]: OTHER }, { expires: { [role]: PAST } }),
    reason: /expired$/,
  })),
  {
    name: 'the newest root has expired',
    attack: () => void repository.publishRoot({}, { expires: { root: PAST } }),
    reason: 'Final root.json is expired',
  },
  ...(['timestamp', 'snapshot', 'targets'] as const).map((role) => ({
    name: `${role} is signed by a key of nobody`,
    attack: () => repository.publish({ [TARGET]: OTHER }, { signedBy: { [role]: newTufKey() } }),
    reason: `${role} was signed by 0/1 keys`,
  })),
  {
    name: 'timestamp is signed by the key of another role',
    attack: () =>
      repository.publish({ [TARGET]: OTHER }, { signedBy: { timestamp: repository.keys.targets } }),
    reason: 'timestamp was signed by 0/1 keys',
  },
  {
    name: 'the next root is signed by its own keys alone',
    attack: () => {
      const stranger = new TufRepository()
      stranger.publishRoot()
      repository.files.set('2.root.json', stranger.files.get('2.root.json')!)
    },
    reason: 'root was signed by 0/1 keys',
  },
  {
    name: 'the next root is the one before again',
    attack: () => void repository.files.set('2.root.json', repository.root),
    reason: 'Expected version 2, got 1',
  },
  {
    name: 'the timestamp is older than the last one',
    attack: () => repository.publish({ [TARGET]: OTHER }, { versions: { timestamp: 1 } }),
    reason: 'New timestamp version 1 is less than current version 2',
  },
  {
    name: 'a newer timestamp names an older snapshot',
    attack: () => repository.publish({ [TARGET]: OTHER }, { versions: { snapshot: 1 } }),
    reason: 'New snapshot version 1 is less than current version 2',
  },
  {
    name: 'a newer snapshot names older targets',
    attack: () => repository.publish({ [TARGET]: OTHER }, { versions: { targets: 1 } }),
    reason: 'New version 1 of targets.json is less than current version 2',
  },
  {
    name: 'the snapshot is another than the timestamp names',
    attack: () => {
      repository.publish({ [TARGET]: OTHER })
      repository.files.set('3.snapshot.json', repository.files.get('2.snapshot.json')!)
    },
    reason: /^Expected (hash|length)/,
  },
  {
    name: 'the targets are others than the snapshot names',
    attack: () => {
      repository.publish({ [TARGET]: OTHER })
      repository.files.set('3.targets.json', repository.files.get('2.targets.json')!)
    },
    reason: /^Expected (hash|length)/,
  },
  {
    name: 'the trusted root is another than the targets name',
    attack: () => swapTarget(OTHER.map((byte, index) => (index === 9 ? byte ^ 1 : byte))),
    reason: /^Expected hash/,
  },
  {
    name: 'the trusted root is longer than the targets say',
    attack: () => swapTarget(utf8(`${new TextDecoder().decode(OTHER)} `)),
    reason:
      /^\/targets\/[0-9a-f]{64}\.trusted_root\.json is longer than the \d+ bytes it may have$/,
  },
  {
    name: 'the trusted root is longer than any may be',
    attack: () => repository.publish({ [TARGET]: new Uint8Array(1024 * 1024 + 1) }),
    reason: /is longer than the 1048576 bytes it may have$/,
  },
  {
    name: 'there is no trusted root among the targets',
    attack: () => repository.publish({ 'other.json': OTHER }),
    reason: 'the repository has no target trusted_root.json',
  },
  {
    name: 'the trusted root is of a kind that is not known here',
    attack: () => repository.publish({ [TARGET]: utf8('{"mediaType":"application/json"}') }),
    reason: /^what it publishes is not usable here: trusted root: /,
  },
  {
    name: 'the timestamp is no JSON',
    attack: () => void repository.files.set('timestamp.json', utf8('<html>')),
    reason: /JSON/,
  },
  {
    name: 'the timestamp is gone',
    attack: () => void repository.files.delete('timestamp.json'),
    reason: '/timestamp.json: HTTP 404',
  },
  ...['2.root.json', 'timestamp.json', '3.snapshot.json', '3.targets.json'].map((file) => ({
    name: `${file} has no end`,
    attack: () => {
      repository.publish({ [TARGET]: OTHER })
      mirror.faults.set(file, 'endless')
    },
    reason: new RegExp(`^/${file} is longer than the \\d+ bytes it may have$`),
  })),
]

function swapTarget(bytes: Uint8Array): void {
  repository.publish({ [TARGET]: OTHER })
  const name = [...repository.files.keys()].filter((file) => file.startsWith('targets/')).at(-1)!
  repository.files.set(name, bytes)
}

describe('trust refuses and leaves everything as it is when', () => {
  test.each(REFUSED)('$name', async ({ attack, reason }) => {
    repository.publish({ [TARGET]: ROOT })
    await trust()
    const before = await contents()
    attack()
    const report = await reportOf()
    expect({ code: report.code, status: report.status }).toEqual({ code: 1, status: 'refused' })
    expect(report.reason).toMatch(
      reason instanceof RegExp ? reason : new RegExp(`^${escaped(reason)}$`),
    )
    expect(await contents()).toEqual(before)
  })

  test('the mirror hides a root that was there at the last refresh', async () => {
    repository.publishRoot()
    await trust()
    repository.files.delete('2.root.json')
    expect(await reportOf()).toMatchObject({
      code: 1,
      status: 'refused',
      reason: 'the newest root.json has version 1, the last refresh saw 2',
    })
  })

  test('the root to begin with is that of another repository', async () => {
    await writeFile(at('root.json'), new TufRepository().root)
    const { code, status, reason } = await reportOf()
    expect({ code, status, reason }).toEqual({
      code: 1,
      status: 'refused',
      reason: 'timestamp was signed by 0/1 keys',
    })
    expect(existsSync(at(TARGET))).toBe(false)
  })
})

test('the public-good root is one that TUF can begin with', async () => {
  await writeFile(at('root.json'), publicGoodSeed().root)
  repository.files.delete('timestamp.json')
  expect(await reportOf()).toMatchObject({ status: 'refused', reason: '/timestamp.json: HTTP 404' })
})

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

describe('trust could not tell and leaves everything as it is when', () => {
  test.each([
    { name: 'the mirror is overloaded', fault: 503, reason: '/timestamp.json: HTTP 503' },
    { name: 'the mirror asks to slow down', fault: 429, reason: '/timestamp.json: HTTP 429' },
  ])('$name', async ({ fault, reason }) => {
    await trust()
    const before = await contents()
    mirror.faults.set('timestamp.json', fault)
    const report = await reportOf()
    expect(report).toMatchObject({ code: 1, status: 'unreachable', reason })
    expect(await contents()).toEqual(before)
  })

  test('nobody listens', async () => {
    const gone = await startTufMirror(repository)
    await gone.close()
    const { code, out } = await countersign([
      'trust',
      ...['--mirror', gone.url, '--root', at('root.json'), '--out', at(TARGET)],
    ])
    expect({ code, out }).toEqual({
      code: 1,
      out: `${at(TARGET)}: unreachable: /2.root.json: ECONNREFUSED\n  ${gone.url}\n`,
    })
  })
})

describe('trust --check', () => {
  test.each([
    { name: 'the file is the newest', prepare: async () => {}, code: 0, status: 'unchanged' },
    {
      name: 'the repository has a newer one',
      prepare: async () => repository.publish({ [TARGET]: OTHER }),
      code: 1,
      status: 'outdated',
    },
    { name: 'the file is gone', prepare: () => rm(at(TARGET)), code: 1, status: 'outdated' },
    {
      name: 'the mirror is down',
      prepare: async () => void mirror.faults.set('timestamp.json', 500),
      code: 1,
      status: 'unreachable',
    },
  ])('exits $code and writes nothing when $name', async ({ prepare, code, status }) => {
    await trust()
    await prepare()
    const before = await contents()
    expect(await reportOf('--check')).toMatchObject({ code, status })
    expect(await contents()).toEqual(before)
  })

  test('exits 1 for the newest when its keys have ended, which a refresh cannot help', async () => {
    repository.publish({ [TARGET]: rootOf(ended) })
    expect(await reportOf()).toMatchObject({ code: 0, status: 'updated' })
    expect(await reportOf('--check')).toMatchObject({
      code: 1,
      status: 'unchanged',
      notes: [
        'its last certificate authority ended on 2001-10-20',
        'its last timestamp authority ended on 2001-09-13',
      ],
    })
  })
})

describe('trust --offline', () => {
  test('writes the copy of the package for the public-good instance, and says how old it is', async () => {
    const { code, out } = await countersign([
      'trust',
      '--offline',
      '--out',
      at(TARGET),
      '-o',
      'json',
    ])
    const [report] = JSON.parse(out).trust
    expect({ code, status: report.status, mirror: report.mirror }).toEqual({
      code: 0,
      status: 'updated',
      mirror: 'https://tuf-repo-cdn.sigstore.dev',
    })
    expect(report.changes.map(({ kind }: { kind: string }) => kind)).toContain('log')
    expect(report.notes).toEqual([
      expect.stringMatching(/^the metadata it came with ended on 2026-/),
    ])
    expect(new Uint8Array(await readFile(at(TARGET)))).toEqual(publicGoodSeed().trustedRoot)
    const check = ['trust', '--offline', '--check', '--out', at(TARGET)]
    expect(await countersign(check)).toMatchObject({
      code: 1,
      out: expect.stringContaining('note: the metadata it came with ended on 2026-'),
    })
  })

  test('reports on what is there without asking the mirror', async () => {
    await trust()
    const asked = mirror.requests.length
    expect(await reportOf('--offline')).toMatchObject({
      code: 0,
      status: 'unchanged',
      metadata: { timestamp: { version: 1 } },
    })
    expect(mirror.requests.length).toBe(asked)
  })

  test('exits 1 where another mirror has no file yet', async () => {
    expect(await reportOf('--offline')).toMatchObject({ code: 1, status: 'missing' })
  })
})

describe('trust with a config', () => {
  const config = (trustList: string) => `
policies: policies
endpoint: https://admission.example.com
outcomes: { key: { secrets: [{ id: a, env: SEAL }] } }
clusters: [{ name: prod, tokens: [${'a'.repeat(64)}] }]
trust:
${trustList}`

  test('refreshes every entry, with files relative to it', async () => {
    const other = new TufRepository()
    other.publish({ [TARGET]: OTHER })
    const second = await startTufMirror(other)
    await writeFile(at('other-root.json'), other.root)
    await writeFile(
      at('countersign.yaml'),
      config(`  - { mirror: "${mirror.url}/", trustedRoot: trust/one.json, root: root.json }
  - { mirror: "${second.url}", trustedRoot: trust/two.json, root: other-root.json }`),
    )
    const { code, out } = await countersign([
      'trust',
      ...['--config', at('countersign.yaml'), '--output', 'json'],
    ])
    await second.close()
    const reports = JSON.parse(out).trust as { file: string; status: string }[]
    expect({ code, reports: reports.map(({ file, status }) => ({ file, status })) }).toEqual({
      code: 0,
      reports: [
        { file: at('trust/one.json'), status: 'updated' },
        { file: at('trust/two.json'), status: 'updated' },
      ],
    })
  })

  test('takes file and root of a mirror from its entry', async () => {
    await writeFile(
      at('countersign.yaml'),
      config(`  - { mirror: "${mirror.url}", trustedRoot: one.json, root: root.json }`),
    )
    const { code } = await countersign([
      'trust',
      ...['--config', at('countersign.yaml'), '--mirror', mirror.url],
    ])
    expect({ code, written: existsSync(at('one.json')) }).toEqual({ code: 0, written: true })
  })
})

describe('trust exits 2 for bad input', () => {
  test.each([
    {
      name: 'a mirror without TLS',
      args: ['--mirror', 'http://tuf.example.com'],
      says: '--mirror: expected https',
    },
    {
      name: 'a mirror with a login',
      args: ['--mirror', 'https://me:pw@tuf.example.com'],
      says: '--mirror: expected https',
    },
    {
      name: 'a mirror that is no address',
      args: ['--mirror', 'sigstore'],
      says: '--mirror: expected https',
    },
    {
      name: 'a root that is not there',
      args: ['--root', 'nowhere.json'],
      says: 'root nowhere.json: there is no such file',
    },
    {
      name: 'a root that is none',
      args: ['--root', 'package.json'],
      says: 'root package.json: it is no TUF root',
    },
    {
      name: 'a config that is not there',
      args: ['--config', 'nowhere.yaml'],
      says: 'cannot read nowhere.yaml',
    },
    {
      name: 'a mirror whose root nobody has named',
      args: ['--mirror', 'https://tuf.example.com', '--out', 'nowhere/nothing.json'],
      says: 'https://tuf.example.com: its first refresh needs --root',
    },
    {
      name: 'a file that is no trusted root',
      args: ['--offline', '--out', 'package.json'],
      says: 'package.json: trusted root: ',
    },
  ])('$name', async ({ args, says }) => {
    const { code, err } = await countersign(['trust', ...args])
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining(`countersign trust: ${says}`),
    })
    expect(err).not.toContain('pw')
  })

  test('a place where nothing can be written', async () => {
    const { code, err } = await trust('--out', at('root.json/trusted_root.json'))
    const file = at('root.json/trusted_root.tuf/timestamp.json')
    expect({ code, err }).toEqual({
      code: 2,
      err: `countersign trust: cannot read ${file}: a part of it is a file\n`,
    })
  })

  test('a root that has not signed itself', async () => {
    const forged = JSON.parse(new TextDecoder().decode(repository.root))
    forged.signed.version = 7
    await writeFile(at('root.json'), JSON.stringify(forged))
    const { code, err } = await trust()
    expect({ code, err }).toEqual({
      code: 2,
      err: 'countersign trust: the TUF root to begin with is none: root was signed by 0/1 keys\n',
    })
  })
})
