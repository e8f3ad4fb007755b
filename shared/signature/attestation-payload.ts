import type { Bytes } from '../bytes.ts'
import { dig, readJson } from './content.ts'
import { openEnvelope } from './dsse.ts'
import type { Attestation } from './types.ts'

/**
 * What a blob attests: the layer of a referrer as it is, else the statement in its envelope, which may stand in a bundle. Says nothing
 * about who made it. Throws `SIGNATURE_MALFORMED` or `JSON_INVALID`.
 */
export function payloadIn(blob: Bytes, attestation: Attestation): Bytes {
  if ('referrer' in attestation) return blob
  const json = readJson(blob)
  return openEnvelope(dig(json, 'dsseEnvelope') ?? json).payload
}
