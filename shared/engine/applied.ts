import type { ValidationAction } from '../policy/types.ts'
import { policyKey } from '../policy/types.ts'
import type { CallLedger, Settled } from './calls.ts'
import type { Finding } from './evaluation.ts'
import type { Inquiry } from './inquiry.ts'

/** What is known of an image through one attestor, and from where: the seal, an earlier verdict of this isolate, or found out for this request. */
export interface AppliedCheck {
  image: string
  attestor: string
  attestation?: string
  status: 'verified' | 'rejected' | 'inconclusive'
  from: 'sealed' | 'cached' | 'live'
}

/** One policy that was applied to a request, and what it found. Plain data: nothing of it changes after the decision. */
export interface AppliedPolicy {
  /** `name`, or `namespace/name` of a namespaced policy. */
  policy: string
  kind: Finding['prepared']['policy']['kind']
  autogen?: 'defaults' | 'cronjobs'
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

/** The findings of a request as plain data, for events. */
export function appliedPolicies(
  findings: readonly Finding[],
  { ledger, inquiry }: { ledger: CallLedger; inquiry: Inquiry },
): AppliedPolicy[] {
  return findings.map((finding) => {
    const { policy } = finding.prepared
    return {
      policy: policyKey(policy),
      kind: policy.kind,
      ...(policy.autogen !== undefined && { autogen: policy.autogen }),
      policyHash: policy.hash,
      validationActions: policy.validationActions,
      status: finding.failedOpen ? 'warn' : finding.status,
      message: finding.message,
      auditAnnotations: finding.auditAnnotations,
      images: finding.images,
      checks: checksOf(finding, ledger, inquiry),
      exceptions: finding.exceptions ?? [],
    }
  })
}

function checksOf(
  { prepared: { policy }, images }: Finding,
  ledger: CallLedger,
  inquiry: Inquiry,
): AppliedCheck[] {
  const checks: AppliedCheck[] = []
  for (const image of images) {
    for (const { asked, settled } of ledger.learned(policy, image)) {
      const { attestor, attestation } = asked
      const about = { image, attestor, ...(attestation && { attestation }) }
      checks.push({ ...about, ...sayOf(settled, inquiry) })
    }
  }
  return checks
}

/** What no seal covers, where only the seal may be asked, could not be told. */
function sayOf(settled: Settled, inquiry: Inquiry): Pick<AppliedCheck, 'status' | 'from'> {
  const { status } = settled
  if (status === 'sealed') return { status: 'verified', from: 'sealed' }
  if (status === 'unusable') return { status: 'inconclusive', from: 'live' }
  if (status === 'uncovered') return { status: 'inconclusive', from: 'sealed' }
  return { status, from: inquiry.isRemembered(settled) ? 'cached' : 'live' }
}
