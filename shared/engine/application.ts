import type { Subject } from '../policy/subject.ts'
import { type Applied, applyConditions } from './evaluation.ts'
import type { Inquiry } from './inquiry.ts'
import type { Isolate } from './isolate.ts'
import { learnNamespace } from './namespace.ts'
import type { EngineCall } from './types.ts'

/**
 * The policies that are to be evaluated on the subject of a request, and what is settled about the others: those that its call is about,
 * that match it, and that no exception skips. What they need to know of the namespace is looked up.
 */
export async function applyPolicies(
  subject: Subject,
  call: EngineCall,
  { options, select }: Isolate,
  inquiry: Inquiry,
): Promise<Applied> {
  const selected = await select(subject.request, call)
  await learnNamespace(selected, subject, inquiry, 'match')
  const applied = applyConditions(selected, subject, options.now, call.exceptions)
  await learnNamespace(applied.policies, subject, inquiry, 'evaluation')
  return applied
}
