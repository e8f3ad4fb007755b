import { runsImages, type Subject } from '../policy/subject.ts'
import type { CallLedger } from './calls.ts'
import type { Finding } from './evaluation.ts'

/**
 * The findings with `required` enforced (image-validating-policy.md 3.9): every matched image of a policy that passed must have been
 * verified by some policy of this request, by a signature or an attestation. The first image that was not turns the pass into a
 * failure. Exempt images are nobody's to verify, and neither are those of an object that is deleted.
 */
export function requireEvidence(
  findings: readonly Finding[],
  subject: Subject,
  ledger: CallLedger,
): Finding[] {
  if (!runsImages(subject)) return [...findings]
  return findings.map((finding) => {
    const { status, images, prepared } = finding
    if (status !== 'pass' || finding.failedOpen || !prepared.policy.required) return finding
    const image = images.find((each) => ledger.evidence(each) !== 'verified')
    if (image === undefined) return finding
    return { ...finding, status: 'fail', image, message: missingEvidence(image, ledger) }
  })
}

function missingEvidence(image: string, ledger: CallLedger): string {
  return ledger.evidence(image) === 'attempted'
    ? `image ${image} failed signature or attestation verification`
    : `image ${image} is not verified: no policy performed a signature or attestation check on it`
}
