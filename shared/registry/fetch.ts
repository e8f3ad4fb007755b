import { type Bytes, fromUtf8 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { MAX_ERROR_BYTES, MAX_REDIRECTS, MAX_TRIES, REGISTRY_RETRY_DELAY_MS } from '../limits.ts'
import type { FetchPort } from '../ports.ts'
import type { AddressPolicy } from './address.ts'
import { discard, readBody, readStart } from './body.ts'
import { wait, withTimeout } from './timeout.ts'

/** What one review brings to every call: its end, its share of connections, its count. */
export interface CallContext {
  signal: AbortSignal
  /** Runs the call when a connection is free. */
  limit<T>(run: () => Promise<T>): Promise<T>
  /** Told before each HTTP request. */
  onRequest(): void
  /** Told of every part of a body that arrives; throws when the review has had its share. */
  onBytes(count: number): void
}

export interface GuardedRequest {
  url: URL
  /** What to POST, a form or a body with headers of its own. Without it the request is a GET. It goes nowhere else. */
  post?: URLSearchParams | { headers: Readonly<Record<string, string>>; body: string }
  accept?: string
  /** Goes to the origin of `url` only. */
  authorization?: string | undefined
  /** More headers of a GET. They go wherever it is redirected, so whoever sets them lets it go nowhere else. */
  headers?: Readonly<Record<string, string>>
  /** Of a 2xx body. Of any other at most `MAX_ERROR_BYTES` are read. */
  maxBytes: number
}

export interface GuardedResponse {
  /** Where it came from in the end, after redirects. */
  url: URL
  status: number
  headers: Headers
  body: Bytes
}

/**
 * The response to a request: 2xx with its whole body, or any other status but 429 and 5xx with the start of its body.
 * Throws `REGISTRY_FORBIDDEN_ADDRESS`, `REGISTRY_TOO_LARGE`, `REGISTRY_THROTTLED` (429), `REGISTRY_UNREACHABLE` (5xx, no
 * connection, no answer in time, redirects that lead nowhere), `DEADLINE_EXCEEDED` (the signal), or what the context
 * throws.
 */
export type GuardedFetch = (
  request: GuardedRequest,
  context: CallContext,
) => Promise<GuardedResponse>

export interface GuardedFetchOptions {
  fetch: FetchPort
  now: () => number
  /** In [0, 1), for jitter. */
  random: () => number
  addresses: AddressPolicy
  /** Tries of a call, the first included; `MAX_TRIES` when absent. */
  tries?: number
  /** For a whole call: its redirects, its body, its second try and the wait before that. */
  callTimeoutMs: number
}

/** A response, or why there was none that counts; `waitMs` is what the server asked for. */
type Attempt = { response: GuardedResponse } | { fault: AdmissionError; waitMs: number | undefined }

/**
 * A fetch for addresses, redirects and bodies that an attacker may have written. Every hop is checked against the
 * address policy, credentials stay on their origin, bytes and time are bounded, and only throttling, 5xx and broken
 * connections are tried again, once, where that fits into the time of the call.
 */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  return (request, context) =>
    context.limit(() => {
      const what = nameOf(request)
      return withTimeout(context.signal, options.callTimeoutMs, what, (signal) =>
        attemptAll(request, { ...context, signal }, options, what),
      )
    })
}

/** The error code of a registry's error body, such as ` MANIFEST_UNKNOWN`, or nothing. Its prose could hold anything, so it is not passed on. */
export function errorCodeOf(response: GuardedResponse): string {
  try {
    const parsed: unknown = JSON.parse(fromUtf8(response.body))
    // Only looked into; whatever has no such field gives undefined or throws.
    const code = (parsed as { errors: { code: unknown }[] }).errors[0]?.code
    return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? ` ${code}` : ''
  } catch {
    // Most proxies answer with HTML. The status says enough.
    return ''
  }
}

async function attemptAll(
  request: GuardedRequest,
  context: CallContext,
  options: GuardedFetchOptions,
  what: string,
): Promise<GuardedResponse> {
  const endsAt = options.now() + options.callTimeoutMs
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(request, context, options, what)
    if ('response' in result) return result.response
    const waitMs = (result.waitMs ?? 0) + options.random() * REGISTRY_RETRY_DELAY_MS
    if (attempt === (options.tries ?? MAX_TRIES) || options.now() + waitMs >= endsAt)
      throw result.fault
    await wait(waitMs, context.signal)
  }
}

async function tryOnce(
  request: GuardedRequest,
  context: CallContext,
  options: GuardedFetchOptions,
  what: string,
): Promise<Attempt> {
  try {
    const response = await followRedirects(request, context, options, what)
    const { status } = response
    if (status === 429) {
      const fault = new AdmissionError('REGISTRY_THROTTLED', `${what}: answered 429`)
      return { fault, waitMs: retryAfter(response.headers, options.now()) }
    }
    // 501 is final: it says that a call is not implemented, as old registries do of referrers.
    if (status < 500 || status === 501) return { response }
    const fault = new AdmissionError('REGISTRY_UNREACHABLE', `${what}: answered ${status}`)
    return { fault, waitMs: retryAfter(response.headers, options.now()) }
  } catch (cause) {
    if (cause instanceof AdmissionError || context.signal.aborted) throw cause
    const fault = new AdmissionError(
      'REGISTRY_UNREACHABLE',
      `${what}: connection failed${networkCodeOf(cause)}`,
      {
        cause,
      },
    )
    return { fault, waitMs: undefined }
  }
}

async function followRedirects(
  request: GuardedRequest,
  context: CallContext,
  options: GuardedFetchOptions,
  what: string,
): Promise<GuardedResponse> {
  let { url, authorization } = request
  for (let redirects = 0; ; redirects++) {
    options.addresses.check(url)
    context.onRequest()
    const response = await options.fetch(url.href, initOf(request, authorization, context.signal))
    const location = redirectOf(response)
    if (location === undefined) {
      return { url, ...(await readResponse(response, request, context, what)) }
    }
    discard(response)
    if (redirects === MAX_REDIRECTS) throw lost(`${what}: more than ${MAX_REDIRECTS} redirects`)
    // It may hold a token or a signature of one, and no token service redirects.
    if (request.post !== undefined) throw lost(`${what}: answers a login with a redirect`)
    if (location === '' || !URL.canParse(location, url.href)) {
      throw lost(`${what}: redirects to no URL`)
    }
    const next = new URL(location, url)
    // Once dropped it stays dropped, also when a later hop comes back.
    if (next.origin !== url.origin) authorization = undefined
    url = next
  }
}

function initOf(
  request: GuardedRequest,
  authorization: string | undefined,
  signal: AbortSignal,
): RequestInit {
  const headers: Record<string, string> = { ...request.headers, 'user-agent': 'countersign' }
  if (request.accept !== undefined) headers.accept = request.accept
  if (authorization !== undefined) headers.authorization = authorization
  const init: RequestInit = { headers, redirect: 'manual', signal }
  const { post } = request
  if (post === undefined) return init
  const isForm = post instanceof URLSearchParams
  const own = isForm ? { 'content-type': 'application/x-www-form-urlencoded' } : post.headers
  const body = isForm ? post.toString() : post.body
  return { ...init, headers: { ...headers, ...own }, method: 'POST', body }
}

function redirectOf(response: Response): string | undefined {
  const redirects = [301, 302, 303, 307, 308].includes(response.status)
  return redirects ? (response.headers.get('location') ?? '') : undefined
}

async function readResponse(
  response: Response,
  request: GuardedRequest,
  context: CallContext,
  what: string,
): Promise<Omit<GuardedResponse, 'url'>> {
  const { status, headers, ok } = response
  const body = ok
    ? await readBody(response, request.maxBytes, context, what)
    : await readStart(response, MAX_ERROR_BYTES, context)
  return { status, headers, body }
}

/** `Retry-After` in milliseconds from now, or undefined. Both forms: seconds and a date. */
function retryAfter(headers: Headers, now: number): number | undefined {
  const text = headers.get('retry-after') ?? ''
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

/** Method, host and path. Never the query, where storage services keep their signatures. */
function nameOf(request: GuardedRequest): string {
  const { host, pathname } = request.url
  return `${request.post === undefined ? 'GET' : 'POST'} ${host}${pathname}`.slice(0, 500)
}

function lost(message: string): AdmissionError {
  return new AdmissionError('REGISTRY_UNREACHABLE', message)
}

/** ` (ECONNREFUSED)`: the platform's code for what went wrong, which tells DNS from TLS from a port nobody listens on; or nothing. */
export function networkCodeOf(thrown: unknown): string {
  // Platforms wrap the error that has the code; a few levels are looked into.
  for (let at = thrown, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const code = 'code' in at ? at.code : undefined
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code)) return ` (${code})`
  }
  return ''
}
