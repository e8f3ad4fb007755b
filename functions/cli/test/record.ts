import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { FetchPort } from '#shared/ports.ts'
import { type LayoutEntry, layoutRoot, REF_NAME } from './layouts.ts'

const ROUTE = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/
const DIGEST = /^sha256:[0-9a-f]{64}$/
const INDEX = 'application/vnd.oci.image.index.v1+json'

/** Where a body belongs. */
interface Wanted {
  root: string
  /** Of a manifest, how it was asked for. */
  reference?: string
}

/**
 * The same fetch, and every manifest and blob that a registry gives is kept in an OCI layout of its repository at
 * `<folder>/<registry>/<repository>`. Requests, tokens and headers are not.
 */
export function recordingFetch(folder: string, fetch: FetchPort): FetchPort {
  /** Blobs that a registry keeps elsewhere, by digest: whoever answers with these bytes is meant. */
  const elsewhere = new Map<string, Wanted>()
  let writing = Promise.resolve()
  return async (address, init) => {
    const response = await fetch(address, init)
    const asked = wantedBy(folder, address)
    const isBody = response.status === 200 && init.method !== 'HEAD' && init.method !== 'POST'
    if (asked !== undefined && response.status >= 300 && response.status < 400) {
      elsewhere.set(asked.digest ?? '', asked)
    }
    if (!isBody || (asked === undefined && elsewhere.size === 0)) return response
    const bytes = Buffer.from(await response.arrayBuffer())
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    const wanted = asked ?? elsewhere.get(digest)
    if (wanted !== undefined) {
      const type = response.headers.get('content-type') ?? ''
      // One after the other: the index of a layout is read and rewritten.
      writing = writing.then(() => keep(wanted, { digest, bytes, type }))
      await writing
    }
    return new Response(bytes, { status: response.status, headers: response.headers })
  }
}

function wantedBy(folder: string, address: string): (Wanted & { digest?: string }) | undefined {
  const url = new URL(address)
  const [, repository, kind, reference = ''] = ROUTE.exec(url.pathname) ?? []
  if (repository === undefined) return undefined
  const root = layoutRoot(folder, url.host, repository)
  return {
    root,
    ...(kind === 'manifests' && { reference }),
    ...(DIGEST.test(reference) && { digest: reference }),
  }
}

async function keep(
  { root, reference }: Wanted,
  { digest, bytes, type }: { digest: string; bytes: Buffer; type: string },
): Promise<void> {
  const blobs = path.join(root, 'blobs', 'sha256')
  await mkdir(blobs, { recursive: true })
  await writeFile(path.join(blobs, digest.slice('sha256:'.length)), bytes)
  if (reference === undefined) return
  const tag = DIGEST.test(reference) ? undefined : reference
  const entry: LayoutEntry = {
    mediaType: type.split(';')[0]?.trim() || INDEX,
    digest,
    size: bytes.length,
    ...(tag !== undefined && { annotations: { [REF_NAME]: tag } }),
  }
  await addToIndex(root, entry)
}

async function addToIndex(root: string, entry: LayoutEntry): Promise<void> {
  const file = path.join(root, 'index.json')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  // Written below, or by another tool in the format of the specification.
  const before: LayoutEntry[] = text === undefined ? [] : (JSON.parse(text).manifests ?? [])
  const tag = entry.annotations?.[REF_NAME]
  const isSame = (each: LayoutEntry) =>
    each.digest === entry.digest && (tag === undefined || each.annotations?.[REF_NAME] === tag)
  const isMoved = (each: LayoutEntry) => tag !== undefined && each.annotations?.[REF_NAME] === tag
  if (before.some(isSame)) return
  const manifests = [...before.filter((each) => !isMoved(each)), entry]
  await writeFile(path.join(root, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  await writeFile(
    file,
    `${JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests }, null, 2)}\n`,
  )
}
