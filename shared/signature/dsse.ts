import { type Bytes, concat, fromBase64, utf8 } from '../bytes.ts'
import type { JsonValue } from '../json.ts'
import { MAX_BLOB_BYTES } from '../limits.ts'
import { dig, malformed, quote, readSignature } from './content.ts'

/** Payload type of an in-toto statement. */
export const IN_TOTO = 'application/vnd.in-toto+json'

/** An opened DSSE envelope: nothing about it is verified yet. */
export interface Envelope {
  /** Decoded once; what is parsed is what was signed. */
  payload: Bytes
  /** What the signature is over. */
  message: Bytes
  signature: Bytes
}

/**
 * The parts of a DSSE envelope that carries a payload of this type, an in-toto statement unless said otherwise, of at most `maxBytes`. Throws `SIGNATURE_MALFORMED` unless the payload
 * type is exactly that, the base64 is strict and there is exactly one signature (specs/signatures.md 1.6, 12).
 */
export function openEnvelope(
  envelope: JsonValue,
  maxBytes = MAX_BLOB_BYTES,
  expected = IN_TOTO,
): Envelope {
  const payloadType = dig(envelope, 'payloadType')
  if (payloadType !== expected) {
    throw malformed(`DSSE payload type is ${quote(payloadType)}, expected ${expected}`)
  }
  const signatures = dig(envelope, 'signatures')
  const count = Array.isArray(signatures) ? signatures.length : 0
  if (!Array.isArray(signatures) || count !== 1) {
    throw malformed(`DSSE envelope has ${count} signatures, expected one`)
  }
  const signature = readSignature(dig(signatures[0], 'sig'), 'DSSE signature')
  const payload = readPayload(dig(envelope, 'payload'), maxBytes)
  return { payload, message: preAuthenticationEncoding(expected, payload), signature }
}

/** What a DSSE signature is over (PAE): type and body, each with its length in bytes. */
export function preAuthenticationEncoding(payloadType: string, payload: Uint8Array): Bytes {
  const type = utf8(payloadType)
  return concat(utf8(`DSSEv1 ${type.length} `), type, utf8(` ${payload.length} `), payload)
}

function readPayload(value: JsonValue | undefined, maxBytes: number): Bytes {
  if (typeof value !== 'string') throw malformed('DSSE payload is missing')
  if (value.length > 4 * Math.ceil(maxBytes / 3)) {
    throw malformed(`DSSE payload is larger than ${maxBytes} bytes`)
  }
  const payload = fromBase64(value)
  if (payload === undefined) throw malformed('DSSE payload is not strict base64')
  return payload
}
