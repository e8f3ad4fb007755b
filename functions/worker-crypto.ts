import * as node from 'node:crypto'

/**
 * `node:crypto` for Workers, put in its place by the build. workerd fails on `verify(undefined, …)` for EC and RSA keys,
 * where Node takes the key's own default digest (`specs/signatures.md` 3); everything else is passed on.
 */
export * from 'node:crypto'

type Verify = (
  algorithm: string | null | undefined,
  data: Uint8Array,
  key: node.KeyLike | node.VerifyKeyObjectInput,
  signature: Uint8Array,
) => boolean

/** `crypto.verify` that names SHA-256 where Node would take it by itself. */
export const verify: Verify = (algorithm, data, key, signature) =>
  node.verify(algorithm ?? defaultDigest(key), data, key, signature)

function defaultDigest(key: node.KeyLike | node.VerifyKeyObjectInput): string | undefined {
  const type = key instanceof node.KeyObject ? key.asymmetricKeyType : undefined
  return type === 'ec' || type === 'rsa' ? 'sha256' : undefined
}

/** CommonJS callers take the whole module. */
export default { ...node, verify }
