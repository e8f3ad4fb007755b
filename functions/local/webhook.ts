import https from 'node:https'
import { performance } from 'node:perf_hooks'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import { type JsonValue, stringifyJson } from '#shared/json.ts'

/** One entry of a webhook configuration, as far as a call needs it. */
export interface Webhook {
  /** `webhooks[].name`, such as `validate.countersign.dev`. */
  name: string
  /** `clientConfig.url`. */
  url: string
  timeoutSeconds: number
  failurePolicy: 'Fail' | 'Ignore'
  /** Mutating webhooks only; the API server's default is `Never`. */
  reinvocationPolicy?: 'Never' | 'IfNeeded'
}

/** What came back over HTTPS, before anything in it is believed; or why nothing did, in the API server's words, and what status it had. */
export type Reply =
  | { ok: true; body: string; ms: number }
  | { ok: false; reason: string; status?: number; ms: number }

/** An answer longer than this is not a review, bytes. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024

/** HTTPS to webhooks, trusting one CA, with connections kept alive between calls as the API server keeps them. */
export interface WebhookClient {
  /** POSTs one AdmissionReview to the webhook's URL with `?timeout=`. Never throws. */
  post(webhook: Webhook, request: AdmissionRequest): Promise<Reply>
  close(): void
}

/** A client that trusts exactly `ca` (PEM). It follows no redirect and tries nothing twice. */
export function createWebhookClient(ca: string): WebhookClient {
  const agent = new https.Agent({ ca, keepAlive: true })
  return { post: (webhook, request) => post(agent, webhook, request), close: () => agent.destroy() }
}

async function post(
  agent: https.Agent,
  webhook: Webhook,
  request: AdmissionRequest,
): Promise<Reply> {
  const url = new URL(webhook.url)
  url.searchParams.set('timeout', `${webhook.timeoutSeconds}s`)
  // Members in the order of the Go structs.
  const review = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request }
  // An AdmissionRequest is JSON all the way down; an interface just has no index signature.
  const text = stringifyJson(review as unknown as JsonValue)
  return exchange(agent, url, text, webhook.timeoutSeconds * 1000)
}

/** What an HTTPS server answers to a text of JSON. Never throws. */
export async function exchange(
  agent: https.Agent,
  url: URL,
  text: string,
  timeoutMs: number,
): Promise<Reply> {
  const started = performance.now()
  const elapsed = () => performance.now() - started
  try {
    const { status, body } = await send(agent, url, text, timeoutMs)
    if (status < 200 || status > 206) {
      return { ok: false, reason: statusText(status, body), status, ms: elapsed() }
    }
    if (body === '') {
      return { ok: false, reason: `0-length response with status code: ${status}`, ms: elapsed() }
    }
    return { ok: true, body, ms: elapsed() }
  } catch (thrown) {
    return { ok: false, reason: `Post "${url}": ${transportText(thrown, url)}`, ms: elapsed() }
  }
}

function send(agent: https.Agent, url: URL, body: string, timeoutMs: number) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, */*',
      'user-agent': 'kube-apiserver-admission',
    }
    const signal = AbortSignal.timeout(timeoutMs)
    const request = https.request(url, { method: 'POST', agent, headers, signal }, (response) => {
      const chunks: Buffer[] = []
      let received = 0
      response.on('data', (chunk: Buffer) => {
        received += chunk.length
        if (received > MAX_REPLY_BYTES) request.destroy(new Error('response too large'))
        else chunks.push(chunk)
      })
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') })
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** A transport error as Go's `net/http` words it. */
function transportText(thrown: unknown, url: URL): string {
  const { name, code, message } = thrown as { name?: string; code?: string; message?: string }
  if (name === 'TimeoutError' || code === 'ABORT_ERR') return 'context deadline exceeded'
  if (code === 'ECONNREFUSED') return `dial tcp ${url.host}: connect: connection refused`
  if (code === 'ECONNRESET') return 'EOF'
  if (code?.startsWith('ERR_TLS_') || code?.includes('CERT') || code?.includes('VERIFY')) {
    return `tls: failed to verify certificate: x509: ${message ?? code}`
  }
  return message ?? String(thrown)
}

/** The client's text for a status outside 200–206 (`specs/kubernetes-admission.md` 2.9). */
function statusText(status: number, body: string): string {
  switch (status) {
    case 400:
      return 'the server rejected our request for an unknown reason'
    case 401:
      return 'the server has asked for the client to provide credentials'
    case 404:
      return 'the server could not find the requested resource'
    case 413:
      return 'Request entity too large'
    case 429:
      return 'the server has received too many requests and has asked us to try again later'
    case 503:
      return 'the server is currently unable to handle the request'
    case 504:
      return 'the server was unable to return a response in the time allotted, but may still be processing the request'
    default:
      if (status < 500)
        return `the server responded with the status code ${status} but did not return more information`
      return `an error on the server (${JSON.stringify(body.slice(0, 200) || 'unknown')}) has prevented the request from succeeding`
  }
}

/** By how much each counter grew. */
export function growth(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
) {
  return Object.fromEntries(
    Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)]),
  )
}
