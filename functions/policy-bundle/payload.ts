import type { Config } from '#functions/config.ts'
import { type PackedPolicies, unpackPolicies } from '#functions/deployment.ts'
import { endpointsOf } from '#functions/endpoints.ts'
import type { PinnedKeys } from '#functions/kms-pinned.ts'
import { AdmissionError } from '#shared/errors.ts'
import { decodeJson, isJsonObject, type JsonValue } from '#shared/json.ts'
import { MAX_POLICY_BUNDLE_VALUES } from '#shared/limits.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { refused } from './faults.ts'
import { policyFault } from './policy-shape.ts'

/** DSSE payload type of a policy bundle. */
export const PAYLOAD_TYPE = 'application/vnd.countersign.policies.v1+json'

/**
 * What compiled policies are like. Raise it with every change of what compiles or runs them after which one of the two would misread the other:
 * functions take no bundle of another format.
 */
export const POLICY_FORMAT = 1

/** Whom a bundle is for: a bundle of one deployment is none for another. */
export interface Audience {
  /** Where the functions are, each once, in order. */
  endpoints: readonly string[]
  /** Names of clusters, in order. */
  clusters: readonly string[]
}

/** What is signed. */
export interface PolicyPayload {
  audience: Audience
  /** Grows from one bundle to the next. */
  sequence: number
  /** Epoch milliseconds. */
  issuedAt: number
  /** Epoch milliseconds; it counts until another one takes its place when absent. */
  expiresAt?: number
  pinned?: PinnedKeys
  policies: readonly CompiledPolicy[]
}

/** Whom bundles of this config are for. */
export function audienceOf({
  endpoint,
  clusters,
}: Pick<Config, 'endpoint' | 'clusters'>): Audience {
  return {
    endpoints: [...new Set(Object.values(endpointsOf(endpoint)).map(String))].sort(),
    clusters: clusters.map(({ name }) => name).sort(),
  }
}

/**
 * The payload of a bundle whose signature was verified. Throws `POLICY_BUNDLE_REFUSED` for another format, and for whatever this engine
 * would not take at its word: members it does not know among them, since they may say what a policy is not about.
 */
export function readPayload(bytes: Uint8Array): PolicyPayload {
  const value = json(bytes)
  const { format, audience, sequence, issuedAt, expiresAt, pinned, policies, roots } = value
  if (format !== POLICY_FORMAT) {
    const found = typeof format === 'number' ? `format ${format}` : 'no format'
    throw refused(
      `its policies are compiled to ${found}, and this function reads format ${POLICY_FORMAT}: build the functions and the bundle with the same version of countersign`,
    )
  }
  const unknown = Object.keys(value).filter((key) => !MEMBERS.includes(key))
  if (unknown.length > 0) throw refused(`it has members that nobody knows: ${unknown.join(', ')}`)
  if (!isCount(sequence)) throw refused('its sequence is no whole number above 0')
  return {
    audience: readAudience(audience),
    sequence,
    issuedAt: instant(issuedAt, 'issuedAt'),
    ...(expiresAt !== undefined && { expiresAt: instant(expiresAt, 'expiresAt') }),
    ...(pinned !== undefined && { pinned: readPinned(pinned) }),
    policies: readPolicies(policies, roots),
  }
}

const MEMBERS = [
  'format',
  'audience',
  'sequence',
  'issuedAt',
  'expiresAt',
  'pinned',
  'policies',
  'roots',
]

function json(bytes: Uint8Array): { [key: string]: JsonValue } {
  try {
    const value = decodeJson(bytes, { maxValues: MAX_POLICY_BUNDLE_VALUES })
    if (isJsonObject(value)) return value
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    throw refused(`its payload cannot be read: ${thrown.message}`)
  }
  throw refused('its payload is no object')
}

function readAudience(value: JsonValue | undefined): Audience {
  const { endpoints, clusters } = isJsonObject(value) ? value : {}
  if (isTexts(endpoints) && isTexts(clusters)) return { endpoints, clusters }
  throw refused('it does not say whom it is for')
}

function readPinned(value: JsonValue): PinnedKeys {
  const { fetchedAt, keys } = isJsonObject(value) ? value : {}
  const texts = ['keyId', 'region', 'spki', 'keySpec', 'keyUsage']
  const isKey = (key: JsonValue) =>
    isJsonObject(key) &&
    texts.every((name) => typeof key[name] === 'string') &&
    isTexts(key.signingAlgorithms)
  if (typeof fetchedAt === 'string' && Array.isArray(keys) && keys.every(isKey)) {
    // Every member that is read was just looked at.
    return { fetchedAt, keys: keys as unknown as PinnedKeys['keys'] }
  }
  throw refused('its pinned keys are none')
}

function readPolicies(
  packed: JsonValue | undefined,
  roots: JsonValue | undefined,
): readonly CompiledPolicy[] {
  if (!Array.isArray(packed) || !packed.every(isJsonObject) || !isTexts(roots)) {
    throw refused('it holds no list of policies')
  }
  if (packed.length === 0) {
    throw refused('it holds no policy: functions without policies would admit everything')
  }
  const policies = unpack({ policies: packed as PackedPolicies['policies'], roots })
  for (const [index, policy] of policies.entries()) {
    const fault = policyFault(policy)
    if (fault !== undefined) throw refused(`policies[${index}]: ${fault}`)
  }
  return policies
}

/** What has no attestors, or others than policies have, cannot be put together. */
function unpack(packed: PackedPolicies): CompiledPolicy[] {
  try {
    return unpackPolicies(packed)
  } catch (thrown) {
    if (thrown instanceof TypeError) throw refused('it holds something else among its policies')
    throw thrown
  }
}

function instant(value: JsonValue | undefined, name: string): number {
  const isInstant = typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)
  const at = isInstant ? Date.parse(value) : Number.NaN
  if (Number.isNaN(at)) throw refused(`its ${name} is no time`)
  return at
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}

function isTexts(value: JsonValue | undefined): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}
