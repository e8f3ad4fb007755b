import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
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
