import { createHash, randomUUID } from 'node:crypto'
import type { Descriptor } from '#shared/registry/types.ts'

/** A manifest as it was pushed. */
export interface StoredManifest {
  mediaType: string
  bytes: Buffer
  digest: string
}

/** A repository in memory: manifests, tags, blobs and uploads under way. */
export class StoredRepository {
  readonly manifests = new Map<string, StoredManifest>()
  readonly tags = new Map<string, string>()
  readonly blobs = new Map<string, Buffer>()
  readonly #uploads = new Map<string, Buffer>()

  /** The manifest under a tag or digest. */
  manifest(reference: string): StoredManifest | undefined {
    return this.manifests.get(this.tags.get(reference) ?? reference)
  }

  /** Keeps a manifest; a reference that is not its digest becomes a tag. Undefined when it is another digest. */
  putManifest(reference: string, mediaType: string, bytes: Buffer): StoredManifest | undefined {
    const digest = digestOf(bytes)
    if (reference.includes(':') && reference !== digest) return undefined
    const manifest = { mediaType, bytes, digest }
    this.manifests.set(digest, manifest)
    if (reference !== digest) this.tags.set(reference, digest)
    return manifest
  }

  startUpload(): string {
    const id = randomUUID()
    this.#uploads.set(id, Buffer.alloc(0))
    return id
  }

  /** The length of an upload with this chunk added, or undefined when there is no such upload. */
  append(id: string, chunk: Buffer): number | undefined {
    const before = this.#uploads.get(id)
    if (before === undefined) return undefined
    const bytes = Buffer.concat([before, chunk])
    this.#uploads.set(id, bytes)
    return bytes.length
  }

  /** True when the upload hashes to the digest, and is a blob from now on. */
  finishUpload(id: string, digest: string): boolean {
    const bytes = this.#uploads.get(id)
    if (bytes === undefined || digestOf(bytes) !== digest) return false
    this.#uploads.delete(id)
    this.blobs.set(digest, bytes)
    return true
  }

  /** Descriptors of the manifests whose `subject` is the digest. */
  referrers(digest: string): Descriptor[] {
    return [...this.manifests.values()].flatMap((manifest) => {
      const json = jsonOf(manifest)
      if (json?.subject?.digest !== digest) return []
      const artifactType = json.artifactType ?? json.config?.mediaType
      const { mediaType, bytes } = manifest
      const descriptor: Descriptor = { mediaType, digest: manifest.digest, size: bytes.length }
      if (artifactType !== undefined) descriptor.artifactType = artifactType
      if (json.annotations !== undefined) descriptor.annotations = json.annotations
      return [descriptor]
    })
  }
}

/** The digest a manifest names as its subject, or undefined. */
export function subjectOf(manifest: StoredManifest): string | undefined {
  return jsonOf(manifest)?.subject?.digest
}

function jsonOf(manifest: StoredManifest): ManifestBody | undefined {
  try {
    // Only fields a pusher set are read; this server serves tests and the demo.
    return JSON.parse(manifest.bytes.toString('utf8')) as ManifestBody
  } catch {
    // A registry keeps what it is given: bytes that are no JSON have no subject.
    return undefined
  }
}

interface ManifestBody {
  subject?: { digest?: string }
  artifactType?: string
  config?: { mediaType?: string }
  annotations?: Record<string, string>
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
