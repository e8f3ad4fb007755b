import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import type { HashAlgorithm } from '#shared/signature/types.ts'
import type { Signer } from './signer.ts'

/** A transit key and how to reach it. */
export interface VaultSigningKey {
  url: string
  token: string
  name: string
  mount?: string
  namespace?: string
  hash?: HashAlgorithm
  /** The message itself is signed, as Ed25519 wants it; cosign sends the digest for every type. */
  raw?: boolean
}

interface Key {
  latest_version: number
  keys: Record<string, { name: string; public_key: string }>
}

/** A signer whose private key stays in Vault: the digest is made here and signed there with PKCS #1 for RSA, as cosign does it. */
export async function vaultSigner(key: VaultSigningKey): Promise<Signer> {
  const { name, hash = 'sha256', raw = false } = key
  const { keys, latest_version: latest } = (await call(key, `keys/${name}`)) as Key
  const { name: label, public_key: text } = keys[latest] ?? { name: '', public_key: '' }
  const publicKey = label === 'ed25519' ? ed25519(text) : createPublicKey(text)
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  return {
    hint: createHash('sha256').update(spki).digest('base64'),
    publicKey,
    hash,
    async sign(message) {
      const input = raw ? message : createHash(hash).update(message).digest()
      const path = raw ? `sign/${name}` : `sign/${name}/${hash.replace('sha', 'sha2-')}`
      const { signature } = (await call(key, path, {
        input: Buffer.from(input).toString('base64'),
        prehashed: !raw,
        signature_algorithm: 'pkcs1v15',
      })) as { signature: string }
      return Buffer.from(signature.replace(/^vault:v\d+:/, ''), 'base64')
    },
  }
}

function ed25519(raw: string): KeyObject {
  const x = Buffer.from(raw, 'base64').toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

/** `data` of the answer. */
async function call(
  { url, token, mount = 'transit', namespace }: VaultSigningKey,
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await fetch(`${url}/v1/${mount}/${path}`, {
    headers: {
      'x-vault-token': token,
      'x-vault-request': 'true',
      ...(namespace !== undefined && { 'x-vault-namespace': namespace }),
    },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new TypeError(`Vault answered ${response.status} to ${path}`)
  // The emulator is ours.
  return ((await response.json()) as { data: unknown }).data
}
