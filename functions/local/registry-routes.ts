import type { IncomingHttpHeaders } from 'node:http'
import type { RegistryReply } from './registry-answer.ts'
import type { RegistryGate } from './registry-auth.ts'
import type { RegistryFault } from './registry-faults.ts'
import { StoredRepository, subjectOf } from './registry-store.ts'

/** A request, read to its end. */
export interface RegistryCall {
  method: string
  pathname: string
  params: URLSearchParams
  headers: IncomingHttpHeaders
  body: Buffer
}

/** What the routes work on. */
export interface RegistrySettings {
  gate: RegistryGate
  repositories: Map<string, StoredRepository>
  referrersApi: boolean
  referrersPageSize: number
}

const INDEX = 'application/vnd.oci.image.index.v1+json'
const ROUTE = /^\/v2\/(.+)\/(manifests|blobs|referrers|tags)\/(.+)$/

/** The answer of the distribution API (OCI distribution spec 1.1) or of the token service. */
export function route(
  call: RegistryCall,
  settings: RegistrySettings,
  fault: RegistryFault | undefined,
): RegistryReply {
  if (call.pathname === '/token') return tokenRoute(call, settings.gate)
  const [, name, kind, rest] = ROUTE.exec(call.pathname) ?? []
  if (name === undefined || kind === undefined || rest === undefined) {
    return call.pathname === '/v2/' ? json(200, {}) : failure(404, 'NAME_UNKNOWN')
  }
  const action = call.method === 'GET' || call.method === 'HEAD' ? 'pull' : 'push'
  const challenge = settings.gate.challenge(call.headers.authorization, name, action)
  if (challenge !== undefined) {
    return failure(401, 'UNAUTHORIZED', { 'www-authenticate': challenge })
  }
  const repository = settings.repositories.get(name) ?? new StoredRepository()
  if (action === 'push') settings.repositories.set(name, repository)
  if (kind === 'manifests') return manifestRoute(call, repository, name, rest, settings, fault)
  if (kind === 'blobs') return blobRoute(call, repository, name, rest)
  if (kind === 'tags') return json(200, { name, tags: [...repository.tags.keys()].sort() })
  return referrersRoute(call, repository, rest, settings)
}

function tokenRoute(call: RegistryCall, gate: RegistryGate): RegistryReply {
  const posted = call.method === 'POST'
  const params = posted ? new URLSearchParams(call.body.toString('utf8')) : call.params
  const { status, body } = gate.token(call.headers.authorization, params)
  return json(status, body)
}

function manifestRoute(
  call: RegistryCall,
  repository: StoredRepository,
  name: string,
  reference: string,
  settings: RegistrySettings,
  fault: RegistryFault | undefined,
): RegistryReply {
  if (call.method === 'PUT') {
    const mediaType = call.headers['content-type'] ?? 'application/octet-stream'
    const manifest = repository.putManifest(reference, mediaType, call.body)
    if (manifest === undefined) return failure(400, 'DIGEST_INVALID')
    const subject = settings.referrersApi ? subjectOf(manifest) : undefined
    return empty(201, {
      location: `/v2/${name}/manifests/${manifest.digest}`,
      'docker-content-digest': manifest.digest,
      ...(subject === undefined ? {} : { 'oci-subject': subject }),
    })
  }
  if (fault?.kind === 'moving-tag' && fault.digests[0] !== undefined) {
    repository.tags.set(reference, fault.digests[0])
  }
  const manifest = repository.manifest(reference)
  if (manifest === undefined) return failure(404, 'MANIFEST_UNKNOWN')
  const headers = { 'content-type': manifest.mediaType, 'docker-content-digest': manifest.digest }
  return { status: 200, headers, body: manifest.bytes }
}

function blobRoute(
  call: RegistryCall,
  repository: StoredRepository,
  name: string,
  rest: string,
): RegistryReply {
  if (rest.startsWith('uploads/')) return uploadRoute(call, repository, name, rest.slice(8))
  const body = repository.blobs.get(rest)
  if (body === undefined) return failure(404, 'BLOB_UNKNOWN')
  const headers = { 'content-type': 'application/octet-stream', 'docker-content-digest': rest }
  return { status: 200, headers, body }
}

function uploadRoute(
  call: RegistryCall,
  repository: StoredRepository,
  name: string,
  id: string,
): RegistryReply {
  const upload = id === '' ? repository.startUpload() : id
  const length = repository.append(upload, call.body)
  if (length === undefined) return failure(404, 'BLOB_UPLOAD_UNKNOWN')
  const digest = call.params.get('digest')
  if (digest === null) {
    const location = `/v2/${name}/blobs/uploads/${upload}`
    return empty(202, { location, range: `0-${Math.max(0, length - 1)}` })
  }
  return repository.finishUpload(upload, digest)
    ? empty(201, { location: `/v2/${name}/blobs/${digest}`, 'docker-content-digest': digest })
    : failure(400, 'DIGEST_INVALID')
}

function referrersRoute(
  call: RegistryCall,
  repository: StoredRepository,
  digest: string,
  settings: RegistrySettings,
): RegistryReply {
  if (!settings.referrersApi) return failure(404, 'NOT_FOUND')
  const from = Number(call.params.get('from') ?? 0)
  const to = from + settings.referrersPageSize
  const all = repository.referrers(digest)
  const headers: Record<string, string> = { 'content-type': INDEX }
  if (to < all.length) headers.link = `<${call.pathname}?from=${to}>; rel="next"`
  const index = { schemaVersion: 2, mediaType: INDEX, manifests: all.slice(from, to) }
  return { status: 200, headers, body: Buffer.from(JSON.stringify(index)) }
}

function json(status: number, body: object, headers: Record<string, string> = {}): RegistryReply {
  const type = { 'content-type': 'application/json' }
  return { status, headers: { ...type, ...headers }, body: Buffer.from(JSON.stringify(body)) }
}

function empty(status: number, headers: Record<string, string>): RegistryReply {
  return { status, headers, body: Buffer.alloc(0) }
}

function failure(status: number, code: string, headers?: Record<string, string>): RegistryReply {
  return json(
    status,
    { errors: [{ code, message: code.toLowerCase().replaceAll('_', ' ') }] },
    headers,
  )
}
