import { toHex, utf8 } from '#shared/bytes.ts'
import type { EngineCall } from '#shared/engine/types.ts'
import { type JsonValue, parseJson, stringifyJson } from '#shared/json.ts'
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

/** The JSON text that is embedded in bundles. */
export function formatDeployment({ policies, ...rest }: Deployment): string {
  // JSON by construction; interfaces just have no index signature.
  return stringifyJson({ ...rest, ...packPolicies(policies) } as unknown as JsonValue)
}

/** Policies as they are written down. Trusted roots, which take seven thousand bytes each, are in it once, and so is what variants share. */
export interface PackedPolicies {
  policies: readonly Partial<CompiledPolicy>[]
  roots: readonly string[]
}

/** The policies in fewer bytes; `unpackPolicies` gives them back. */
export function packPolicies(policies: readonly CompiledPolicy[]): PackedPolicies {
  const roots: string[] = []
  const placed = policies.map((policy) =>
    withRoots(policy, (root) => {
      if (!roots.includes(root)) roots.push(root)
      return String(roots.indexOf(root))
    }),
  )
  return { policies: withoutShared(placed), roots }
}

/** The policies that `packPolicies` wrote. */
export function unpackPolicies({ policies, roots }: PackedPolicies): CompiledPolicy[] {
  return withShared(policies).map((policy) =>
    withRoots(policy, (place) => roots[Number(place)] ?? ''),
  )
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
  const { config, hash, policies, roots } = parsed
  return { config, policies: unpackPolicies({ policies, roots }), hash }
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
