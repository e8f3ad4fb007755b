import { createContextPorts } from '#functions/cluster/ports.ts'
import type { Config } from '#functions/config.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { createLive } from '#functions/live.ts'
import { type Environment, kmsFrom, type Platform, vaultFrom } from '#functions/ports.ts'
import type { HttpClient } from '#shared/cluster/types.ts'
import type { Live } from '#shared/engine/inquiry.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import type { FetchPort, KmsPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import { createVerifier } from '#shared/signature/verify.ts'
import { readDockerLogins } from '../docker-config.ts'

/** How tests reach registries and key services. */
export interface Reach {
  fetch: FetchPort
  env: Readonly<Record<string, string | undefined>>
  /** Logins and addresses are those of the config, if there is one. */
  config?: Config | undefined
  plainHttp: readonly string[]
  /** Nothing outside is asked, and no login is needed. */
  offline: boolean
  now: () => number
}

/** What answers policies, and what the user should know about it. */
export interface Reached {
  live: Live
  /** Undefined where nobody may be asked. */
  http?: HttpClient
  notes: readonly string[]
}

/** Registry client and verifier, and whom policies may ask. Throws `CONFIG_INVALID` for logins that are wrong. */
export async function liveFor(reach: Reach): Promise<Reached> {
  const { fetch, env, config, offline, now, plainHttp } = reach
  const platform: Platform = {
    env,
    fetch,
    now,
    log: () => undefined,
    hash: nodeHash,
    maxBodyBytes: MAX_BODY_BYTES,
    awsCredentials: async () => (await import('#functions/kms.ts')).defaultAwsCredentials(),
  }
  if (config !== undefined && !offline) {
    const registries = {
      ...config.registries,
      plainHttp: [...config.registries.plainHttp, ...plainHttp],
    }
    const live = createLive({ ...config, registries }, platform, kmsFrom(platform))
    const { http } = createContextPorts(config, platform)
    return { live, notes: [], ...(http !== undefined && { http }) }
  }
  const logins = offline ? ANONYMOUS : await readDockerLogins(env)
  const { credentials } = logins
  const kms = config?.kms ?? vaultOf(env)
  const live: Live = {
    registry: createRegistryClient({
      fetch,
      now,
      credentials,
      // The logins of this machine stand for those that a policy names.
      credentialsFor: () => credentials,
      plainHttpHosts: [...(config?.registries.plainHttp ?? []), ...plainHttp],
      allowedHosts: config?.registries.allow ?? [],
    }),
    verifier: createVerifier({
      now,
      kms: createKmsKeys({
        ...kms,
        port: offline ? NO_KMS : kmsFrom(platform),
        vaultPort: vaultFrom(platform, 'VAULT_TOKEN'),
        now,
      }),
      revocation: { fetch, allowedHosts: config?.revocation?.allow ?? [] },
    }),
  }
  return { live, notes: logins.notes }
}

/** What the environment says of key services, as `countersign verify` reads it. */
export function vaultOf(env: Environment): { region?: string; vault?: { address: string } } {
  const region = env.AWS_REGION ?? env.AWS_DEFAULT_REGION
  const address = env.VAULT_ADDR
  return {
    ...(typeof region === 'string' && { region }),
    ...(typeof address === 'string' && { vault: { address } }),
  }
}

const ANONYMOUS = { credentials: async () => undefined, notes: [] }

/** A fetch that reaches nobody. */
export const NO_FETCH: FetchPort = async (url) => {
  throw new AdmissionError('REGISTRY_UNREACHABLE', `offline: ${new URL(url).host} is not asked`)
}

const refuse = async (): Promise<never> => {
  throw new AdmissionError('KMS_UNAVAILABLE', 'offline: no key service is asked')
}
const NO_KMS: KmsPort = { getPublicKey: refuse, verify: refuse, generateMac: refuse }
