import { createHash, createPublicKey, verify } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startVault, type VaultEmulator } from '#functions/local/vault.ts'
import { vaultSigner } from '#functions/local/vault-signer.ts'

const MESSAGE = Buffer.from('a message')

let vault: VaultEmulator
beforeAll(async () => {
  vault = await startVault()
})
afterEach(() => vault.fail(undefined))
afterAll(() => vault.close())

interface Sent {
  method?: string
  body?: object | string
  headers?: Record<string, string>
}

async function send(path: string, { method, body, headers }: Sent = {}) {
  const response = await fetch(`${vault.url}/v1/${path}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { 'x-vault-token': vault.token, 'x-vault-request': 'true', ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

const dataOf = async (path: string, sent?: Sent) => (await send(path, sent)).body.data
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

describe('the local Vault', () => {
  test('makes a key, shows its versions and turns to a new one', async () => {
    const made = await dataOf('transit/keys/a', { body: { type: 'ecdsa-p256' } })
    expect(made).toMatchObject({
      name: 'a',
      type: 'ecdsa-p256',
      latest_version: 1,
      min_decryption_version: 1,
      supports_signing: true,
      derived: false,
    })
    expect(made.keys['1']).toMatchObject({
      name: 'P-256',
      public_key: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/),
      creation_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    })
    await send('transit/keys/a/rotate', { body: {} })
    expect(Object.keys((await dataOf('transit/keys/a')).keys)).toEqual(['1', '2'])
    await send('transit/keys/a/config', { body: { min_decryption_version: 2 } })
    expect(Object.keys((await dataOf('transit/keys/a')).keys)).toEqual(['2'])
  })

  test('answers in the envelope of the API', async () => {
    await vault.createKey('b', 'ed25519')
    const { status, body } = await send('transit/keys/b')
    expect([status, Object.keys(body).sort()]).toEqual([
      200,
      [
        'auth',
        'data',
        'lease_duration',
        'lease_id',
        'mount_type',
        'renewable',
        'request_id',
        'warnings',
        'wrap_info',
      ],
    ])
  })

  test.each([
    { type: 'ecdsa-p256', hash: 'sha256' as const },
    { type: 'ecdsa-p521', hash: 'sha512' as const },
    { type: 'rsa-2048', hash: 'sha384' as const },
  ])('signs a digest with $type as everybody can verify', async ({ type, hash }) => {
    await vault.createKey(type, type)
    const signer = await vaultSigner({ url: vault.url, token: vault.token, name: type, hash })
    const signature = await signer.sign(MESSAGE)
    const { keys } = await dataOf(`transit/keys/${type}`)
    expect(verify(hash, MESSAGE, createPublicKey(keys['1'].public_key), signature)).toBe(true)
  })

  test('signs with Ed25519 whatever it is given', async () => {
    await vault.createKey('ed', 'ed25519')
    const where = { url: vault.url, token: vault.token, name: 'ed' }
    const signer = await vaultSigner({ ...where, raw: true })
    expect(verify(null, MESSAGE, signer.publicKey, await signer.sign(MESSAGE))).toBe(true)
    const digest = createHash('sha256').update(MESSAGE).digest()
    const ofDigest = await (await vaultSigner(where)).sign(MESSAGE)
    expect(verify(null, digest, signer.publicKey, ofDigest)).toBe(true)
  })

  test('takes an RSA signature for PSS unless it is told otherwise, which it does not have', async () => {
    await vault.createKey('rsa', 'rsa-2048')
    const input = base64(createHash('sha256').update(MESSAGE).digest())
    const body = { input, prehashed: true, hash_algorithm: 'sha2-256' }
    expect((await send('transit/sign/rsa', { body })).status).toBe(400)
    const signed = await send('transit/sign/rsa', {
      body: { ...body, signature_algorithm: 'pkcs1v15' },
    })
    expect(signed.status).toBe(200)
  })

  test('keeps a key that may not be deleted, and forgets one that may', async () => {
    await vault.createKey('kept', 'ecdsa-p256')
    const remove = () => send('transit/keys/kept', { method: 'DELETE' })
    expect((await remove()).status).toBe(400)
    await send('transit/keys/kept/config', { body: { deletion_allowed: true } })
    expect((await remove()).status).toBe(200)
    expect(await send('transit/keys/kept')).toEqual({ status: 404, body: { errors: [] } })
  })

  test.each<{ name: string; path: string; sent?: Sent; status: number; says: string }>([
    {
      name: 'no token',
      path: 'transit/keys/a',
      sent: { headers: { 'x-vault-token': '' } },
      status: 403,
      says: 'permission denied',
    },
    {
      name: 'no X-Vault-Request',
      path: 'transit/keys/a',
      sent: { headers: { 'x-vault-request': '' } },
      status: 412,
      says: 'X-Vault-Request',
    },
    { name: 'another engine', path: 'kv/keys/a', status: 404, says: 'no handler for route' },
    { name: 'a path below a key', path: 'transit/keys/a/b/c', status: 404, says: 'no handler' },
    {
      name: 'a type of key it does not know',
      path: 'transit/keys/new',
      sent: { body: { type: 'dsa' } },
      status: 400,
      says: 'unknown key type dsa',
    },
    {
      name: 'a signature by a key that is not there',
      path: 'transit/verify/none/sha2-256',
      sent: { body: { input: '', signature: 'vault:v1:AA==' } },
      status: 400,
      says: 'signature verification key not found',
    },
    {
      name: 'a signature without its prefix',
      path: 'transit/verify/v/sha2-256',
      sent: { body: { input: '', prehashed: true, signature: 'AA==' } },
      status: 400,
      says: 'no prefix',
    },
    {
      name: 'a signature of a version to come',
      path: 'transit/verify/v/sha2-256',
      sent: { body: { input: '', prehashed: true, signature: 'vault:v2:AA==' } },
      status: 400,
      says: 'version is too new',
    },
    {
      name: 'a hash it does not know',
      path: 'transit/verify/v/md5',
      sent: { body: { input: '', prehashed: true, signature: 'vault:v1:AA==' } },
      status: 400,
      says: 'invalid hash algorithm "md5"',
    },
    {
      name: 'an empty segment before the hash',
      path: 'transit/verify/v//sha2-256',
      sent: { body: { input: '', prehashed: true, signature: 'vault:v1:AA==' } },
      status: 404,
      says: 'no handler for route',
    },
    {
      name: 'a body that is not JSON',
      path: 'transit/verify/v',
      sent: { body: 'input=a' },
      status: 400,
      says: 'failed to parse JSON input',
    },
  ])('refuses $name', async ({ path, sent, status, says }) => {
    await vault.createKey('v', 'ecdsa-p256')
    const answered = await send(path, sent)
    expect(answered.status).toBe(status)
    expect(answered.body.errors.join()).toContain(says)
  })

  test('misbehaves as it is told and as often', async () => {
    await vault.createKey('f', 'ecdsa-p256')
    vault.fail({ kind: 'status', status: 429, times: 1 })
    expect((await send('transit/keys/f')).status).toBe(429)
    expect((await send('transit/keys/f')).status).toBe(200)
    vault.fail({ kind: 'sealed' })
    expect(await send('transit/keys/f')).toEqual({
      status: 503,
      body: { errors: ['Vault is sealed'] },
    })
  })
})
