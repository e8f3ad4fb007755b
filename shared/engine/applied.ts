import { type AutogenConfig, policyKey, type ValidationAction } from '../policy/types.ts'
import type { Learned } from './calls.ts'
import type { Finding } from './evaluation.ts'
import type { Inquiry } from './inquiry.ts'

/** What is known of an image through one attestor, and from where: the seal, an earlier verdict of this isolate, or found out for this request. */
export interface AppliedCheck {
  image: string
  attestor: string
  attestation: string | undefined
  status: 'verified' | 'rejected' | 'inconclusive'
  from: 'sealed' | 'cached' | 'live'
}

/** One policy that was applied to a request, and what it found. Plain data: nothing of it changes after the decision. */
export interface AppliedPolicy {
  /** `name`, or `namespace/name` of a namespaced policy. */
  policy: string
  kind: Finding['prepared']['policy']['kind']
  autogen: AutogenConfig | undefined
  policyHash: string
  validationActions: readonly ValidationAction[]
  /** `warn`: not applied, because its match conditions failed and its failurePolicy is Ignore. */
  status: 'pass' | 'fail' | 'error' | 'skip' | 'warn'
  message: string
  auditAnnotations: Readonly<Record<string, string>>
  /** The matched images, empty where they could not be found out. */
  images: readonly string[]
  checks: readonly AppliedCheck[]
  /** Exceptions that were used, `namespace/name`. */
  exceptions: readonly string[]
}

/** The findings of a request as plain data, for events. Every member is there, so that all of them have one shape. */
export function appliedPolicies(findings: readonly Finding[], inquiry: Inquiry): AppliedPolicy[] {
  return findings.map((finding) => {
    const { policy } = finding.prepared
    return {
      policy: policyKey(policy),
      kind: policy.kind,
      autogen: policy.autogen,
      policyHash: policy.hash,
      validationActions: policy.validationActions,
      status: finding.failedOpen ? 'warn' : finding.status,
      message: finding.message,
      auditAnnotations: finding.auditAnnotations,
      images: finding.images,
      checks: (finding.learned ?? []).map((learned) => toCheck(learned, inquiry)),
      exceptions: finding.exceptions ?? [],
    }
  })
}

function toCheck({ asked, settled }: Learned, inquiry: Inquiry): AppliedCheck {
  const { image, attestor, attestation } = asked
  const { status } = settled
  return {
    image,
    attestor,
    attestation,
    status:
      status === 'sealed'
        ? 'verified'
        : status === 'uncovered' || status === 'unusable'
          ? 'inconclusive'
          : status,
    from:
      status === 'sealed' || status === 'uncovered'
        ? 'sealed'
        : inquiry.isRemembered(settled)
          ? 'cached'
          : 'live',
  }
}
