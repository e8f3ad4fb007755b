import type { ConfigDocument } from '#functions/config-schema.ts'
import type { Fault } from '#shared/errors.ts'

/** Where the signed file is. */
export type BundleSource =
  | { kind: 'url'; url: string }
  | { kind: 's3'; bucket: string; key: string; region?: string; endpoint?: string }
  | { kind: 'r2'; binding: string; key: string }

/** Policies that functions fetch, and what they take for them. */
export interface PolicyBundleConfig {
  source: BundleSource
  /** Whose signature counts: a reference, or a file relative to the config and, once it is read, what is in it. */
  key: { kms: string } | { file: string; pem?: string }
  refreshSeconds: number
  maxAgeSeconds: number
  minSequence?: number
  onUnavailable: 'embedded' | 'deny'
}

type Document = NonNullable<ConfigDocument['policyBundle']>

/** What `policyBundle` without a fault says. */
export function toPolicyBundle(document: Document): PolicyBundleConfig {
  const { url, s3, region, endpoint, r2, key, ...rest } = document
  const { kms, file = '' } = key
  return {
    source: sourceOf({ url, s3, region, endpoint, r2 }),
    key: kms === undefined ? { file } : { kms },
    ...rest,
  }
}

function sourceOf({
  url = '',
  s3,
  region,
  endpoint,
  r2,
}: { [K in 'url' | 's3' | 'region' | 'endpoint' | 'r2']: Document[K] }): BundleSource {
  if (r2 !== undefined) return { kind: 'r2', ...r2 }
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/.exec(s3 ?? '') ?? []
  if (bucket === undefined || key === undefined) return { kind: 'url', url }
  return {
    kind: 's3',
    bucket,
    key,
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
  }
}

/** Of `policyBundle`, whatever it is: what no JSON Schema can say. */
export function policyBundleFaults(value: unknown): Fault[] {
  const { s3, refreshSeconds, maxAgeSeconds, ...fields }: Record<string, unknown> = {
    ...Object(value),
  }
  const foreign = ['region', 'endpoint'].filter((name) => s3 === undefined && name in fields)
  const isShort =
    typeof refreshSeconds === 'number' &&
    typeof maxAgeSeconds === 'number' &&
    maxAgeSeconds < 2 * refreshSeconds
  return [
    ...foreign.map((name) => ({ path: `policyBundle.${name}`, message: 'is for s3 only' })),
    ...(isShort
      ? [
          {
            path: 'policyBundle.maxAgeSeconds',
            message: `must be twice refreshSeconds at least (${2 * refreshSeconds}): policies are that old before anything is wrong`,
          },
        ]
      : []),
  ]
}
