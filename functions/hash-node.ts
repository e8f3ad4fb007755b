import type { HashPort } from '#shared/ports.ts'

/**
 * The hashes of Node, without a detour through another thread. `node:crypto` is taken with the first hash: Lambda's runtime has loaded
 * it by then, and nobody else waits for it at the start.
 */
export const nodeHash: HashPort = {
  sha256: (message) => new Uint8Array(nodeCrypto().createHash('sha256').update(message).digest()),
  hmacSha256: (key, message) =>
    new Uint8Array(nodeCrypto().createHmac('sha256', key).update(message).digest()),
}

function nodeCrypto() {
  return process.getBuiltinModule('node:crypto')
}
