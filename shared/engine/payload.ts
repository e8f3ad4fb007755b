import { withDoubles } from '../cel/doubles.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { decodeJson, type JsonValue } from '../json.ts'
import { maxValuesOf } from '../registry/json-object.ts'

/**
 * The value of `extractPayload`: the JSON that was attested, its numbers as Go reads them into an `any`. What is no such JSON is the error
 * that the expression gets, in upstream's words (image-validating-policy.md 2.5).
 */
export function readPayload(bytes: Uint8Array, attestation: string): JsonValue | AdmissionError {
  try {
    return withDoubles(decodeJson(bytes, { maxValues: maxValuesOf(bytes) }))
  } catch (thrown) {
    const { message } = toAdmissionError(thrown, 'reading a payload')
    const text = `failed to get payload: failed to unmarshal json for attestation ${attestation}: ${message}`
    return new AdmissionError('JSON_INVALID', text)
  }
}
