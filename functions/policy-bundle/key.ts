import type { Config } from '#functions/config.ts'
import { kmsKeysFrom } from '#functions/kms-keys.ts'
import { pinnedKms } from '#functions/kms-pinned.ts'
import { kmsFrom, type Platform } from '#functions/ports.ts'
import type { Bytes } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { importVerifyingKey, type VerifyingKey } from '#shared/signature/key.ts'
import { publicKeyFromPem } from '#shared/signature/pem.ts'
import type { PolicyBundleConfig } from './config.ts'

/** The key that policy bundles are signed with. */
export interface BundleKey {
  /** For messages. */
  name: string
  /** True when the signature is by the key. Throws what a key service throws that does not answer, or refuses. */
  verify(message: Bytes, signature: Bytes, signal: AbortSignal): Promise<boolean>
}

/**
 * The key that the config names for bundles; none that a bundle brings counts here. A key in KMS is kept as long as any other, and asked
 * about every signature where `kms.verifyRemotely` is set.
 */
export function bundleKey(
  { key }: Pick<PolicyBundleConfig, 'key'>,
  config: Config,
  platform: Platform,
): BundleKey {
  return 'kms' in key ? kmsKey(key.kms, config, platform) : fileKey(key)
}

function kmsKey(reference: string, config: Config, platform: Platform): BundleKey {
  const keys = kmsKeysFrom(config, platform, pinnedKms(kmsFrom(platform), config.kms.pinned))
  return {
    name: `the key of policyBundle.key (${reference})`,
    async verify(message, signature, signal) {
      const key = await keys.publicKey(reference, signal)
      const algorithm = await key.verify(message, signature)
      if (algorithm === undefined) return false
      return keys.confirm(reference, { message, signature, algorithm }, signal)
    },
  }
}

function fileKey({ file, pem }: { file: string; pem?: string }): BundleKey {
  let imported: VerifyingKey | undefined
  return {
    name: `the key of policyBundle.key (${file})`,
    async verify(message, signature) {
      if (pem === undefined) throw new AdmissionError('CONFIG_INVALID', `${file} was not read`)
      imported ??= await importVerifyingKey(publicKeyFromPem(pem))
      return (await imported.verify(message, signature)) !== undefined
    },
  }
}
