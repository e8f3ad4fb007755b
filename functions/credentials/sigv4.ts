import type { AwsCredentials } from '#functions/kms.ts'
import { toHex, utf8 } from '#shared/bytes.ts'
import type { HashPort } from '#shared/ports.ts'

/** A request to a host: a POST to `/`, unless it says otherwise. */
export interface AwsRequest {
  method?: 'GET' | 'POST'
  host: string
  /** As it is sent: everything but letters, digits, `-._~` and `/` escaped. There is no query. */
  path?: string
  region: string
  service: string
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  body: string
}

/**
 * The headers of a request with those of AWS Signature Version 4 added: good for this host, body and region and for five minutes. Sixty
 * lines of our own because the SDK has as many kilobytes, and Workers would have to carry them.
 */
export function signed(
  { method = 'POST', host, path = '/', region, service, headers, body }: AwsRequest,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  hash: HashPort,
  now: number,
): Record<string, string> {
  const date = new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')
  const all: Record<string, string> = {
    ...headers,
    'x-amz-date': date,
    ...(sessionToken !== undefined && { 'x-amz-security-token': sessionToken }),
  }
  const canonical = Object.entries({ ...all, host }).sort(([a], [b]) => (a < b ? -1 : 1))
  const names = canonical.map(([name]) => name).join(';')
  const lines = canonical.map(([name, value]) => `${name}:${value.trim()}\n`).join('')
  const digest = (text: string) => toHex(hash.sha256(utf8(text)))
  const request = [method, path, '', lines, names, digest(body)].join('\n')
  const scope = [date.slice(0, 8), region, service, 'aws4_request']
  const key = scope.reduce(
    (secret, part) => hash.hmacSha256(secret, utf8(part)),
    utf8(`AWS4${secretAccessKey}`),
  )
  const text = ['AWS4-HMAC-SHA256', date, scope.join('/'), digest(request)].join('\n')
  const signature = toHex(hash.hmacSha256(key, utf8(text)))
  return {
    ...all,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope.join('/')}, SignedHeaders=${names}, Signature=${signature}`,
  }
}
