import { AdmissionError } from '#shared/errors.ts'
import { MAX_TOKEN_BYTES, REGISTRY_CALL_TIMEOUT_MS, REGISTRY_TOKEN_TTL_MS } from '#shared/limits.ts'
import type { FetchPort } from '#shared/ports.ts'
import { createAddressPolicy } from '#shared/registry/address.ts'
import { createGuardedFetch, type GuardedRequest } from '#shared/registry/fetch.ts'
import { field, isObject, type JsonObject, parseJsonObject } from '#shared/registry/json-object.ts'

/** Posts to a provider's own endpoint and gives the JSON object of its 200. */
export type CloudCall = (
  url: string,
  post: NonNullable<GuardedRequest['post']>,
  signal: AbortSignal,
) => Promise<JsonObject>

/** Answers with status 400 that pass by themselves. */
const PASSING: ReadonlySet<string> = new Set([
  'ThrottlingException',
  'TooManyRequestsException',
  'RequestLimitExceeded',
  'ServerException',
  'temporarily_unavailable',
  'server_error',
])

/**
 * A CloudCall with the guards of registry calls: public hosts over HTTPS only, no redirect, bounded in time and size, tried again once.
 * Throws `REGISTRY_UNAUTHORIZED` when the provider says no, `REGISTRY_THROTTLED` or `REGISTRY_UNREACHABLE` when it says nothing that
 * counts.
 */
export function createCloudCall(options: { fetch: FetchPort; now: () => number }): CloudCall {
  const fetch = createGuardedFetch({
    ...options,
    random: Math.random,
    addresses: createAddressPolicy(),
    callTimeoutMs: REGISTRY_CALL_TIMEOUT_MS,
  })
  return async (text, post, signal) => {
    const url = new URL(text)
    const what = `POST ${url.host}${url.pathname}`
    const { status, body } = await fetch(
      { url, post, maxBytes: MAX_TOKEN_BYTES },
      // The caller holds one of its request's connections.
      { signal, limit: (run) => run(), onRequest() {}, onBytes() {} },
    )
    const answer = read(body, what)
    if (status === 200 && answer !== undefined) return answer
    const reason = answer === undefined ? '' : errorOf(answer)
    const said = `${what}: answered ${status}${reason === '' ? '' : ` ${reason}`}`
    if (PASSING.has(reason)) throw new AdmissionError('REGISTRY_THROTTLED', said)
    if (status === 200) throw new AdmissionError('REGISTRY_UNREACHABLE', `${said} without JSON`)
    throw new AdmissionError('REGISTRY_UNAUTHORIZED', said)
  }
}

/** A member that has to be a text that can stand in a header. Throws `REGISTRY_UNREACHABLE`: whatever answered is not the provider. */
export function tokenIn(answer: JsonObject, name: string, what: string): string {
  const value = field(answer, name)
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value
  throw new AdmissionError('REGISTRY_UNREACHABLE', `${what}: answered without ${name}`)
}

/** `expires_in` of an OAuth 2 answer, milliseconds. */
export function lifetimeOf(answer: JsonObject): number {
  const seconds = field(answer, 'expires_in')
  return typeof seconds === 'number' && seconds >= 0 ? seconds * 1000 : REGISTRY_TOKEN_TTL_MS
}

function read(body: Uint8Array, what: string): JsonObject | undefined {
  try {
    return parseJsonObject(body, what)
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return undefined
    throw thrown
  }
}

/** The code of an error as AWS (`__type`), OAuth 2 (`error`) or a registry (`errors`) writes it. Prose could hold anything and stays out. */
function errorOf(answer: JsonObject): string {
  const errors = field(answer, 'errors')
  const first = Array.isArray(errors) && isObject(errors[0]) ? field(errors[0], 'code') : undefined
  const found = field(answer, '__type') ?? field(answer, 'error') ?? first
  const code = typeof found === 'string' ? found.slice(found.lastIndexOf('#') + 1) : ''
  return /^[A-Za-z_]{1,60}$/.test(code) ? code : ''
}
