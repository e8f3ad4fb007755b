import { hashed } from '#functions/create-deployment.ts'
import { type Deployment, policiesOf } from '#functions/deployment.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { AdmissionError } from '#shared/errors.ts'
import { policyKey } from '#shared/policy/types.ts'

/**
 * The deployment of these clusters alone: with no token, policy or setting of any other in it. Throws `CONFIG_INVALID` with every name that
 * the config does not have.
 */
export async function onlyClusters(
  { config, policies }: Deployment,
  names: readonly string[],
  configFile: string,
): Promise<Deployment> {
  const known = config.clusters.map(({ name }) => name)
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    const message = `${configFile} has no cluster ${unknown.join(', ')}; it has ${known.join(', ')}`
    throw new AdmissionError('CONFIG_INVALID', message)
  }
  const clusters = config.clusters.filter(({ name }) => names.includes(name))
  const granted = clusters.map((cluster) => policiesOf({ policies }, cluster, nodeHash).granted)
  const own = policies.filter((policy) => granted.some((keys) => keys.has(policyKey(policy))))
  return hashed({ ...config, clusters }, own)
}
