import type { Bytes } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { decodeJson } from '#shared/json.ts'
import { MAX_POLICY_BUNDLE_BYTES } from '#shared/limits.ts'
import { type Envelope, openEnvelope } from '#shared/signature/dsse.ts'
import { refused } from './faults.ts'
import type { BundleKey } from './key.ts'
import { PAYLOAD_TYPE } from './payload.ts'

/** Values of an envelope: payload type, payload, one signature. */
const MAX_VALUES = 50

/**
 * The payload of a signed bundle. Throws `POLICY_BUNDLE_REFUSED` unless it is a DSSE envelope of our type with one signature by this key,
 * and whatever the key throws when it cannot be had.
 */
export async function openBundle(
  file: Uint8Array,
  key: BundleKey,
  signal: AbortSignal,
): Promise<Bytes> {
  const { payload, message, signature } = open(file)
  if (await key.verify(message, signature, signal)) return payload
  throw refused(`its signature is not by ${key.name}`)
}

function open(file: Uint8Array): Envelope {
  try {
    const envelope = decodeJson(file, { maxValues: MAX_VALUES })
    return openEnvelope(envelope, MAX_POLICY_BUNDLE_BYTES, PAYLOAD_TYPE)
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    throw refused(thrown.message)
  }
}
