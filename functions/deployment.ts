import { sha256, toHex, utf8 } from '#shared/bytes.ts'
import type { EngineCall } from '#shared/engine/types.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'
import { canonicalJson, type JsonValue, parseJson, stringifyJson } from '#shared/json.ts'
import { type OutsideNeed, outsideNeeds } from '#shared/policy/outside.ts'
import { type CompiledPolicy, policyKey } from '#shared/policy/types.ts'
import type { HashPort } from '#shared/ports.ts'
import type { AttestorDraft } from '#shared/signature/types.ts'
import type { ClusterConfig, Config } from './config.ts'

/** What a bundle is built around: the checked config and the checked policies, JSON all the way down. */
export interface Deployment {
  config: Config
  policies: readonly CompiledPolicy[]
  /** SHA-256 hex of both: tells in every log line which deployment decided. */
  hash: string
}

/**
 * A Deployment of a config and policies. Throws `CONFIG_INVALID` when a cluster names a policy that is not there, or has one that needs what the
 * config does not give it.
 */
export async function createDeployment(
  config: Config,
  policies: readonly CompiledPolicy[],
): Promise<Deployment> {
  const names = new Set(policies.map(policyKey))
  const faults = [
    ...config.clusters.flatMap((cluster, index) => missing(cluster, index, names)),
    ...config.clusters.flatMap((cluster, index) => missingExceptions(cluster, index, policies)),
    ...config.clusters.flatMap((cluster, index) => unconnected(cluster, index, policies)),
    ...unasked(config, policies),
  ]
  if (faults.length > 0) {
    const lines = faults.map(({ path, message }) => `${path}: ${message}`)
    throw new AdmissionError('CONFIG_INVALID', lines.join('\n'), { faults })
  }
  // Both are JSON by construction; interfaces just have no index signature.
  const content = { config, policies } as unknown as JsonValue
  const hash = toHex(await sha256(utf8(canonicalJson(content))))
  return { config, policies, hash }
}

function missing(cluster: ClusterConfig, index: number, names: ReadonlySet<string>): Fault[] {
  return (cluster.policies ?? []).flatMap((name, at) =>
    names.has(name)
      ? []
      : [
          {
            path: `clusters[${index}].policies[${at}]`,
            message: `no policy of the folder is named "${name}"; it has ${[...names].join(', ') || 'none'}`,
          },
        ],
  )
}

/** An exception that no policy of the folder knows is a slip of the pen: whoever wrote it relies on it. */
function missingExceptions(
  { exceptions = [] }: ClusterConfig,
  index: number,
  policies: readonly CompiledPolicy[],
): Fault[] {
  if (exceptions.length === 0) return []
  const names = new Set(policies.flatMap((policy) => policy.exceptions.map(({ name }) => name)))
  return exceptions.flatMap((name, at) =>
    names.has(name)
      ? []
      : [
          {
            path: `clusters[${index}].exceptions[${at}]`,
            message: `no exception "${name}" refers to a policy of the folder; there are ${[...names].sort().join(', ') || 'none'}`,
          },
        ],
  )
}

/** What the policies of a cluster need of it, where it has no connection: they would deny everything they are about. */
function unconnected(
  cluster: ClusterConfig,
  index: number,
  policies: readonly CompiledPolicy[],
): Fault[] {
  if (cluster.api !== undefined) return []
  return needsAmong(policies, 'cluster')
    .filter(({ key }) => cluster.policies?.includes(key) ?? true)
    .map(({ key, source, path, what }) => ({
      path: `clusters[${index}]`,
      message: `policy ${key} (${source}) needs ${what} in ${path}, which no review carries: give the cluster an api, or list its policies without this one`,
    }))
}

function unasked({ http }: Config, policies: readonly CompiledPolicy[]): Fault[] {
  return needsAmong(policies, 'http').flatMap(({ key, source, path, isNamespaced }) => {
    const where = `policy ${key} (${source}) uses http.* in ${path}`
    if (http === undefined) {
      const message = `${where}: list the hosts that policies may ask in http.allow`
      return [{ path: 'http', message }]
    }
    if (!isNamespaced || http.namespacedPolicies) return []
    const message = `${where}: http calls are not allowed in namespaced policies: set http.namespacedPolicies to enable`
    return [{ path: 'http.namespacedPolicies', message }]
  })
}

/** Each place once: what a policy needs its variants need, too. */
function needsAmong(policies: readonly CompiledPolicy[], of: OutsideNeed['of']) {
  const found = policies.flatMap((policy) =>
    outsideNeeds(policy)
      .filter((need) => need.of === of)
      .map((need) => ({
        ...need,
        key: policyKey(policy),
        source: policy.source,
        isNamespaced: policy.namespace !== undefined,
      })),
  )
  const byPlace = new Map(found.map((each) => [`${each.key} ${each.path} ${each.what}`, each]))
  return [...byPlace.values()]
}

/** The JSON text that is embedded in bundles. Trusted roots, which take seven thousand bytes each, are in it once, and so is what variants share. */
export function formatDeployment({ policies, ...rest }: Deployment): string {
  const roots: string[] = []
  const placed = policies.map((policy) =>
    withRoots(policy, (root) => {
      if (!roots.includes(root)) roots.push(root)
      return String(roots.indexOf(root))
    }),
  )
  const policyTexts = withoutShared(placed)
  return stringifyJson({ ...rest, policies: policyTexts, roots } as unknown as JsonValue)
}

/** Variants without what the policy right before them says as well: it is what they were generated from. */
function withoutShared(policies: readonly CompiledPolicy[]): Partial<CompiledPolicy>[] {
  let base: CompiledPolicy | undefined
  return policies.map((policy) => {
    if (policy.autogen === undefined) base = policy
    if (base === undefined || base === policy || policyKey(base) !== policyKey(policy))
      return policy
    const shared = new Map(Object.entries(base).map(([name, value]) => [name, jsonOf(value)]))
    const isWhole = [...shared.keys()].every((name) => Object.hasOwn(policy, name))
    const own = Object.entries(policy).filter(([name, value]) => shared.get(name) !== jsonOf(value))
    return isWhole ? Object.fromEntries(own) : policy
  })
}

function withShared(policies: readonly Partial<CompiledPolicy>[]): CompiledPolicy[] {
  let base: CompiledPolicy | undefined
  return policies.map((policy) => {
    // Whole, or the rest of what stands before it: `withoutShared` wrote it.
    const whole = (policy.name === undefined ? { ...base, ...policy } : policy) as CompiledPolicy
    if (whole.autogen === undefined) base = whole
    return whole
  })
}

function jsonOf(value: unknown): string {
  // Policies are JSON by construction; interfaces just have no index signature.
  return stringifyJson(value as JsonValue)
}

/** The Deployment in a bundle. The text comes from `formatDeployment`, so nothing but its presence is checked. */
export function parseDeployment(text: string): Deployment {
  // Policies may hold integers beyond 2^53, which only this parser keeps.
  const parsed = parseJson(text) as unknown as Partial<Deployment & { roots: string[] }> | null
  if (!parsed?.config || !parsed.policies || !parsed.hash || !parsed.roots) {
    throw new TypeError('the bundle holds no deployment; `countersign build` makes bundles')
  }
  const { config, hash, roots } = parsed
  const policies = withShared(parsed.policies).map((policy) =>
    withRoots(policy, (place) => roots[Number(place)] ?? ''),
  )
  return { config, policies, hash }
}

/** The policy with the trusted root of each attestor replaced. */
function withRoots(policy: CompiledPolicy, replace: (root: string) => string): CompiledPolicy {
  const attestors = policy.attestors.map((attestor) =>
    attestor.kind === 'unresolved'
      ? { ...attestor, draft: withRoot(attestor.draft, replace) }
      : withRoot(attestor, replace),
  )
  return { ...policy, attestors }
}

function withRoot<A extends AttestorDraft>(attestor: A, replace: (root: string) => string): A {
  if (attestor.kind === 'notary' || attestor.trust?.root === undefined) return attestor
  return { ...attestor, trust: { ...attestor.trust, root: replace(attestor.trust.root) } }
}

/** What a cluster may be asked about. */
export interface ClusterPolicies {
  /** Keys (`policyKey`). */
  granted: ReadonlySet<string>
  /** Exceptions that count, absent where all do. */
  exceptions?: ReadonlySet<string>
  /** Start of the SHA-256 hex of what this cluster's policies and exceptions are: the same wherever they are, whatever else the config says. */
  policySet: string
  /** Names that URLs may have, by route. */
  names: Readonly<Record<EngineCall['scope'], ReadonlySet<string>>>
}

/** The policies that a cluster may be asked about. */
export function policiesOf(
  deployment: Pick<Deployment, 'policies'>,
  cluster: Pick<ClusterConfig, 'policies' | 'exceptions'>,
  hash: HashPort,
): ClusterPolicies {
  const listed = cluster.policies && new Set(cluster.policies)
  const policies = deployment.policies.filter((policy) => listed?.has(policyKey(policy)) ?? true)
  const named = (isNamespaced: boolean) =>
    new Set(
      policies
        .filter(({ namespace }) => (namespace !== undefined) === isNamespaced)
        .map(({ name }) => name),
    )
  return {
    granted: new Set(policies.map(policyKey)),
    ...(cluster.exceptions && { exceptions: new Set(cluster.exceptions) }),
    policySet: policySetOf(policies, cluster, hash),
    names: { ivpol: named(false), nivpol: named(true) },
  }
}

const POLICY_SET_CHARS = 12

/** Policies are told by their hashes, which cover their exceptions, in any order. */
function policySetOf(
  policies: readonly CompiledPolicy[],
  { exceptions }: Pick<ClusterConfig, 'exceptions'>,
  hash: HashPort,
): string {
  const members = policies.map((policy) => [policyKey(policy), policy.autogen ?? '', policy.hash])
  const content = [members.map((member) => member.join(' ')).sort(), exceptions?.toSorted() ?? null]
  return toHex(hash.sha256(utf8(JSON.stringify(content)))).slice(0, POLICY_SET_CHARS)
}
