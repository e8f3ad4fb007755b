import type { AdmissionRequest } from '../admission/types.ts'
import type { PreparedPolicy } from '../policy/prepare.ts'
import { matchesNamespace } from '../policy/selector.ts'
import type { Subject } from '../policy/subject.ts'
import type { Inquiry } from './inquiry.ts'

/**
 * Looks the namespace of a request up if one of the policies needs it: to match at all, or, once it is known which of them apply, for
 * anything later. Never throws: that it could not be looked up is kept in its place, and whoever reads it says so.
 */
export async function learnNamespace(
  policies: readonly PreparedPolicy[],
  subject: Subject,
  inquiry: Inquiry,
  when: 'match' | 'evaluation',
): Promise<void> {
  const { request, namespace } = subject
  if (namespace.state.status !== 'unasked') return
  if (!policies.some((prepared) => needs(prepared, request, when))) return
  namespace.state = await inquiry.namespace(request.namespace ?? '')
}

function needs(
  { policy, readsNamespace }: PreparedPolicy,
  request: AdmissionRequest,
  when: 'match' | 'evaluation',
): boolean {
  if (readsNamespace === when) return true
  const { namespaceSelector } = policy.matchConstraints
  return when === 'match' && matchesNamespace(namespaceSelector, request) === undefined
}
