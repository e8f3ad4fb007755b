import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { AdmissionError } from '#shared/errors.ts'
import type { FetchPort } from '#shared/ports.ts'

/** The address of Docker Hub's API and the name that references have. */
const HUB_API = 'registry-1.docker.io'
const HUB = 'docker.io'

export const REF_NAME = 'org.opencontainers.image.ref.name'
const INDEX = 'application/vnd.oci.image.index.v1+json'
const ROUTE = /^\/v2\/(.+)\/(manifests|blobs|referrers)\/([^/]+)$/

/** What `cosign save` calls what belongs to the image of a layout, and the ends of the tags it has in a registry. */
const COSIGN_KINDS: Readonly<Record<string, string>> = {
  'dev.cosignproject.cosign/sigs': '.sig',
  'dev.cosignproject.cosign/atts': '.att',
}

export interface LayoutEntry {
  mediaType: string
  digest: string
  size: number
  annotations?: Record<string, string>
  artifactType?: string
}

/**
 * A fetch that answers for the repositories in a folder, each an OCI image layout at `<folder>/<registry>/<repository>`, and passes everything
 * else on. A layout is all there is of its repository: what is not in it does not exist.
 */
export function layoutFetch(folder: string, otherwise: FetchPort): FetchPort {
  const layouts = new Map<string, Promise<Layout>>()
  const layoutAt = (root: string) => {
    const known = layouts.get(root) ?? readLayout(root)
    layouts.set(root, known)
    return known
  }
  return async (address, init) => {
    const url = new URL(address)
    const [, repository = '', kind = '', reference = ''] = ROUTE.exec(url.pathname) ?? []
    const root = layoutRoot(folder, url.host, repository)
    if (repository === '' || !existsSync(path.join(root, 'index.json')))
      return otherwise(address, init)
    const answer = await layoutAt(root).then((layout) =>
      layout.answer(kind, decodeURIComponent(reference)),
    )
    return init.method === 'HEAD' ? new Response(null, answer) : answer
  }
}

/** Where the layout of a repository is. Throws `CONFIG_INVALID` for a name that leads out of the folder. */
export function layoutRoot(folder: string, host: string, repository: string): string {
  const root = path.resolve(folder, host === HUB_API ? HUB : host.replace(':', '_'), repository)
  if (root.startsWith(path.resolve(folder) + path.sep)) return root
  throw new AdmissionError('CONFIG_INVALID', `${repository} is no name of a repository`)
}

/** One layout: its tags, and what is in it by digest. */
class Layout {
  readonly #root: string
  readonly #tags: ReadonlyMap<string, LayoutEntry>
  readonly #entries: readonly LayoutEntry[]

  constructor(root: string, entries: readonly LayoutEntry[]) {
    this.#root = root
    this.#entries = entries
    this.#tags = new Map(
      entries.flatMap((entry) => tagsOf(entry, entries).map((tag) => [tag, entry])),
    )
  }

  async answer(kind: string, reference: string): Promise<Response> {
    if (kind === 'referrers') return this.#referrers(reference)
    const digest = this.#tags.get(reference)?.digest ?? reference
    const bytes = await this.#blob(digest)
    if (bytes === undefined) {
      const code = kind === 'blobs' ? 'BLOB_UNKNOWN' : 'MANIFEST_UNKNOWN'
      return Response.json({ errors: [{ code, message: 'not in the layout' }] }, { status: 404 })
    }
    const type = kind === 'blobs' ? 'application/octet-stream' : this.#typeOf(digest, bytes)
    const headers = { 'content-type': type, 'docker-content-digest': digest }
    // A Buffer is a body; the DOM type wants to know that its memory is not shared.
    return new Response(bytes as Uint8Array<ArrayBuffer>, { headers })
  }

  async #referrers(digest: string): Promise<Response> {
    const found = await Promise.all(this.#entries.map((entry) => this.#asReferrer(entry, digest)))
    const body = { schemaVersion: 2, mediaType: INDEX, manifests: found.flat() }
    return new Response(JSON.stringify(body), { headers: { 'content-type': INDEX } })
  }

  async #asReferrer(
    { mediaType, digest, size }: LayoutEntry,
    subject: string,
  ): Promise<LayoutEntry[]> {
    const manifest = parsed(await this.#blob(digest))
    if (manifest?.subject?.digest !== subject) return []
    const artifactType = manifest.artifactType ?? manifest.config?.mediaType
    const { annotations } = manifest
    return [
      {
        mediaType,
        digest,
        size,
        ...(artifactType && { artifactType }),
        ...(annotations && { annotations }),
      },
    ]
  }

  #typeOf(digest: string, bytes: Uint8Array): string {
    const entry = this.#entries.find((each) => each.digest === digest)
    return (
      entry?.mediaType ?? parsed(bytes)?.mediaType ?? 'application/vnd.oci.image.manifest.v1+json'
    )
  }

  async #blob(digest: string): Promise<Buffer | undefined> {
    const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? []
    if (hex === undefined) return undefined
    const bytes = await readFile(path.join(this.#root, 'blobs', 'sha256', hex)).catch(
      () => undefined,
    )
    if (bytes === undefined || createHash('sha256').update(bytes).digest('hex') === hex)
      return bytes
    throw new AdmissionError(
      'REGISTRY_DIGEST_MISMATCH',
      `${digest} of ${this.#root} has another digest`,
    )
  }
}

async function readLayout(root: string): Promise<Layout> {
  const index = parsed(await readFile(path.join(root, 'index.json')))
  if (Array.isArray(index?.manifests)) return new Layout(root, index.manifests)
  throw new AdmissionError(
    'CONFIG_INVALID',
    `${path.join(root, 'index.json')} is no index of an OCI layout`,
  )
}

/** The tags of an entry: its name, or the part of it behind the colon; of what cosign saved, those that the image's digest gives. */
function tagsOf({ annotations = {} }: LayoutEntry, all: readonly LayoutEntry[]): string[] {
  const name = annotations[REF_NAME]
  const end = COSIGN_KINDS[annotations.kind ?? '']
  if (end === undefined) return name === undefined ? [] : [name.slice(name.lastIndexOf(':') + 1)]
  const images = all.filter((entry) => COSIGN_KINDS[entry.annotations?.kind ?? ''] === undefined)
  return images.map(({ digest }) => `${digest.replace(':', '-')}${end}`)
}

interface Parsed {
  mediaType?: string
  artifactType?: string
  config?: { mediaType?: string }
  subject?: { digest?: string }
  annotations?: Record<string, string>
  manifests?: LayoutEntry[]
}

function parsed(bytes: Uint8Array | undefined): Parsed | undefined {
  try {
    // Files of whoever writes the test; what is not as expected is not found.
    return bytes === undefined
      ? undefined
      : (JSON.parse(Buffer.from(bytes).toString('utf8')) as Parsed)
  } catch {
    return undefined
  }
}
