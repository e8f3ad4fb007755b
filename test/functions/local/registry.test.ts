import { createHash } from 'node:crypto'
import { get as getOverTls } from 'node:https'
import { afterEach, describe, expect, test } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import { OCI_MANIFEST, pushManifest, pushReferrer } from '#functions/local/push.ts'
import {
  type LocalRegistry,
  type LocalRegistryOptions,
  startRegistry,
} from '#functions/local/registry.ts'
import { createDevCertificates } from '#functions/local/tls.ts'

const running: LocalRegistry[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((registry) => registry.close()))
})

async function start(options: LocalRegistryOptions = {}): Promise<LocalRegistry> {
  const registry = await startRegistry(options)
  running.push(registry)
  return registry
}

function target(registry: LocalRegistry, repository = 'app') {
  return { url: registry.url, repository }
}

async function call(
  registry: LocalRegistry,
  method: string,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  return fetch(`${registry.url}${path}`, { method, redirect: 'manual', ...init })
}

function digestOf(bytes: string): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

describe('the distribution API', () => {
  test('answers at /v2/', async () => {
    const response = await call(await start(), 'GET', '/v2/')
    expect([response.status, await response.json()]).toEqual([200, {}])
  })

  test.each([
    { path: '/v2/app/manifests/v1', status: 404, code: 'MANIFEST_UNKNOWN' },
    { path: '/v2/app/blobs/sha256:0', status: 404, code: 'BLOB_UNKNOWN' },
    { path: '/v3/', status: 404, code: 'NAME_UNKNOWN' },
  ])('$path: $code', async ({ path, status, code }) => {
    const response = await call(await start(), 'GET', path)
    expect([response.status, await response.json()]).toMatchObject([status, { errors: [{ code }] }])
  })

  test('takes a blob in one request, in pieces, and under its own digest only', async () => {
    const registry = await start()
    const begin = async () =>
      (await call(registry, 'POST', '/v2/app/blobs/uploads/')).headers.get('location') ?? ''
    const digest = digestOf('hello')
    const other = digestOf('other')
    const wrong = await call(registry, 'PUT', `${await begin()}?digest=${other}`, { body: 'hello' })
    expect(wrong.status).toBe(400)

    const once = `/v2/app/blobs/uploads/?digest=${digest}`
    expect((await call(registry, 'POST', once, { body: 'hello' })).status).toBe(201)
    expect(await (await call(registry, 'GET', `/v2/app/blobs/${digest}`)).text()).toBe('hello')

    const upload = await begin()
    expect((await call(registry, 'PATCH', upload, { body: 'oth' })).headers.get('range')).toBe(
      '0-2',
    )
    const done = await call(registry, 'PUT', `${upload}?digest=${other}`, { body: 'er' })
    expect(done.status).toBe(201)
    expect(await (await call(registry, 'GET', `/v2/app/blobs/${other}`)).text()).toBe('other')
    expect(
      (await call(registry, 'PATCH', '/v2/app/blobs/uploads/none', { body: 'x' })).status,
    ).toBe(404)
  })

  test('refuses a manifest under another digest', async () => {
    const registry = await start()
    const path = `/v2/app/manifests/${digestOf('other')}`
    expect((await call(registry, 'PUT', path, { body: '{}' })).status).toBe(400)
  })

  test('lists tags, moves one when it is pushed again, and keeps the old manifest', async () => {
    const registry = await start()
    const one = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    const two = await pushImage(target(registry), { text: 'two', tag: 'v1' })
    const tags = await (await call(registry, 'GET', '/v2/app/tags/list')).json()
    expect(tags).toEqual({ name: 'app', tags: ['v1'] })
    const head = await call(registry, 'HEAD', '/v2/app/manifests/v1')
    expect(head.headers.get('docker-content-digest')).toBe(two.digest)
    expect(await head.text()).toBe('')
    expect((await call(registry, 'GET', `/v2/app/manifests/${one.digest}`)).status).toBe(200)
  })

  test('keeps repositories apart', async () => {
    const registry = await start()
    const { digest } = await pushImage(target(registry, 'team/app'), { text: 'one', tag: 'v1' })
    expect((await call(registry, 'GET', '/v2/team/other/manifests/v1')).status).toBe(404)
    expect((await call(registry, 'GET', `/v2/team/app/manifests/${digest}`)).status).toBe(200)
  })

  test('takes any bytes for a manifest, as they may have to be refused by whoever pulls them', async () => {
    const registry = await start()
    const bytes = Buffer.from('not json')
    await pushManifest(target(registry), bytes, { tag: 'v1', mediaType: OCI_MANIFEST })
    const subject = await pushImage(target(registry), { text: 'one' })
    const listed = await call(registry, 'GET', `/v2/app/referrers/${subject.digest}`)
    expect(await listed.json()).toMatchObject({ manifests: [] })
  })

  test('gives referrers page by page', async () => {
    const registry = await start({ referrersPageSize: 1 })
    const image = await pushImage(target(registry), { text: 'one' })
    for (const artifactType of ['a/a', 'b/b']) {
      await pushReferrer(target(registry), image, { artifactType, layers: [] })
    }
    const first = await call(registry, 'GET', `/v2/app/referrers/${image.digest}`)
    const link = first.headers.get('link')
    expect(link).toBe(`</v2/app/referrers/${image.digest}?from=1>; rel="next"`)
    expect(await first.json()).toMatchObject({ manifests: [{ artifactType: 'a/a' }] })
    const next = await call(registry, 'GET', `/v2/app/referrers/${image.digest}?from=1`)
    expect(next.headers.get('link')).toBeNull()
    expect(await next.json()).toMatchObject({ manifests: [{ artifactType: 'b/b' }] })
  })

  test('records what it received', async () => {
    const registry = await start()
    await call(registry, 'POST', '/v2/app/x?a=b', { body: 'hello', headers: { 'x-test': 'y' } })
    expect(registry.requests).toMatchObject([
      { method: 'POST', url: '/v2/app/x?a=b', headers: { 'x-test': 'y' }, body: 'hello' },
    ])
  })

  test('is spoken to over TLS when it has a certificate', async () => {
    const { ca, ...tls } = await createDevCertificates({ hosts: ['127.0.0.1'] })
    const registry = await start({ tls })
    expect(registry.url).toBe(`https://${registry.host}`)
    const status = await new Promise((resolve, reject) => {
      const request = getOverTls(`${registry.url}/v2/`, { ca }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      request.on('error', reject)
    })
    expect(status).toBe(200)
    await expect(fetch(`${registry.url}/v2/`)).rejects.toThrow('fetch failed')
  })
})

describe('the token service', () => {
  const login = { username: 'user', password: 'pass' }
  const pull = 'repository:app:pull'
  const basic = (text: string) => ({
    authorization: `Basic ${Buffer.from(text).toString('base64')}`,
  })

  async function tokenFor(
    registry: LocalRegistry,
    scope: string,
    headers: Record<string, string>,
  ): Promise<{ status: number; token: string }> {
    const path = `/token?service=registry.local&scope=${encodeURIComponent(scope)}`
    const response = await call(registry, 'GET', path, { headers })
    const { token = '' } = (await response.json()) as { token?: string }
    return { status: response.status, token }
  }

  test.each([
    {
      name: 'the right login may push and pull',
      scope: 'repository:app:pull,push',
      login: 'user:pass',
      pulls: 404,
      pushes: 202,
    },
    {
      name: 'a token for pulling may not push',
      scope: pull,
      login: 'user:pass',
      pulls: 404,
      pushes: 401,
    },
    {
      name: 'a token for another repository may do neither',
      scope: 'repository:b:pull,push',
      login: 'user:pass',
      pulls: 401,
      pushes: 401,
    },
    {
      name: 'nobody may pull',
      scope: 'repository:app:pull,push',
      login: undefined,
      pulls: 404,
      pushes: 401,
    },
  ])('$name', async ({ scope, login: text, pulls, pushes }) => {
    const registry = await start({ auth: { kind: 'bearer', ...login, anonymousPull: true } })
    const { token } = await tokenFor(registry, scope, text === undefined ? {} : basic(text))
    const headers = { authorization: `Bearer ${token}` }
    expect((await call(registry, 'GET', '/v2/app/manifests/v1', { headers })).status).toBe(pulls)
    expect((await call(registry, 'POST', '/v2/app/blobs/uploads/', { headers })).status).toBe(
      pushes,
    )
  })

  test.each([
    { name: 'a wrong login', headers: basic('user:x'), scope: pull, status: 401 },
    { name: 'no login where one is needed', headers: {}, scope: pull, status: 401 },
    { name: 'no scope', headers: basic('user:pass'), scope: '', status: 400 },
  ])('refuses $name', async ({ headers, scope, status }) => {
    const registry = await start({ auth: { kind: 'bearer', ...login } })
    expect((await tokenFor(registry, scope, headers)).status).toBe(status)
  })

  test('challenges with its own realm and the scope that is missing', async () => {
    const registry = await start({ auth: { kind: 'bearer', ...login } })
    const response = await call(registry, 'GET', '/v2/app/manifests/v1')
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe(
      `Bearer realm="${registry.url}/token",service="registry.local",scope="${pull}"`,
    )
  })

  test('forgets tokens that are revoked', async () => {
    const registry = await start({ auth: { kind: 'bearer', ...login } })
    const { token } = await tokenFor(registry, pull, basic('user:pass'))
    const headers = { authorization: `Bearer ${token}` }
    expect((await call(registry, 'GET', '/v2/app/manifests/v1', { headers })).status).toBe(404)
    registry.revokeTokens()
    expect((await call(registry, 'GET', '/v2/app/manifests/v1', { headers })).status).toBe(401)
  })
})

describe('a fault', () => {
  test('strikes where and as often as it is told to, and ends when it is removed', async () => {
    const registry = await start()
    const status = async (path: string) => (await call(registry, 'GET', path)).status
    registry.faults.add({ kind: 'status', status: 500 }, { on: /GET \/v2\/a\//, times: 2 })
    expect(await status('/v2/b/manifests/v1')).toBe(404)
    expect(await status('/v2/a/manifests/v1')).toBe(500)
    expect(await status('/v2/a/manifests/v1')).toBe(500)
    expect(await status('/v2/a/manifests/v1')).toBe(404)
    const remove = registry.faults.add({ kind: 'status', status: 418 })
    expect(await status('/v2/')).toBe(418)
    remove()
    expect(await status('/v2/')).toBe(200)
    registry.faults.add({ kind: 'status', status: 418 })
    registry.faults.clear()
    expect(await status('/v2/')).toBe(200)
  })

  test('down cuts the connection', async () => {
    const registry = await start()
    registry.faults.add({ kind: 'down' })
    await expect(call(registry, 'GET', '/v2/')).rejects.toThrow('fetch failed')
  })

  test.each(['stall', 'slow', 'endless', 'content-length'] as const)(
    '%s leaves the caller without a whole answer until it gives up',
    async (kind) => {
      const registry = await start()
      registry.faults.add({ kind, everyMs: 1000, bytes: 1000 })
      const giveUp = new AbortController()
      const whole = call(registry, 'GET', '/v2/', { signal: giveUp.signal }).then(
        async (response) => {
          const reader = response.body?.getReader()
          await reader?.read()
          if (kind === 'endless') await reader?.read()
          giveUp.abort()
          for (;;) if ((await reader?.read())?.done) return
        },
      )
      if (kind === 'stall' || kind === 'slow') {
        await expect.poll(() => registry.requests.length).toBe(1)
        giveUp.abort()
      }
      await expect(whole).rejects.toThrow('aborted')
    },
  )

  test('redirects go where they are told, or nowhere', async () => {
    const registry = await start()
    registry.faults.add({ kind: 'redirect', to: 'https://a.example/x' }, { times: 1 })
    registry.faults.add({ kind: 'redirect-loop' })
    const at = async () => (await call(registry, 'GET', '/v2/?a=b')).headers.get('location')
    expect(await at()).toBe('https://a.example/x')
    expect(await at()).toBe('/v2/?a=b')
  })

  test('wrong-bytes keeps length, type and claimed digest', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    registry.faults.add({ kind: 'wrong-bytes' })
    const response = await call(registry, 'GET', '/v2/app/manifests/v1')
    const text = await response.text()
    expect(response.headers.get('docker-content-digest')).toBe(image.digest)
    expect(response.headers.get('content-type')).toBe(OCI_MANIFEST)
    expect(text).toHaveLength(image.size)
    expect(digestOf(text)).not.toBe(image.digest)
    expect(JSON.parse(text)).toMatchObject({ mediaType: OCI_MANIFEST })
  })

  test('media-type changes the content type only', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    registry.faults.add({ kind: 'media-type', mediaType: 'text/html' })
    const response = await call(registry, 'GET', '/v2/app/manifests/v1')
    expect(response.headers.get('content-type')).toBe('text/html')
    expect(digestOf(await response.text())).toBe(image.digest)
  })

  test('moving-tag gives the next digest each time, the last one from then on', async () => {
    const registry = await start()
    const one = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    const two = await pushImage(target(registry), { text: 'two' })
    const three = await pushImage(target(registry), { text: 'three' })
    registry.faults.add({ kind: 'moving-tag', digests: [two.digest, three.digest, one.digest] })
    const seen: string[] = []
    for (let asked = 0; asked < 4; asked++) {
      seen.push(digestOf(await (await call(registry, 'GET', '/v2/app/manifests/v1')).text()))
    }
    expect(seen).toEqual([two.digest, three.digest, one.digest, one.digest])
  })
})
