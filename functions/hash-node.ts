import { createHash, createHmac } from 'node:crypto'
import type { HashPort } from '#shared/ports.ts'

/** The hashes of Node, without a detour through another thread. */
export const nodeHash: HashPort = {
  sha256: (message) => new Uint8Array(createHash('sha256').update(message).digest()),
  hmacSha256: (key, message) => new Uint8Array(createHmac('sha256', key).update(message).digest()),
}
