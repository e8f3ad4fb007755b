import path from 'node:path'
import type { ClusterConfig, Config } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import {
  countedFaults,
  loadPolicyFolder,
  located,
  readConfig,
  readPolicySettings,
  readYaml,
  toFault,
} from '#functions/files.ts'
import type { PolicySettings } from '#functions/policy-settings.ts'
import { AdmissionError, type Fault, toAdmissionError } from '#shared/errors.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'

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
  const { config, folder, trust, policyOptions } = await readConfig(configFile).catch(
    withFaultsOfPolicies(configFile),
  )
  const policies = path.join(folder, config.policies)
  const loaded = await loadPolicyFolder(policies, policyOptions)
  if (loaded.policies.length === 0) {
    const message = `${policies}: no policy in any .yaml, .yml or .json file; a deployment without policies would admit everything`
    throw new AdmissionError('POLICY_INVALID', message, { faults: loaded.warnings.map(toFault) })
  }
  const deployment = await deploymentOf(config, loaded.policies, configFile)
  const warnings = [...loaded.warnings.map(toFault), ...trust.notes()]
  const trustedRoots = (config.trust ?? []).map((entry) => path.join(folder, entry.trustedRoot))
  return { deployment, policies, trustedRoots, warnings }
}

/** Throws what is wrong with the config, together with what is wrong with its policies. */
function withFaultsOfPolicies(configFile: string): (thrown: unknown) => Promise<never> {
  return async (thrown) => {
    if (!(thrown instanceof AdmissionError) || thrown.faults.length === 0) throw thrown
    const settings = await readPolicySettings(configFile)
    const others = settings === undefined ? [] : await faultsOf(settings)
    if (others.length === 0) throw thrown
    const faults = [...thrown.faults, ...others]
    const message = `${configFile} and its policies: ${countedFaults(faults)}`
    throw new AdmissionError('CONFIG_INVALID', message, { faults, cause: thrown })
  }
}

async function faultsOf({ policies, options }: PolicySettings): Promise<readonly Fault[]> {
  try {
    await loadPolicyFolder(policies, options)
    return []
  } catch (thrown) {
    const { message, faults } = toAdmissionError(thrown, 'reading the policies')
    return faults.length === 0 ? [{ path: policies, message }] : faults
  }
}

/** The cluster of this name. Throws `CONFIG_INVALID` with the names there are. */
export function clusterNamed(
  { clusters }: Config,
  wanted: string,
  configFile: string,
): ClusterConfig {
  const cluster = clusters.find(({ name }) => name === wanted)
  if (cluster !== undefined) return cluster
  const known = clusters.map(({ name }) => name).join(', ')
  throw new AdmissionError(
    'CONFIG_INVALID',
    `${configFile} has no cluster ${wanted}; it has ${known}`,
  )
}

async function deploymentOf(
  config: Config,
  policies: readonly CompiledPolicy[],
  configFile: string,
): Promise<Deployment> {
  try {
    return await createDeployment(config, policies)
  } catch (thrown) {
    throw located(await readYaml(configFile), thrown)
  }
}
