import type { Config } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { type PinnedKey, pinnedKms, placeOf } from '#functions/kms-pinned.ts'
import { toBase64 } from '#shared/bytes.ts'
import { AdmissionError, type ErrorCode, type Fault, toAdmissionError } from '#shared/errors.ts'
import type { KmsKey, KmsPort } from '#shared/ports.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import { resolveKmsKey } from '#shared/signature/kms-reference.ts'
import { keyReferences } from './bundle-needs.ts'

/** Time that all keys together may take, milliseconds: somebody waits for the build. */
const PINNING_MS = 60_000

/**
 * The deployment with the public keys of its attestors, and of its policy bundles, in AWS KMS, so that its functions verify without asking KMS, and without credentials for
 * it. Keys of Vault, and those that policies compute, are asked for as ever. Throws `CONFIG_INVALID` where `kms.verifyRemotely` wants KMS asked
 * about every signature, and otherwise what the first key failed with, with all that could not be had or cannot verify.
 */
export async function pinKeys(
  { config, policies }: Deployment,
  { kms, now }: { kms: KmsPort; now: () => number },
): Promise<Deployment> {
  if (config.kms.verifyRemotely === true) {
    const message =
      '--pin-keys: kms.verifyRemotely has KMS asked about every signature; unset one of them'
    throw new AdmissionError('CONFIG_INVALID', message)
  }
  const ofBundles = config.policyBundle?.key
  const references = new Set([
    ...keyReferences({ config, policies }).filter(isAws),
    ...(ofBundles !== undefined && 'kms' in ofBundles ? [ofBundles.kms] : []),
  ])
  const signal = AbortSignal.timeout(PINNING_MS)
  const keys = new Map<string, PinnedKey>()
  const faults: Fault[] = []
  let code: ErrorCode | undefined
  for (const reference of references) {
    try {
      const key = await pinned(resolveKmsKey(reference, config.kms), kms, signal)
      await check(reference, key, { config, kms, now, signal })
      keys.set(placeOf(key), key)
    } catch (thrown) {
      const error = toAdmissionError(thrown, 'pinning')
      code ??= error.code
      faults.push({ path: reference, message: error.message })
    }
  }
  if (code !== undefined) {
    const lines = faults.map(({ path, message }) => `${path}: ${message}`)
    throw new AdmissionError(code, `--pin-keys: ${lines.join('\n')}`, { faults })
  }
  const pins = { fetchedAt: new Date(now()).toISOString(), keys: [...keys.values()] }
  return createDeployment({ ...config, kms: { ...config.kms, pinned: pins } }, policies)
}

async function pinned(key: KmsKey, kms: KmsPort, signal: AbortSignal): Promise<PinnedKey> {
  const { spki, ...answer } = await kms.getPublicKey(key, signal)
  return { ...key, ...answer, spki: toBase64(spki) }
}

/** Throws what a function would throw with this key. */
async function check(
  reference: string,
  key: PinnedKey,
  {
    config,
    kms,
    now,
    signal,
  }: { config: Config; kms: KmsPort; now: () => number; signal: AbortSignal },
): Promise<void> {
  const port = pinnedKms(kms, { fetchedAt: '', keys: [key] })
  await createKmsKeys({ port, now, ...config.kms }).publicKey(reference, signal)
}

/** Computed references are none before there is a request. */
function isAws(reference: string): boolean {
  return reference.startsWith('awskms:')
}
