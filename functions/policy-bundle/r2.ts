import { MAX_POLICY_BUNDLE_BYTES } from '#shared/limits.ts'
import type { BundleSource } from './config.ts'
import { refused, unavailable } from './faults.ts'
import type { FetchContext, Fetched } from './fetch.ts'

/** The members we use of an R2 binding. An object without a body is one that the condition kept back. */
interface Bucket {
  get(
    key: string,
    options?: { onlyIf: { etagDoesNotMatch: string } },
  ): Promise<{ etag: string; size: number; arrayBuffer?: () => Promise<ArrayBuffer> } | null>
}

/** The same as `fetchBundle` gives, from a bucket that is bound to the Worker. */
export async function readR2(
  { binding, key }: Extract<BundleSource, { kind: 'r2' }>,
  etag: string | undefined,
  { platform: { env } }: FetchContext,
): Promise<Fetched> {
  const bucket = Object.hasOwn(env, binding) ? env[binding] : undefined
  if (!isBucket(bucket)) throw unavailable('there is no such binding; only Workers have one')
  const object =
    etag === undefined
      ? await bucket.get(key)
      : await bucket.get(key, { onlyIf: { etagDoesNotMatch: etag } })
  if (object === null) throw unavailable('there is no such object')
  if (object.arrayBuffer === undefined) {
    if (etag !== undefined) return { status: 'unchanged' }
    throw unavailable('there is no body')
  }
  if (object.size > MAX_POLICY_BUNDLE_BYTES) {
    throw refused(`${key} has more than ${MAX_POLICY_BUNDLE_BYTES} bytes`)
  }
  return {
    status: 'found',
    file: new Uint8Array(await object.arrayBuffer()),
    etag: typeof object.etag === 'string' && object.etag !== '' ? object.etag : undefined,
  }
}

function isBucket(value: unknown): value is Bucket {
  return (
    typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function'
  )
}
