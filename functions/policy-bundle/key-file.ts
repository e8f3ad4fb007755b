import path from 'node:path'
import type { Config } from '#functions/config.ts'
import { AdmissionError, toAdmissionError } from '#shared/errors.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { publicKeyFromPem } from '#shared/signature/pem.ts'

/**
 * The config with the public key that stands in `policyBundle.key.file`, so that functions have it. `read` gives the text of a file. Throws
 * `CONFIG_INVALID` when it is not there or no key that signatures can be verified with.
 */
export async function withBundleKey(
  config: Config,
  folder: string,
  read: (file: string) => Promise<string>,
): Promise<Config> {
  const { policyBundle } = config
  if (policyBundle === undefined || 'kms' in policyBundle.key) return config
  const { file } = policyBundle.key
  try {
    const pem = await read(path.join(folder, file))
    await importVerifyingKey(publicKeyFromPem(pem))
    return { ...config, policyBundle: { ...policyBundle, key: { file, pem } } }
  } catch (thrown) {
    const { message } = toAdmissionError(thrown, 'reading the key')
    const faults = [{ path: 'policyBundle.key.file', message }]
    throw new AdmissionError('CONFIG_INVALID', `policyBundle.key.file: ${message}`, { faults })
  }
}
