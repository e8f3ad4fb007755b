import type { CallLedger } from './calls.ts'
import type { Finding } from './evaluation.ts'

/**
 * The findings with `required` enforced (image-validating-policy.md 3.9): every matched image of a policy that passed must have been
 * verified by some policy of this request. The first image that was not turns the pass into a failure.
 */
export function requireEvidence(findings: readonly Finding[], ledger: CallLedger): Finding[] {
  return findings.map((finding) => {
    if (finding.status !== 'pass' || finding.failedOpen || !finding.prepared.policy.required) {
      return finding
    }
    const message = firstWithout(finding.images, ledger)
    return message === undefined ? finding : { ...finding, status: 'fail', message }
  })
}

function firstWithout(images: readonly string[], ledger: CallLedger): string | undefined {
  for (const image of images) {
    const evidence = ledger.evidence(image)
    if (evidence === 'attempted') {
      return `image ${image} failed signature or attestation verification`
    }
    if (evidence === 'none') {
      return `image ${image} is not verified: no policy performed a signature or attestation check on it`
    }
  }
  return undefined
}
