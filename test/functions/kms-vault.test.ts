import { createHash } from 'node:crypto'
import https from 'node:https'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createVault, type VaultOptions } from '#functions/kms-vault.ts'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'
import { startVault, type VaultEmulator, type VaultFault } from '#functions/local/vault.ts'
import { vaultSigner } from '#functions/local/vault-signer.ts'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_VAULT_ANSWER_BYTES } from '#shared/limits.ts'
import type { FetchPort, VaultKey } from '#shared/ports.ts'

const TOKEN = 'hvs.correct-horse-battery-staple'
const SIGNAL = () => new AbortController().signal
const MESSAGE = utf8('a message')

let vault: VaultEmulator
beforeAll(async () => {
  vault = await startVault({ token: TOKEN, mount: 'team-a/transit', namespace: 'admin/eu' })
  await vault.createKey('release', 'ecdsa-p256')
})
afterEach(() => vault.fail(undefined))
afterAll(() => vault.close())

const portOf = (options: Partial<VaultOptions> = {}) =>
  createVault({ fetch, token: () => TOKEN, ...options })
const keyOf = (name = 'release'): VaultKey => ({
  name,
  address: vault.url,
  mount: vault.mount,
  namespace: 'admin/eu',
})

/** `CODE message` of a failure. */
async function faultOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error: AdmissionError) => `${error.code} ${error.message}`,
  )
}

/** How many requests the emulator saw meanwhile. */
async function counting<T>(call: () => Promise<T>): Promise<[T, number]> {
  const before = vault.requests.length
  return [await call(), vault.requests.length - before]
}

describe('createVault', () => {
  test.each([
    { type: 'ecdsa-p384', publicKey: expect.stringContaining('-----BEGIN PUBLIC KEY-----') },
    { type: 'rsa-2048', publicKey: expect.stringContaining('-----BEGIN PUBLIC KEY-----') },
    { type: 'ed25519', publicKey: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) },
    { type: 'aes256-gcm96', publicKey: '' },
  ])('gets the latest version of a key of type $type', async ({ type, publicKey }) => {
    const key = await vault.createKey(type, type)
    expect(await portOf().getPublicKey(keyOf(type), SIGNAL())).toEqual({
      type,
      version: 1,
      publicKey,
    })
    await key.rotate()
    expect((await portOf().getPublicKey(keyOf(type), SIGNAL())).version).toBe(2)
  })

  test('sends one GET with token and namespace, and one POST with the digest and the version', async () => {
    const sent: { url: string; init: RequestInit }[] = []
    const spying: FetchPort = (url, init) => {
      sent.push({ url, init })
      return fetch(url, init)
    }
    const port = portOf({ fetch: spying })
    await port.getPublicKey(keyOf(), SIGNAL())
    const call = { input: new Uint8Array(32), hash: 'sha2-256', version: 1 } as const
    await port.verify(keyOf(), { ...call, signature: utf8('junk') }, SIGNAL())
    const headers = {
      'x-vault-token': TOKEN,
      'x-vault-request': 'true',
      'x-vault-namespace': 'admin/eu',
    }
    const signal = expect.any(AbortSignal)
    expect(sent).toEqual([
      {
        url: `${vault.url}/v1/team-a/transit/keys/release`,
        init: { method: 'GET', redirect: 'manual', headers, signal },
      },
      {
        url: `${vault.url}/v1/team-a/transit/verify/release`,
        init: {
          method: 'POST',
          redirect: 'manual',
          headers: { ...headers, 'content-type': 'application/json' },
          body: expect.any(String),
          signal,
        },
      },
    ])
    expect(JSON.parse(String(sent[1]?.init.body))).toEqual({
      input: `${'A'.repeat(43)}=`,
      signature: 'vault:v1:anVuaw==',
      prehashed: true,
      hash_algorithm: 'sha2-256',
      signature_algorithm: 'pkcs1v15',
    })
  })

  test.each([
    { type: 'ecdsa-p256', hash: 'sha256' as const },
    { type: 'ecdsa-p521', hash: 'sha512' as const },
    { type: 'rsa-3072', hash: 'sha384' as const },
    { type: 'ed25519', hash: undefined },
  ])('tells a right signature from a wrong one of type $type', async ({ type, hash }) => {
    const name = `signs-${type}`
    await vault.createKey(name, type)
    const where = { url: vault.url, token: TOKEN, mount: vault.mount, name, namespace: 'admin/eu' }
    const signer = await vaultSigner({
      ...where,
      ...(hash === undefined ? { raw: true } : { hash }),
    })
    const signature = new Uint8Array(await signer.sign(MESSAGE))
    const digest = new Uint8Array(
      createHash(hash ?? 'sha256')
        .update(MESSAGE)
        .digest(),
    )
    const named = hash && (`sha2-${hash.slice(3)}` as 'sha2-256')
    const call = {
      input: named === undefined ? MESSAGE : digest,
      signature,
      version: 1,
      ...(named === undefined ? {} : { hash: named }),
    }
    const port = portOf()
    expect(await port.verify(keyOf(name), call, SIGNAL())).toBe(true)
    const wrong = { ...call, input: call.input.toReversed() }
    expect(await port.verify(keyOf(name), wrong, SIGNAL())).toBe(false)
  })

  test.each<{ name: string; fault: VaultFault }>([
    { name: 'one throttled call', fault: { kind: 'status', status: 429, times: 1 } },
    { name: 'one failure', fault: { kind: 'status', status: 500, times: 1 } },
    { name: 'one answer of a standby', fault: { kind: 'status', status: 473, times: 1 } },
    { name: 'one answer behind in replication', fault: { kind: 'status', status: 412, times: 1 } },
    { name: 'one moment of being sealed', fault: { kind: 'status', status: 503, times: 1 } },
  ])('gets over $name', async ({ fault }) => {
    vault.fail(fault)
    const [{ type }, requests] = await counting(() => portOf().getPublicKey(keyOf(), SIGNAL()))
    expect([type, requests]).toEqual(['ecdsa-p256', 2])
  })

  test.each<{ name: string; fault: VaultFault; reason: string; tries: number }>([
    {
      name: 'throttling',
      fault: { kind: 'status', status: 429, times: 9 },
      reason: 'Vault throttles (HTTP 429)',
      tries: 2,
    },
    {
      name: 'a failure',
      fault: { kind: 'status', status: 500, times: 9 },
      reason: 'HTTP 500',
      tries: 2,
    },
    {
      name: 'a Vault that is sealed',
      fault: { kind: 'sealed' },
      reason: 'Vault is sealed or in maintenance (HTTP 503)',
      tries: 2,
    },
    {
      name: 'a connection that is cut',
      fault: { kind: 'down' },
      reason: 'the connection failed (UND_ERR_SOCKET)',
      tries: 2,
    },
    {
      name: 'a page that is not JSON',
      fault: { kind: 'body', body: '<html>' },
      reason: 'no usable answer, it is not JSON',
      tries: 1,
    },
    {
      name: 'a key that occurs twice',
      fault: { kind: 'body', body: '{"data":{"latest_version":1,"latest_version":2}}' },
      reason: 'no usable answer, it is not JSON',
      tries: 1,
    },
    {
      name: 'nesting without end',
      fault: { kind: 'body', body: `{"data":${'['.repeat(1e5)}` },
      reason: 'no usable answer, it is not JSON',
      tries: 1,
    },
    {
      name: 'an answer that is too large',
      fault: { kind: 'body', body: ' '.repeat(MAX_VAULT_ANSWER_BYTES + 1) },
      reason: 'no usable answer, it is too large',
      tries: 1,
    },
    {
      name: 'an answer without content',
      fault: { kind: 'status', status: 203, times: 9 },
      reason: 'no usable answer (HTTP 203)',
      tries: 1,
    },
    {
      name: 'an answer without data',
      fault: { kind: 'body', body: '{"data":null}' },
      reason: 'no usable answer, it has no data',
      tries: 1,
    },
    {
      name: 'data of another kind',
      fault: { kind: 'body', body: '{"data":{"keys":["a"]}}' },
      reason: 'no usable answer, it describes no transit key',
      tries: 1,
    },
    {
      name: 'a key without its latest version',
      fault: {
        kind: 'body',
        body: '{"data":{"type":"ed25519","latest_version":2,"keys":{"1":{"public_key":"a"}}}}',
      },
      reason: 'no usable answer, it lacks the latest version of the key',
      tries: 1,
    },
  ])('says KMS_UNAVAILABLE after $tries tries of $name', async ({ fault, reason, tries }) => {
    vault.fail(fault)
    const [message, requests] = await counting(() =>
      faultOf(portOf().getPublicKey(keyOf(), SIGNAL())),
    )
    expect(message).toBe(`KMS_UNAVAILABLE Vault: key release in team-a/transit: ${reason}`)
    expect(requests).toBe(tries)
  })

  test.each([
    {
      status: 400,
      reason:
        'Vault refuses the request, such as for a key that is deleted or a version that is not allowed any more (HTTP 400)',
    },
    {
      status: 403,
      reason:
        'permission denied; the token may have ended, or its policy lacks read on the key (and update on verify) (HTTP 403)',
    },
    { status: 404, reason: 'no such key, or no transit engine is mounted there (HTTP 404)' },
    { status: 405, reason: 'HTTP 405' },
  ])('says KMS_REFUSED after one try of $status', async ({ status, reason }) => {
    vault.fail({ kind: 'status', status, times: 9 })
    const [message, requests] = await counting(() =>
      faultOf(portOf().getPublicKey(keyOf(), SIGNAL())),
    )
    expect(message).toBe(`KMS_REFUSED Vault: key release in team-a/transit: ${reason}`)
    expect(requests).toBe(1)
  })

  test.each([
    { name: 'a name nobody made', key: { name: 'none' }, code: 'KMS_REFUSED' },
    { name: 'a mount that is none', key: { mount: 'kv' }, code: 'KMS_REFUSED' },
    { name: 'another namespace', key: { namespace: 'admin' }, code: 'KMS_REFUSED' },
  ])('is refused $name', async ({ key, code }) => {
    const message = await faultOf(portOf().getPublicKey({ ...keyOf(), ...key }, SIGNAL()))
    expect(message.split(' ')[0]).toBe(code)
  })

  test('takes a key that was deleted softly for deleted', async () => {
    const key = await vault.createKey('softly', 'ecdsa-p256')
    key.softDeleted = true
    expect(await faultOf(portOf().getPublicKey(keyOf('softly'), SIGNAL()))).toBe(
      'KMS_REFUSED Vault: key softly in team-a/transit: the key is deleted',
    )
  })

  test('is refused what a version that is not allowed any more has signed', async () => {
    const key = await vault.createKey('old', 'ecdsa-p256')
    await key.rotate()
    key.minDecryptionVersion = 2
    const call = { input: new Uint8Array(32), hash: 'sha2-256', signature: utf8('a') } as const
    const verify = (version: number) =>
      faultOf(portOf().verify(keyOf('old'), { ...call, version }, SIGNAL()))
    expect(await verify(1)).toMatch(/^KMS_REFUSED Vault: verify with key old in team-a\/transit: /)
    expect(await verify(2)).toBe('no error')
    expect(await verify(3)).toMatch(/^KMS_REFUSED /)
  })

  test('does not take the word of an answer that is not about the signature', async () => {
    for (const body of ['{"data":{}}', '{"data":{"valid":"true"}}', '{"data":{"valid":1}}']) {
      vault.fail({ kind: 'body', body })
      const call = { input: MESSAGE, signature: utf8('a'), version: 1 }
      expect(await faultOf(portOf().verify(keyOf(), call, SIGNAL()))).toBe(
        'KMS_UNAVAILABLE Vault: verify with key release in team-a/transit: no usable answer, it does not say whether the signature is valid',
      )
    }
  })

  test.each([301, 302, 303, 307, 308])('follows no redirect (%i)', async (status) => {
    const elsewhere = await startVault({ token: TOKEN })
    await elsewhere.createKey('release', 'ecdsa-p256')
    const location = `${elsewhere.url}/v1/transit/keys/release`
    vault.fail({ kind: 'status', status, times: 9, location })
    const [message, requests] = await counting(() =>
      faultOf(portOf().getPublicKey(keyOf(), SIGNAL())),
    )
    const seen = elsewhere.requests.length
    await elsewhere.close()
    expect(message).toBe(
      `KMS_UNAVAILABLE Vault: key release in team-a/transit: a redirect (HTTP ${status}) is not followed; give the address of the active node or of a load balancer`,
    )
    expect([requests, seen]).toEqual([1, 0])
  })

  test('says KMS_UNAVAILABLE after one try when no answer comes in time', async () => {
    vault.fail({ kind: 'slow', ms: 60_000 })
    const [message, requests] = await counting(() =>
      faultOf(portOf({ callTimeoutMs: 50 }).getPublicKey(keyOf(), SIGNAL())),
    )
    expect(message).toBe('KMS_UNAVAILABLE Vault: key release in team-a/transit: no answer in time')
    expect(requests).toBe(1)
  })

  test('does not wait for a platform that ignores its signal', async () => {
    const port = portOf({ callTimeoutMs: 50, fetch: () => new Promise(() => {}) })
    expect(await faultOf(port.getPublicKey(keyOf(), SIGNAL()))).toBe(
      'KMS_UNAVAILABLE Vault: key release in team-a/transit: no answer in time',
    )
  })

  test('says DEADLINE_EXCEEDED when the request ends, before or during the call', async () => {
    const expected = 'DEADLINE_EXCEEDED Vault: key release in team-a/transit: no time left'
    expect(await faultOf(portOf().getPublicKey(keyOf(), AbortSignal.abort()))).toBe(expected)
    vault.fail({ kind: 'slow', ms: 60_000 })
    const controller = new AbortController()
    const calling = faultOf(portOf().getPublicKey(keyOf(), controller.signal))
    controller.abort()
    expect(await calling).toBe(expected)
  })

  test('passes on that there is no token, and asks nobody', async () => {
    const token = () => {
      throw new AdmissionError('CONFIG_INVALID', 'variable VAULT_TOKEN is not set')
    }
    const [message, requests] = await counting(() =>
      faultOf(portOf({ token }).getPublicKey(keyOf(), SIGNAL())),
    )
    expect([message, requests]).toEqual(['CONFIG_INVALID variable VAULT_TOKEN is not set', 0])
  })

  test.each(['hvs.a\nb', 'hvs.a b', 'hvs.ключ', ''])(
    'sends no token that no header takes, and does not repeat it: %j',
    async (token) => {
      const [error, requests] = await counting(() =>
        portOf({ token: () => token })
          .getPublicKey(keyOf(), SIGNAL())
          .catch((thrown: unknown) => thrown),
      )
      expect(error).toEqual(
        new AdmissionError('CONFIG_INVALID', 'the token of Vault has characters that no token has'),
      )
      expect(requests).toBe(0)
    },
  )

  test('gives a key or an AdmissionError, whatever Vault answers', async () => {
    const key = fc.record({
      type: fc.oneof(fc.constant('ed25519'), fc.anything()),
      latest_version: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.anything()),
      keys: fc.oneof(
        fc.dictionary(fc.constantFrom('0', '1', '2', '__proto__'), fc.anything()),
        fc.anything(),
      ),
    })
    const body = fc.oneof(
      key.map((data) => JSON.stringify({ data })),
      fc.anything().map((data) => JSON.stringify({ data }) ?? ''),
      fc.string(),
    )
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        const port = portOf({ fetch: async () => new Response(text) })
        const answer: unknown = await port.getPublicKey(keyOf(), SIGNAL()).catch((thrown) => thrown)
        if (answer instanceof AdmissionError) expect(answer.code).toBe('KMS_UNAVAILABLE')
        else {
          expect(answer).toEqual({
            type: expect.any(String),
            version: expect.any(Number),
            publicKey: expect.any(String),
          })
        }
      }),
    )
  })

  test('says nothing of its token in any error, down to the causes', async () => {
    const faults: VaultFault[] = [
      { kind: 'status', status: 403, times: 9 },
      { kind: 'status', status: 500, times: 9 },
      { kind: 'body', body: JSON.stringify({ token: TOKEN }) },
      { kind: 'body', body: TOKEN },
      { kind: 'down' },
    ]
    for (const fault of faults) {
      vault.fail(fault)
      const error: unknown = await portOf()
        .getPublicKey(keyOf(), SIGNAL())
        .catch((thrown: unknown) => thrown)
      for (let at = error; at instanceof Error; at = at.cause)
        expect(String(at)).not.toContain(TOKEN)
    }
  })
})

describe('createVault over TLS', () => {
  let certificates: DevCertificates
  let secure: VaultEmulator
  beforeAll(async () => {
    certificates = await createDevCertificates({ hosts: ['127.0.0.1'] })
    secure = await startVault({ token: TOKEN, tls: certificates })
    await secure.createKey('release', 'ecdsa-p256')
  })
  afterAll(() => secure.close())

  const key = () => ({ name: 'release', address: secure.url, mount: 'transit' })

  test('gets a key from a server the platform trusts', async () => {
    const port = portOf({ fetch: trusting(certificates.ca) })
    expect((await port.getPublicKey(key(), SIGNAL())).type).toBe('ecdsa-p256')
  })

  test('sends nothing to a server the platform does not trust', async () => {
    const before = secure.requests.length
    const message = await faultOf(portOf().getPublicKey(key(), SIGNAL()))
    expect(message).toMatch(
      /^KMS_UNAVAILABLE Vault: key release in transit: the connection failed \([A-Z_]+\)$/,
    )
    expect(secure.requests).toHaveLength(before)
  })
})

/** A fetch that trusts one authority, as the platform's does with `NODE_EXTRA_CA_CERTS`. */
function trusting(ca: string): FetchPort {
  return (url, { method, headers, body }) =>
    new Promise((resolve, reject) => {
      const options = {
        method,
        headers: headers as Record<string, string>,
        ca,
        agent: false,
      } as const
      const request = https.request(url, options, async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk)
        resolve(new Response(Buffer.concat(chunks), { status: response.statusCode ?? 0 }))
      })
      request.on('error', reject)
      request.end(body)
    })
}
