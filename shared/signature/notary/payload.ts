import type { Bytes } from '../../bytes.ts'
import { getOwn, isJsonObject, type JsonValue } from '../../json.ts'
import type { Descriptor } from '../../registry/types.ts'
import { malformed } from '../x509/reader.ts'
import { parseObject } from './json.ts'

/**
 * Why the signed payload is not about this artifact, or undefined when media type, digest and size are all the artifact's. Annotations
 * in it are the signer's notes and decide nothing. Throws `SIGNATURE_MALFORMED` when it cannot be read.
 */
export function whyNotTarget(payload: Bytes, artifact: Descriptor): string | undefined {
  const target = getOwn(parseObject(payload, 'the payload'), 'targetArtifact')
  if (!isJsonObject(target)) throw malformed('the payload has no target artifact')
  for (const key of ['digest', 'mediaType', 'size'] as const) {
    if (getOwn(target, key) !== artifact[key]) {
      return `it is about another artifact: ${key} ${show(getOwn(target, key))}, expected ${artifact[key]}`
    }
  }
  return undefined
}

function show(value: JsonValue | undefined): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 100))
  return typeof value === 'number' ? String(value) : 'of another type'
}
