import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundleFunctions } from '#functions/cli/bundle.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { hashOf } from '../contract/review.ts'
import { keyAttestor, load, policyDocument } from '../shared/policy/documents.ts'

const vault = { address: 'https://vault.test', tokenEnv: 'VAULT_TOKEN' }

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-bundle-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** The code of the validate function with a policy for these keys, and its sizes. */
async function bundle(...keys: object[]) {
  const attestors = keys.map((key, index) => keyAttestor(`key${index}`, key))
  const { policies, faults } = await load([policyDocument({ attestors })], {
    kmsRegion: 'eu-west-1',
    kmsVault: vault,
  })
  expect(faults).toEqual([])
  const config = parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    kms: { vault },
    clusters: [{ name: 'prod', tokens: [hashOf('x')] }],
  })
  const [report] = await bundleFunctions({
    deployment: await createDeployment(config, policies),
    outDir: folder,
    names: ['lambda/validate'],
  })
  const where = path.dirname(report!.entry)
  const texts = await Promise.all(
    (await readdir(where)).map((name) => readFile(path.join(where, name), 'utf8')),
  )
  const text = texts.join('\n')
  // What sends to a service and what knows its kinds of keys go together.
  expect(text.includes('ecdsa-p521')).toBe(text.includes('x-vault-token'))
  expect(text.includes('ECC_NIST_P521')).toBe(text.includes('TrentService'))
  return { vault: text.includes('x-vault-token'), aws: text.includes('TrentService') }
}

test.each([
  { name: 'PEM', keys: [{}], holds: { vault: false, aws: false } },
  {
    name: 'a key in AWS KMS',
    keys: [{ kms: 'awskms:///alias/a' }],
    holds: { vault: false, aws: true },
  },
  { name: 'a key in Vault', keys: [{ kms: 'hashivault://a' }], holds: { vault: true, aws: false } },
  { name: 'a key in OpenBao', keys: [{ kms: 'openbao://a' }], holds: { vault: true, aws: false } },
  {
    name: 'keys in both',
    keys: [{ kms: 'hashivault://a' }, { kms: 'awskms:///alias/a' }],
    holds: { vault: true, aws: true },
  },
])('a bundle holds the clients of the key services its policies name: $name', async (row) => {
  const keys = row.keys.map((key) => ('kms' in key ? key : keyAttestor('a').cosign.key))
  expect(await bundle(...keys)).toEqual(row.holds)
})
