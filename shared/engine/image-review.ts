import { type ImageReview, podRequest } from '../admission/image-review.ts'
import { denied } from '../admission/response.ts'
import { toAdmissionError } from '../errors.ts'
import { FactSet } from '../outcome/facts.ts'
import { type ReviewNeeds, reviewNeeds } from '../policy/image-review-needs.ts'
import { type Subject, subjectOf } from '../policy/subject.ts'
import { type CompiledPolicy, policyKey } from '../policy/types.ts'
import { applyPolicies } from './application.ts'
import { CallLedger } from './calls.ts'
import { evaluateAll, type Finding } from './evaluation.ts'
import type { Inquiry } from './inquiry.ts'
import type { Isolate } from './isolate.ts'
import { requireEvidence } from './required.ts'
import type { EngineCall, EngineDecision } from './types.ts'
import { unvalidated, verdictOn } from './verdict.ts'

/** Whose review it is: a path of reviews has neither a scope nor names of policies. */
export type ImageReviewCall = Omit<EngineCall, 'scope' | 'policies'>

/** Decides about one ImageReview; `uid` is what it is known by. Never throws for anything a review or the outside world can cause. */
export type DecideImageReview = (
  review: ImageReview,
  uid: string,
  call: ImageReviewCall,
) => Promise<EngineDecision>

const SCOPES = ['ivpol', 'nivpol'] as const

/**
 * The flow of ImageReviews: the policies of the cluster and those of the namespace, each on its own as the webhooks ask them, on the Pod that
 * stands for the review. Everything is verified live, whatever `outcomes.onMissing` says, because a review has no place for a seal.
 * A policy that a review cannot decide denies, and so does the lack of any that is asked: no deployment has either, unless its policies come from elsewhere.
 */
export function createImageReview(isolate: Isolate): DecideImageReview {
  const needs = new KnownNeeds()
  return async (review, uid, call) => {
    try {
      const undecidable = whyUndecidable(review, isolate.options.policies, call, needs)
      return undecidable === undefined
        ? await decideReview(review, uid, call, isolate, needs)
        : { ...denied(undecidable), record: { error: 'POLICY_UNSUPPORTED' } }
    } catch (thrown) {
      return unvalidated(toAdmissionError(thrown, 'reviewing images'))
    }
  }
}

async function decideReview(
  review: ImageReview,
  uid: string,
  call: ImageReviewCall,
  isolate: Isolate,
  needs: KnownNeeds,
): Promise<EngineDecision> {
  const subject = subjectOf(podRequest(review, uid))
  // One for both, so that each image is resolved once and has one digest for all of them.
  const inquiry = isolate.inquiryFor(call)
  const findings = await Promise.all(
    SCOPES.map((scope) => findingsOf(subject, { ...call, scope, policies: [] }, isolate, inquiry)),
  )
  const told = findings
    .flat()
    .map((finding) => withoutDoubt(finding, needs.of(finding.prepared.policy, call.exceptions)))
  return verdictOn(told, inquiry, 'unused')
}

/** Conditions that fail for more images than the real Pod has where they are may hold for that one: nobody can tell. */
function withoutDoubt(finding: Finding, { isAskedByImages }: ReviewNeeds): Finding {
  if (finding.failedOpen === undefined || !isAskedByImages) return finding
  const { failedOpen: _, ...told } = finding
  return { ...told, status: 'error' }
}

/** What policies of one scope found. What counts as evidence for one scope counts for no other: anybody may write policies in a namespace. */
async function findingsOf(
  subject: Subject,
  call: EngineCall,
  isolate: Isolate,
  inquiry: Inquiry,
): Promise<Finding[]> {
  const { policies, exemptions, findings } = await applyPolicies(subject, call, isolate, inquiry)
  const ledger = new CallLedger(new FactSet(), { sealedOnly: false })
  const evaluated = await evaluateAll(policies, subject, { ledger, inquiry, exemptions })
  return requireEvidence([...findings, ...evaluated], subject, ledger)
}

/** Undefined when every policy of the cluster can be asked. */
function whyUndecidable(
  { namespace }: ImageReview,
  policies: readonly CompiledPolicy[],
  { granted, exceptions }: ImageReviewCall,
  known: KnownNeeds,
): string | undefined {
  let isAnyAsked = false
  for (const policy of policies) {
    const key = policyKey(policy)
    if (granted?.has(key) === false) continue
    const { isAsked, needs } = known.of(policy, exceptions)
    isAnyAsked ||= isAsked
    const [need] = needs
    if (need !== undefined) {
      return `policy ${key} needs ${need.what} in ${need.path}, which no ImageReview carries`
    }
    if (isAsked && namespace === undefined && isOfNamespaces(policy)) {
      return `the ImageReview names no namespace, so that it cannot be told whether policy ${key} is about it`
    }
  }
  return isAnyAsked ? undefined : 'no policy of this cluster is about the creation of Pods'
}

/** Whether it is about a request depends on there being a namespace, which that of a Pod always has. */
function isOfNamespaces({ namespace, matchConstraints }: CompiledPolicy): boolean {
  return (
    namespace !== undefined ||
    matchConstraints.resourceRules.some(({ scope }) => scope === 'Namespaced')
  )
}

/** What policies need, found out once for the exceptions of each cluster. */
class KnownNeeds {
  readonly #known = new WeakMap<CompiledPolicy, Map<ReadonlySet<string> | undefined, ReviewNeeds>>()

  of(policy: CompiledPolicy, counting: ReadonlySet<string> | undefined): ReviewNeeds {
    const known = this.#known.get(policy) ?? new Map<ReadonlySet<string> | undefined, ReviewNeeds>()
    this.#known.set(policy, known)
    const found = known.get(counting) ?? reviewNeeds(policy, counting)
    known.set(counting, found)
    return found
  }
}
