import { isJsonObject, JsonDouble, type JsonValue, setOwn } from '../json.ts'

/** The value with every number a double, as Go has it when it reads JSON into an `any`. */
export function withDoubles(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return double(Number(value))
  if (typeof value === 'number') return double(value)
  if (Array.isArray(value)) return value.map(withDoubles)
  if (!isJsonObject(value)) return value
  const out: { [key: string]: JsonValue } = {}
  for (const [key, member] of Object.entries(value)) setOwn(out, key, withDoubles(member))
  return out
}

function double(value: number): JsonValue {
  return Number.isSafeInteger(value) ? new JsonDouble(value) : value
}
