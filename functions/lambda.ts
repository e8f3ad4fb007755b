import type { Bytes } from '#shared/bytes.ts'
import { fromBase64 } from '#shared/bytes.ts'
import { EVENT_HOLD_MS } from '#shared/limits.ts'
import type { App } from './app.ts'
import { readCertificate } from './certificate-node.ts'
import { schedule } from './deadline.ts'

/** The members we use of an HTTP API event (payload 2.0); Function URLs send the same. */
export interface HttpEvent {
  version?: string
  rawPath?: string
  rawQueryString?: string
  headers?: Record<string, string | undefined>
  requestContext?: {
    stage?: string
    http?: { method?: string; sourceIp?: string }
    /** Of a domain with mutual TLS: API Gateway has checked it against the trust store. */
    authentication?: { clientCert?: { clientCertPem?: string } } | null
  }
  body?: string | null
  isBase64Encoded?: boolean
}

export interface HttpResult {
  statusCode: number
  headers: Record<string, string>
  body: string
  isBase64Encoded: false
}

/** The member we use of Lambda's context. */
export interface InvocationContext {
  getRemainingTimeInMillis?: () => number
}

export type LambdaHandler = (event: HttpEvent, context: InvocationContext) => Promise<HttpResult>

/**
 * A Lambda handler around an app. The body goes to the app as the text the event carries, so that it is parsed once and
 * never copied into a Request. Never throws at Lambda: what it cannot read is answered with 400, its own fault with 500.
 */
export function toLambdaHandler(app: App): LambdaHandler {
  return async (event, context) => {
    const request = toRequest(event)
    if (request === undefined) return plain(400, 'not an HTTP API or Function URL event\n')
    const work: { done: Promise<void>; leftMs: number }[] = []
    try {
      const response = await app.fetch(request, {
        address: event.requestContext?.http?.sourceIp,
        certificate: () => {
          const pem = event.requestContext?.authentication?.clientCert?.clientCertPem
          return typeof pem === 'string' ? readCertificate(pem) : undefined
        },
        remainingMs: () => context.getRemainingTimeInMillis?.() ?? Number.POSITIVE_INFINITY,
        body: bodyOf(event),
        afterAnswer: (done, leftMs) => work.push({ done, leftMs }),
      })
      await Promise.all(work.map(({ done, leftMs }) => forAWhile(done, leftMs)))
      return {
        statusCode: response.status,
        headers: Object.fromEntries(response.headers),
        body: await response.text(),
        isBase64Encoded: false,
      }
    } catch {
      // The app answers its own faults; whatever still gets here has no answer that could admit anything.
      return plain(500, 'internal error\n')
    }
  }
}

/** Holds the answer, which is ready, until the work is done, but only shortly: after it Lambda stops everything until the next call. */
async function forAWhile(done: Promise<void>, leftMs: number): Promise<void> {
  let stop: (() => void) | undefined
  const over = new Promise<void>((resolve) => {
    stop = schedule(resolve, Math.max(0, Math.min(leftMs, EVENT_HOLD_MS)))
  })
  await Promise.race([done, over])
  stop?.()
}

/** The Request of an event, without its body; undefined when the event is something else. */
function toRequest(event: HttpEvent): Request | undefined {
  const method = event?.requestContext?.http?.method
  if (event?.version !== '2.0' || method === undefined) return undefined
  try {
    const query = event.rawQueryString ? `?${event.rawQueryString}` : ''
    const headers = Object.entries(event.headers ?? {}).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    )
    return new Request(`https://lambda${pathOf(event)}${query}`, { method, headers })
  } catch {
    // A header or a URL that the platform itself would refuse.
    return undefined
  }
}

/** The path without the name of the stage, which HTTP APIs put in front unless it is `$default`. */
function pathOf({ rawPath = '/', requestContext }: HttpEvent): string {
  const stage = requestContext?.stage
  const path = rawPath.startsWith('/') ? rawPath : `/${rawPath}`
  return stage && stage !== '$default' && path.startsWith(`/${stage}/`)
    ? path.slice(stage.length + 1)
    : path
}

function bodyOf({ body, isBase64Encoded }: HttpEvent): string | Bytes {
  if (!isBase64Encoded) return body ?? ''
  // Bytes that are no JSON either way get the answer for that.
  return fromBase64(body ?? '') ?? new Uint8Array([0xff])
}

function plain(statusCode: number, body: string): HttpResult {
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  return { statusCode, headers, body, isBase64Encoded: false }
}
