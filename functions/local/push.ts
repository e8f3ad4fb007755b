import { createHash } from 'node:crypto'
import type { FetchPort } from '#shared/ports.ts'
import { type Challenge, parseChallenges } from '#shared/registry/challenge.ts'
import type { Descriptor } from '#shared/registry/types.ts'

/** Where to push: a repository of a registry, with the login when it wants one. */
export interface PushTarget {
  /** Base URL of the registry, such as `http://127.0.0.1:5000`. */
  url: string
  repository: string
  login?: { username: string; password: string }
  fetch?: FetchPort
}

/** A layer of an artifact, by its content. */
export interface PushedLayer {
  mediaType: string
  bytes: Uint8Array
  annotations?: Record<string, string>
}

/** An artifact that refers to an image. */
export interface PushedReferrer {
  /** `null` leaves the field out: the media type of the config says what it is. */
  artifactType: string | null
  layers: readonly PushedLayer[]
  annotations?: Record<string, string>
  /** The empty config of OCI 1.1 unless given. */
  config?: { mediaType: string; bytes: Uint8Array }
  /** What the fallback index says instead of `artifactType`; `null` leaves the field out, as older writers do. */
  fallbackArtifactType?: string | null
}

export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json'
const OCI_EMPTY = { mediaType: 'application/vnd.oci.empty.v1+json', bytes: Buffer.from('{}') }

/** The descriptor of the bytes as they were pushed. Uploads in one request after asking where to (distribution spec, pushing blobs). */
export async function pushBlob(
  target: PushTarget,
  bytes: Uint8Array,
  mediaType = 'application/octet-stream',
): Promise<Descriptor> {
  const descriptor = describe(bytes, mediaType)
  const started = await send(target, 'POST', 'blobs/uploads/', {})
  expectStatus(started, 202, 'start a blob upload')
  const location = new URL(started.headers.get('location') ?? '', target.url)
  location.searchParams.set('digest', descriptor.digest)
  const done = await send(target, 'PUT', location, {
    body: bytes,
    headers: { 'content-type': 'application/octet-stream' },
  })
  expectStatus(done, 201, 'upload a blob')
  return descriptor
}

/**
 * The descriptor of a manifest or index as it was pushed, under the tag when one is given, else by digest. Bytes go out
 * as they are; an object is serialised once.
 */
export async function pushManifest(
  target: PushTarget,
  manifest: object,
  options: { tag?: string; mediaType?: string } = {},
): Promise<Descriptor> {
  return (await putManifest(target, manifest, options)).descriptor
}

/**
 * The descriptor of an artifact manifest whose `subject` is the given image. Where the registry does not answer with
 * `OCI-Subject` it has no referrers API, and the fallback tag `sha256-<hex>` is maintained (distribution spec, pushing
 * manifests with subject): read, added to, written, so push the referrers of one image one after the other.
 */
export async function pushReferrer(
  target: PushTarget,
  subject: Descriptor,
  artifact: PushedReferrer,
): Promise<Descriptor> {
  const config = artifact.config ?? OCI_EMPTY
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    ...(artifact.artifactType === null ? {} : { artifactType: artifact.artifactType }),
    config: await pushBlob(target, config.bytes, config.mediaType),
    layers: await Promise.all(artifact.layers.map((layer) => pushLayer(target, layer))),
    subject: { mediaType: subject.mediaType, digest: subject.digest, size: subject.size },
    ...(artifact.annotations === undefined ? {} : { annotations: artifact.annotations }),
  }
  const { descriptor, response } = await putManifest(target, manifest, {})
  if (response.headers.get('oci-subject') === null) {
    const { fallbackArtifactType: told = artifact.artifactType ?? config.mediaType } = artifact
    await addToFallbackIndex(target, subject.digest, {
      ...descriptor,
      ...(told === null ? {} : { artifactType: told }),
      ...(artifact.annotations === undefined ? {} : { annotations: artifact.annotations }),
    })
  }
  return descriptor
}

/** The descriptor of a layer as it was pushed, with its annotations. */
export async function pushLayer(target: PushTarget, layer: PushedLayer): Promise<Descriptor> {
  const descriptor = await pushBlob(target, layer.bytes, layer.mediaType)
  return layer.annotations === undefined
    ? descriptor
    : { ...descriptor, annotations: layer.annotations }
}

/** The descriptor of bytes nobody has pushed yet. */
export function describe(bytes: Uint8Array, mediaType: string): Descriptor {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  return { mediaType, digest, size: bytes.length }
}

async function putManifest(
  target: PushTarget,
  manifest: object,
  options: { tag?: string; mediaType?: string },
): Promise<{ descriptor: Descriptor; response: Response }> {
  const bytes = manifest instanceof Uint8Array ? manifest : Buffer.from(JSON.stringify(manifest))
  const mediaType = options.mediaType ?? mediaTypeOf(bytes)
  const descriptor = describe(bytes, mediaType)
  const response = await send(target, 'PUT', `manifests/${options.tag ?? descriptor.digest}`, {
    body: bytes,
    headers: { 'content-type': mediaType },
  })
  expectStatus(response, 201, 'push a manifest')
  return { descriptor, response }
}

async function addToFallbackIndex(
  target: PushTarget,
  subject: string,
  descriptor: Descriptor,
): Promise<void> {
  const tag = subject.replace(':', '-')
  const response = await send(target, 'GET', `manifests/${tag}`, { headers: { accept: OCI_INDEX } })
  if (response.status !== 404) expectStatus(response, 200, 'read the fallback index')
  const before = response.status === 404 ? [] : ((await response.json()) as IndexBody).manifests
  const manifests = [...before.filter((entry) => entry.digest !== descriptor.digest), descriptor]
  await pushManifest(target, { schemaVersion: 2, mediaType: OCI_INDEX, manifests }, { tag })
}

/** What this file itself wrote under the fallback tag. */
interface IndexBody {
  manifests: Descriptor[]
}

function mediaTypeOf(bytes: Uint8Array): string {
  const parsed: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
  const stated = (parsed as { mediaType?: unknown }).mediaType
  return typeof stated === 'string' ? stated : OCI_MANIFEST
}

async function send(
  target: PushTarget,
  method: string,
  path: string | URL,
  init: { body?: Uint8Array; headers?: Record<string, string> },
): Promise<Response> {
  const url = new URL(path, `${target.url}/v2/${target.repository}/`).href
  const call = target.fetch ?? fetch
  // A Uint8Array is a body; the DOM type wants to know that its buffer is not shared.
  const request = { method, body: (init.body ?? null) as BodyInit | null }
  const first = await call(url, { ...request, headers: init.headers ?? {} })
  if (first.status !== 401) return first
  const authorization = await logIn(target, first.headers.get('www-authenticate') ?? '')
  return call(url, { ...request, headers: { ...init.headers, authorization } })
}

/** The Authorization header that answers a challenge. */
async function logIn(target: PushTarget, header: string): Promise<string> {
  const challenges = parseChallenges(header) ?? []
  const basic = target.login === undefined ? undefined : basicHeader(target.login)
  const bearer = challenges.find((challenge) => challenge.scheme === 'bearer')
  if (bearer !== undefined) return `Bearer ${await pushToken(target, bearer, basic)}`
  if (basic === undefined) throw new Error(`${target.url} wants a login and there is none`)
  return basic
}

async function pushToken(
  target: PushTarget,
  bearer: Challenge,
  basic: string | undefined,
): Promise<string> {
  const url = new URL(bearer.params.get('realm') ?? '')
  url.searchParams.set('service', bearer.params.get('service') ?? '')
  url.searchParams.set('scope', `repository:${target.repository}:pull,push`)
  const headers: Record<string, string> = basic === undefined ? {} : { authorization: basic }
  const response = await (target.fetch ?? fetch)(url.href, { headers })
  expectStatus(response, 200, 'get a token for pushing')
  return ((await response.json()) as { token: string }).token
}

function basicHeader(login: { username: string; password: string }): string {
  return `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`
}

function expectStatus(response: Response, status: number, doing: string): void {
  if (response.status === status) return
  throw new Error(`could not ${doing}: the registry answered ${response.status}`)
}
