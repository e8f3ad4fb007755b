import { md5, sha1 } from '@noble/hashes/legacy.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { toHex, utf8 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { goJson, isJsonObject, JsonDouble, type JsonValue, parseJson } from '../../json.ts'
import {
  any,
  double,
  duration,
  int,
  type Library,
  list,
  overload,
  string,
  timestamp,
} from '../implementation.ts'
import { toJson } from '../to-json.ts'
import {
  CelError,
  type CelResult,
  type CelValue,
  double as doubleOf,
  isMap,
  Message,
  mapFind,
  Timestamp,
  toNumber,
} from '../values.ts'
import { contextOf, KYVERNO } from './kyverno-context.ts'

const json = contextOf(KYVERNO.json)

/** A function under both of its names. */
function prefixed(prefix: string, name: string, id: string, make: (fn: string) => Library[string]) {
  return {
    [`${id}_non_prefixed`]: make(name),
    [`${id}_prefixed`]: make(`${prefix}.${name}`),
  }
}

function hash(name: string, digest: (message: Uint8Array) => Uint8Array): Library {
  return prefixed('hash', name, `${name}_string`, (fn) =>
    overload(fn, [string], (text) => toHex(digest(utf8(text)))),
  )
}

/** Kyverno's functions that need nothing from outside, by overload id (image-validating-policy.md 2.7). */
export const kyvernoFunctions: Library = {
  unmarshal_string_dyn: overload('unmarshal', [json, string], (_, text) => unmarshal(text)),
  marshal_dyn_string: overload('marshal', [json, any], (_, value) => marshal(value)),
  ...hash('md5', md5),
  ...hash('sha1', sha1),
  ...hash('sha256', sha256),
  ...prefixed('user', 'parseServiceAccount', 'parse_service_account_string', (fn) =>
    overload(fn, [string], serviceAccount),
  ),
  ...prefixed('transform', 'listObjToMap', 'list_of_object_to_map', (fn) =>
    overload(fn, [list, list, string, string], listObjToMap),
  ),
  math_round_float_int: overload('math.round', [double, int], round),
  time_to_cron: overload('time.toCron', [timestamp], toCron),
  time_truncate: overload('time.truncate', [timestamp, duration], truncate),
}

/** JSON as Go reads it into an `any`: every number is a double. */
function unmarshal(text: string): CelResult {
  try {
    return withDoubles(parseJson(text))
  } catch (error) {
    if (error instanceof AdmissionError) return new CelError(error.message)
    throw error
  }
}

function withDoubles(value: JsonValue): CelValue {
  if (typeof value === 'number' || typeof value === 'bigint') return doubleOf(Number(value))
  if (Array.isArray(value)) return value.map(withDoubles)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withDoubles(item)]))
}

/** JSON as Go writes it: keys in order, `<`, `>` and `&` escaped, integral doubles without a fraction. */
function marshal(value: CelValue): CelResult {
  const plain = toJson(value)
  if (plain instanceof CelError) return plain
  const numbers = withNumbers(plain)
  return numbers instanceof CelError ? numbers : goJson(numbers)
}

function withNumbers(value: JsonValue): JsonValue | CelError {
  if (value instanceof JsonDouble) return withNumbers(value.value)
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return new CelError(`json: unsupported value: ${value}`)
  }
  if (Array.isArray(value)) return allOf(value.map(withNumbers))
  if (!isJsonObject(value)) return value
  const items = allOf(Object.values(value).map(withNumbers))
  if (items instanceof CelError) return items
  return Object.fromEntries(Object.keys(value).map((key, i) => [key, items[i] ?? null]))
}

function allOf(values: readonly (JsonValue | CelError)[]): JsonValue[] | CelError {
  const plain: JsonValue[] = []
  for (const value of values) {
    if (value instanceof CelError) return value
    plain.push(value)
  }
  return plain
}

const SERVICE_ACCOUNT = 'system:serviceaccount:'

/** Both parts of a service account's user name; empty for any other user. */
function serviceAccount(user: string): CelResult {
  const rest = user.startsWith(SERVICE_ACCOUNT) ? user.slice(SERVICE_ACCOUNT.length) : ''
  const colon = rest.indexOf(':')
  const [namespace, name] = colon < 0 ? ['', ''] : [rest.slice(0, colon), rest.slice(colon + 1)]
  return new Message(
    KYVERNO.serviceAccount,
    new Map([
      ['Name', name],
      ['Namespace', namespace],
    ]),
  )
}

/** A map from a field of each object of one list to a field of the object at the same place in the other. */
function listObjToMap(
  keys: readonly CelValue[],
  values: readonly CelValue[],
  keyField: string,
  valueField: string,
): CelResult {
  if (keys.length !== values.length) {
    const lengths = `list1: ${keys.length}, list2: ${values.length}`
    return new CelError(`listObjToMap must take lists of equal length. ${lengths}`)
  }
  const entries: [string, CelValue][] = []
  for (const [i, object] of keys.entries()) {
    const other = values[i] ?? null
    if (!isMap(object) || !isMap(other)) return new CelError('object cannot be handled as a map')
    const key = mapFind(object, keyField)
    if (typeof key !== 'string') {
      return new CelError(
        'the passed key name cannot be handled as a string in the key object list',
      )
    }
    entries.push([key, mapFind(other, valueField) ?? null])
  }
  return Object.fromEntries(entries)
}

/** The number with that many decimal places; halves go away from zero. */
function round(value: number | JsonDouble, places: number | bigint): CelResult {
  const shift = 10 ** Number(places)
  const shifted = toNumber(value) * shift
  return doubleOf((Math.sign(shifted) * Math.round(Math.abs(shifted))) / shift)
}

const MILLISECOND = 1_000_000n

/** Minute, hour, day, month and weekday in UTC. */
function toCron({ ns }: Timestamp): string {
  const date = new Date(Number(floorTo(ns, MILLISECOND) / MILLISECOND))
  const [hour, day] = [date.getUTCHours(), date.getUTCDate()]
  return [date.getUTCMinutes(), hour, day, date.getUTCMonth() + 1, date.getUTCDay()].join(' ')
}

/** The last multiple of the duration since the start of the year 1; the time itself for a duration that is not positive. */
function truncate({ ns }: Timestamp, { ns: step }: { ns: bigint }): CelResult {
  if (step <= 0n) return new Timestamp(ns)
  return new Timestamp(floorTo(ns - YEAR_1, step) + YEAR_1)
}

/** The start of the year 1, in nanoseconds of the epoch. */
const YEAR_1 = -62_135_596_800_000_000_000n

function floorTo(ns: bigint, step: bigint): bigint {
  const rest = ns % step
  return ns - (rest < 0n ? rest + step : rest)
}
