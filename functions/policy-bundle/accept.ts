import type { Config } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { sha256, toHex } from '#shared/bytes.ts'
import { RARE_PARTS } from '#shared/cluster/session.ts'
import { AdmissionError } from '#shared/errors.ts'
import { POLICY_BUNDLE_SKEW_MS } from '#shared/limits.ts'
import { contextNeeds } from '#shared/policy/outside.ts'
import { loadRuntime, preparePolicy } from '#shared/policy/prepare.ts'
import { type CompiledPolicy, draftOf, policyKey } from '#shared/policy/types.ts'
import { resolveKeyReference } from '#shared/signature/kms-reference.ts'
import { refused } from './faults.ts'
import { type Audience, audienceOf, type PolicyPayload, readPayload } from './payload.ts'

/** A bundle that counts. */
export interface Accepted {
  payload: PolicyPayload
  /** SHA-256 hex of what was signed. */
  hash: string
  deployment: Deployment
}

/** Policies that are planned at one go, about a millisecond: reviews go on in between. */
const BATCH = 10

/** What of a bundle tells it from another. */
export type Place = Pick<Accepted, 'hash'> & { payload: Pick<PolicyPayload, 'sequence'> }

/**
 * A signed payload as a deployment of this config, unless it is the one that is in use: then undefined. Throws `POLICY_BUNDLE_REFUSED` when it
 * is for others, older than what is in use, out of its time, or holds a policy that could not run here.
 *
 * @param now epoch milliseconds
 */
export async function acceptPayload(
  bytes: Uint8Array,
  config: Config,
  inUse: Place | undefined,
  now: number,
): Promise<Accepted | undefined> {
  const payload = readPayload(bytes)
  const hash = toHex(await sha256(bytes))
  checkAudience(payload.audience, audienceOf(config))
  const isInUse = !isNewer({ payload, hash }, inUse)
  checkTimes(payload, config, now)
  if (isInUse) return undefined
  const { pinned, policies } = payload
  checkPolicies(config, policies)
  const own = pinned === undefined ? config : { ...config, kms: { ...config.kms, pinned } }
  const deployment = await deploymentOf(own, policies)
  for (const [index, policy] of policies.entries()) {
    if (index % BATCH === BATCH - 1) await letOthersRun()
    await checkRuns(policy)
  }
  return { payload, hash, deployment }
}

/** False for the bundle that is in use itself. Throws `POLICY_BUNDLE_REFUSED` for an older one, and for another one of the same sequence. */
export function isNewer({ payload: { sequence }, hash }: Place, inUse: Place | undefined): boolean {
  if (inUse === undefined || sequence > inUse.payload.sequence) return true
  if (hash === inUse.hash) return false
  const than = `sequence ${inUse.payload.sequence} is in use`
  throw refused(
    sequence < inUse.payload.sequence
      ? `it is older: its sequence is ${sequence}, and ${than}`
      : `it is another one of the same sequence: ${than}`,
  )
}

/** A bundle may know more clusters than a function that was built before they came, and never fewer. */
function checkAudience({ endpoints, clusters }: Audience, own: Audience): void {
  const listed = (names: readonly string[]) => names.join(', ') || 'none'
  if (JSON.stringify(endpoints) !== JSON.stringify(own.endpoints)) {
    throw refused(
      `it is for ${listed(endpoints)}, and this function is at ${listed(own.endpoints)}`,
    )
  }
  const missing = own.clusters.filter((name) => !clusters.includes(name))
  if (missing.length > 0) {
    throw refused(`it is for clusters ${listed(clusters)}, and not for ${listed(missing)}`)
  }
}

function checkTimes(payload: PolicyPayload, { policyBundle }: Config, now: number): void {
  const { sequence, issuedAt } = payload
  const least = policyBundle?.minSequence ?? 0
  if (sequence < least) {
    throw refused(`its sequence is ${sequence}, and policyBundle.minSequence is ${least}`)
  }
  checkExpiry(payload, now)
  if (issuedAt > now + POLICY_BUNDLE_SKEW_MS) {
    throw refused(`it was signed at ${new Date(issuedAt).toISOString()}, which is still to come`)
  }
}

/** Throws `POLICY_BUNDLE_REFUSED` for a bundle that is over. */
export function checkExpiry({ expiresAt }: Pick<PolicyPayload, 'expiresAt'>, now: number): void {
  if (expiresAt === undefined || now < expiresAt) return
  throw refused(`it expired at ${new Date(expiresAt).toISOString()}`)
}

/** What checks of a deployment leave to whoever compiles policies: names must be of one policy, and keys and logins such that the config has them. */
function checkPolicies(config: Config, policies: readonly CompiledPolicy[]): void {
  const seen = new Set<string>()
  for (const policy of policies) {
    const name = [policyKey(policy), policy.autogen ?? ''].join(' ').trim()
    if (seen.has(name)) throw refused(`policy ${name} is in it twice`)
    seen.add(name)
    for (const reference of referencesOf(policy)) checkReference(reference, name, config)
    const { secrets: known = [], credentials } = config.registries
    const unknown = [
      ...(policy.credentials?.secrets ?? []).filter(
        (secret) => !known.some((each) => each.name === secret),
      ),
      ...(policy.credentials?.providers ?? []).filter(
        (provider) => provider !== 'default' && !credentials.some(({ kind }) => kind === provider),
      ),
    ]
    if (unknown.length > 0) {
      const missing = `the config of this function has no login ${unknown.join(', ')}`
      throw refused(`policy ${name}: ${missing}`)
    }
  }
}

/** Keys of key services that stand in a policy; what requests give is found out then. */
function referencesOf({ attestors }: CompiledPolicy): string[] {
  return attestors.flatMap((attestor) => {
    const draft = draftOf(attestor)
    const isOpen = attestor.kind === 'unresolved'
    return !isOpen && draft.kind === 'cosign-key' && 'kms' in draft.key ? [draft.key.kms] : []
  })
}

function checkReference(reference: string, name: string, { kms }: Config): void {
  try {
    resolveKeyReference(reference, kms)
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    throw refused(`policy ${name}: ${thrown.message}`)
  }
}

async function deploymentOf(
  config: Config,
  policies: readonly CompiledPolicy[],
): Promise<Deployment> {
  try {
    return await createDeployment(config, policies)
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    throw refused(thrown.message)
  }
}

function letOthersRun(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0))
}

/** Everything is planned once before it counts: what cannot run would deny whatever it is about. */
async function checkRuns(policy: CompiledPolicy): Promise<void> {
  try {
    preparePolicy(policy, await loadRuntime(policy))
    const needs = contextNeeds(policy)
    for (const [need, load] of Object.entries(RARE_PARTS)) if (needs.has(need)) await load()
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown)
    throw refused(`policy ${policyKey(policy)} (${policy.source}) cannot run here: ${reason}`)
  }
}
