import { createClusterClient } from '#shared/cluster/client.ts'
import { createHttpClient } from '#shared/cluster/http.ts'
import type { ClusterClient, ContextPorts } from '#shared/cluster/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { FetchPort } from '#shared/ports.ts'
import type { ClusterConfig, Config } from '../config.ts'
import { fetchFrom, type Platform, secretFrom } from '../ports.ts'

/**
 * What answers the policies of one isolate beside registries: a connection to each cluster that the config gives one, and the hosts that
 * policies may ask. A module of its own because most deployments never load it.
 */
export function createContextPorts(config: Config, platform: Platform): ContextPorts {
  const { now = Date.now } = platform
  const clients = new Map<string, ClusterClient>()
  const clientOf = ({ name, api }: ClusterConfig): ClusterClient | undefined => {
    if (api === undefined) return undefined
    const made =
      clients.get(name) ??
      createClusterClient({
        server: api.server,
        token: () => secretFrom(platform.env, api.tokenEnv),
        fetch: fetchTo(api, platform),
        now,
      })
    clients.set(name, made)
    return made
  }
  const { http } = config
  return {
    cluster: (name) => {
      const cluster = config.clusters.find((each) => each.name === name)
      return cluster && clientOf(cluster)
    },
    ...(http !== undefined && {
      http: createHttpClient({
        fetch: fetchFrom(platform),
        ...(platform.trustingFetch && { trusting: platform.trustingFetch }),
        now,
        allow: http.allow,
        plainHttp: http.plainHttp,
        inNamespaces: http.namespacedPolicies,
      }),
    }),
  }
}

/** A fetch that trusts the authority of the cluster, where it has one of its own. */
function fetchTo({ ca }: NonNullable<ClusterConfig['api']>, platform: Platform): FetchPort {
  const { trustingFetch } = platform
  if (ca === undefined) return fetchFrom(platform)
  let made: Promise<FetchPort> | undefined
  return async (url, init) => {
    if (trustingFetch === undefined) {
      throw new AdmissionError(
        'CLUSTER_REFUSED',
        'this platform trusts public authorities only, and the cluster has one of its own',
      )
    }
    made ??= trustingFetch(ca)
    return (await made)(url, init)
  }
}
