import { Cache } from '../cache.ts'
import { AdmissionError } from '../errors.ts'
import { decodeJson, getOwn, isJsonObject } from '../json.ts'
import {
  CLUSTER_CALL_TIMEOUT_MS,
  DISCOVERY_TTL_MS,
  MAX_CACHED_NAMESPACE_BYTES,
  MAX_CACHED_NAMESPACES,
  MAX_CLUSTER_ANSWER_BYTES,
  MAX_CLUSTER_VALUES,
  NAMESPACE_TTL_MS,
} from '../limits.ts'
import type { FetchPort } from '../ports.ts'
import {
  type CallContext,
  createGuardedFetch,
  type GuardedFetch,
  type GuardedResponse,
} from '../registry/fetch.ts'
import { asClusterFault, refusal, unusable } from './fault.ts'
import { collectionPath, groupPath, labelQuery, objectPath } from './path.ts'
import { withoutRedirects } from './redirects.ts'
import type { ClusterClient, ClusterSession, JsonRecord, Place } from './types.ts'

export interface ClusterOptions {
  /** `https://host[:port]`. */
  server: string
  /** The bearer token, asked for with every call; what it throws is passed on. */
  token: () => string
  /** Trusts the cluster's own authority. */
  fetch: FetchPort
  /** Epoch milliseconds. */
  now: () => number
  /** In [0, 1), for the jitter of retries; Math.random unless given. */
  random?: () => number
  /** One call without an answer, milliseconds; `CLUSTER_CALL_TIMEOUT_MS` unless a test needs less. */
  callTimeoutMs?: number
}

/**
 * A connection to an API server: GET only, to this server only, redirects refused. Namespaces and the names of resources are kept
 * for a while; errors and what is not there never are.
 */
export function createClusterClient(options: ClusterOptions): ClusterClient {
  const { now, random = Math.random, callTimeoutMs = CLUSTER_CALL_TIMEOUT_MS } = options
  const server = new URL(options.server)
  const kept: Kept = {
    now,
    namespaces: new Cache(MAX_CACHED_NAMESPACES),
    resources: new Cache(MAX_CACHED_NAMESPACES),
  }
  const fetch = createGuardedFetch({
    fetch: withoutRedirects(options.fetch),
    now,
    random,
    // Paths are made here, and no redirect leads away.
    addresses: { check: () => undefined, baseUrl: () => server },
    callTimeoutMs,
  })
  const api: Api = { server, fetch, token: options.token }
  return { session: (context) => new Session(api, kept, context) }
}

interface Api {
  server: URL
  fetch: GuardedFetch
  token: () => string
}

interface Kept {
  now: () => number
  namespaces: Cache<JsonRecord>
  /** By apiVersion and kind. */
  resources: Cache<string>
}

class Session implements ClusterSession {
  readonly #api: Api
  readonly #kept: Kept
  readonly #context: CallContext

  constructor(api: Api, kept: Kept, context: CallContext) {
    this.#api = api
    this.#kept = kept
    this.#context = context
  }

  async namespace(name: string): Promise<JsonRecord | null> {
    const { namespaces, now } = this.#kept
    const known = namespaces.get(name, now())
    if (known !== undefined) return known
    const place = { apiVersion: 'v1', resource: 'namespaces', namespace: '' }
    const { found, bytes } = await this.#object(place, name)
    if (found !== null && bytes <= MAX_CACHED_NAMESPACE_BYTES) {
      namespaces.set(name, found, now() + NAMESPACE_TTL_MS)
    }
    return found
  }

  async get(place: Place, name: string): Promise<JsonRecord | null> {
    return (await this.#object(place, name)).found
  }

  async list(place: Place, labels: JsonRecord): Promise<JsonRecord> {
    const path = collectionPath(place)
    const { body } = await this.#read(path, labelQuery(labels))
    if (body !== undefined && Array.isArray(getOwn(body, 'items'))) return body
    throw body === undefined ? unknownResource(path) : unusable(path, 'it is no list')
  }

  async resourceOf(apiVersion: string, kind: string): Promise<string> {
    const { resources, now } = this.#kept
    const key = JSON.stringify([apiVersion, kind])
    const known = resources.get(key, now())
    if (known !== undefined) return known
    const path = groupPath(apiVersion)
    const { body } = await this.#read(path)
    const name = body && resourceNamed(body, kind)
    if (name === undefined) {
      const message = `the cluster has no kind ${JSON.stringify(kind.slice(0, 100))} in ${apiVersion}`
      throw new AdmissionError('CLUSTER_REFUSED', message)
    }
    resources.set(key, name, now() + DISCOVERY_TTL_MS)
    return name
  }

  async #object(place: Place, name: string): Promise<{ found: JsonRecord | null; bytes: number }> {
    const path = objectPath(place, name)
    const { body, absent, bytes } = await this.#read(path)
    if (body === undefined) {
      // A resource that the server does not know is not found either, and says nothing about an object.
      if (absent === name) return { found: null, bytes }
      throw unknownResource(path)
    }
    const metadata = getOwn(body, 'metadata')
    const isIt =
      isJsonObject(metadata) &&
      getOwn(metadata, 'name') === name &&
      (place.namespace === '' || getOwn(metadata, 'namespace') === place.namespace)
    if (!isIt) throw unusable(path, 'it is another object')
    return { found: body, bytes }
  }

  /** A body, or the name of what is absent where the API server said that something is. */
  async #read(
    path: string,
    query = '',
  ): Promise<{ body?: JsonRecord; absent?: unknown; bytes: number }> {
    const { server, fetch, token } = this.#api
    let response: GuardedResponse
    try {
      const authorization = `Bearer ${checked(token())}`
      const url = new URL(`${path}${query}`, server)
      const request = {
        url,
        accept: 'application/json',
        authorization,
        maxBytes: MAX_CLUSTER_ANSWER_BYTES,
      }
      response = await fetch(request, this.#context)
    } catch (thrown) {
      throw asClusterFault(thrown)
    }
    const { status, body: bytes } = response
    if (status !== 200 && status !== 404) throw refusal(path, status)
    const body = readObject(response, path)
    if (status === 200) return { body, bytes: bytes.length }
    // Whatever else answers 404 on the way has not looked.
    const isAnswer = getOwn(body, 'kind') === 'Status' && getOwn(body, 'reason') === 'NotFound'
    if (!isAnswer) throw unusable(path, 'it is 404, and not from an API server')
    const details = getOwn(body, 'details')
    const absent = isJsonObject(details) ? getOwn(details, 'name') : undefined
    return { absent, bytes: bytes.length }
  }
}

function readObject({ headers, body, status }: GuardedResponse, path: string): JsonRecord {
  const type = headers.get('content-type') ?? ''
  if (!/^application\/json\s*(?:;|$)/i.test(type)) {
    throw unusable(
      path,
      status === 404 ? 'it is 404, and not from an API server' : 'it is not JSON',
    )
  }
  try {
    const value = decodeJson(body, { maxValues: MAX_CLUSTER_VALUES })
    if (isJsonObject(value)) return value
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    throw unusable(path, 'it is malformed JSON')
  }
  throw unusable(path, 'it is no object')
}

/** The name of the resource itself, not of a subresource, whose objects are of that kind. */
function resourceNamed(list: JsonRecord, kind: string): string | undefined {
  const entries = getOwn(list, 'resources')
  for (const entry of Array.isArray(entries) ? entries : []) {
    if (!isJsonObject(entry) || getOwn(entry, 'kind') !== kind) continue
    const name = getOwn(entry, 'name')
    if (typeof name === 'string' && !name.includes('/')) return name
  }
  return undefined
}

/** The token. Platforms repeat a header they do not take in their errors, so one that no header takes never gets there. */
function checked(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new AdmissionError(
    'CONFIG_INVALID',
    'the token of the cluster has characters that no token has',
  )
}

function unknownResource(path: string): AdmissionError {
  return new AdmissionError('CLUSTER_REFUSED', `GET ${path}: the cluster has no such resource`)
}
