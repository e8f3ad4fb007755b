import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compare } from '#functions/cli/budgets.ts'
import { type BundleReport, bundleFunctions } from '#functions/cli/bundle.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/deployment.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { mintRoot, pemOf } from '#test/fakes/pki.ts'
import { hashOf } from '../../contract/review.ts'
import { load, policyDocument } from '../../shared/policy/documents.ts'

describe('bundleFunctions', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'countersign-bundle-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function bundle(key: object, policies: readonly CompiledPolicy[] = []) {
    const config = parseConfig({
      policies: 'policies',
      endpoint: 'https://admission.example.com',
      outcomes: { key },
      clusters: [{ name: 'prod', tokens: [hashOf('x')] }],
    })
    const deployment = await createDeployment(config, policies)
    const [report] = await bundleFunctions({
      deployment,
      outDir: folder,
      names: ['lambda/validate'],
    })
    const names = await readdir(path.dirname(report!.entry))
    const texts = await Promise.all(
      names.map((name) => readFile(path.join(path.dirname(report!.entry), name), 'utf8')),
    )
    const text = texts.join('\n')
    // Booleans: a failed comparison of whole bundles would fill the screen.
    return {
      report: report!,
      hasSdk: text.includes('TrentService'),
      hasStub: text.includes('built for a deployment without KMS keys'),
      hasNotary: text.includes('io.cncf.notary.signingScheme'),
    }
  }

  test('leaves the KMS client out where no key is in KMS', async () => {
    const { report, hasSdk, hasStub } = await bundle({ secrets: [{ id: 'a', env: 'SEAL' }] })
    expect([hasSdk, hasStub]).toEqual([false, true])
    expect(report.totalBytes).toBe(report.ownBytes)
    expect(report.eagerBytes).toBeLessThan(report.ownBytes)
  })

  test('keeps it in a chunk that is not loaded at the start where one is, and what was there before is gone', async () => {
    const { report, hasSdk, hasStub } = await bundle({
      kms: 'awskms:///arn:aws:kms:eu-central-1:111122223333:alias/x',
    })
    expect([hasSdk, hasStub]).toEqual([true, false])
    expect(report.totalBytes).toBeGreaterThan(report.ownBytes)
    expect((await readFile(report.entry, 'utf8')).includes('TrentService')).toBe(false)
  })

  test('holds what reads Notary Project envelopes only for a policy that needs it, and not loaded at the start', async () => {
    const key = { secrets: [{ id: 'a', env: 'SEAL' }] }
    const plain = await bundle(key)
    expect(plain.hasNotary).toBe(false)
    const notary = { certs: { value: pemOf(mintRoot()) } }
    const { policies } = await load([policyDocument({ attestors: [{ name: 'a', notary }] })])
    expect(policies).toHaveLength(1)
    const { report, hasNotary } = await bundle(key, policies)
    expect(hasNotary).toBe(true)
    const more = report.eagerBytes - plain.report.eagerBytes
    expect(more).toBeLessThan(1000)
  })
})

describe('compare', () => {
  const fits: BundleReport = {
    name: 'lambda/validate',
    entry: 'x',
    deploymentBytes: 1000,
    eagerBytes: 150_000,
    ownBytes: 1e6,
    totalBytes: 2e6,
  }

  test.each<[BundleReport & { loadMs?: number }, string[]]>([
    [fits, []],
    [{ ...fits, loadMs: 30 }, []],
    [{ ...fits, eagerBytes: 151_000 }, ['151 KB loaded at the start, at most 150 KB']],
    [{ ...fits, loadMs: 30.04 }, ['30.0 ms to load, at most 30 ms']],
    [
      { ...fits, name: 'lambda/mutate', eagerBytes: 400_001, loadMs: 80 },
      ['400 KB loaded at the start, at most 400 KB'],
    ],
    [{ ...fits, name: 'worker', ownBytes: 400_000, totalBytes: 600_000 }, []],
    [
      { ...fits, name: 'worker', ownBytes: 401_000, totalBytes: 601_000 },
      ['401 KB without the KMS client, at most 400 KB', '601 KB in all, at most 600 KB'],
    ],
  ])('%j is over budget by %j', (report, over) => {
    expect(compare(report).over).toEqual(over)
  })
})
