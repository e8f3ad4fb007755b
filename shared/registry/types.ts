import type { Bytes } from '../bytes.ts'
import type { ImageReference } from '../image/types.ts'
import type { JsonValue } from '../json.ts'
import type { CallContext } from './fetch.ts'

/** OCI content descriptor. */
export interface Descriptor {
  mediaType: string
  /** `sha256:<64 hex>`. */
  digest: string
  size: number
  artifactType?: string
  annotations?: Record<string, string>
}

/** What refers to a digest, each once. */
export interface Referrers {
  descriptors: readonly Descriptor[]
  /** How many more there are beyond the bounds, at least. */
  omitted: number
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

/** Entries of the operator's config that stand for the registries' own logins: names only, a secret is in no policy. */
export interface CredentialNames {
  /** `namespace/name` or `name`, as the config has them. */
  secrets: readonly string[]
  providers: readonly CredentialProvider[]
}

/** Where logins come from, by the names policies use (specs/image-validating-policy.md 4.9). */
export type CredentialProvider = (typeof CREDENTIAL_PROVIDERS)[number]

/** All of them; `default` is what the config has without a provider. */
export const CREDENTIAL_PROVIDERS = ['default', 'amazon', 'azure', 'google', 'github'] as const

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
  referrers(repository: Repository, digest: string): Promise<Referrers>
  /**
   * The same request with other logins, always the same session for the same names: bounds and counts are those of the request,
   * while nothing that was found out or logged in to here is used there, or the other way round.
   */
  withCredentials(names: CredentialNames): RegistrySession
  /** What other guarded calls of the request go by: its end, its share of connections, its count of calls and bytes. */
  readonly context: CallContext
  /** HTTP requests of the request made so far, whatever their logins. */
  readonly calls: number
}

/** One per isolate; keeps tokens between requests, nothing else. */
export interface RegistryClient {
  session(signal: AbortSignal): RegistrySession
}
