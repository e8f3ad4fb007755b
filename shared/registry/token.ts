import { AdmissionError } from '../errors.ts'
import {
  MAX_REGISTRY_TOKEN_TTL_MS,
  MAX_TOKEN_BYTES,
  REGISTRY_TOKEN_SLACK_MS,
  REGISTRY_TOKEN_TTL_MS,
} from '../limits.ts'
import { type CallContext, errorCodeOf, type GuardedFetch, type GuardedRequest } from './fetch.ts'
import { field, type JsonObject, parseJsonObject } from './json-object.ts'

/** What is asked of a token service. The scope is ours, never the challenge's. */
export interface TokenRequest {
  realm: URL
  service: string | undefined
  scope: string
  /** Authorization header for the GET form. */
  basic: string | undefined
  /** OAuth2 refresh token: the POST form. */
  refreshToken: string | undefined
}

/**
 * A token and when to stop using it (epoch milliseconds). Throws `REGISTRY_UNAUTHORIZED` when the service says
 * anything but yes, `REGISTRY_RESPONSE_INVALID` when it gives no token that can stand in a header.
 */
export async function fetchToken(
  request: TokenRequest,
  fetch: GuardedFetch,
  context: CallContext,
  now: () => number,
): Promise<{ token: string; expiresAt: number }> {
  const what = `token service ${request.realm.host}`
  const askedAt = now()
  const response = await fetch(toHttp(request), context)
  const { status } = response
  if (status !== 200) {
    const said = `${status}${errorCodeOf(response)}`
    throw new AdmissionError('REGISTRY_UNAUTHORIZED', `${what}: answered ${said}`)
  }
  const body = parseJsonObject(response.body, what)
  const token = field(body, 'token') ?? field(body, 'access_token')
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new AdmissionError('REGISTRY_RESPONSE_INVALID', `${what}: answered without a token`)
  }
  return { token, expiresAt: askedAt + lifetimeOf(body) - REGISTRY_TOKEN_SLACK_MS }
}

function toHttp(request: TokenRequest): GuardedRequest {
  const { service, scope, refreshToken, basic } = request
  const params = { ...(service === undefined ? {} : { service }), scope }
  const url = new URL(request.realm)
  if (refreshToken !== undefined) {
    const grant = { grant_type: 'refresh_token', client_id: 'countersign' }
    const form = new URLSearchParams({ ...grant, ...params, refresh_token: refreshToken })
    return { url, post: form, maxBytes: MAX_TOKEN_BYTES }
  }
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return { url, authorization: basic, maxBytes: MAX_TOKEN_BYTES }
}

/** Milliseconds from the request on. */
function lifetimeOf(body: JsonObject): number {
  const seconds = field(body, 'expires_in')
  if (typeof seconds !== 'number' || seconds < 0) return REGISTRY_TOKEN_TTL_MS
  return Math.min(seconds * 1000, MAX_REGISTRY_TOKEN_TTL_MS)
}
