import type { Config } from '#functions/config.ts'
import { fetchFrom, type Platform } from '#functions/ports.ts'
import type { Bytes } from '#shared/bytes.ts'
import { MAX_ETAG_CHARS, MAX_POLICY_BUNDLE_BYTES } from '#shared/limits.ts'
import { discard, readBody } from '#shared/registry/body.ts'
import type { BundleSource, PolicyBundleConfig } from './config.ts'
import { asBundleFault, unavailable } from './faults.ts'
import { readR2 } from './r2.ts'
import { s3Request } from './s3.ts'

/** What is stored: the same as was known by the ETag, or a file. */
export type Fetched =
  | { status: 'unchanged' }
  | { status: 'found'; file: Bytes; etag: string | undefined }

/** What a fetch needs of its surroundings. */
export interface FetchContext {
  config: Config
  platform: Platform
  signal: AbortSignal
}

/** A request for the file: its address, and headers that are good for this one. */
export interface StoreRequest {
  url: string
  headers: Readonly<Record<string, string>>
}

/**
 * The file as it is stored now, or that it is still the one of this ETag. Throws `POLICY_BUNDLE_UNAVAILABLE` when there is no answer that
 * counts, redirects among them, and `POLICY_BUNDLE_REFUSED` for a file that is too large.
 */
export async function fetchBundle(
  { source }: Pick<PolicyBundleConfig, 'source'>,
  etag: string | undefined,
  context: FetchContext,
): Promise<Fetched> {
  try {
    return source.kind === 'r2'
      ? await readR2(source, etag, context)
      : await get(await requestFor(source, context), etag, context)
  } catch (thrown) {
    throw asBundleFault(thrown, nameOf(source))
  }
}

async function requestFor(
  source: Exclude<BundleSource, { kind: 'r2' }>,
  context: FetchContext,
): Promise<StoreRequest> {
  return source.kind === 's3' ? s3Request(source, context) : { url: source.url, headers: {} }
}

async function get(
  { url, headers }: StoreRequest,
  etag: string | undefined,
  { platform, signal }: FetchContext,
): Promise<Fetched> {
  const response = await fetchFrom(platform)(url, {
    headers: {
      ...headers,
      'user-agent': 'countersign',
      ...(etag !== undefined && { 'if-none-match': etag }),
    },
    redirect: 'manual',
    signal,
  })
  if (response.status === 304 && etag !== undefined) {
    discard(response)
    return { status: 'unchanged' }
  }
  if (response.status !== 200) {
    discard(response)
    throw unavailable(`answered ${response.status}${HINTS[response.status] ?? ''}`)
  }
  const reader = { signal, onBytes() {} }
  const file = await readBody(response, MAX_POLICY_BUNDLE_BYTES, reader, 'policy bundle')
  return { status: 'found', file, etag: usableEtag(response.headers.get('etag')) }
}

const REDIRECTS = '; redirects are not followed'
const HINTS: Readonly<Record<number, string>> = {
  301: `${REDIRECTS} (S3 answers so when the bucket is in another region)`,
  302: REDIRECTS,
  303: REDIRECTS,
  307: REDIRECTS,
  308: REDIRECTS,
  403: ' (S3 answers so for what is not there, too, unless the bucket may be listed)',
}

/** It goes out again as a header, so it has to be one. */
export function usableEtag(text: string | null): string | undefined {
  const isEtag =
    text !== null && text.length <= MAX_ETAG_CHARS && /^(W\/)?"[\x21\x23-\x7e]*"$/.test(text)
  return isEtag ? text : undefined
}

/** Where a bundle is, for messages: no query, and nothing of a login. */
export function nameOf(source: BundleSource): string {
  switch (source.kind) {
    case 'url': {
      const { host, pathname } = new URL(source.url)
      return `${host}${pathname}`
    }
    case 's3':
      return `s3://${source.bucket}/${source.key}`
    case 'r2':
      return `${source.key} of R2 binding ${source.binding}`
  }
}
