import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compare } from '#functions/cli/budgets.ts'
import { type BundleReport, bundleFunctions } from '#functions/cli/bundle.ts'
import { compareCel } from '#functions/cli/cel-bundle.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { mintRoot, pemOf } from '#test/fakes/pki.ts'
import { ISSUER, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'
import { keyPair, pemOf as pemOfKey } from '#test/shared/signature/setup.ts'
import { hashOf } from '../../contract/review.ts'
import { keyAttestor, load, policyDocument } from '../../shared/policy/documents.ts'

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

  test('has a function for image reviews where a cluster asks for them, and where none does that is gone', async () => {
    const { policies } = await load([policyDocument()])
    const bundled = async (imageReview: object) => {
      const config = parseConfig({
        policies: 'policies',
        endpoint: 'https://admission.example.com',
        outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
        clusters: [{ name: 'prod', tokens: [hashOf('x')], ...imageReview }],
      })
      const deployment = await createDeployment(config, policies)
      return bundleFunctions({ deployment, outDir: folder, names: ['lambda/image-review'] })
    }
    const [report] = await bundled({ imageReview: true })
    expect(compare(report!).over).toEqual([])
    expect(existsSync(report?.entry ?? '')).toBe(true)
    expect(await bundled({})).toEqual([])
    expect(existsSync(report?.entry ?? '')).toBe(false)
  })

  test('has all that is loaded at the start in one file, and every later one loads with it', async () => {
    const { report } = await bundle({ secrets: [{ id: 'a', env: 'SEAL' }] })
    const start = await readFile(report.entry, 'utf8')
    expect(/(?:from|import)\s*"\.\//.test(start)).toBe(false)
    const dir = path.dirname(report.entry)
    const modules = (await readdir(dir)).filter((name) => name.endsWith('.mjs'))
    expect(modules.length).toBeGreaterThan(10)
    const faults: string[] = []
    for (const name of modules) {
      const loading: Promise<unknown> = import(pathToFileURL(path.join(dir, name)).href)
      await loading.catch((thrown: unknown) => faults.push(String(thrown)))
    }
    // What stands in for modules that this deployment never asks for says so.
    expect(faults.filter((fault) => !fault.includes('was built for a deployment'))).toEqual([])
  })

  test.each([
    { name: 'lambda/validate', attestors: 'keyless', has: true, says: '' },
    { name: 'lambda/validate', attestors: 'none', has: false, says: 'without certificates, logs' },
    { name: 'worker', attestors: 'keyless', has: true, says: '' },
    { name: 'worker', attestors: 'none', has: false, says: 'without certificates, logs' },
  ] as const)(
    '$name with $attestors holds what verifies them: $has',
    async ({ name, attestors, has, says }) => {
      const config = parseConfig({
        policies: 'policies',
        endpoint: 'https://admission.example.com',
        outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
        clusters: [{ name: 'prod', tokens: [hashOf('x')] }],
      })
      const { policies } = await loadPolicies([
        {
          name: 'policy.json',
          text: JSON.stringify(keylessPolicy(attestors === 'keyless')),
        },
      ])
      const deployment = await createDeployment(config, policies)
      const [report] = await bundleFunctions({ deployment, outDir: folder, names: [name] })
      const dir = path.dirname(report!.entry)
      const names = (await readdir(dir)).filter((file) => file.endsWith('.mjs'))
      const texts = await Promise.all(names.map((file) => readFile(path.join(dir, file), 'utf8')))
      const whole = texts.join('\n')
      expect(policies).toHaveLength(1)
      const evidence = 'inclusion promise does not verify'
      expect(whole.includes(evidence)).toBe(has)
      expect(whole.includes(says)).toBe(true)
      expect((await readFile(report!.entry, 'utf8')).includes(evidence)).toBe(false)
      expect(compare(report!).over).toEqual([])
    },
  )
  test.each([
    { name: 'no attestations', attestations: [], has: [false, false] },
    {
      name: 'statements',
      attestations: [{ name: 'a', intoto: { type: 'vuln' } }],
      has: [true, false],
    },
    {
      name: 'referrers',
      attestations: [{ name: 'a', referrer: { type: 'sbom' } }],
      has: [true, true],
    },
  ])(
    'holds what reads attestations as far as policies have $name',
    async ({ attestations, has }) => {
      const { policies } = await load([policyDocument({ attestations })])
      expect(policies).toHaveLength(1)
      const { report } = await bundle({ secrets: [{ id: 'a', env: 'SEAL' }] }, policies)
      const dir = path.dirname(report.entry)
      const names = (await readdir(dir)).filter((file) => file.endsWith('.mjs'))
      const texts = await Promise.all(names.map((file) => readFile(path.join(dir, file), 'utf8')))
      const lacks = ['without attestations', 'without referrers as attestations'].map((text) =>
        texts.join('\n').includes(text),
      )
      expect(lacks).toEqual(has.map((each) => !each))
      expect((await readFile(report.entry, 'utf8')).includes('must have only one layer')).toBe(
        false,
      )
      expect(compare(report).over).toEqual([])
    },
  )

  test('holds what attestors with expressions need only where a policy has one, and not loaded at the start', async () => {
    const key = { secrets: [{ id: 'a', env: 'SEAL' }] }
    const bundled = async (attestor: object) => {
      const { policies } = await load([policyDocument({ attestors: [attestor] })])
      expect(policies).toHaveLength(1)
      const { report } = await bundle(key, policies)
      const dir = path.dirname(report.entry)
      const names = (await readdir(dir)).filter((file) => file.endsWith('.mjs'))
      const texts = await Promise.all(names.map((file) => readFile(path.join(dir, file), 'utf8')))
      const whole = texts.join('\n')
      return {
        eagerBytes: report.eagerBytes,
        lacksIt: whole.includes('without attestors with expressions'),
        lacksSigstore: whole.includes('without certificates, logs'),
      }
    }
    const plain = await bundled(keyAttestor('a'))
    const asked = await bundled(keyAttestor('a', { expression: '"key"' }))
    expect([plain.lacksIt, plain.lacksSigstore]).toEqual([true, true])
    expect([asked.lacksIt, asked.lacksSigstore]).toEqual([false, true])
    expect(asked.eagerBytes - plain.eagerBytes).toBeLessThan(1000)
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

describe('compareCel', () => {
  test.each<[Parameters<typeof compareCel>[0], string[]]>([
    [{ name: 'cel/core', bytes: 60_000, loadMs: 40 }, []],
    [{ name: 'cel/core', bytes: 61_000, loadMs: 1 }, ['61 KB, at most 60 KB']],
    [
      { name: 'cel/regex', bytes: 86_000, loadMs: 40.2 },
      ['86 KB, at most 85 KB', '40.2 ms to load, at most 40 ms'],
    ],
    [{ name: 'cel/all', bytes: 1_000_000, loadMs: 40 }, []],
  ])('%j is over budget by %j', (measured, over) => {
    expect(compareCel(measured).over).toEqual(over)
  })
})

function keylessPolicy(isKeyless: boolean): object {
  const trustedRoot = { value: JSON.stringify(new SigstoreWorld().trustedRoot()) }
  const cosign = isKeyless
    ? { keyless: { identities: [{ issuer: ISSUER, subject: SUBJECT }] }, trustedRoot }
    : { key: { data: pemOfKey(keyPair('P-256').publicKey) }, ctlog: { insecureIgnoreTlog: true } }
  return {
    apiVersion: 'policies.kyverno.io/v1',
    kind: 'ImageValidatingPolicy',
    metadata: { name: 'signed' },
    spec: {
      autogen: { podControllers: { controllers: [] } },
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      attestors: [{ name: 'a', cosign }],
      validations: [{ expression: 'true' }],
    },
  }
}
