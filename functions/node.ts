import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import type { App } from './app.ts'

export interface NodeServerOptions {
  app: App
  /** PEM. Plain HTTP without: API servers do not speak it, a proxy in front might. */
  tls?: { key: string; cert: string }
  /** Every interface when absent. */
  host?: string
  /** A free port when absent or 0. */
  port?: number
}

export interface NodeServer {
  /** Port it listens on. */
  port: number
  /** Stops taking connections and resolves when answers under way are out. */
  close(): Promise<void>
}

/** Go's HTTP client drops idle connections after 90 s; closing earlier would race with its next request. Milliseconds. */
const KEEP_ALIVE_MS = 95_000
/** Headers of a request, milliseconds. */
const HEADERS_MS = 15_000
/** A whole request, milliseconds: no API server waits longer for its answer. */
const REQUEST_MS = 35_000

/** Serves an app on this machine. The caller's address is that of its socket. */
export async function startNodeServer(options: NodeServerOptions): Promise<NodeServer> {
  const { app, tls, host, port = 0 } = options
  const timeouts = { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS }
  const server = createAdaptorServer({
    // Without createHttp2Server these are always the bindings of HTTP/1.1.
    fetch: (request, env) =>
      app.fetch(request, { address: (env as HttpBindings).incoming.socket.remoteAddress }),
    overrideGlobalObjects: false,
    ...(tls === undefined
      ? { createServer: createHttpServer, serverOptions: timeouts }
      : { createServer: createHttpsServer, serverOptions: { ...tls, ...timeouts } }),
  })
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = KEEP_ALIVE_MS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    // Listening on a TCP port, so the address is one.
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if ('closeIdleConnections' in server) server.closeIdleConnections()
      }),
  }
}
