import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { signImage } from '#functions/local/sign.ts'
import { startVault, type VaultEmulator } from '#functions/local/vault.ts'
import { vaultSigner } from '#functions/local/vault-signer.ts'
import { countersign } from './harness.ts'

const TOKEN = 'hvs.correct-horse-battery-staple'

let registry: LocalRegistry
let vault: VaultEmulator
beforeAll(async () => {
  registry = await startRegistry()
  vault = await startVault({ token: TOKEN, mount: 'team/transit', namespace: 'admin' })
  for (const name of ['release', 'other']) await vault.createKey(name, 'ecdsa-p256')
  const target = { url: registry.url, repository: 'app' }
  const descriptor = await pushImage(target, { text: 'app', tag: '1' })
  const where = { url: vault.url, token: TOKEN, mount: vault.mount, namespace: 'admin' }
  const signer = await vaultSigner({ ...where, name: 'release' })
  await signImage(target, { descriptor, reference: 'app' }, [signer], 'tag')
})
afterEach(() => vault.fail(undefined))
afterAll(() => Promise.all([registry.close(), vault.close()]))

const verify = (args: readonly string[], env: Record<string, string>) =>
  countersign(['verify', `${registry.host}/app:1`, '--plain-http', '--output', 'json', ...args], {
    env: { HOME: '/nonexistent', ...env },
  })
const where = () => ['--vault-address', vault.url, '--vault-mount', vault.mount]
const namespace = ['--vault-namespace', 'admin']

test.each([
  { name: 'the key that signed', key: 'hashivault://release', code: 0, status: 'verified' },
  { name: 'the same under openbao', key: 'openbao://release', code: 0, status: 'verified' },
  { name: 'another key', key: 'hashivault://other', code: 1, status: 'rejected' },
  { name: 'a key that is not there', key: 'hashivault://none', code: 1, status: 'inconclusive' },
])('verifies with a key in Vault: $name', async ({ key, code, status }) => {
  const args = ['--key', key, ...where(), ...namespace]
  const ran = await verify(args, { VAULT_TOKEN: TOKEN })
  expect({ code: ran.code, err: ran.err }).toEqual({ code, err: '' })
  expect(JSON.parse(ran.out)).toMatchObject({
    verdict: status,
    attestors: [{ key, status }],
  })
})

test('takes address and namespace from the environment of Vault itself when no option gives them', async () => {
  const args = ['--key', 'hashivault://release', '--vault-mount', vault.mount]
  const env = { VAULT_ADDR: vault.url, VAULT_NAMESPACE: 'admin', VAULT_TOKEN: TOKEN }
  expect(await verify(args, env)).toMatchObject({ code: 0, err: '' })
})

test.each([
  { name: 'without a token', env: {}, says: /^CONFIG_INVALID: variable VAULT_TOKEN is not set/ },
  { name: 'with a wrong token', env: { VAULT_TOKEN: 'hvs.wrong-one' }, says: /^KMS_REFUSED: / },
])('$name nobody can tell', async ({ env, says }) => {
  const { code, out, err } = await verify(
    ['--key', 'hashivault://release', ...where(), ...namespace],
    env,
  )
  expect(code).toBe(1)
  expect(JSON.parse(out)).toMatchObject({
    verdict: 'inconclusive',
    attestors: [{ detail: expect.stringMatching(says) }],
  })
  expect(out + err).not.toContain('wrong-one')
})

test('while Vault is sealed nobody can tell', async () => {
  vault.fail({ kind: 'sealed' })
  const args = ['--key', 'hashivault://release', ...where(), ...namespace]
  const { code, out } = await verify(args, { VAULT_TOKEN: TOKEN })
  expect([code, JSON.parse(out).verdict]).toEqual([1, 'inconclusive'])
})

test.each([
  {
    name: 'no address',
    args: ['--key', 'hashivault://release'],
    says: 'no Vault is configured',
  },
  {
    name: 'an address without TLS',
    args: ['--key', 'hashivault://release', '--vault-address', 'http://vault.test:8200'],
    says: 'Vault address "http://vault.test:8200" is not https://host[:port]',
  },
  {
    name: 'a name with a path',
    args: ['--key', 'hashivault://team/release', '--vault-address', 'https://vault.test'],
    says: 'expected hashivault://<name of a transit key>',
  },
  {
    name: 'a key service that is not supported',
    args: ['--key', 'azurekms://a/b'],
    says: 'keys in Azure Key Vault are not supported yet',
  },
])('is bad input: $name', async ({ args, says }) => {
  const { code, err } = await verify(args, { VAULT_TOKEN: TOKEN })
  expect(code).toBe(2)
  expect(err).toContain(says)
})
