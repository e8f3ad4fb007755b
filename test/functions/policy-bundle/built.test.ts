import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compare } from '#functions/cli/budgets.ts'
import { type BundleName, type BundleReport, bundleFunctions } from '#functions/cli/bundle.ts'
import { configWith, deploymentOf, forbids, newKey } from './setup.ts'

/** A text of each part that only some policies need, as it stands in minified code. */
const PARTS = {
  KMS: 'TrentService',
  Notary: 'io.cncf.notary.signingScheme',
  'policy bundles': 'vnd.countersign.policies.v1+json',
  'what policies ask of clusters': 'CLUSTER_REFUSED',
  YAML: 'YAMLParseError',
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-any-policy-'))
})
afterAll(() => rm(folder, { recursive: true }))

describe('functions whose policies come from bundles', () => {
  let reports: BundleReport[]
  beforeAll(async () => {
    const config = configWith({ url: 'https://policies.example.com/prod.json' }, newKey())
    const deployment = await deploymentOf([forbids('built')], config)
    reports = await bundleFunctions({ deployment, outDir: folder })
  })

  const texts = async (name: BundleName) => {
    const { entry } = reports.find((report) => report.name === name)!
    const names = (await readdir(path.dirname(entry))).filter((each) => each.endsWith('.mjs'))
    const all = await Promise.all(
      names.map((each) => readFile(path.join(path.dirname(entry), each), 'utf8')),
    )
    return { start: await readFile(entry, 'utf8'), all: all.join('\n') }
  }
  const has = (text: string) =>
    Object.fromEntries(Object.entries(PARTS).map(([name, part]) => [name, text.includes(part)]))

  test.each<[BundleName, boolean]>([
    ['lambda/mutate', true],
    ['lambda/validate', true],
    ['worker', false],
  ])('%s holds what any policy may need, though none of its build does', async (name, yaml) => {
    const { all } = await texts(name)
    expect(has(all)).toEqual({
      KMS: true,
      Notary: true,
      'policy bundles': true,
      'what policies ask of clusters': true,
      YAML: yaml,
    })
  })

  test('and validate loads nothing of it at the start', async () => {
    const { start } = await texts('lambda/validate')
    expect(Object.values(has(start)).some(Boolean)).toBe(false)
  })

  test('stays within its budgets', () => {
    expect(reports.flatMap((report) => compare(report).over)).toEqual([])
    expect(reports.every(({ forAnyPolicy }) => forAnyPolicy)).toBe(true)
  })
})

test('functions without bundles hold nothing of what fetches them', async () => {
  const { policyBundle: _, ...config } = configWith({ url: 'https://x.example/' }, newKey())
  const deployment = await deploymentOf([forbids('built')], config)
  const [report] = await bundleFunctions({ deployment, outDir: folder, names: ['worker'] })
  const dir = path.dirname(report!.entry)
  const all = await Promise.all(
    (await readdir(dir)).map((name) => readFile(path.join(dir, name), 'utf8')),
  )
  expect(all.join('\n').includes(PARTS['policy bundles'])).toBe(false)
  expect(report!.forAnyPolicy).toBeUndefined()
})
