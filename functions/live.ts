import type { Live } from '#shared/engine/inquiry.ts'
import type { KmsPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import { createVerifier } from '#shared/signature/verify.ts'
import type { Config } from './config.ts'
import { registryLogins } from './credentials/logins.ts'
import { kmsKeysFrom } from './kms-keys.ts'
import { pinnedKms } from './kms-pinned.ts'
import { fetchFrom, type Platform } from './ports.ts'

/**
 * Registry client and verifier of one isolate. A module of its own because validate loads it only when a seal does not
 * cover an object. Throws `CONFIG_INVALID` when a variable that the config names is missing or wrong.
 */
export function createLive(config: Config, platform: Platform, kms: KmsPort): Live {
  const { now = Date.now } = platform
  const fetch = fetchFrom(platform)
  const allowedHosts = config.revocation?.allow ?? []
  return {
    registry: createRegistryClient({
      fetch,
      now,
      ...registryLogins(config.registries, platform),
      plainHttpHosts: config.registries.plainHttp,
      allowedHosts: config.registries.allow ?? [],
    }),
    verifier: createVerifier({
      now,
      kms: kmsKeysFrom(config, platform, pinnedKms(kms, config.kms.pinned)),
      revocation: { fetch, allowedHosts },
    }),
  }
}
