import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { bundleFunctions } from '#functions/cli/bundle.ts'
import { type Config, parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import type { RevocationMode } from '#shared/signature/revocation/types.ts'
import { mintRoot, pemOf } from '#test/fakes/pki.ts'
import { policyDocument } from '#test/shared/policy/documents.ts'

const CONFIG = {
  policies: 'policies',
  endpoint: 'https://admission.example.com',
  outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
  clusters: [{ name: 'prod', tokens: ['0'.repeat(64)] }],
}
const configOf = (revocation: unknown): Config => parseConfig({ ...CONFIG, revocation })

describe('revocation in the config', () => {
  test('is absent where nothing is said, which means skip', () => {
    expect(parseConfig(CONFIG)).not.toHaveProperty('revocation')
  })

  test.each(['skip', 'softfail', 'strict'])('may be %s', (mode) => {
    expect(configOf({ mode }).revocation).toEqual({ mode })
  })

  test('names the hosts that are no public ones', () => {
    const revocation = { mode: 'strict', allow: ['ca.internal', '10.0.0.1:8080'] }
    expect(configOf(revocation).revocation).toEqual(revocation)
  })

  test.each([
    { name: 'no mode', revocation: {}, at: 'revocation.mode' },
    { name: 'another mode', revocation: { mode: 'hard' }, at: 'revocation.mode' },
    { name: 'another key', revocation: { mode: 'skip', cache: 1 }, at: 'revocation.cache' },
    { name: 'no host', revocation: { mode: 'skip', allow: [] }, at: 'revocation.allow' },
    {
      name: 'a URL for a host',
      revocation: { mode: 'skip', allow: ['http://ca.internal/'] },
      at: 'revocation.allow[0]',
    },
  ])('with $name is refused', ({ revocation, at }) => {
    expect(() => configOf(revocation)).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        faults: [expect.objectContaining({ path: at })],
      }),
    )
  })
})

describe('a bundle', () => {
  async function textOf(notaryRevocation: RevocationMode): Promise<string> {
    const notary = { certs: { value: pemOf(mintRoot()) } }
    const document = policyDocument({ attestors: [{ name: 'a', notary }] })
    const files = [{ name: 'a.json', text: JSON.stringify(document) }]
    const { policies } = await loadPolicies(files, { notaryRevocation })
    const deployment = await createDeployment(parseConfig(CONFIG), policies)
    const outDir = await mkdtemp(path.join(tmpdir(), 'countersign-revocation-'))
    const [report] = await bundleFunctions({ deployment, outDir, names: ['worker'] })
    const folder = path.dirname(report?.entry ?? '')
    const texts = (await readdir(folder)).map((name) => readFile(path.join(folder, name), 'utf8'))
    const text = (await Promise.all(texts)).join('')
    await rm(outDir, { recursive: true })
    return text
  }

  test('holds what asks OCSP responders and CRLs only where a policy does', async () => {
    const [without, with_] = [await textOf('skip'), await textOf('softfail')]
    expect(with_).toContain('issuingDistributionPoint')
    expect(without).not.toContain('issuingDistributionPoint')
    // What it costs, minified.
    expect(with_.length - without.length).toBeLessThan(14_000)
  })
})
