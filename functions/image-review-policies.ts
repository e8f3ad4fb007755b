import type { Fault } from '#shared/errors.ts'
import { reviewNeeds } from '#shared/policy/image-review-needs.ts'
import { type CompiledPolicy, policyKey } from '#shared/policy/types.ts'
import type { ClusterConfig } from './config.ts'

type Lists = Pick<ClusterConfig, 'policies' | 'exceptions' | 'imageReview'>

/** The cluster as its image reviews see it: with the policies that are in both of its lists. */
export function reviewedCluster({
  policies,
  exceptions,
  imageReview,
}: Lists): Pick<ClusterConfig, 'policies' | 'exceptions'> {
  const listed = imageReview?.policies
  const both = policies?.filter((key) => listed?.includes(key) ?? true) ?? listed
  return { ...(both && { policies: both }), ...(exceptions && { exceptions }) }
}

/**
 * What keeps image reviews of a cluster from being decided: policies in its list that are not there, and those that need what no ImageReview
 * carries. Nothing for a cluster without image reviews.
 */
export function imageReviewFaults(
  cluster: ClusterConfig,
  index: number,
  policies: readonly CompiledPolicy[],
): Fault[] {
  if (cluster.imageReview === undefined) return []
  const path = `clusters[${index}].imageReview`
  const names = new Set(policies.map(policyKey))
  const missing = (cluster.imageReview.policies ?? []).flatMap((name, at) => {
    const why = !names.has(name)
      ? `no policy of the folder is named "${name}"; it has ${[...names].join(', ') || 'none'}`
      : cluster.policies?.includes(name) === false
        ? `"${name}" is not among the policies of the cluster`
        : undefined
    return why === undefined ? [] : [{ path: `${path}.policies[${at}]`, message: why }]
  })
  return missing.length > 0 ? missing : undecidable(cluster, path, policies)
}

function undecidable(
  cluster: ClusterConfig,
  path: string,
  policies: readonly CompiledPolicy[],
): Fault[] {
  const { policies: listed, exceptions } = reviewedCluster(cluster)
  const counting = exceptions && new Set(exceptions)
  const asked = policies
    .filter((policy) => listed?.includes(policyKey(policy)) ?? true)
    .map((policy) => ({ policy, ...reviewNeeds(policy, counting) }))
  if (!asked.some(({ isAsked }) => isAsked)) {
    const message =
      'none of its policies is about the creation of Pods: every image would be let in; list one that is, or leave imageReview out'
    return [{ path, message }]
  }
  return asked.flatMap(({ policy, needs }) =>
    needs.map((need) => ({
      path,
      message: `policy ${policyKey(policy)} (${policy.source}) needs ${need.what} in ${need.path}, which no ImageReview carries: list the policies for image reviews in ${path}.policies`,
    })),
  )
}
