import path from 'node:path'
import { AdmissionError } from '#shared/errors.ts'
import type { LoadOptions } from '#shared/policy/load.ts'
import { type Config, parseConfig } from './config.ts'
import { knownRegistries } from './credentials/sources.ts'
import { loadTrust, type TrustStore } from './trust/store.ts'

/** What a config says about policies: where they are, and how they are read. */
export interface PolicySettings {
  /** Folder with the policies, seen from here. */
  policies: string
  options: LoadOptions
}

/** What policies are loaded with under this config, with the trusted roots it names. */
export function policyOptionsOf(config: Config, trust: TrustStore, now: number): LoadOptions {
  const { region, endpoints, vault } = config.kms
  return {
    ...(region !== undefined && { kmsRegion: region }),
    kmsEndpoints: endpoints,
    ...(vault !== undefined && { kmsVault: vault }),
    registries: knownRegistries(config.registries),
    ...trust.options,
    ...(config.revocation !== undefined && { notaryRevocation: config.revocation.mode }),
    ...(config.exceptions !== undefined && { exceptions: config.exceptions }),
    ignoreOtherKinds: config.ignoreOtherKinds ?? false,
    httpInNamespacedPolicies: config.http?.namespacedPolicies ?? false,
    now,
  }
}

/** Whatever else is wrong with a config, policies do not ask for more of it than this. */
const SECTIONS = [
  'policies',
  'ignoreOtherKinds',
  'exceptions',
  'kms',
  'registries',
  'trust',
  'revocation',
  'http',
] as const

/** In the place of what policies do not ask for. */
const STAND_IN = {
  endpoint: 'https://endpoint.invalid',
  outcomes: { key: { secrets: [{ id: 'none', env: 'NONE' }] } },
  clusters: [{ name: 'none', tokens: ['0'.repeat(64)] }],
}

/**
 * The settings of a config that has faults, so that those of its policies are told with them; undefined where it is wrong about what policies
 * need, by which they would have faults that are none of theirs.
 */
export async function settingsBesideFaults(
  document: unknown,
  folder: string,
  now: number,
): Promise<PolicySettings | undefined> {
  if (typeof document !== 'object' || document === null) return undefined
  const own = Object.entries(document).filter(([key]) => SECTIONS.some((name) => name === key))
  try {
    const config = parseConfig({ ...STAND_IN, ...Object.fromEntries(own) })
    const trust = await loadTrust(config.trust ?? [], folder, now)
    const policies = path.join(folder, config.policies)
    return { policies, options: policyOptionsOf(config, trust, now) }
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return undefined
    throw thrown
  }
}
