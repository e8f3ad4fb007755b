import { describe, expect, test } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import type { LocalRegistry } from '#functions/local/registry.ts'
import type { RegistryAuth } from '#functions/local/registry-auth.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_KEPT_TOKENS } from '#shared/limits.ts'
import type { CredentialsPort, FetchPort, RegistryCredential } from '#shared/ports.ts'
import { createRegistryClient, type RegistryClientOptions } from '#shared/registry/client.ts'
import type { RegistryClient } from '#shared/registry/types.ts'
import { app, client, codeOf, never, paths, start, target } from './setup.ts'

const login = { username: 'user', password: 'p:ä-s3cr3t' }
const basic: RegistryCredential = { kind: 'basic', ...login }
const basicHeader = `Basic ${Buffer.from('user:p:ä-s3cr3t').toString('base64')}`

/** The credential for one registry and no other. */
function only(registry: LocalRegistry, credential: RegistryCredential): CredentialsPort {
  return async (host) => (host === registry.host ? credential : undefined)
}

/** A registry with one image `app:v1`, its record empty. */
async function registryWith(auth: RegistryAuth): Promise<LocalRegistry> {
  const registry = await start({ auth })
  await pushImage(target(registry, login), { text: 'one', tag: 'v1' })
  registry.requests.length = 0
  return registry
}

/** What every request to a registry carried as Authorization. */
function authorizations(registry: LocalRegistry): (string | undefined)[] {
  return registry.requests.map(({ headers }) => headers.authorization)
}

async function pull(pulling: RegistryClient, registry: LocalRegistry): Promise<string> {
  return codeOf(pulling.session(never()).manifest(app(registry), 'v1'))
}

/** A registry that answers everything with this challenge. */
async function challenging(challenge: string | undefined): Promise<LocalRegistry> {
  const registry = await start()
  const headers: Record<string, string> =
    challenge === undefined ? {} : { 'www-authenticate': challenge }
  registry.faults.add({ kind: 'status', status: 401, headers }, { on: /\/v2\// })
  return registry
}

describe('logging in by Basic', () => {
  test('is done when it is asked for, and from then on', async () => {
    const registry = await registryWith({ kind: 'basic', ...login })
    const pulling = client([registry], { credentials: only(registry, basic) })
    expect(await pull(pulling, registry)).toBe('no error')
    expect(await pull(pulling, registry)).toBe('no error')
    expect(authorizations(registry)).toEqual([undefined, basicHeader, basicHeader])
  })

  test.each<{ name: string; credential: RegistryCredential | undefined; requests: number }>([
    { name: 'without a credential', credential: undefined, requests: 1 },
    { name: 'with another password', credential: { ...basic, password: 'x' }, requests: 2 },
    { name: 'with an identity token', credential: { kind: 'identity', token: 'x' }, requests: 1 },
    { name: 'with a registry token', credential: { kind: 'token', token: 'x' }, requests: 1 },
  ])('fails $name and is not tried for ever', async ({ credential, requests }) => {
    const registry = await registryWith({ kind: 'basic', ...login })
    const pulling = client([registry], { credentials: async () => credential })
    expect(await pull(pulling, registry)).toBe('REGISTRY_UNAUTHORIZED')
    expect(registry.requests).toHaveLength(requests)
  })

  test('is not tried twice with the same refused login', async () => {
    const registry = await registryWith({ kind: 'basic', ...login })
    let credential = basic
    const pulling = client([registry], { credentials: async () => credential })
    await pull(pulling, registry)
    credential = { ...basic, password: 'x' }
    expect(await pull(pulling, registry)).toBe('REGISTRY_UNAUTHORIZED')
    registry.requests.length = 0
    expect(await pull(pulling, registry)).toBe('REGISTRY_UNAUTHORIZED')
    expect(registry.requests).toHaveLength(1)
  })

  test('asks for the credential once in a session', async () => {
    const registry = await registryWith({ kind: 'basic', ...login })
    const asked: string[] = []
    const credentials: CredentialsPort = async (host, repository) => {
      asked.push(`${host}/${repository}`)
      return basic
    }
    const session = client([registry], { credentials }).session(never())
    await Promise.all(['v1', 'v2'].map((tag) => session.manifest(app(registry), tag)))
    await session.manifest({ host: registry.host, repository: 'other' }, 'v1')
    expect(asked).toEqual([`${registry.host}/app`, `${registry.host}/other`])
  })
})

describe('logging in by token', () => {
  test('is anonymous when there is no credential', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login, anonymousPull: true })
    expect(await pull(client([registry]), registry)).toBe('no error')
    expect(paths(registry)).toEqual([
      'GET /v2/app/manifests/v1',
      'GET /token?service=registry.local&scope=repository%3Aapp%3Apull',
      'GET /v2/app/manifests/v1',
    ])
    expect(authorizations(registry)).toEqual([
      undefined,
      undefined,
      expect.stringMatching(/^Bearer [0-9a-f]{48}$/),
    ])
  })

  test('sends the credential to the token service and only the token to the registry', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login })
    const pulling = client([registry], { credentials: only(registry, basic) })
    expect(await pull(pulling, registry)).toBe('no error')
    expect(authorizations(registry)).toEqual([
      undefined,
      basicHeader,
      expect.stringMatching(/^Bearer [0-9a-f]{48}$/),
    ])
  })

  test('asks for our scope whatever the challenge names', async () => {
    const registry = await start()
    const challenge = `Bearer realm="${registry.url}/token?a=b",service="s&x=y",scope="repository:*:*"`
    const headers = { 'www-authenticate': challenge }
    registry.faults.add({ kind: 'status', status: 401, headers }, { on: /\/v2\// })
    await pull(client([registry]), registry)
    expect(registry.requests[1]?.url).toBe(
      '/token?a=b&service=s%26x%3Dy&scope=repository%3Aapp%3Apull',
    )
  })

  test('posts an identity token as a refresh token', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login, identityToken: 'id&x' })
    const credentials = only(registry, { kind: 'identity', token: 'id&x' })
    expect(await pull(client([registry], { credentials }), registry)).toBe('no error')
    expect(registry.requests[1]).toMatchObject({
      method: 'POST',
      url: '/token',
      body: 'grant_type=refresh_token&client_id=countersign&service=registry.local&scope=repository%3Aapp%3Apull&refresh_token=id%26x',
    })
    expect(authorizations(registry).slice(0, 2)).toEqual([undefined, undefined])
  })

  test('needs no token service when there is a registry token', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login, registryToken: 'robot' })
    const credentials = only(registry, { kind: 'token', token: 'robot' })
    expect(await pull(client([registry], { credentials }), registry)).toBe('no error')
    expect(authorizations(registry)).toEqual([undefined, 'Bearer robot'])
  })

  test.each<{ name: string; credential: RegistryCredential | undefined }>([
    { name: 'without a credential', credential: undefined },
    { name: 'with another password', credential: { ...basic, password: 'x' } },
    { name: 'with another identity token', credential: { kind: 'identity', token: 'x' } },
    { name: 'with another registry token', credential: { kind: 'token', token: 'x' } },
  ])('fails $name', async ({ credential }) => {
    const auth: RegistryAuth = { kind: 'bearer', ...login, identityToken: 'y', registryToken: 'z' }
    const registry = await registryWith(auth)
    const pulling = client([registry], { credentials: async () => credential })
    expect(await pull(pulling, registry)).toBe('REGISTRY_UNAUTHORIZED')
    expect(registry.requests).toHaveLength(2)
  })

  test('is done once for calls that were refused together', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login, anonymousPull: true })
    const session = client([registry]).session(never())
    const tags = ['v1', 'v2', 'v3', 'v4']
    await Promise.all(tags.map((tag) => session.manifest(app(registry), tag)))
    expect(paths(registry).filter((path) => path.startsWith('GET /token'))).toHaveLength(1)
    expect(session.calls).toBe(9)
  })

  test('is done again, once, when a kept token is refused', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login, anonymousPull: true })
    const pulling = client([registry])
    await pull(pulling, registry)
    registry.revokeTokens()
    registry.requests.length = 0
    expect(await pull(pulling, registry)).toBe('no error')
    expect(registry.requests).toHaveLength(3)
  })

  test('is done again for a changed credential and another repository', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login, anonymousPull: true })
    let credential: RegistryCredential | undefined
    const pulling = client([registry], { credentials: async () => credential })
    const tokens = () => paths(registry).filter((path) => path.startsWith('GET /token'))
    await pull(pulling, registry)
    await pull(pulling, registry)
    expect(tokens()).toHaveLength(1)
    credential = basic
    await pull(pulling, registry)
    expect(tokens()).toHaveLength(2)
    const other = { host: registry.host, repository: 'other' }
    await pulling.session(never()).manifest(other, 'v1')
    expect(tokens()).toHaveLength(3)
    expect(tokens()[2]).toContain('repository%3Aother%3Apull')
  })

  test.each([
    {
      name: 'sixty seconds less slack when the service names no time',
      expiresIn: undefined,
      lastMs: 50_000,
    },
    { name: 'as long as the service says, less slack', expiresIn: 300, lastMs: 290_000 },
    { name: 'an hour less slack at most', expiresIn: 1e9, lastMs: 3_590_000 },
    { name: 'not at all when it is over as soon as it came', expiresIn: 5, lastMs: 0 },
    { name: 'sixty seconds less slack for a negative time', expiresIn: -5, lastMs: 50_000 },
  ])('a token is kept $name', async ({ expiresIn, lastMs }) => {
    const auth = { kind: 'bearer', ...login, anonymousPull: true } as const
    const registry = await registryWith(expiresIn === undefined ? auth : { ...auth, expiresIn })
    let now = 1_700_000_000_000
    const pulling = client([registry], { now: () => now })
    await pull(pulling, registry)
    const requestsOf = async (at: number): Promise<number> => {
      now = 1_700_000_000_000 + at
      registry.requests.length = 0
      expect(await pull(pulling, registry)).toBe('no error')
      return registry.requests.length
    }
    if (lastMs > 0) expect(await requestsOf(lastMs - 1)).toBe(1)
    expect(await requestsOf(lastMs)).toBe(3)
  })

  test('the tokens of an attacker with many repositories do not pile up', async () => {
    const asked: string[] = []
    const fetch: FetchPort = async (url, { headers }) => {
      const { pathname, searchParams } = new URL(url)
      if (pathname === '/token') {
        asked.push(searchParams.get('scope') ?? '')
        return Response.json({ token: 'x'.repeat(60_000), expires_in: 3600 })
      }
      const isIn = new Headers(headers).has('authorization')
      const challenge = { 'www-authenticate': 'Bearer realm="https://registry.example/token"' }
      return new Response(null, isIn ? { status: 404 } : { status: 401, headers: challenge })
    }
    const pulling = client([], { fetch })
    const pullFrom = (n: number) =>
      pulling.session(never()).manifest({ host: 'registry.example', repository: `app${n}` }, 'v1')
    for (let n = 0; n <= MAX_KEPT_TOKENS; n++) await pullFrom(n)
    expect(asked).toHaveLength(MAX_KEPT_TOKENS + 1)
    await pullFrom(MAX_KEPT_TOKENS)
    expect(asked).toHaveLength(MAX_KEPT_TOKENS + 1)
    await pullFrom(0)
    expect(asked).toHaveLength(MAX_KEPT_TOKENS + 2)
  })

  test('a token too short-lived to be kept still serves its session', async () => {
    const auth: RegistryAuth = { kind: 'bearer', ...login, anonymousPull: true, expiresIn: 0 }
    const registry = await registryWith(auth)
    const session = client([registry]).session(never())
    await session.manifest(app(registry), 'v1')
    await session.manifest(app(registry), 'v2')
    expect(session.calls).toBe(4)
  })

  test.each([
    { name: 'no token', body: '{}' },
    { name: 'a token that is no string', body: '{"token":7}' },
    { name: 'an empty token', body: '{"token":""}' },
    { name: 'a token that would split the header', body: '{"token":"a\\r\\nX-Evil: b"}' },
    { name: 'a token outside ASCII', body: '{"token":"ä"}' },
    { name: 'HTML', body: '<html>' },
    { name: 'a list', body: '["token"]' },
    { name: 'a token from the prototype', body: '{"__proto__":{"token":"t"}}' },
    { name: '64 KiB', body: `{"token":"${'x'.repeat(65_536)}"}` },
    { name: '404', status: 404, body: '' },
    { name: '401', status: 401, body: '' },
    { name: '503', status: 503, body: '', code: 'REGISTRY_UNREACHABLE' },
    { name: '429', status: 429, body: '', code: 'REGISTRY_THROTTLED' },
  ])('fails when the token service answers $name', async ({ status = 200, body, code }) => {
    const registry = await registryWith({ kind: 'bearer', ...login, anonymousPull: true })
    registry.faults.add({ kind: 'status', status, body }, { on: /\/token/ })
    const expected = code ?? 'REGISTRY_UNAUTHORIZED'
    expect(await pull(client([registry]), registry)).toBe(expected)
  })

  test('a refresh token is not sent on by a redirect', async () => {
    const registry = await registryWith({ kind: 'bearer', ...login, identityToken: 'id' })
    const other = await start()
    registry.faults.add({ kind: 'redirect', to: `${other.url}/token` }, { on: /\/token/ })
    const credentials = only(registry, { kind: 'identity', token: 'id' })
    expect(await pull(client([registry, other], { credentials }), registry)).toBe(
      'REGISTRY_UNREACHABLE',
    )
    expect(other.requests).toEqual([])
  })
})

describe('challenges', () => {
  const bearer = (registry: LocalRegistry) => `Bearer realm="${registry.url}/token",service="s"`
  test.each([
    {
      name: 'Bearer is taken when Basic is offered first',
      of: (it: string) => `Basic realm="x", ${it}`,
    },
    {
      name: 'Bearer is taken when Basic is offered last',
      of: (it: string) => `${it}, Basic realm="x"`,
    },
    { name: 'an unknown scheme is passed over', of: (it: string) => `Negotiate abc==, ${it}` },
  ])('$name', async ({ of }) => {
    const registry = await registryWith({ kind: 'bearer', ...login, anonymousPull: true })
    const headers = { 'www-authenticate': of(bearer(registry)) }
    registry.faults.add({ kind: 'status', status: 401, headers }, { on: /\/v2\//, times: 1 })
    const pulling = client([registry])
    expect(await pull(pulling, registry)).toBe('no error')
    expect(registry.requests).toHaveLength(3)
  })

  test.each([
    { name: 'there is none', challenge: undefined },
    { name: 'it is empty', challenge: '' },
    { name: 'it cannot be read', challenge: 'Bearer realm="https://registry.example' },
    {
      name: 'it names two realms',
      challenge: 'Bearer realm="https://a.example/",realm="https://b.example/"',
    },
    { name: 'it has no realm', challenge: 'Bearer service="x"' },
    { name: 'its realm is no URL', challenge: 'Bearer realm="token"' },
    { name: 'its scheme is unknown', challenge: 'Digest realm="x"' },
  ])('nobody logs in when $name', async ({ challenge }) => {
    const registry = await challenging(challenge)
    const pulling = client([registry], { credentials: only(registry, basic) })
    expect(await pull(pulling, registry)).toBe('REGISTRY_UNAUTHORIZED')
    expect(authorizations(registry)).toEqual([undefined])
  })
})

describe('credentials', () => {
  test('of one registry never reach another', async () => {
    const ours = await registryWith({ kind: 'basic', ...login })
    const theirs = await challenging('Basic realm="registry"')
    const pulling = client([ours, theirs], { credentials: only(ours, basic) })
    expect(await pull(pulling, ours)).toBe('no error')
    expect(await pull(pulling, theirs)).toBe('REGISTRY_UNAUTHORIZED')
    expect(authorizations(theirs)).toEqual([undefined])
  })

  test.each<RegistryAuth>([
    { kind: 'basic', ...login },
    { kind: 'bearer', ...login },
  ])('of kind $kind stay behind at a redirect, also when it leads back', async (auth) => {
    const registry = await registryWith(auth)
    const storage = await start()
    const pulling = client([registry, storage], { credentials: only(registry, basic) })
    await pull(pulling, registry)
    registry.requests.length = 0
    registry.faults.add({ kind: 'redirect', to: `${storage.url}/away` }, { times: 1 })
    storage.faults.add({ kind: 'redirect', to: `${registry.url}/v2/app/manifests/v1` })
    expect(await pull(pulling, registry)).not.toBe('REGISTRY_FORBIDDEN_ADDRESS')
    expect(authorizations(storage)).toEqual([undefined])
    expect(authorizations(registry).slice(0, 2)).toEqual([expect.any(String), undefined])
  })

  test('are not asked for by what a redirect leads to', async () => {
    const registry = await start()
    const evil = await challenging('Basic realm="registry"')
    registry.faults.add({ kind: 'redirect', to: `${evil.url}/v2/` })
    const pulling = client([registry, evil], { credentials: async () => basic })
    expect(await pull(pulling, registry)).toBe('REGISTRY_UNAUTHORIZED')
    expect([...authorizations(registry), ...authorizations(evil)]).toEqual([undefined, undefined])
  })

  const elsewhere = (realm: LocalRegistry) => `Bearer realm="${realm.url}/token",service="s"`
  test.each<RegistryCredential>([basic, { kind: 'identity', token: 'id' }])(
    'of kind $kind do not go to a realm elsewhere',
    async (credential) => {
      const evil = await start()
      const registry = await challenging(elsewhere(evil))
      const credentials = only(registry, credential)
      expect(await pull(client([registry, evil], { credentials }), registry)).toBe(
        'REGISTRY_UNAUTHORIZED',
      )
      expect(evil.requests).toEqual([])
    },
  )

  test('go to a realm elsewhere that is named for this registry', async () => {
    const tokens = await start({ auth: { kind: 'bearer', ...login } })
    const registry = await challenging(elsewhere(tokens))
    const options = { credentials: only(registry, basic) }
    const named = { ...options, tokenHosts: { [registry.host]: [tokens.host] } }
    await pull(client([registry, tokens], named), registry)
    expect(authorizations(tokens)).toEqual([basicHeader])
    const forAnother = { ...options, tokenHosts: { 'other.example': [tokens.host] } }
    await pull(client([registry, tokens], forAnother), registry)
    expect(authorizations(tokens)).toEqual([basicHeader])
  })

  test('that do not exist are not missed by a realm elsewhere', async () => {
    const tokens = await start({ auth: { kind: 'bearer', anonymousPull: true } })
    const registry = await challenging(elsewhere(tokens))
    await pull(client([registry, tokens]), registry)
    expect(authorizations(tokens)).toEqual([undefined])
    expect(authorizations(registry)).toEqual([undefined, expect.stringMatching(/^Bearer /)])
  })

  test.each([
    'http://169.254.169.254/token',
    'https://169.254.169.254/token',
    'https://metadata.google.internal/token',
    'https://localhost/token',
    'https://vault/token',
    'http://auth.example/token',
    'https://user:secret@auth.example/token',
    'file:///token',
  ])('or not, nothing goes to a realm at %s', async (realm) => {
    const registry = await challenging(`Bearer realm="${realm}"`)
    const session = client([registry]).session(never())
    expect(await codeOf(session.manifest(app(registry), 'v1'))).toBe('REGISTRY_FORBIDDEN_ADDRESS')
    expect(session.calls).toBe(1)
  })

  /** Which of the URLs asked for carried a login, at a registry of the public internet. */
  async function loginsAt(host: string, realm: string): Promise<string[]> {
    const asked: string[] = []
    const fetch: FetchPort = async (url, init) => {
      const { authorization } = init.headers as Record<string, string>
      if (authorization?.startsWith('Basic')) asked.push(new URL(url).host)
      const headers = { 'www-authenticate': `Bearer realm="${realm}"` }
      return new Response('', { status: 401, headers })
    }
    const options: RegistryClientOptions = { fetch, now: () => 0, credentials: async () => basic }
    await codeOf(
      createRegistryClient(options).session(never()).manifest({ host, repository: 'a' }, 'v1'),
    )
    return asked
  }

  test.each([
    {
      name: 'the host itself',
      host: 'registry.example',
      realm: 'https://registry.example/token',
      goes: true,
    },
    {
      name: 'its HTTPS port',
      host: 'registry.example:5050',
      realm: 'https://registry.example/jwt',
      goes: true,
    },
    {
      name: 'its parent domain',
      host: 'registry.team.example',
      realm: 'https://team.example/jwt',
      goes: true,
    },
    {
      name: 'the known token service of Docker Hub',
      host: 'registry-1.docker.io',
      realm: 'https://auth.docker.io/token',
      goes: true,
    },
    {
      name: 'another port of the host',
      host: 'registry.example',
      realm: 'https://registry.example:8443/token',
      goes: false,
    },
    {
      name: 'a sibling',
      host: 'registry.team.example',
      realm: 'https://auth.team.example/',
      goes: false,
    },
    { name: 'a child', host: 'team.example', realm: 'https://evil.team.example/', goes: false },
    {
      name: 'a host that ends alike',
      host: 'evilteam.example',
      realm: 'https://team.example/',
      goes: false,
    },
    {
      name: 'a host that begins alike',
      host: 'registry.example',
      realm: 'https://registry.example.evil.test/',
      goes: false,
    },
    {
      name: 'the token service of Docker Hub for another host',
      host: 'registry.example',
      realm: 'https://auth.docker.io/token',
      goes: false,
    },
    {
      name: 'a parent domain over plain HTTP',
      host: 'registry.team.example',
      realm: 'http://team.example/',
      goes: false,
    },
    {
      name: 'a top-level domain',
      host: 'registry.example',
      realm: 'https://example/',
      goes: false,
    },
  ])('a login goes to $name: $goes', async ({ host, realm, goes }) => {
    expect(await loginsAt(host, realm)).toEqual(goes ? [new URL(realm).host] : [])
  })

  test.each<RegistryAuth>([
    { kind: 'basic', username: 'user', password: 'another' },
    { kind: 'bearer', username: 'user', password: 'another' },
  ])('of kind $kind are in no message', async (auth) => {
    const registry = await start({ auth })
    const pulling = client([registry], { credentials: async () => basic })
    const error = await pulling
      .session(never())
      .manifest(app(registry), 'v1')
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AdmissionError)
    const seen = `${error} ${JSON.stringify(error)} ${(error as Error).cause}`
    for (const secret of [login.password, basicHeader.slice(6)]) expect(seen).not.toContain(secret)
  })

  test('that cannot be looked up are an error of the call', async () => {
    const registry = await start()
    const credentials = async () => {
      throw new AdmissionError('KMS_UNAVAILABLE', 'no secret today')
    }
    expect(await pull(client([registry], { credentials }), registry)).toBe('KMS_UNAVAILABLE')
    const failing = async () => {
      throw new Error('x')
    }
    expect(await pull(client([registry], { credentials: failing }), registry)).toBe('INTERNAL')
    expect(registry.requests).toEqual([])
  })
})
