import { fromUtf8 } from '../bytes.ts'
import { withDoubles } from '../cel/doubles.ts'
import { AdmissionError } from '../errors.ts'
import { decodeJson, goJson, isJsonObject, type JsonValue, setOwn } from '../json.ts'
import {
  HTTP_CALL_TIMEOUT_MS,
  MAX_DOCUMENT_VALUES,
  MAX_HTTP_ANSWER_BYTES,
  MAX_HTTP_HEADER_CHARS,
  MAX_HTTP_HEADERS,
} from '../limits.ts'
import type { FetchPort, TrustingFetch } from '../ports.ts'
import { type CallContext, createGuardedFetch, type GuardedRequest } from '../registry/fetch.ts'
import { asHttpFault } from './fault.ts'
import { withoutRedirects } from './redirects.ts'
import type { HttpCall, HttpClient, JsonRecord } from './types.ts'

export interface HttpOptions {
  fetch: FetchPort
  /** Undefined where the platform cannot trust the authorities of a policy. */
  trusting?: TrustingFetch
  /** Epoch milliseconds. */
  now: () => number
  /** Hosts that are asked over HTTPS, each exactly `host` or `host:port`. */
  allow: readonly string[]
  /** Hosts that are asked over plain HTTP. */
  plainHttp: readonly string[]
  /** Namespaced policies may ask, too. */
  inNamespaces: boolean
  /** In [0, 1), for the jitter of retries; Math.random unless given. */
  random?: () => number
  /** One call without an answer, milliseconds; `HTTP_CALL_TIMEOUT_MS` unless a test needs less. */
  callTimeoutMs?: number
}

/**
 * Makes the requests of policies: to hosts the operator names and to no others, wherever a URL that was put together from an object
 * leads. A redirect within the origin of a GET is followed, any other refused. What answers 429 or 5xx has not answered: a policy
 * must not take an outage for "nothing found".
 */
export function createHttpClient(options: HttpOptions): HttpClient {
  const origins = new Set([
    ...options.allow.map((host) => new URL(`https://${host}`).origin),
    ...options.plainHttp.map((host) => new URL(`http://${host}`).origin),
  ])
  return {
    inNamespaces: options.inNamespaces,
    async send(call, context) {
      try {
        return await send(call, context, { ...options, origins })
      } catch (thrown) {
        throw asHttpFault(thrown)
      }
    },
  }
}

async function send(
  call: HttpCall,
  context: CallContext,
  options: HttpOptions & { origins: ReadonlySet<string> },
): Promise<JsonValue> {
  const url = checkedUrl(call.url, options.origins)
  const fetch = await fetchFor(call, options)
  const guarded = createGuardedFetch({
    fetch: call.method === 'POST' ? withoutRedirects(fetch) : fetch,
    now: options.now,
    random: options.random ?? Math.random,
    addresses: {
      baseUrl: () => url,
      check: (next) => {
        if (next.origin !== url.origin) refuse(`${url.host} redirects to another host`)
      },
    },
    // Nobody knows what a second POST does.
    ...(call.method === 'POST' ? { tries: 1 } : {}),
    callTimeoutMs: options.callTimeoutMs ?? HTTP_CALL_TIMEOUT_MS,
  })
  const { status, body } = await guarded({ url, ...contentOf(call) }, context)
  return answerOf(status, body)
}

function checkedUrl(text: string, origins: ReadonlySet<string>): URL {
  const url = URL.canParse(text) ? new URL(text) : refuse('not a URL')
  if (url.username !== '' || url.password !== '') refuse(`${url.host} has a login in its URL`)
  if (!origins.has(url.origin)) {
    const shown = JSON.stringify(`${url.protocol}//${url.host}`.slice(0, 300))
    refuse(`${shown} is not among the hosts of http.allow (https) and http.plainHttp`)
  }
  return url
}

async function fetchFor({ ca }: HttpCall, { fetch, trusting }: HttpOptions): Promise<FetchPort> {
  if (ca === '') return fetch
  return trusting === undefined
    ? refuse('this platform can trust no other authorities than its own')
    : trusting(ca)
}

function contentOf(call: HttpCall): Pick<GuardedRequest, 'headers' | 'post' | 'maxBytes'> {
  const headers = headersOf(call.headers)
  const maxBytes = MAX_HTTP_ANSWER_BYTES
  if (call.method === 'GET') return { headers, maxBytes }
  const body = goJson(call.body ?? null)
  return { post: { headers: { 'content-type': 'application/json', ...headers }, body }, maxBytes }
}

/** Headers that say how a message is sent, which is not for policies to say. */
const NOT_THEIRS =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*)$/

function headersOf(given: JsonValue): Record<string, string> {
  const entries = Object.entries(isJsonObject(given) ? given : {})
  if (entries.length > MAX_HTTP_HEADERS) refuse(`more than ${MAX_HTTP_HEADERS} headers`)
  return Object.fromEntries(
    entries.map(([key, value]) => {
      const name = key.toLowerCase()
      const isName = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name) && !NOT_THEIRS.test(name)
      // The value stays out of the message: it may be a token.
      const isValue =
        typeof value === 'string' &&
        value.length <= MAX_HTTP_HEADER_CHARS &&
        /^[\t\x20-\x7e]*$/.test(value)
      if (!isName || !isValue) refuse(`header ${JSON.stringify(key.slice(0, 100))} is not one`)
      return [name, String(value)]
    }),
  )
}

/** Kyverno's shape: the members of a JSON object and `statusCode`, else `body` and `statusCode`. */
function answerOf(status: number, bytes: Uint8Array): JsonValue {
  const json = jsonIn(bytes)
  const body = json === undefined ? textOf(bytes) : withDoubles(json)
  const answer: JsonRecord = {}
  for (const [key, member] of Object.entries(isJsonObject(body) ? body : { body })) {
    setOwn(answer, key, member)
  }
  answer.statusCode = status
  return answer
}

function jsonIn(bytes: Uint8Array): JsonValue | undefined {
  try {
    return decodeJson(bytes, { maxValues: MAX_DOCUMENT_VALUES })
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return undefined
    throw thrown
  }
}

function textOf(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes)
  } catch {
    return refuse('the answer is no text')
  }
}

function refuse(message: string): never {
  throw new AdmissionError('HTTP_REFUSED', message)
}
