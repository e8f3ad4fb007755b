import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import type { FetchPort } from '#shared/ports.ts'

/** Registries in this process that answer under the names of others: `ghcr.io` and whatever else an image is called. */
export interface Registries {
  /** The registry of a host, started when it is first asked for. */
  at(host: string): Promise<LocalRegistry>
  /** Reaches these registries under their names, and nobody else: a host that nothing was pushed to cannot be reached. */
  fetch: FetchPort
  close(): Promise<void>
}

/** What references call a host and its API is not called. */
const API_HOSTS: Readonly<Record<string, string>> = {
  'docker.io': 'registry-1.docker.io',
  'index.docker.io': 'registry-1.docker.io',
}

export function createRegistries(): Registries {
  const started = new Map<string, LocalRegistry>()
  return {
    async at(name) {
      const host = API_HOSTS[name] ?? name
      const known = started.get(host) ?? (await startRegistry())
      started.set(host, known)
      return known
    },
    async fetch(address, init) {
      const url = new URL(address)
      const registry = started.get(url.host)
      if (registry === undefined) throw new TypeError(`nobody is ${url.host} here`)
      return fetch(`${registry.url}${url.pathname}${url.search}`, init)
    },
    async close() {
      await Promise.all([...started.values()].map((registry) => registry.close()))
    },
  }
}
