import { afterEach } from 'vitest'
import type { PushTarget } from '#functions/local/push.ts'
import {
  type LocalRegistry,
  type LocalRegistryOptions,
  startRegistry,
} from '#functions/local/registry.ts'
import type { AdmissionError } from '#shared/errors.ts'
import type { ImageReference } from '#shared/image/types.ts'
import { createRegistryClient, type RegistryClientOptions } from '#shared/registry/client.ts'
import type { RegistryClient, Repository } from '#shared/registry/types.ts'

const running: LocalRegistry[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((registry) => registry.close()))
})

/** A registry that ends with the test. */
export async function start(options: LocalRegistryOptions = {}): Promise<LocalRegistry> {
  const registry = await startRegistry(options)
  running.push(registry)
  return registry
}

/** The repository `app` of a registry, for pushing. */
export function target(registry: LocalRegistry, login?: PushTarget['login']): PushTarget {
  const place = { url: registry.url, repository: 'app' }
  return login === undefined ? place : { ...place, login }
}

/** The repository `app` of a registry, for the client. */
export function app(registry: LocalRegistry): Repository {
  return { host: registry.host, repository: 'app' }
}

/** A client that may talk to these registries over plain HTTP; at a fixed time, without jitter. */
export function client(
  registries: readonly LocalRegistry[],
  options: Partial<RegistryClientOptions> = {},
): RegistryClient {
  return createRegistryClient({
    fetch,
    now: () => 1_700_000_000_000,
    random: () => 0,
    credentials: async () => undefined,
    plainHttpHosts: registries.map((registry) => registry.host),
    ...options,
  })
}

/** A signal that never ends. */
export function never(): AbortSignal {
  return new AbortController().signal
}

/** A reference to `app` of a registry. */
export function reference(
  registry: LocalRegistry,
  part: { tag?: string; digest?: string },
): ImageReference {
  const text = `${registry.host}/app:${part.tag ?? ''}@${part.digest ?? ''}`
  return { text, registry: registry.host, repository: 'app', ...part }
}

/** `GET /v2/app/…` of every request that arrived. */
export function paths(registry: LocalRegistry): string[] {
  return registry.requests.map(({ method, url }) => `${method} ${url}`)
}

/** The code a promise fails with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const outcome = await promise.then(
    () => 'no error',
    (error: AdmissionError) => error.code ?? String(error),
  )
  return outcome
}
