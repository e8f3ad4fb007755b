import { withDoubles } from '../cel/doubles.ts'
import type { JsonValue } from '../json.ts'
import { MAX_POLICY_BYTES } from '../limits.ts'
import { parseYaml } from '../yaml.ts'

/** The first document of a YAML text, every number a double: Go reads it into an `any` by way of JSON. Throws `YAML_INVALID`. */
export function parseText(text: string): JsonValue {
  if (text.length > MAX_POLICY_BYTES) {
    throw new RangeError(`the text has more than ${MAX_POLICY_BYTES} characters`)
  }
  return withDoubles(parseYaml(text)[0] ?? null)
}
