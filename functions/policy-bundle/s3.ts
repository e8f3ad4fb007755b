import { signed } from '#functions/credentials/sigv4.ts'
import { awsCredentials, type Platform } from '#functions/ports.ts'
import { toHex, utf8 } from '#shared/bytes.ts'
import type { BundleSource } from './config.ts'
import { unavailable } from './faults.ts'
import type { FetchContext, StoreRequest } from './fetch.ts'

type S3Source = Extract<BundleSource, { kind: 's3' }>

/** A GET of an object, signed with the role of the function (needs `s3:GetObject`). Throws `POLICY_BUNDLE_UNAVAILABLE` without credentials or region. */
export async function s3Request(
  source: S3Source,
  { config, platform }: FetchContext,
): Promise<StoreRequest> {
  const { env, hash, now = Date.now } = platform
  const region = source.region ?? config.kms.region ?? regionOf(platform)
  if (region === undefined) throw unavailable('no region: set policyBundle.region')
  const credentials = awsCredentials(env) ?? (await platform.awsCredentials?.())
  if (credentials === undefined) throw unavailable('no AWS credentials')
  const { origin, path } = addressOf(source, region)
  const request = {
    method: 'GET',
    host: new URL(origin).host,
    path,
    region,
    service: 's3',
    headers: { 'x-amz-content-sha256': toHex(hash.sha256(utf8(''))) },
    body: '',
  } as const
  return { url: `${origin}${path}`, headers: signed(request, credentials, hash, now()) }
}

function regionOf({ env }: Platform): string | undefined {
  return [env.AWS_REGION, env.AWS_DEFAULT_REGION].find(
    (name): name is string => typeof name === 'string' && name !== '',
  )
}

/** A bucket is a host of its own, unless the certificate would not fit its name, or the store is another one. */
function addressOf(
  { bucket, key, endpoint }: S3Source,
  region: string,
): { origin: string; path: string } {
  const object = `/${escaped(key)}`
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  const own = `s3.${region}.${domain}`
  if (endpoint === undefined && !bucket.includes('.')) {
    return { origin: `https://${bucket}.${own}`, path: object }
  }
  return { origin: endpoint ?? `https://${own}`, path: `/${bucket}${object}` }
}

/** As SigV4 wants it, which is more than `encodeURIComponent` escapes. */
function escaped(key: string): string {
  return key
    .split('/')
    .map((segment) =>
      encodeURIComponent(segment).replace(
        /[!'()*]/g,
        (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
      ),
    )
    .join('/')
}
