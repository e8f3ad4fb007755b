import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadPolicyFolder, readConfig, readPolicyFiles, readText } from '#functions/files.ts'
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
