import type { KmsPort } from '#shared/ports.ts'
import { createKmsKeys, type KmsKeys } from '#shared/signature/kms.ts'
import type { Config } from './config.ts'
import { type Platform, vaultFrom } from './ports.ts'

/** The keys of all key services that the config is about. Throws `CONFIG_INVALID` when it is wrong about one. */
export function kmsKeysFrom({ kms }: Config, platform: Platform, port: KmsPort): KmsKeys {
  const { now = Date.now } = platform
  const vaultPort = kms.vault && vaultFrom(platform, kms.vault.tokenEnv)
  return createKmsKeys({ port, now, ...kms, ...(vaultPort && { vaultPort }) })
}
