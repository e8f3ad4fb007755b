import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  defaultConfig,
  loadPolicyFolder,
  readConfig,
  readPolicyFiles,
  readText,
} from '#functions/files.ts'
import { MAX_POLICY_BYTES } from '#shared/limits.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
})

afterEach(() => rm(folder, { recursive: true }))

async function write(name: string, content: string | Uint8Array): Promise<string> {
  const file = path.join(folder, name)
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, content)
  return file
}

const CONFIG = `policies: policies
endpoint: https://admission.example.com
outcomes:
  key: { secrets: [ { id: a, env: SEAL } ] }
clusters:
  - name: prod
    tokens: ["${'a'.repeat(64)}"]
`

describe('readConfig', () => {
  test('is the checked config and the folder its paths are relative to', async () => {
    const file = await write('infra/countersign.yaml', CONFIG)
    const { config, folder: where } = await readConfig(file)
    expect(where).toBe(path.join(folder, 'infra'))
    expect(config.clusters.map(({ name }) => name)).toEqual(['prod'])
  })

  test.each([
    {
      name: 'a wrong value stands',
      change: ['https://admission', 'http://admission'],
      place: '2:11',
      says: 'endpoint: ',
    },
    {
      name: 'a value inside a list stands',
      change: ['name: prod', 'name: PROD'],
      place: '6:11',
      says: 'clusters[0].name: ',
    },
    {
      name: 'the object stands that lacks a key',
      change: [/ {4}tokens.*\n/, ''],
      place: '6:5',
      says: 'clusters[0].tokens: ',
    },
    {
      name: 'a flow collection stands',
      change: ['env: SEAL', 'env: seal'],
      place: '4:35',
      says: 'outcomes.key.secrets[0].env: ',
    },
  ] as const)('a fault says where $name', async ({ change, place, says }) => {
    const file = await write('c.yaml', CONFIG.replace(change[0], change[1]))
    await expect(readConfig(file)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: `${file}: 1 fault`,
      faults: [
        {
          path: `${file}:${place}`,
          message: expect.stringMatching(says.replaceAll(/[[\]]/g, '\\$&')),
        },
      ],
    })
  })

  test('every syntax error has its place', async () => {
    const file = await write('c.yaml', 'a: [1\nb: }\n')
    await expect(readConfig(file)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      faults: expect.arrayContaining([
        { path: expect.stringMatching(/c\.yaml:\d+:\d+$/), message: expect.any(String) },
      ]),
    })
  })

  test.each([
    {
      name: 'twice the same key',
      text: 'a: 1\na: 2\n',
      says: 'this key stands here twice: keep one',
    },
    {
      name: 'two documents',
      text: 'a: 1\n---\na: 2\n',
      says: 'a second document begins here: a config is one',
    },
    {
      name: 'a tab',
      text: 'a:\n\tb: 1\n',
      says: 'a tab indents this line: use spaces',
    },
    {
      name: 'an alias of nothing',
      text: 'a: *b\n',
      says: 'there is no anchor of this name above',
    },
  ])('$name is told with its fix', async ({ text, says }) => {
    const file = await write('c.yaml', text)
    await expect(readConfig(file)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      faults: [{ path: expect.stringMatching(/c\.yaml:\d+:\d+$/), message: says }],
    })
  })

  test('faults of all the files it names are told at once', async () => {
    const api = (name: string, caFile: string) => `  - name: ${name}
    tokens: ["${'a'.repeat(64)}"]
    api: { server: https://api.example.com, tokenEnv: A, caFile: ${caFile} }
`
    const trust = 'trust: [ { trustedRoot: root.json } ]\n'
    const file = await write(
      'c.yaml',
      `${trust}${CONFIG}${api('one', 'large.pem')}${api('two', 'none.pem')}`,
    )
    await write('large.pem', 'x'.repeat(900_000))
    await expect(readConfig(file)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      faults: [
        { message: expect.stringContaining('clusters[1].api.caFile: ') },
        { message: expect.stringContaining('clusters[2].api.caFile: ') },
        { path: `${file}:1:25`, message: expect.stringContaining('trust[0].trustedRoot: ') },
      ],
    })
  })

  test.each([
    {
      name: 'has the token of another one',
      cluster: `{ name: copy, tokens: ["${'b'.repeat(64)}", "${'a'.repeat(64)}"] }`,
      place: '8:',
      says: 'clusters[1].tokens[1]: is a token of cluster prod, too (clusters[0].tokens[0]): whoever has it can call as either; `countersign tokens rotate` makes one of its own',
    },
    {
      name: 'has ended',
      cluster: `{ name: old, tokens: ["${'b'.repeat(64)}"], notAfter: 2026-11-30T00:00:00Z }`,
      place: '8:',
      says: 'clusters[1].notAfter: cluster old is unknown since 2026-11-30T00:00:00Z: remove it, or give it a later end',
    },
  ])('a cluster that $name is told of', async ({ cluster, place, says }) => {
    const file = await write('c.yaml', `${CONFIG}  - ${cluster}\n`)
    const { trust } = await readConfig(file, Date.parse('2026-11-30T00:00:00Z'))
    expect(trust.notes()).toEqual([
      { path: expect.stringContaining(`${file}:${place}`), message: says },
    ])
  })

  test('the one that is meant when none is named is where init writes it, if there is no other', () => {
    const with_ = (...names: string[]) => defaultConfig((name) => names.includes(name))
    expect(with_('countersign.yaml')).toBe('countersign.yaml')
    expect(with_('countersign.yaml', 'infra/countersign.yaml')).toBe('infra/countersign.yaml')
    expect(with_()).toBe('infra/countersign.yaml')
  })

  test('a billion laughs is refused', async () => {
    const lines = ['a0: &a0 [x,x,x,x,x,x,x,x,x,x]']
    for (let i = 1; i < 10; i++)
      lines.push(
        `a${i}: &a${i} [${Array(10)
          .fill(`*a${i - 1}`)
          .join(',')}]`,
      )
    const file = await write('c.yaml', lines.join('\n'))
    await expect(readConfig(file)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})

describe('readText', () => {
  test.each([
    { name: 'is not there', content: undefined, says: 'no such file or folder' },
    { name: 'is not UTF-8', content: Uint8Array.of(0x61, 0xff), says: 'is not UTF-8 text' },
    {
      name: 'is too large',
      content: 'x'.repeat(MAX_POLICY_BYTES + 1),
      says: `has ${MAX_POLICY_BYTES + 1} bytes; at most ${MAX_POLICY_BYTES} are read`,
    },
  ])('a file that $name is refused with the given code', async ({ content, says }) => {
    const file = content === undefined ? path.join(folder, 'none') : await write('some', content)
    await expect(readText(file, 'KEY_INVALID')).rejects.toMatchObject({
      code: 'KEY_INVALID',
      message: expect.stringContaining(says),
    })
  })
})

describe('readPolicyFiles', () => {
  test('finds YAML and JSON in the folder and below, by name', async () => {
    for (const name of ['b.yml', 'a/z.yaml', 'c.json', 'README.md', 'a/notes.txt'])
      await write(name, name)
    expect((await readPolicyFiles(folder)).map(({ file }) => path.relative(folder, file))).toEqual([
      'a/z.yaml',
      'b.yml',
      'c.json',
    ])
  })

  test('takes one file, whatever its name', async () => {
    const file = await write('policy.txt', 'x')
    expect(await readPolicyFiles(file)).toEqual([{ file, text: 'x' }])
  })

  test('every file that cannot be read is told at once, and a pipe is never waited for', async () => {
    await write('good.yaml', '')
    await write('bad.yaml', Uint8Array.of(0xff))
    await mkdir(path.join(folder, 'folder.yaml'))
    await symlink('nowhere', path.join(folder, 'link.yaml'))
    execFileSync('mkfifo', [path.join(folder, 'pipe.yaml')])
    await expect(readPolicyFiles(folder)).rejects.toMatchObject({
      code: 'POLICY_INVALID',
      message: `${folder}: 4 faults`,
      faults: [
        { path: path.join(folder, 'bad.yaml'), message: 'is not UTF-8 text' },
        { path: path.join(folder, 'folder.yaml'), message: 'is a folder' },
        { path: path.join(folder, 'link.yaml'), message: 'no such file or folder' },
        { path: path.join(folder, 'pipe.yaml'), message: 'is no file' },
      ],
    })
  })

  test('a folder that is not there is refused', async () => {
    await expect(readPolicyFiles(path.join(folder, 'none'))).rejects.toMatchObject({
      code: 'POLICY_INVALID',
      message: `cannot read ${path.join(folder, 'none')}: no such file or folder`,
    })
  })
})

describe('loadPolicyFolder', () => {
  test('loads the policies that ship', async () => {
    const { policies } = await loadPolicyFolder('infra/policies', {
      kmsRegion: 'eu-central-1',
    })
    expect(policies.map(({ name }) => name)).toContain('signed-images')
  })

  test('one bad document keeps the whole folder out', async () => {
    await write('good.yaml', '')
    await write(
      'bad.yaml',
      'apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: { name: a }\n',
    )
    await expect(loadPolicyFolder(folder)).rejects.toMatchObject({
      code: 'POLICY_INVALID',
      message: `${folder}: 1 fault`,
      faults: [
        {
          path: `${path.join(folder, 'bad.yaml')}:2:7`,
          message: expect.stringMatching(/^kind: ValidatingPolicy/),
        },
      ],
    })
  })
})
