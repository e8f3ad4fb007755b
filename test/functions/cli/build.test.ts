import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { countersign } from './harness.ts'

const INFRA = fileURLToPath(new URL('../../../infra', import.meta.url))

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  await writeFile(path.join(folder, 'file'), '')
  await cp(path.join(INFRA, 'policies'), path.join(folder, 'policies'), { recursive: true })
  await cp(path.join(INFRA, 'countersign.yaml'), path.join(folder, 'countersign.yaml'))
})

afterEach(() => rm(folder, { recursive: true }))

describe('build --out', () => {
  test.each([
    { name: 'that is a file', out: 'file', reason: /there is a file|a part of it is a file/ },
    { name: 'below a file', out: 'file/below', reason: /a part of it is a file/ },
    { name: 'with a name that is too long', out: 'x'.repeat(300), reason: /the name is too long/ },
  ])('$name is bad input, and said so', async ({ out, reason }) => {
    const config = path.join(folder, 'countersign.yaml')
    const where = path.join(folder, out)
    const { code, err } = await countersign(['build', '--config', config, '--out', where])
    expect(code).toBe(2)
    expect(err).toMatch(/^countersign build: --out /m)
    expect(err).toMatch(reason)
    expect(err).not.toContain('unexpected')
  })

  test('that is empty is bad input', async () => {
    const config = path.join(folder, 'countersign.yaml')
    const { code, err } = await countersign(['build', '--config', config, '--out', ''])
    expect(code).toBe(2)
    expect(err).toMatch(/^countersign build: --out: expected the name of a folder$/m)
  })
})

describe('build leaves alone what is in the way', () => {
  const build = (where: string) =>
    countersign(['build', '--config', path.join(folder, 'countersign.yaml'), '--out', where])
  const all = async (where: string) => (await readdir(where, { recursive: true })).sort()

  test.each([
    {
      name: 'a folder of somebody else',
      names: ['worker/index.mjs', 'worker/package.json'],
      at: 'worker',
      reason:
        'holds package.json, which no bundle has: name another folder with --out, or remove it',
    },
    {
      name: 'a folder of folders',
      names: ['lambda/mutate/src/index.mjs'],
      at: 'lambda/mutate',
      reason: 'holds src, which no bundle has: name another folder with --out, or remove it',
    },
    {
      name: 'a file',
      names: ['lambda/validate'],
      at: 'lambda/validate',
      reason: 'is a file: name another folder with --out, or remove it',
    },
  ])('$name is refused before anything is written', async ({ names, at, reason }) => {
    const out = path.join(folder, 'out')
    for (const name of names) {
      await mkdir(path.dirname(path.join(out, name)), { recursive: true })
      await writeFile(path.join(out, name), 'mine')
    }
    const before = await all(out)
    const { code, out: printed, err } = await build(out)
    expect({ code, printed, err }).toEqual({
      code: 2,
      printed: '',
      err: `countersign build: --out ${JSON.stringify(out)}: ${path.join(out, at)} ${reason}\n`,
    })
    expect(await all(out)).toEqual(before)
  })

  test('bundles that were there stay whole when new ones cannot be written down', async () => {
    // So deep that a module with a long name has no place, and the entry has.
    const deep = Array.from({ length: 16 }, () => 'd'.repeat(250)).join('/')
    const spare = 4050 - path.join(folder, deep).length - 1
    const out = path.join(folder, deep, 'e'.repeat(spare))
    await mkdir(path.join(out, 'worker'), { recursive: true })
    await writeFile(path.join(out, 'worker/index.mjs'), 'old')
    const { code, err } = await build(out)
    expect([code, err]).toEqual([2, expect.stringContaining(': the name is too long\n')])
    expect(await all(out)).toEqual(['worker', 'worker/index.mjs'])
    expect(await readFile(path.join(out, 'worker/index.mjs'), 'utf8')).toBe('old')
  })

  test('a link to a folder stays one, and an older bundle is replaced where it is', async () => {
    const [out, real] = [path.join(folder, 'out'), path.join(folder, 'real')]
    await mkdir(real)
    await writeFile(path.join(real, 'index.mjs'), 'old')
    await writeFile(path.join(real, 'gone.mjs'), 'old')
    await mkdir(out)
    await symlink(real, path.join(out, 'worker'))
    expect((await build(out)).code).toBe(0)
    expect(await all(real)).toContain('index.mjs')
    expect(await all(real)).not.toContain('gone.mjs')
    expect((await readdir(out)).sort()).toEqual(['lambda', 'worker'])
    expect((await readdir(path.join(out, 'lambda'))).sort()).toEqual(['mutate', 'validate'])
  })
})

test('what config and policies say against each other is told once, with its place', async () => {
  const config = path.join(folder, 'countersign.yaml')
  const policy = path.join(folder, 'policies', 'signed-images.yaml')
  const written = await readFile(policy, 'utf8')
  const condition = '    - {name: a, expression: has(namespaceObject.metadata)}'
  await writeFile(policy, written.replace(/^ {2}matchConditions:\n/m, `$&${condition}\n`))
  const { code, err } = await countersign(['build', '--config', config])
  expect(code).toBe(2)
  const [first, second, ...rest] = err.split('\n')
  expect(first).toMatch(/^countersign build: .*countersign\.yaml: 1 fault$/)
  expect(second).toMatch(
    /^ {2}.*countersign\.yaml:\d+:\d+ {2}clusters\[0\]: policy signed-images .* needs namespaceObject in /,
  )
  expect(rest).toEqual([''])
})

test('faults of the config and of the policies are told at once, and nothing is built', async () => {
  const config = path.join(folder, 'countersign.yaml')
  await writeFile(config, (await readFile(config, 'utf8')).replace(/^endpoint: /m, 'endpont: '))
  const policies = path.join(folder, 'policies')
  await cp(path.join(policies, 'shop-images.yaml'), path.join(policies, 'twice.yaml'))
  const out = path.join(folder, 'out')
  const { code, err } = await countersign(['build', '--config', config, '--out', out])
  const [first, ...faults] = err.trimEnd().split('\n')
  expect([code, first]).toEqual([2, `countersign build: ${config} and its policies: 3 faults`])
  expect(faults).toEqual([
    expect.stringMatching(
      /countersign\.yaml:\d+:\d+ {2}endpont: unknown key; did you mean "endpoint"/,
    ),
    expect.stringMatching(/countersign\.yaml:\d+:\d+ {2}endpoint: is required$/),
    expect.stringMatching(/twice\.yaml:\d+:\d+ {2}metadata\.name: /),
  ])
  expect(await readdir(folder)).not.toContain('out')
})

describe('build --cluster', () => {
  const TWO = `policies: policies
endpoint: https://admission.example.com
outcomes: { key: { secrets: [ { id: a, env: SEAL } ] } }
clusters:
  - { name: one, tokens: ["${'1'.repeat(64)}"], policies: [shop-images] }
  - { name: two, tokens: ["${'2'.repeat(64)}"] }
  - { name: three, tokens: ["${'3'.repeat(64)}"], policies: [signed-images] }
kms: { region: eu-central-1 }
`
  const build = async (...names: string[]) => {
    const config = path.join(folder, 'countersign.yaml')
    await writeFile(config, TWO)
    const out = path.join(folder, 'out')
    const clusters = names.flatMap((name) => ['--cluster', name])
    const args = ['build', '--config', config, '--out', out, '-o', 'json', ...clusters]
    const { code, out: printed, err } = await countersign(args)
    return { code, err, out, data: code === 0 ? JSON.parse(printed) : undefined }
  }

  test('holds these clusters and their policies, and nothing of any other', async () => {
    const all = (await build()).data
    const { data, out } = await build('one')
    expect(data).toMatchObject({ clusters: ['one'], policies: ['shop-images'] })
    // What a cluster is answered does not depend on who else is in the bundle.
    expect(data.policySets).toEqual({ one: all.policySets.one })
    expect(data.deployment).not.toBe(all.deployment)
    const bundle = await readFile(path.join(out, 'lambda/validate/index.mjs'), 'utf8')
    expect(['1', '2', '3'].map((digit) => bundle.includes(digit.repeat(64)))).toEqual([
      true,
      false,
      false,
    ])
    expect([bundle.includes('shop-images'), bundle.includes('signed-images')]).toEqual([
      true,
      false,
    ])
    expect((await build('one', 'three')).data).toMatchObject({
      clusters: ['one', 'three'],
      policies: ['shop-images', 'signed-images'],
    })
  })

  test('of clusters that are not there is refused, with all of them', async () => {
    const { code, err } = await build('one', 'four', 'five')
    expect([code, err]).toEqual([
      2,
      `countersign build: ${path.join(folder, 'countersign.yaml')} has no cluster four, five; it has one, two, three\n`,
    ])
    expect(await readdir(folder)).not.toContain('out')
  })
})
