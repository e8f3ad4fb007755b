import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import type { SigningAlgorithmSpec } from '@aws-sdk/client-kms'
import type { Config } from '#functions/config.ts'
import { readText } from '#functions/files.ts'
import { callKms } from '#functions/kms-call.ts'
import { describeKmsError } from '#functions/kms-error.ts'
import { localSigner } from '#functions/local/signer.ts'
import type { PolicyBundleConfig } from '#functions/policy-bundle/config.ts'
import { awsCredentials } from '#functions/ports.ts'
import { AdmissionError } from '#shared/errors.ts'
import { KMS_CALL_TIMEOUT_MS, MAX_KMS_MESSAGE_BYTES } from '#shared/limits.ts'
import type { KmsKey } from '#shared/ports.ts'
import { resolveKmsKey } from '#shared/signature/kms-reference.ts'
import type { BundleSigner } from './write.ts'

/** Time that signing may take, milliseconds: somebody waits for it. */
const SIGNING_MS = 30_000

/**
 * What signs bundles of a config: its key in KMS (needs `kms:GetPublicKey` and `kms:Sign`), or the private key of a file where the config has a
 * public one. Throws `CONFIG_INVALID` where the two do not fit.
 */
export async function signerOf(
  { key }: PolicyBundleConfig,
  config: Config,
  { keyFile, env }: { keyFile: string | undefined; env: Readonly<Record<string, unknown>> },
): Promise<BundleSigner> {
  if ('kms' in key) {
    if (keyFile === undefined) return kmsSigner(key.kms, resolveKmsKey(key.kms, config.kms), env)
    throw invalid(`policyBundle.key is ${key.kms}, which signs in KMS: leave --key out`)
  }
  if (keyFile === undefined) {
    throw invalid(
      `give --key FILE, the PEM private key that belongs to policyBundle.key.file (${key.file})`,
    )
  }
  const signer = localSigner(await privateKeyOf(keyFile))
  return { keyId: '', sign: (message) => signer.sign(message) }
}

async function privateKeyOf(file: string): Promise<KeyObject> {
  const { text } = await readText(file, 'KEY_INVALID')
  try {
    return createPrivateKey(text)
  } catch {
    // Its own message could hold a part of the key.
    throw new AdmissionError(
      'KEY_INVALID',
      `${file} holds no private key in PEM, or one under a password`,
    )
  }
}

/** What functions verify without being told: each key's own hash, and PKCS #1 before PSS. */
const ALGORITHMS: readonly SigningAlgorithmSpec[] = [
  'ECDSA_SHA_256',
  'ECDSA_SHA_384',
  'ECDSA_SHA_512',
  'RSASSA_PKCS1_V1_5_SHA_256',
  'RSASSA_PSS_SHA_256',
  'ED25519_SHA_512',
]

async function kmsSigner(
  reference: string,
  key: KmsKey,
  env: Readonly<Record<string, unknown>>,
): Promise<BundleSigner> {
  const { GetPublicKeyCommand, KMSClient, SignCommand } = await import('@aws-sdk/client-kms')
  const { keyId, region, endpoint } = key
  const credentials = awsCredentials(env)
  const client = new KMSClient({
    region,
    maxAttempts: 1,
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
  })
  const call = <T>(operation: string, send: (abortSignal: AbortSignal) => Promise<T>) =>
    callKms({
      doing: `KMS ${operation} of ${keyId} in ${region}`,
      signal: AbortSignal.timeout(SIGNING_MS),
      timeoutMs: KMS_CALL_TIMEOUT_MS,
      describe: describeKmsError,
      send,
    })
  const { SigningAlgorithms: listed = [] } = await call('GetPublicKey', (abortSignal) =>
    client.send(new GetPublicKeyCommand({ KeyId: keyId }), { abortSignal }),
  )
  const algorithm = ALGORITHMS.find((name) => listed.includes(name))
  if (algorithm === undefined) {
    throw invalid(
      `${reference} signs with ${listed.join(', ') || 'nothing'}, expected one of ${ALGORITHMS.join(', ')}`,
    )
  }
  return {
    keyId: reference,
    async sign(message) {
      const input = inputOf(message, algorithm, reference)
      const { Signature } = await call('Sign', (abortSignal) =>
        client.send(new SignCommand({ KeyId: keyId, SigningAlgorithm: algorithm, ...input }), {
          abortSignal,
        }),
      )
      return Signature ?? new Uint8Array()
    },
  }
}

/** A digest, whatever the size of the bundle; Ed25519 takes the message itself, which KMS bounds. */
function inputOf(message: Uint8Array, algorithm: SigningAlgorithmSpec, reference: string) {
  const [, bits] = /_SHA_(256|384|512)$/.exec(algorithm) ?? []
  if (algorithm !== 'ED25519_SHA_512') {
    const digest = createHash(`sha${bits}`).update(message).digest()
    return { MessageType: 'DIGEST', Message: digest } as const
  }
  if (message.length <= MAX_KMS_MESSAGE_BYTES) {
    return { MessageType: 'RAW', Message: message } as const
  }
  throw invalid(
    `${reference} is an Ed25519 key, and KMS signs at most ${MAX_KMS_MESSAGE_BYTES} bytes with one; the bundle has ${message.length}: take an ECDSA or RSA key`,
  )
}

function invalid(reason: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', reason)
}
