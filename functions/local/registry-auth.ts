import { randomBytes } from 'node:crypto'

/** How an embedded registry asks for a login. */
export type RegistryAuth =
  | { kind: 'basic'; username: string; password: string }
  | {
      kind: 'bearer'
      username?: string
      password?: string
      /** A refresh token that `POST /token` takes. */
      identityToken?: string
      /** A token that is valid for everything, as a robot account has it. */
      registryToken?: string
      /** Tokens for pulling without a login. */
      anonymousPull?: boolean
      /** Realm of the challenge, when it is not this registry's own `/token`. */
      realm?: string
      /** Seconds told to the client; left out of the answer when undefined. */
      expiresIn?: number
    }

/** The token service's answer: a status and a JSON body. */
export interface TokenAnswer {
  status: number
  body: object
}

const SERVICE = 'registry.local'

/** Logins and tokens of one embedded registry. Tokens are good for one repository and the actions granted. */
export class RegistryGate {
  readonly #auth: RegistryAuth | undefined
  readonly #ownRealm: () => string
  readonly #tokens = new Map<string, { repository: string; actions: ReadonlySet<string> }>()

  constructor(auth: RegistryAuth | undefined, ownRealm: () => string) {
    this.#auth = auth
    this.#ownRealm = ownRealm
  }

  /** Makes every token given out so far worthless. */
  revokeTokens(): void {
    this.#tokens.clear()
  }

  /** The challenge to answer with, or undefined when the request may pass. */
  challenge(
    authorization: string | undefined,
    repository: string,
    action: string,
  ): string | undefined {
    const auth = this.#auth
    if (auth === undefined) return undefined
    if (auth.kind === 'basic') {
      return authorization === basic(auth.username, auth.password)
        ? undefined
        : `Basic realm="registry", charset="UTF-8"`
    }
    const bearer = authorization?.startsWith('Bearer ') ? authorization.slice(7) : ''
    if (auth.registryToken !== undefined && bearer === auth.registryToken) return undefined
    const token = this.#tokens.get(bearer)
    if (token?.repository === repository && token.actions.has(action)) return undefined
    const realm = auth.realm ?? this.#ownRealm()
    return `Bearer realm="${realm}",service="${SERVICE}",scope="repository:${repository}:${action}"`
  }

  /** Answers `GET /token` (a login by Basic, or none) and `POST /token` (`grant_type=refresh_token`). */
  token(authorization: string | undefined, params: URLSearchParams): TokenAnswer {
    const auth = this.#auth
    const [, repository, wanted] =
      /^repository:([^:]+):([a-z,]+)$/.exec(params.get('scope') ?? '') ?? []
    if (auth?.kind !== 'bearer' || repository === undefined || wanted === undefined) {
      return { status: 400, body: { details: 'no such service or scope' } }
    }
    const granted = this.#granted(auth, authorization, params)
    if (granted === undefined) return { status: 401, body: { details: 'incorrect login' } }
    const actions = new Set(wanted.split(',').filter((action) => granted.includes(action)))
    const token = randomBytes(24).toString('hex')
    this.#tokens.set(token, { repository, actions })
    const expiry = auth.expiresIn === undefined ? {} : { expires_in: auth.expiresIn }
    // Real services differ in the name; the refresh grant has the OAuth2 one.
    const named = params.has('grant_type') ? { access_token: token } : { token }
    return { status: 200, body: { ...named, ...expiry } }
  }

  #granted(
    auth: Extract<RegistryAuth, { kind: 'bearer' }>,
    authorization: string | undefined,
    params: URLSearchParams,
  ): readonly string[] | undefined {
    if (params.get('grant_type') === 'refresh_token') {
      const right =
        auth.identityToken !== undefined && params.get('refresh_token') === auth.identityToken
      return right ? ['pull', 'push'] : undefined
    }
    if (authorization !== undefined) {
      const right = authorization === basic(auth.username ?? '', auth.password ?? '')
      return right ? ['pull', 'push'] : undefined
    }
    if (auth.anonymousPull) return ['pull']
    return auth.username === undefined ? ['pull', 'push'] : undefined
  }
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}
