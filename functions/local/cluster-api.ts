import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { JsonObject } from '#shared/admission/types.ts'
import { ClusterStore, hasLabels, identityOf, RESOURCES } from './cluster-store.ts'
import { closeServer, listenLocally, pour } from './loopback.ts'
import { createDevCertificates } from './tls.ts'

/** How an answer of the API server goes wrong. */
export type ClusterFault =
  /** Nobody is told anything until the connection ends. */
  | 'silence'
  | 'endless body'
  | 'malformed JSON'
  /** A page, as a proxy in between would answer. */
  | 'html'
  /** Another object than the one that was asked for. */
  | 'another object'
  | 'redirect'
  | 'cut'
  | { status: number }

/** An API server that is read: real HTTPS under a CA of its own, objects in memory, one token. */
export interface LocalClusterApi {
  /** `https://127.0.0.1:<port>`. */
  url: string
  /** PEM of its authority. */
  ca: string
  /** The only token it accepts. */
  token: string
  /** Method and path with query of every request, in order. */
  requests: string[]
  /** By the start of a path: what goes wrong there. */
  faults: Map<string, ClusterFault>
  /** Puts an object there, or in the place of one of the same name. */
  put(object: JsonObject): void
  remove(object: JsonObject): void
  close(): Promise<void>
}

const PATH =
  /^(?:\/api\/(?<core>[^/]+)|\/apis\/(?<group>[^/]+\/[^/]+))(?:\/namespaces\/(?<namespace>[^/]+)(?=\/))?(?:\/(?<resource>[^/]+))?(?:\/(?<name>[^/]+))?$/

/** Starts an API server with these objects on a free port of this machine. Namespaces get the label with their name. */
export async function startClusterApi(
  objects: readonly JsonObject[] = [],
): Promise<LocalClusterApi> {
  const certificates = await createDevCertificates({ hosts: ['127.0.0.1', 'localhost'] })
  const store = new ClusterStore()
  for (const object of objects) store.put(object)
  const state: State = {
    store,
    token: crypto.randomUUID(),
    requests: [],
    faults: new Map(),
  }
  const server = createServer(certificates, (request, response) => answer(state, request, response))
  return {
    url: `https://127.0.0.1:${await listenLocally(server)}`,
    ca: certificates.ca,
    token: state.token,
    requests: state.requests,
    faults: state.faults,
    put: (object) => store.put(object),
    remove: (object) => store.remove(object),
    close: () => closeServer(server),
  }
}

interface State {
  store: ClusterStore
  token: string
  requests: string[]
  faults: Map<string, ClusterFault>
}

function answer(state: State, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'https://localhost')
  state.requests.push(`${request.method} ${url.pathname}${url.search}`)
  const fault = [...state.faults].find(([start]) => url.pathname.startsWith(start))?.[1]
  if (fault === undefined) send(response, replyTo(state, request, url))
  else misbehave(fault, response)
}

interface Reply {
  status: number
  type?: string
  body: object | string
}

function send(response: ServerResponse, { status, type = 'application/json', body }: Reply): void {
  response.writeHead(status, { 'content-type': type })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

function replyTo({ store, token }: State, request: IncomingMessage, url: URL): Reply {
  if (request.headers.authorization !== `Bearer ${token}`) return failure(401, 'Unauthorized')
  if (request.method !== 'GET') return failure(405, 'MethodNotAllowed')
  const { core, group, namespace, resource, name } = PATH.exec(url.pathname)?.groups ?? {}
  const apiVersion = core ?? group
  const known = RESOURCES.filter((each) => each.apiVersion === apiVersion)
  if (known.length === 0) return { status: 404, type: 'text/plain', body: '404 page not found\n' }
  if (resource === undefined) return discovery(String(apiVersion), known)
  const type = known.find((each) => each.name === resource)
  if (type === undefined) return failure(404, 'NotFound', {})
  const among = store.find(type, namespace && decodeURIComponent(namespace))
  if (name !== undefined) return objectNamed(decodeURIComponent(name), among, resource)
  const items = among.filter((object) => hasLabels(object, url.searchParams.get('labelSelector')))
  return { status: 200, body: { apiVersion, kind: `${type.kind}List`, metadata: {}, items } }
}

function objectNamed(name: string, among: readonly JsonObject[], resource: string): Reply {
  const body = among.find((object) => identityOf(object).name === name)
  return body === undefined
    ? failure(404, 'NotFound', { name, kind: resource })
    : { status: 200, body }
}

function discovery(groupVersion: string, known: typeof RESOURCES): Reply {
  const resources = known.flatMap(({ name, kind, namespaced }) => [
    { name: `${name}/status`, kind, namespaced },
    { name, kind, namespaced },
  ])
  const body = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources }
  return { status: 200, body }
}

function failure(code: number, reason: string, details?: JsonObject): Reply {
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code }
  return { status: code, body: details === undefined ? body : { ...body, details } }
}

function misbehave(fault: ClusterFault, response: ServerResponse): void {
  if (typeof fault === 'object') send(response, failure(fault.status, 'Unknown'))
  else if (fault === 'endless body') sendForever(response)
  else if (fault === 'cut') response.destroy()
  else if (fault === 'redirect') {
    response.writeHead(302, { location: '/elsewhere' })
    response.end()
  } else if (fault !== 'silence') send(response, WRONG[fault])
}

const WRONG: Readonly<Record<'malformed JSON' | 'html' | 'another object', Reply>> = {
  'malformed JSON': { status: 200, body: '{"kind": "Namespace", ' },
  html: { status: 404, type: 'text/html', body: '<html>not here</html>' },
  'another object': { status: 200, body: { kind: 'Namespace', metadata: { name: 'another' } } },
}

function sendForever(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  pour(response)
}
