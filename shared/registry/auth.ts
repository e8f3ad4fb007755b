import { toBase64, utf8 } from '../bytes.ts'
import { Cache } from '../cache.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { MAX_KEPT_TOKENS, MAX_REGISTRY_TOKEN_TTL_MS } from '../limits.ts'
import type { CredentialsPort, RegistryCredential } from '../ports.ts'
import type { AddressPolicy } from './address.ts'
import { type Challenge, parseChallenges } from './challenge.ts'
import type { CallContext, GuardedFetch } from './fetch.ts'
import { mayLogInAt } from './realm.ts'
import { fetchToken } from './token.ts'
import type { Repository } from './types.ts'

/** How one review logs in. Each method gives the value of an `Authorization` header. */
export interface SessionAuth {
  /** What worked last for this repository and its credential, or undefined to ask without. */
  authorization(where: Repository): Promise<string | undefined>
  /**
   * The answer to a 401: a new header for a request that went out with `refused`. Calls that were refused alike share one
   * answer. Throws `REGISTRY_UNAUTHORIZED` when there is none to give.
   */
  renew(where: Repository, refused: string | undefined, challenge: string | null): Promise<string>
}

export interface AuthOptions {
  fetch: GuardedFetch
  addresses: AddressPolicy
  now: () => number
  /** Registry host → other hosts its token service may be at. */
  tokenHosts: Readonly<Record<string, readonly string[]>>
}

/** A header that worked, under what it was got for. */
type Headers = Cache<string>

/** Logins of all reviews of this isolate. They share settled tokens, each with those who have the same credential, and nothing else. */
export function createAuth(
  options: AuthOptions,
): (context: CallContext, credentials: CredentialsPort) => SessionAuth {
  const kept: Headers = new Cache(MAX_KEPT_TOKENS)
  return (context, credentials) => new OneSessionAuth(options, kept, context, credentials)
}

/** A credential and the key its tokens are kept under, in memory only: place and credential, so that a changed one gets its own. */
interface Login {
  credential: RegistryCredential | undefined
  key: string
}

class OneSessionAuth implements SessionAuth {
  readonly #options: AuthOptions
  readonly #kept: Headers
  readonly #context: CallContext
  readonly #credentials: CredentialsPort
  readonly #logins = new Map<string, Promise<Login>>()
  readonly #renewals = new Map<string, Promise<string>>()
  /** Tokens too short-lived to be kept for others still serve the review they were got for. */
  readonly #latest = new Map<string, string>()

  constructor(
    options: AuthOptions,
    kept: Headers,
    context: CallContext,
    credentials: CredentialsPort,
  ) {
    this.#options = options
    this.#kept = kept
    this.#context = context
    this.#credentials = credentials
  }

  async authorization(where: Repository): Promise<string | undefined> {
    const { key } = await this.#login(where)
    return this.#latest.get(key) ?? this.#kept.get(key, this.#options.now())
  }

  renew(where: Repository, refused: string | undefined, challenge: string | null): Promise<string> {
    const call = JSON.stringify([where.host, where.repository, refused])
    const renewal = this.#renewals.get(call) ?? this.#obtain(where, refused, challenge)
    this.#renewals.set(call, renewal)
    return renewal
  }

  async #obtain(
    where: Repository,
    refused: string | undefined,
    challenge: string | null,
  ): Promise<string> {
    const { credential, key } = await this.#login(where)
    this.#latest.delete(key)
    this.#kept.delete(key)
    const { header, expiresAt } = await this.#answer(where, credential, challenge ?? '')
    if (header === refused) throw unauthorized(where, 'the credential for it was refused')
    this.#latest.set(key, header)
    this.#kept.set(key, header, expiresAt)
    return header
  }

  async #answer(
    where: Repository,
    credential: RegistryCredential | undefined,
    header: string,
  ): Promise<{ header: string; expiresAt: number }> {
    const challenges = parseChallenges(header)
    if (challenges === undefined) throw unauthorized(where, 'its login challenge cannot be read')
    const bearer = challenges.find(({ scheme }) => scheme === 'bearer')
    const basic = challenges.some(({ scheme }) => scheme === 'basic')
    const lasting = this.#options.now() + MAX_REGISTRY_TOKEN_TTL_MS
    if (bearer !== undefined && credential?.kind === 'token') {
      return { header: `Bearer ${credential.token}`, expiresAt: lasting }
    }
    if (bearer !== undefined) return this.#askTokenService(where, credential, bearer)
    if (basic && credential?.kind === 'basic') {
      return { header: basicHeader(credential), expiresAt: lasting }
    }
    const why =
      credential === undefined
        ? 'there is no credential for it'
        : 'it asks for another kind of login'
    throw unauthorized(where, why)
  }

  async #askTokenService(
    where: Repository,
    credential: RegistryCredential | undefined,
    challenge: Challenge,
  ): Promise<{ header: string; expiresAt: number }> {
    const { addresses, tokenHosts, now } = this.#options
    const text = challenge.params.get('realm') ?? ''
    if (!URL.canParse(text)) throw unauthorized(where, 'its token service has no URL')
    const realm = new URL(text)
    if (credential !== undefined && !mayLogInAt(realm, where.host, addresses, tokenHosts)) {
      const elsewhere = `its token service is at ${realm.host}, where its credential does not belong`
      throw unauthorized(where, elsewhere)
    }
    const request = {
      realm,
      service: challenge.params.get('service'),
      scope: `repository:${where.repository}:pull`,
      basic: credential?.kind === 'basic' ? basicHeader(credential) : undefined,
      refreshToken: credential?.kind === 'identity' ? credential.token : undefined,
    }
    const { token, expiresAt } = await fetchToken(
      request,
      this.#options.fetch,
      this.#context,
      now,
    ).catch((thrown: unknown) => {
      throw asLoginFault(thrown, 'logging in')
    })
    return { header: `Bearer ${token}`, expiresAt }
  }

  #login(where: Repository): Promise<Login> {
    const place = JSON.stringify([where.host, where.repository])
    const login = this.#logins.get(place) ?? this.#lookUp(where, place)
    this.#logins.set(place, login)
    return login
  }

  async #lookUp(where: Repository, place: string): Promise<Login> {
    const { host, repository } = where
    const { limit, signal } = this.#context
    // Whoever gives it may have to be asked over the network: that takes a connection of the request, too.
    const credential = await limit(() => this.#credentials(host, repository, signal)).catch(
      (thrown: unknown) => {
        throw asLoginFault(thrown, `credential for ${host}`)
      },
    )
    return { credential, key: `${place} ${JSON.stringify(credential ?? null)}` }
  }
}

function basicHeader(credential: { username: string; password: string }): string {
  return `Basic ${toBase64(utf8(`${credential.username}:${credential.password}`))}`
}

function unauthorized(where: Repository, why: string): AdmissionError {
  return new AdmissionError('REGISTRY_UNAUTHORIZED', `${where.host}/${where.repository}: ${why}`)
}

/** Whatever a token service answers is about the login and never about the content that was asked for. */
function asLoginFault(thrown: unknown, doing: string): AdmissionError {
  const error = toAdmissionError(thrown, doing)
  const isAboutContent =
    error.code === 'REGISTRY_RESPONSE_INVALID' || error.code === 'REGISTRY_TOO_LARGE'
  return isAboutContent
    ? new AdmissionError('REGISTRY_UNAUTHORIZED', error.message, { cause: error })
    : error
}
