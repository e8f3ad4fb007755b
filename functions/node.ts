import { createServer as createHttpServer, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import type { App, Transport } from './app.ts'
import { readCertificate } from './certificate-node.ts'

export interface NodeServerOptions {
  app: App
  /** PEM. Plain HTTP without: API servers do not speak it, a proxy in front might. */
  tls?: {
    key: string
    cert: string
    /** PEM authorities of client certificates. Callers are asked for one, and let in without: which cluster wants one, the config says. */
    clientCa?: string
  }
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
  // Made with the creators below, so it is a server of HTTP/1.1.
  const server = createAdaptorServer({
    // Without createHttp2Server these are always the bindings of HTTP/1.1.
    fetch: (request, env) => app.fetch(request, callerOf((env as HttpBindings).incoming.socket)),
    overrideGlobalObjects: false,
    ...(tls === undefined
      ? { createServer: createHttpServer, serverOptions: timeouts }
      : { createServer: createHttpsServer, serverOptions: { ...tlsOptions(tls), ...timeouts } }),
  }) as Server
  server.keepAliveTimeout = KEEP_ALIVE_MS
  const underWay = countRequests(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    // Listening on a TCP port, so the address is one.
    port: (server.address() as AddressInfo).port,
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      underWay.whenNone(() => server.closeAllConnections())
      return closed
    },
  }
}

function tlsOptions({ clientCa, ...own }: NonNullable<NodeServerOptions['tls']>) {
  // Without the last one a handshake ends for whoever has no certificate, and with it for every cluster that needs none.
  return clientCa === undefined
    ? own
    : { ...own, ca: clientCa, requestCert: true, rejectUnauthorized: false }
}

function callerOf(socket: Socket): Transport {
  return {
    address: socket.remoteAddress,
    certificate: () => {
      if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
      const { raw } = socket.getPeerCertificate()
      return raw === undefined ? undefined : readCertificate(raw)
    },
  }
}

/** Counts requests of a server until their answers are out. */
function countRequests(server: Server) {
  let count = 0
  let then: (() => void) | undefined
  server.on('request', (_, response) => {
    count++
    response.once('close', () => {
      count--
      if (count === 0) then?.()
    })
  })
  return {
    /** Calls `work` at once when no answer is under way, or when the last one is out. */
    whenNone(work: () => void): void {
      if (count === 0) work()
      else then = work
    },
  }
}
