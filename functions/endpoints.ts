import type { ClusterConfig, Config } from './config.ts'

/** A function that clusters call, as the config names where it is. */
export type EndpointName = 'mutate' | 'validate' | 'imageReview'

/** Where each function is reached: `https://host[:port][/path]` without a slash at the end. */
export interface Endpoints {
  mutate: string
  validate: string
  /** Absent where the functions have a host each and no cluster asks for image reviews. */
  imageReview?: string
}

/** The places of an `endpoint`, which is one for all functions or one for each. */
export function endpointsOf(endpoint: Config['endpoint']): Endpoints {
  if (typeof endpoint === 'string') {
    const url = withoutSlash(endpoint)
    return { mutate: url, validate: url, imageReview: url }
  }
  const { mutate, validate, imageReview } = endpoint
  return {
    mutate: withoutSlash(mutate),
    validate: withoutSlash(validate),
    ...(imageReview !== undefined && { imageReview: withoutSlash(imageReview) }),
  }
}

/** The `endpoint` of a cluster: its own, or that of all. */
export function endpointOf(
  { endpoint }: Pick<Config, 'endpoint'>,
  cluster: Pick<ClusterConfig, 'webhooks'> | undefined,
): Config['endpoint'] {
  return cluster?.webhooks?.endpoint ?? endpoint
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
