import { AdmissionError } from '../errors.ts'
import { MAX_KMS_MESSAGE_BYTES } from '../limits.ts'
import type { KmsKey, KmsPort, KmsPublicKey, KmsVerification } from '../ports.ts'
import { digestOf, importVerifyingKey, type Scheme, type VerifyingKey } from './key.ts'
import type { ConfirmCall, FetchedKey } from './kms-service.ts'
import type { HashAlgorithm } from './types.ts'

const RSA = ['RSASSA_PKCS1_V1_5', 'RSASSA_PSS'].flatMap((scheme) =>
  ['256', '384', '512'].map((bits) => `${scheme}_SHA_${bits}`),
)

/** Key specs of KMS, the key each must turn out to be, and what it can sign with. A spec that is not here cannot be used. */
const KEY_SPECS: Readonly<Record<string, { name: string; algorithms: readonly string[] }>> = {
  ECC_NIST_P256: { name: 'ECDSA P-256', algorithms: ['ECDSA_SHA_256'] },
  ECC_NIST_P384: { name: 'ECDSA P-384', algorithms: ['ECDSA_SHA_384'] },
  ECC_NIST_P521: { name: 'ECDSA P-521', algorithms: ['ECDSA_SHA_512'] },
  ECC_NIST_EDWARDS25519: { name: 'Ed25519', algorithms: ['ED25519_SHA_512'] },
  RSA_2048: { name: 'RSA 2048', algorithms: RSA },
  RSA_3072: { name: 'RSA 3072', algorithms: RSA },
  RSA_4096: { name: 'RSA 4096', algorithms: RSA },
}

/** A key in AWS KMS, verifying what its spec and its signing algorithms allow. Throws as `ServiceKey.fetch` does. */
export async function fetchAwsKey(
  target: KmsKey,
  port: KmsPort,
  signal: AbortSignal,
): Promise<FetchedKey> {
  return {
    key: await toVerifyingKey(await port.getPublicKey(target, signal), target),
    verify: async (call, until) => port.verify(target, await toVerification(call, target), until),
  }
}

/** What KMS is sent: the digest, but for Ed25519 the message, as KMS signs that itself. */
async function toVerification(
  { message, signature, algorithm: { scheme, hash } }: ConfirmCall,
  { keyId }: KmsKey,
): Promise<KmsVerification> {
  if (hash !== undefined) {
    const digest = await digestOf(hash, message)
    return { digest, signature, algorithm: `${scheme}_${hash.replace('sha', 'SHA_')}` }
  }
  if (message.length <= MAX_KMS_MESSAGE_BYTES) {
    return { message, signature, algorithm: 'ED25519_SHA_512' }
  }
  const limit = `KMS takes at most ${MAX_KMS_MESSAGE_BYTES} bytes under an Ed25519 key`
  throw new AdmissionError(
    'CONFIG_INVALID',
    `KMS key ${keyId}: kms.verifyRemotely is set, but ${message.length} bytes were signed and ${limit}`,
  )
}

async function toVerifyingKey(answer: KmsPublicKey, target: KmsKey): Promise<VerifyingKey> {
  const { spki, keySpec, keyUsage, signingAlgorithms: listed } = answer
  if (keyUsage !== 'SIGN_VERIFY') {
    throw unfit(target, `its usage is ${keyUsage}, expected SIGN_VERIFY`)
  }
  const spec = Object.hasOwn(KEY_SPECS, keySpec) ? KEY_SPECS[keySpec] : undefined
  if (spec === undefined) {
    const supported = Object.keys(KEY_SPECS).join(', ')
    throw unfit(target, `key spec ${keySpec} is not supported, only ${supported}`)
  }
  const allowed = listed.filter((algorithm) => spec.algorithms.includes(algorithm))
  if (allowed.length === 0) {
    const found = listed.join(', ') || 'no algorithm'
    throw unfit(target, `it signs with ${found}, expected one of ${spec.algorithms.join(', ')}`)
  }
  const keys = await Promise.all(
    schemesOf(allowed).map(async (scheme) => {
      const rsa = scheme === 'RSASSA_PSS' ? scheme : undefined
      return { scheme, key: await importVerifyingKey(spki, rsa) }
    }),
  )
  const [first] = keys
  if (first === undefined || first.key.name !== spec.name) {
    throw unfit(target, `it is ${first?.key.name} although its spec is ${keySpec}`)
  }
  return {
    ...first.key,
    async verify(message, signature, hashAlgorithm) {
      for (const { scheme, key } of keys) {
        const hash = hashFor(scheme, allowed, hashAlgorithm)
        if (hash === undefined) continue
        const verified = await key.verify(message, signature, hash)
        if (verified !== undefined) return verified
      }
      return undefined
    },
  }
}

/** PKCS #1 before PSS: it is what cosign signs with. */
function schemesOf(algorithms: readonly string[]): readonly Scheme[] {
  const schemes = ['ECDSA', 'ED25519', 'RSASSA_PKCS1_V1_5', 'RSASSA_PSS'] as const
  return schemes.filter((scheme) => algorithms.some((name) => name.startsWith(`${scheme}_`)))
}

/**
 * The hash to try under a scheme, or undefined when the key does not have it. Without one from the policy it is SHA-256 where
 * the key has that, as for every RSA key, else the only one a curve has. Ed25519 hashes on its own, whatever the policy says.
 */
function hashFor(
  scheme: Scheme,
  algorithms: readonly string[],
  wanted: HashAlgorithm | undefined,
): HashAlgorithm | undefined {
  if (scheme === 'ED25519') return 'sha512'
  const hashes = (['sha256', 'sha384', 'sha512'] as const).filter((hash) =>
    algorithms.includes(`${scheme}_${hash.replace('sha', 'SHA_')}`),
  )
  return wanted === undefined ? hashes[0] : hashes.find((hash) => hash === wanted)
}

function unfit(target: KmsKey, reason: string): AdmissionError {
  return new AdmissionError('KEY_INVALID', `KMS key ${target.keyId} in ${target.region}: ${reason}`)
}
