import type { Bytes } from '../bytes.ts'
import type { ImageReference } from '../image/types.ts'
import type { JsonValue } from '../json.ts'

/** OCI content descriptor. */
export interface Descriptor {
  mediaType: string
  /** `sha256:<64 hex>`. */
  digest: string
  size: number
  artifactType?: string
  annotations?: Record<string, string>
}

/** Where in a registry: `host[:port]` to talk to (docker.io's is registry-1.docker.io) and the repository. */
export interface Repository {
  host: string
  repository: string
}

/** A manifest whose bytes were hashed: `descriptor.digest` is computed here, never taken from a header. */
export interface Manifest {
  descriptor: Descriptor
  bytes: Bytes
  json: { [key: string]: JsonValue }
}

/** An image reference settled once per request. Everything later uses the digest. */
export interface ResolvedImage {
  reference: ImageReference
  repository: Repository
  descriptor: Descriptor
}

/**
 * The registry as one request sees it: identical calls are made once, all of them end with the request's signal, at most
 * `MAX_CONCURRENT_CALLS` are under way. Throws AdmissionError only.
 */
export interface RegistrySession {
  /** Tag or digest → manifest descriptor, hashed. One resolution per distinct image string. */
  resolve(reference: ImageReference): Promise<ResolvedImage>
  /** A manifest by digest or tag, hashed. Undefined when the registry answers 404. */
  manifest(repository: Repository, reference: string): Promise<Manifest | undefined>
  /** A blob by descriptor: size and digest checked, at most `maxBytes`. */
  blob(repository: Repository, descriptor: Descriptor, maxBytes: number): Promise<Bytes>
  /** Referrers of a digest: the referrers API, or the fallback tag where it does not exist. At most `MAX_REFERRERS`. */
  referrers(repository: Repository, digest: string): Promise<readonly Descriptor[]>
  /** HTTP requests made so far. */
  readonly calls: number
}

/** One per isolate; keeps tokens between requests, nothing else. */
export interface RegistryClient {
  session(signal: AbortSignal): RegistrySession
}
