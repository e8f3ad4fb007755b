import type { AdmissionRequest } from '../admission/types.ts'
import { matchesConstraints } from '../policy/match.ts'
import { loadRuntime, type PreparedPolicy, preparePolicy } from '../policy/prepare.ts'
import { type CompiledPolicy, compareTexts, policyKey } from '../policy/types.ts'
import type { EngineCall } from './types.ts'

/**
 * A function giving the policies that are about a request, by key and then by variant: those of its route, then those whose
 * matchConstraints match. Each policy is prepared when it matches for the first time, so that a cold start plans only what it uses.
 */
export function policiesFor(
  policies: readonly CompiledPolicy[],
): (request: AdmissionRequest, call: EngineCall) => Promise<PreparedPolicy[]> {
  const byNamespace = grouped(policies)
  const prepared = new Map<CompiledPolicy, PreparedPolicy>()

  async function prepare(policy: CompiledPolicy): Promise<PreparedPolicy> {
    const made = preparePolicy(policy, await loadRuntime(policy))
    prepared.set(policy, made)
    return made
  }

  return async (request, call) => {
    const matching = (byNamespace.get(namespaceOf(request, call)) ?? []).filter(
      ({ key, policy }) =>
        isCalled(key, policy, call) && matchesConstraints(policy.matchConstraints, request),
    )
    const known = matching.flatMap(({ policy }) => prepared.get(policy) ?? [])
    if (known.length === matching.length) return known
    return Promise.all(matching.map(({ policy }) => prepared.get(policy) ?? prepare(policy)))
  }
}

type Keyed = { key: string; policy: CompiledPolicy }

/** The cluster policies are those of `undefined`. */
function grouped(policies: readonly CompiledPolicy[]): Map<string | undefined, Keyed[]> {
  const inOrder = policies
    .map((policy) => ({ key: policyKey(policy), policy }))
    .sort(
      (a, b) =>
        compareTexts(a.key, b.key) || compareTexts(a.policy.autogen ?? '', b.policy.autogen ?? ''),
    )
  const groups = new Map<string | undefined, Keyed[]>()
  for (const each of inOrder) {
    const { namespace } = each.policy
    const group = groups.get(namespace)
    if (group === undefined) groups.set(namespace, [each])
    else group.push(each)
  }
  return groups
}

/** No policy is in the namespace of what is in none: cluster-scoped objects are no namespaced policy's business. */
function namespaceOf({ namespace }: AdmissionRequest, { scope }: EngineCall): string | undefined {
  return scope === 'ivpol' ? undefined : (namespace ?? '')
}

function isCalled(
  key: string,
  { name }: CompiledPolicy,
  { policies, granted }: EngineCall,
): boolean {
  return (policies.length === 0 || policies.includes(name)) && (granted?.has(key) ?? true)
}
