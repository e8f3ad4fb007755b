import { sha256, toHex, utf8 } from '#shared/bytes.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'
import { canonicalJson, type JsonValue } from '#shared/json.ts'
import { type OutsideNeed, outsideNeeds } from '#shared/policy/outside.ts'
import { type CompiledPolicy, policyKey } from '#shared/policy/types.ts'
import type { ClusterConfig, Config } from './config.ts'
import type { Deployment } from './deployment.ts'
import { imageReviewFaults } from './image-review-policies.ts'

/**
 * A Deployment of a config and policies. Throws `CONFIG_INVALID` when a cluster names a policy that is not there, or has one that needs what the
 * config does not give it.
 */
export async function createDeployment(
  config: Config,
  policies: readonly CompiledPolicy[],
): Promise<Deployment> {
  const names = new Set(policies.map(policyKey))
  const faults = [
    ...config.clusters.flatMap((cluster, index) => missing(cluster, index, names)),
    ...config.clusters.flatMap((cluster, index) => missingExceptions(cluster, index, policies)),
    ...config.clusters.flatMap((cluster, index) => unconnected(cluster, index, policies)),
    ...config.clusters.flatMap((cluster, index) => imageReviewFaults(cluster, index, policies)),
    ...unasked(config, policies),
  ]
  if (faults.length > 0) {
    const lines = faults.map(({ path, message }) => `${path}: ${message}`)
    throw new AdmissionError('CONFIG_INVALID', lines.join('\n'), { faults })
  }
  return hashed(config, policies)
}

/** The Deployment of a config and policies that fit. */
export async function hashed(
  config: Config,
  policies: readonly CompiledPolicy[],
): Promise<Deployment> {
  // Both are JSON by construction; interfaces just have no index signature.
  const content = { config, policies } as unknown as JsonValue
  const hash = toHex(await sha256(utf8(canonicalJson(content))))
  return { config, policies, hash }
}

function missing(cluster: ClusterConfig, index: number, names: ReadonlySet<string>): Fault[] {
  return (cluster.policies ?? []).flatMap((name, at) =>
    names.has(name)
      ? []
      : [
          {
            path: `clusters[${index}].policies[${at}]`,
            message: `no policy of the folder is named "${name}"; it has ${[...names].join(', ') || 'none'}`,
          },
        ],
  )
}

/** An exception that no policy of the folder knows is a slip of the pen: whoever wrote it relies on it. */
function missingExceptions(
  { exceptions = [] }: ClusterConfig,
  index: number,
  policies: readonly CompiledPolicy[],
): Fault[] {
  if (exceptions.length === 0) return []
  const names = new Set(policies.flatMap((policy) => policy.exceptions.map(({ name }) => name)))
  return exceptions.flatMap((name, at) =>
    names.has(name)
      ? []
      : [
          {
            path: `clusters[${index}].exceptions[${at}]`,
            message: `no exception "${name}" refers to a policy of the folder; there are ${[...names].sort().join(', ') || 'none'}`,
          },
        ],
  )
}

/** What the policies of a cluster need of it, where it has no connection: they would deny everything they are about. */
function unconnected(
  cluster: ClusterConfig,
  index: number,
  policies: readonly CompiledPolicy[],
): Fault[] {
  if (cluster.api !== undefined) return []
  return needsAmong(policies, 'cluster')
    .filter(({ key }) => cluster.policies?.includes(key) ?? true)
    .map(({ key, source, path, what }) => ({
      path: `clusters[${index}]`,
      message: `policy ${key} (${source}) needs ${what} in ${path}, which no review carries: give the cluster an api, or list its policies without this one`,
    }))
}

function unasked({ http }: Config, policies: readonly CompiledPolicy[]): Fault[] {
  return needsAmong(policies, 'http').flatMap(({ key, source, path, isNamespaced }) => {
    const where = `policy ${key} (${source}) uses http.* in ${path}`
    if (http === undefined) {
      const message = `${where}: list the hosts that policies may ask in http.allow`
      return [{ path: 'http', message }]
    }
    if (!isNamespaced || http.namespacedPolicies) return []
    const message = `${where}: http calls are not allowed in namespaced policies: set http.namespacedPolicies to enable`
    return [{ path: 'http.namespacedPolicies', message }]
  })
}

/** Each place once: what a policy needs its variants need, too. */
function needsAmong(policies: readonly CompiledPolicy[], of: OutsideNeed['of']) {
  const found = policies.flatMap((policy) =>
    outsideNeeds(policy)
      .filter((need) => need.of === of)
      .map((need) => ({
        ...need,
        key: policyKey(policy),
        source: policy.source,
        isNamespaced: policy.namespace !== undefined,
      })),
  )
  const byPlace = new Map(found.map((each) => [`${each.key} ${each.path} ${each.what}`, each]))
  return [...byPlace.values()]
}
