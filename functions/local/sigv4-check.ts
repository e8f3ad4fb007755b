import { createHash, createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** A request as it came. */
export interface SignedRequest {
  method: string
  /** As the caller knows it. */
  host: string
  /** Without a query. */
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** Whom a request has to be signed by. */
export interface SigningCaller {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

/** Milliseconds between two clocks. */
const SKEW_MS = 300_000

/** The region that a request is signed for, or what AWS would say: it knows nobody of that name, or the signature is not right. */
export function checkSignature(
  { method, host, path, headers, body }: SignedRequest,
  { accessKeyId, secretAccessKey, sessionToken }: SigningCaller,
  wanted: { service: string; now: number },
): { region: string } | { fault: 'UnrecognizedClientException' | 'InvalidSignatureException' } {
  const [, id, date, region, service, names, signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? []
  if (id !== accessKeyId || headers['x-amz-security-token'] !== sessionToken) {
    return { fault: 'UnrecognizedClientException' }
  }
  const time = String(headers['x-amz-date'])
  const scope = [date, region, service, 'aws4_request'].map(String)
  const lines = String(names)
    .split(';')
    .map((name) => `${name}:${name === 'host' ? host : headers[name]}`)
  const canonical = [method, path, '', ...lines, '', names, sha256(body)].join('\n')
  const text = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(canonical)].join('\n')
  const key = scope.reduce<Buffer>(hmac, Buffer.from(`AWS4${secretAccessKey}`))
  const isRight =
    service === wanted.service &&
    Math.abs(wanted.now - amzTime(time)) <= SKEW_MS &&
    hmac(key, text).toString('hex') === signature
  return isRight ? { region: String(region) } : { fault: 'InvalidSignatureException' }
}

/** `20261130T120000Z`, epoch milliseconds. */
function amzTime(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5'))
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
