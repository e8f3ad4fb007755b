import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { closeServer, listenLocally } from './loopback.ts'
import type { RecordedRequest } from './registry.ts'
import { answer, type RegistryReply } from './registry-answer.ts'
import { RegistryFaults } from './registry-faults.ts'
import { checkSignature, type SigningCaller } from './sigv4-check.ts'

export interface ObjectStoreOptions {
  /** Whom it lets read; everybody, without a signature, when absent. */
  reader?: SigningCaller & { region: string }
  /** Epoch milliseconds; the system clock when absent. */
  now?: () => number
  /** 0 picks a free one. */
  port?: number
}

/** A local store that speaks as much S3 as it takes to read objects: path-style addresses, ETags, conditional GET, signatures. */
export interface ObjectStore {
  /** `http://127.0.0.1:<port>`. An object is at `/<bucket>/<key>`. */
  readonly url: string
  /** Stores an object, in the place of what was there, and gives its ETag. */
  put(path: string, content: string | Uint8Array): string
  /** Takes it away. */
  delete(path: string): void
  /** Tested against `GET /bucket/key`. */
  readonly faults: RegistryFaults
  readonly requests: RecordedRequest[]
  close(): Promise<void>
}

interface StoredObject {
  content: Buffer
  etag: string
}

/** Starts an object store on the loopback interface. */
export async function startObjects(options: ObjectStoreOptions = {}): Promise<ObjectStore> {
  const objects = new Map<string, StoredObject>()
  const faults = new RegistryFaults()
  const requests: RecordedRequest[] = []
  const server = createServer((request, response) => {
    const { method = '', url = '/', headers } = request
    requests.push({ method, url, headers, body: '' })
    const fault = faults.strike(`${method} ${url}`)
    answer(response, method, url, () => reply(request, objects, options), fault)
  })
  return {
    url: `http://127.0.0.1:${await listenLocally(server, options.port)}`,
    put(path, content) {
      const bytes = Buffer.from(content)
      const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
      objects.set(path, { content: bytes, etag })
      return etag
    },
    delete: (path) => void objects.delete(path),
    faults,
    requests,
    close: () => closeServer(server),
  }
}

function reply(
  { method = '', url = '/', headers }: IncomingMessage,
  objects: ReadonlyMap<string, StoredObject>,
  { reader, now = Date.now }: ObjectStoreOptions,
): RegistryReply {
  if (method !== 'GET') return refusal(405, 'MethodNotAllowed')
  if (reader !== undefined) {
    const request = { method, host: String(headers.host), path: url, headers, body: '' }
    const signed = checkSignature(request, reader, { service: 's3', now: now() })
    if ('fault' in signed) return refusal(403, 'SignatureDoesNotMatch')
    if (signed.region !== reader.region) return refusal(400, 'AuthorizationHeaderMalformed')
  }
  const object = objects.get(decodeURIComponent(url))
  // As S3 answers who may read objects and not list them.
  if (object === undefined) return refusal(reader === undefined ? 404 : 403, 'NoSuchKey')
  const { content, etag } = object
  if (headers['if-none-match'] === etag) {
    return { status: 304, headers: { etag }, body: Buffer.alloc(0) }
  }
  return { status: 200, headers: { etag, 'content-type': 'application/json' }, body: content }
}

function refusal(status: number, code: string): RegistryReply {
  const body = Buffer.from(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`)
  return { status, headers: { 'content-type': 'application/xml' }, body }
}
