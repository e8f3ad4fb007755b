import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { HashAlgorithm } from '#shared/signature/types.ts'
import type { Evidence } from './evidence.ts'

/** Whatever can sign like cosign: ECDSA in DER, RSA PKCS#1 v1.5, Ed25519. */
export interface Signer {
  /** base64 SHA-256 of the public key, what cosign puts into a bundle as its hint. */
  readonly hint: string
  readonly publicKey: KeyObject
  /** What messages are hashed with. */
  readonly hash: HashAlgorithm
  /** What goes with its signatures; nothing unless given. */
  readonly evidence?: Evidence
  sign(message: Uint8Array): Promise<Uint8Array>
}

/** A signer with a private key at hand. cosign 2 hashes with SHA-256 whatever the curve, so that is the default. */
export function localSigner(privateKey: KeyObject, hash: HashAlgorithm = 'sha256'): Signer {
  const digest = privateKey.asymmetricKeyType === 'ed25519' ? null : hash
  const publicKey = createPublicKey(privateKey)
  return {
    hint: hintOf(publicKey.export({ type: 'spki', format: 'der' })),
    publicKey,
    hash,
    sign: async (message) => sign(digest, message, privateKey),
  }
}

/** A key in KMS and how to reach it. */
export interface KmsSigningKey {
  /** Key id, alias or ARN. */
  keyId: string
  region: string
  endpoint: string
  credentials: { accessKeyId: string; secretAccessKey: string }
  /** One of the key's signing algorithms; the first it lists unless given, as cosign does. */
  algorithm?: string
}

/** A signer whose private key stays in KMS: the digest is made here and signed there, as cosign does it. */
export async function kmsSigner(key: KmsSigningKey): Promise<Signer> {
  const { GetPublicKeyCommand, KMSClient, SignCommand } = await import('@aws-sdk/client-kms')
  const { keyId, region, endpoint, credentials } = key
  const client = new KMSClient({ region, endpoint, credentials })
  const answer = await client.send(new GetPublicKeyCommand({ KeyId: keyId }))
  const [first] = answer.SigningAlgorithms ?? []
  // KMS refuses a name it does not know.
  const algorithm = (key.algorithm as typeof first) ?? first
  if (algorithm === undefined) throw new TypeError(`${keyId} is not for signing`)
  const hash = algorithm === 'ED25519_SHA_512' ? undefined : hashOf(algorithm)
  const spki = answer.PublicKey ?? new Uint8Array()
  return {
    hint: hintOf(spki),
    publicKey: createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }),
    hash: hash ?? 'sha256',
    async sign(message) {
      const { Signature } = await client.send(
        new SignCommand({
          KeyId: keyId,
          SigningAlgorithm: algorithm,
          ...(hash === undefined
            ? { MessageType: 'RAW', Message: message }
            : { MessageType: 'DIGEST', Message: createHash(hash).update(message).digest() }),
        }),
      )
      return Signature ?? new Uint8Array()
    },
  }
}

function hashOf(algorithm: string): HashAlgorithm {
  const [, bits] = /_SHA_(384|512)$/.exec(algorithm) ?? []
  return bits === undefined ? 'sha256' : bits === '384' ? 'sha384' : 'sha512'
}

function hintOf(spki: Uint8Array): string {
  return createHash('sha256').update(spki).digest('base64')
}
