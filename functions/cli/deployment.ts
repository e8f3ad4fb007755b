import path from 'node:path'
import { createDeployment, type Deployment } from '#functions/deployment.ts'
import { loadPolicyFolder, readConfig, toFault } from '#functions/files.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'

/** A deployment as it stands in files, and what its author should know. */
export interface DeploymentFiles {
  deployment: Deployment
  /** Folder with the policies, as the config names it, seen from here. */
  policies: string
  /** Trusted roots that the config names, seen from here. */
  trustedRoots: readonly string[]
  warnings: readonly Fault[]
}

/**
 * The Deployment of a config file and its policy folder. Throws `CONFIG_INVALID` or `POLICY_INVALID` with the place of
 * every fault.
 */
export async function readDeployment(configFile: string): Promise<DeploymentFiles> {
  const { config, folder, trust, policyOptions } = await readConfig(configFile)
  const policies = path.join(folder, config.policies)
  const loaded = await loadPolicyFolder(policies, policyOptions)
  if (loaded.policies.length === 0) {
    const message = `${policies}: no policy in any .yaml, .yml or .json file; a deployment without policies would admit everything`
    throw new AdmissionError('POLICY_INVALID', message, { faults: loaded.warnings.map(toFault) })
  }
  const deployment = await createDeployment(config, loaded.policies)
  const warnings = [...loaded.warnings.map(toFault), ...trust.notes()]
  const trustedRoots = (config.trust ?? []).map((entry) => path.join(folder, entry.trustedRoot))
  return { deployment, policies, trustedRoots, warnings }
}
