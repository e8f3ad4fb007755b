import type { Bytes } from '../../bytes.ts'
import { toAdmissionError } from '../../errors.ts'
import { decodeJson, isJsonObject, type JsonValue } from '../../json.ts'
import { MAX_NOTARY_JSON_DEPTH, MAX_NOTARY_JSON_VALUES } from '../../limits.ts'
import { malformed } from '../x509/reader.ts'

export type JsonObject = { [key: string]: JsonValue }

/** The JSON object in a part of a signature, which `what` names in messages. Throws `SIGNATURE_MALFORMED`. */
export function parseObject(bytes: Bytes, what: string): JsonObject {
  let value: JsonValue
  try {
    value = decodeJson(bytes, {
      maxDepth: MAX_NOTARY_JSON_DEPTH,
      maxValues: MAX_NOTARY_JSON_VALUES,
    })
  } catch (thrown) {
    const cause = toAdmissionError(thrown, what)
    throw malformed(`${what}: ${cause.message}`, cause)
  }
  if (!isJsonObject(value)) throw malformed(`${what} is not a JSON object`)
  return value
}
