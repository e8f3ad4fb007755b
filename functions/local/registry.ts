import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { bodyOf, closeServer, listenLocally } from './loopback.ts'
import { answer, type RegistryReply } from './registry-answer.ts'
import { type RegistryAuth, RegistryGate } from './registry-auth.ts'
import { RegistryFaults } from './registry-faults.ts'
import { route } from './registry-routes.ts'
import type { StoredRepository } from './registry-store.ts'

/** One request as the registry received it. */
export interface RecordedRequest {
  method: string
  /** Path with query. */
  url: string
  headers: IncomingHttpHeaders
  body: string
}

/** An OCI registry on loopback that holds everything in memory. For the demo and the tests. */
export interface LocalRegistry {
  /** `127.0.0.1:<port>`, as it stands in an image reference. */
  readonly host: string
  /** `http://127.0.0.1:<port>`. */
  readonly url: string
  readonly faults: RegistryFaults
  /** Every request so far, in order of arrival, also those a fault struck. Empty it to count anew. */
  readonly requests: RecordedRequest[]
  readonly repositories: Map<string, StoredRepository>
  /** Makes every token given out so far worthless. */
  revokeTokens(): void
  close(): Promise<void>
}

export interface LocalRegistryOptions {
  /** PEM key and certificate: HTTPS instead of HTTP. */
  tls?: { key: string; cert: string }
  auth?: RegistryAuth
  /** False leaves clients to the fallback tag. Default true. */
  referrersApi?: boolean
  /** Referrers on one page; all of them unless given. */
  referrersPageSize?: number
  /** Default 0, any free port. */
  port?: number
}

/** A registry that listens, or a rejection when its port is taken. */
export async function startRegistry(options: LocalRegistryOptions = {}): Promise<LocalRegistry> {
  const faults = new RegistryFaults()
  const requests: RecordedRequest[] = []
  const repositories = new Map<string, StoredRepository>()
  const gate = new RegistryGate(options.auth, () => `${url}/token`)
  const settings = {
    gate,
    repositories,
    referrersApi: options.referrersApi ?? true,
    referrersPageSize: options.referrersPageSize ?? Number.POSITIVE_INFINITY,
  }
  const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    const { method = 'GET', url: target = '/', headers } = request
    requests.push({ method, url: target, headers, body: body.toString('latin1') })
    const { pathname, searchParams } = new URL(target, 'http://registry')
    const fault = faults.strike(`${method} ${pathname}`)
    const reply = (): RegistryReply =>
      route({ method, pathname, params: searchParams, headers, body }, settings, fault)
    answer(response, method, target, reply, fault)
  }
  const server = listening(options, (request, response) => {
    listener(request, response).catch(() => response.destroy())
  })
  const host = `127.0.0.1:${await listenLocally(server, options.port)}`
  const url = `${options.tls === undefined ? 'http' : 'https'}://${host}`
  return {
    host,
    url,
    faults,
    requests,
    repositories,
    revokeTokens: () => gate.revokeTokens(),
    close: () => closeServer(server),
  }
}

function listening(
  options: LocalRegistryOptions,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  return options.tls === undefined ? createServer(listener) : createTlsServer(options.tls, listener)
}
