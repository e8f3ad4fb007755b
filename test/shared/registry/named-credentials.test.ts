import { describe, expect, test } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import type { LocalRegistry } from '#functions/local/registry.ts'
import type { RegistryAuth } from '#functions/local/registry-auth.ts'
import { MAX_CONCURRENT_CALLS } from '#shared/limits.ts'
import type { CredentialsPort, FetchPort } from '#shared/ports.ts'
import type { RegistryClientOptions } from '#shared/registry/client.ts'
import type { CredentialNames, RegistryClient, RegistrySession } from '#shared/registry/types.ts'
import { app, client, codeOf, never, start, target } from './setup.ts'

const login = { username: 'user', password: 's3cr3t' }
const TEAM: CredentialNames = { secrets: ['team'], providers: [] }
const OTHER: CredentialNames = { secrets: ['other'], providers: [] }

/** A registry that lets nobody in but `login`, with one image. */
async function locked(kind: RegistryAuth['kind']): Promise<LocalRegistry> {
  const registry = await start({ auth: { kind, ...login } })
  await pushImage(target(registry, login), { text: 'one', tag: 'v1' })
  registry.requests.length = 0
  return registry
}

/** Only the secret `team` has the login. */
function credentialsFor({ secrets }: CredentialNames): CredentialsPort {
  return async () => (secrets.includes('team') ? { kind: 'basic', ...login } : undefined)
}

function opening(
  registry: LocalRegistry,
  options: Partial<RegistryClientOptions> = {},
): RegistryClient {
  return client([registry], { credentialsFor, ...options })
}

const pull = (session: RegistrySession, registry: LocalRegistry) =>
  codeOf(session.manifest(app(registry), 'v1'))

describe('a session with logins by name', () => {
  test.each(['basic', 'bearer'] as const)(
    'logs in with them, and a session without them does not (%s)',
    async (kind) => {
      const registry = await locked(kind)
      const session = opening(registry).session(never())
      expect(await pull(session, registry)).toBe('REGISTRY_UNAUTHORIZED')
      expect(await pull(session.withCredentials(TEAM), registry)).toBe('no error')
    },
  )

  test.each(['basic', 'bearer'] as const)(
    'leaves nothing it found or logged in to for other logins, in this request or the next (%s)',
    async (kind) => {
      const registry = await locked(kind)
      const opened = opening(registry)
      const session = opened.session(never())
      expect(await pull(session.withCredentials(TEAM), registry)).toBe('no error')
      expect(await pull(session, registry)).toBe('REGISTRY_UNAUTHORIZED')
      expect(await pull(session.withCredentials(OTHER), registry)).toBe('REGISTRY_UNAUTHORIZED')
      expect(await pull(opened.session(never()), registry)).toBe('REGISTRY_UNAUTHORIZED')
    },
  )

  test('does not use the logins it stands in for', async () => {
    const registry = await locked('basic')
    const credentials = credentialsFor(TEAM)
    const session = opening(registry, { credentials }).session(never())
    expect(await pull(session, registry)).toBe('no error')
    expect(await pull(session.withCredentials(OTHER), registry)).toBe('REGISTRY_UNAUTHORIZED')
  })

  test('is the same for the same names, wherever it is asked for', async () => {
    const registry = await locked('basic')
    const session = opening(registry).session(never())
    const named = session.withCredentials(TEAM)
    expect(session.withCredentials({ ...TEAM })).toBe(named)
    expect(named.withCredentials(OTHER).withCredentials(TEAM)).toBe(named)
    expect(session.withCredentials({ secrets: ['team'], providers: ['google'] })).not.toBe(named)
    expect(session.withCredentials({ secrets: [], providers: [] })).not.toBe(session)
  })

  test('counts into its request', async () => {
    const registry = await locked('basic')
    const session = opening(registry).session(never())
    await pull(session, registry)
    await pull(session.withCredentials(TEAM), registry)
    expect(session.calls).toBe(registry.requests.length)
    expect(session.withCredentials(TEAM).calls).toBe(session.calls)
  })

  test('shares the connections of its request', async () => {
    const registry = await start()
    let open = 0
    let most = 0
    const counting: FetchPort = async (url, init) => {
      most = Math.max(most, ++open)
      return fetch(url, init).finally(() => open--)
    }
    const session = opening(registry, { fetch: counting }).session(never())
    const named = session.withCredentials(TEAM)
    const tags = Array.from({ length: 2 * MAX_CONCURRENT_CALLS }, (_, at) => `v${at}`)
    await Promise.all(
      [session, named].flatMap((each) => tags.map((tag) => each.manifest(app(registry), tag))),
    )
    expect(most).toBe(MAX_CONCURRENT_CALLS)
  })

  test('can tell nothing where there are no logins by name', async () => {
    const registry = await locked('basic')
    const session = client([registry]).session(never()).withCredentials(TEAM)
    expect(await pull(session, registry)).toBe('CONFIG_INVALID')
  })
})
