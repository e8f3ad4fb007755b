import pLimit from 'p-limit'
import { assertDigest, type Bytes, digestBytes } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { apiHost } from '../image/reference.ts'
import type { ImageReference } from '../image/types.ts'
import { MAX_CONCURRENT_CALLS, MAX_MANIFEST_BYTES, MAX_SESSION_BYTES } from '../limits.ts'
import type { AddressPolicy } from './address.ts'
import type { SessionAuth } from './auth.ts'
import { type CallContext, errorCodeOf, type GuardedFetch, type GuardedResponse } from './fetch.ts'
import { ACCEPT_MANIFESTS, descriptorsOf, OCI_INDEX, readManifest } from './manifest.ts'
import { distinct, listReferrers } from './referrers.ts'
import type {
  CredentialNames,
  Descriptor,
  Manifest,
  Referrers,
  RegistrySession,
  Repository,
  ResolvedImage,
} from './types.ts'

export interface SessionOptions {
  fetch: GuardedFetch
  addresses: AddressPolicy
  /** Undefined for the registries' own logins. */
  authFor: (context: CallContext, names: CredentialNames | undefined) => SessionAuth
  signal: AbortSignal
}

/** A session whose calls end with the signal. Everything but its tokens is forgotten with it. */
export function createSession(options: SessionOptions): RegistrySession {
  return new OneSession(options, new Budget(options.signal), undefined)
}

/** Where the registry API of an image is. Docker Hub's is at another host than its name. */
export function repositoryOf(reference: ImageReference): Repository {
  return { host: apiHost(reference), repository: reference.repository }
}

/** What all sessions of one request spend together. */
class Budget {
  readonly context: CallContext
  /** Sessions with logins of their own, by the names of those. */
  readonly sessions = new Map<string, RegistrySession>()
  calls = 0
  #bytes = 0

  constructor(signal: AbortSignal) {
    const limit = pLimit(MAX_CONCURRENT_CALLS)
    this.context = {
      signal,
      limit: (run) => limit(run),
      onRequest: () => {
        this.#spend(0)
        this.calls++
      },
      onBytes: (count) => this.#spend(count),
    }
  }

  /** Not a fault of the content: whoever fills the budget must not make the signatures of other images look absent. */
  #spend(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= MAX_SESSION_BYTES) return
    throw new AdmissionError(
      'REGISTRY_BUDGET_SPENT',
      `registries sent more than ${MAX_SESSION_BYTES} bytes for one review`,
    )
  }
}

class OneSession implements RegistrySession {
  readonly #options: SessionOptions
  readonly #budget: Budget
  readonly #auth: SessionAuth
  readonly #shared = new Map<string, Promise<unknown>>()

  constructor(options: SessionOptions, budget: Budget, names: CredentialNames | undefined) {
    this.#options = options
    this.#budget = budget
    this.#auth = options.authFor(budget.context, names)
  }

  get calls(): number {
    return this.#budget.calls
  }

  get context(): CallContext {
    return this.#budget.context
  }

  withCredentials(names: CredentialNames): RegistrySession {
    const { sessions } = this.#budget
    const key = JSON.stringify([names.secrets, names.providers])
    const session = sessions.get(key) ?? new OneSession(this.#options, this.#budget, names)
    sessions.set(key, session)
    return session
  }

  resolve(reference: ImageReference): Promise<ResolvedImage> {
    return this.#once(['resolve', reference.text], async () => {
      const repository = repositoryOf(reference)
      const wanted = reference.digest ?? reference.tag ?? 'latest'
      const manifest = await this.manifest(repository, wanted)
      if (manifest === undefined) throw notFound(`${nameOf(repository)}: no manifest ${wanted}`)
      return { reference, repository, descriptor: manifest.descriptor }
    })
  }

  manifest(repository: Repository, reference: string): Promise<Manifest | undefined> {
    const { host, repository: name } = repository
    return this.#once(['manifest', host, name, reference], async () => {
      const manifest = await this.#fetchManifest(repository, reference)
      // Whoever asks for it by its digest next has it already.
      const byDigest = JSON.stringify(['manifest', host, name, manifest?.descriptor.digest])
      if (!this.#shared.has(byDigest)) this.#shared.set(byDigest, Promise.resolve(manifest))
      return manifest
    })
  }

  blob(repository: Repository, descriptor: Descriptor, maxBytes: number): Promise<Bytes> {
    const { digest, size } = descriptor
    const { host, repository: name } = repository
    return this.#once(['blob', host, name, digest, size, maxBytes], async () => {
      const what = `${nameOf(repository)}: blob ${digest.slice(0, 80)}`
      if (digestBytes(digest) === undefined) throw invalid(`${what}: not a sha256 digest`)
      if (!(size <= maxBytes)) {
        throw new AdmissionError('REGISTRY_TOO_LARGE', `${what}: ${size} of ${maxBytes} bytes`)
      }
      const url = this.#urlOf(repository, `blobs/${digest}`)
      const response = await this.#get(repository, url, undefined, size)
      if (response.status === 404) throw notFound(`${what} does not exist`)
      assertOk(response, what)
      await assertDigest(response.body, digest, what)
      if (response.body.length !== size) throw invalid(`${what}: not ${size} bytes`)
      return response.body
    })
  }

  referrers(repository: Repository, digest: string): Promise<Referrers> {
    const { host, repository: name } = repository
    return this.#once(['referrers', host, name, digest], async () => {
      const what = `${nameOf(repository)}: referrers of ${digest.slice(0, 80)}`
      if (digestBytes(digest) === undefined) throw invalid(`${what}: not a sha256 digest`)
      const url = this.#urlOf(repository, `referrers/${digest}`)
      const listed = await listReferrers(url, (page) =>
        this.#get(repository, page, OCI_INDEX, MAX_MANIFEST_BYTES),
      )
      return listed ?? this.#fallback(repository, digest, what)
    })
  }

  /** The tag schema of the distribution specification: an index under the digest with `-` for `:`. */
  async #fallback(repository: Repository, digest: string, what: string): Promise<Referrers> {
    const index = await this.manifest(repository, digest.replace(':', '-'))
    if (index === undefined) return { descriptors: [], omitted: 0 }
    if (index.descriptor.mediaType !== OCI_INDEX) throw invalid(`${what}: fallback tag is no index`)
    return distinct(descriptorsOf(index.json))
  }

  async #fetchManifest(repository: Repository, reference: string): Promise<Manifest | undefined> {
    const what = `${nameOf(repository)}: manifest ${reference.slice(0, 200)}`
    const isDigest = digestBytes(reference) !== undefined
    if (!isDigest && !/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(reference)) {
      throw invalid(`${what}: neither a tag nor a sha256 digest`)
    }
    const url = this.#urlOf(repository, `manifests/${reference}`)
    const response = await this.#get(repository, url, ACCEPT_MANIFESTS, MAX_MANIFEST_BYTES)
    if (response.status === 404) return undefined
    assertOk(response, what)
    if (isDigest) await assertDigest(response.body, reference, what)
    return readManifest(response.body, response.headers.get('content-type'), what)
  }

  /** Any response but 401 and 403, after logging in where that was asked for. */
  async #get(
    repository: Repository,
    url: URL,
    accept: string | undefined,
    maxBytes: number,
  ): Promise<GuardedResponse> {
    const request = { url, maxBytes, ...(accept === undefined ? {} : { accept }) }
    const authorization = await this.#auth.authorization(repository)
    const first = await this.#options.fetch({ ...request, authorization }, this.#budget.context)
    // A challenge from where a redirect led is not the registry's.
    if (first.status !== 401 || first.url.origin !== url.origin) return allowed(first, repository)
    const challenge = first.headers.get('www-authenticate')
    const renewed = await this.#auth.renew(repository, authorization, challenge)
    const again = { ...request, authorization: renewed }
    return allowed(await this.#options.fetch(again, this.#budget.context), repository)
  }

  /** The names are checked again here, where they become a path: `..` would leave the repository a token is for. */
  #urlOf(repository: Repository, path: string): URL {
    const name = repository.repository
    if (name.length > 255 || !/^[a-z0-9][a-z0-9._-]*(?:\/[a-z0-9][a-z0-9._-]*)*$/.test(name)) {
      throw invalid(`${repository.host.slice(0, 300)}: not a repository name`)
    }
    return new URL(`/v2/${name}/${path}`, this.#options.addresses.baseUrl(repository.host))
  }

  /** What `run` gives; run once for each key. */
  #once<T>(key: readonly unknown[], run: () => Promise<T>): Promise<T> {
    const text = JSON.stringify(key)
    // A key names the call it belongs to, and with that its type.
    const known = this.#shared.get(text) as Promise<T> | undefined
    const result = known ?? run()
    this.#shared.set(text, result)
    return result
  }
}

function allowed(response: GuardedResponse, repository: Repository): GuardedResponse {
  if (response.status !== 401 && response.status !== 403) return response
  const said = `${response.status}${errorCodeOf(response)}`
  throw new AdmissionError('REGISTRY_UNAUTHORIZED', `${nameOf(repository)}: answered ${said}`)
}

/** Any other status is the registry's trouble and says nothing about what was published. */
function assertOk(response: GuardedResponse, what: string): void {
  if (response.status === 200) return
  const said = `${response.status}${errorCodeOf(response)}`
  throw new AdmissionError('REGISTRY_UNREACHABLE', `${what}: answered ${said}`)
}

function nameOf(repository: Repository): string {
  return `${repository.host}/${repository.repository}`
}

function invalid(message: string): AdmissionError {
  return new AdmissionError('REGISTRY_RESPONSE_INVALID', message)
}

function notFound(message: string): AdmissionError {
  return new AdmissionError('REGISTRY_NOT_FOUND', message)
}
