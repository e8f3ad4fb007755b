import type { AdmissionRequest } from '../admission/types.ts'
import { matchesConstraints } from '../policy/match.ts'
import { loadRuntime, type PreparedPolicy, preparePolicy } from '../policy/prepare.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { EngineCall } from './types.ts'

/**
 * A function giving the policies that are about a request: those of its route, then those whose matchConstraints match. Each policy is
 * prepared when it matches for the first time, so that a cold start plans only what it uses.
 */
export function policiesFor(
  policies: readonly CompiledPolicy[],
): (request: AdmissionRequest, call: EngineCall) => Promise<PreparedPolicy[]> {
  const inOrder = [...policies].sort((a, b) => (a.name < b.name ? -1 : 1))
  const prepared = new Map<CompiledPolicy, PreparedPolicy>()

  async function prepare(policy: CompiledPolicy): Promise<PreparedPolicy> {
    const known = prepared.get(policy)
    if (known !== undefined) return known
    const made = preparePolicy(policy, await loadRuntime(policy))
    prepared.set(policy, made)
    return made
  }

  return (request, call) => {
    // Namespaced policies do not load yet, so that their route finds none.
    const reachable = call.scope === 'ivpol' ? inOrder : []
    const named = new Set(call.policies)
    const matching = reachable.filter(
      (policy) =>
        (named.size === 0 || named.has(policy.name)) &&
        matchesConstraints(policy.matchConstraints, request),
    )
    return Promise.all(matching.map(prepare))
  }
}
