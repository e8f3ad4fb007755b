import { AdmissionError } from '../errors.ts'
import { pinnedDigest } from '../image/pin.ts'
import { MAX_RECORDED, MAX_RECORDED_CHARS } from '../limits.ts'
import type { PolicyResult } from '../policy/decide.ts'
import type { Finding } from './evaluation.ts'
import type { SealUse } from './hand-over.ts'
import type { Inquiry } from './inquiry.ts'

/** Reasons given as warnings on one denial: enough to act on, few enough to read. */
const MAX_REASON_WARNINGS = 5

/** The findings as `policy/decide.ts` takes them. */
export function toResults(findings: readonly Finding[]): PolicyResult[] {
  return findings.map(({ prepared, status, message, auditAnnotations, failedOpen }) => ({
    policy: prepared.policy.name,
    validationActions: prepared.policy.validationActions,
    status,
    message,
    auditAnnotations,
    ...(failedOpen ? { failedOpen } : {}),
  }))
}

/**
 * Why signatures did not count, one warning each: the policy's own message says what it wants, not what was found. The reason
 * comes first, because a long warning loses its end. Policies that only audit stay silent.
 */
export function warningsOf(findings: readonly Finding[]): string[] {
  const told = findings.filter(({ status, prepared }) => {
    return status !== 'pass' && prepared.policy.validationActions.some((name) => name !== 'Audit')
  })
  const texts = told.flatMap(({ reasons }) =>
    reasons.map(
      ({ image, attestor, attestation, reason }) =>
        `${reason} (${attestation === undefined ? '' : `attestation ${attestation}, `}attestor ${attestor}, image ${image})`,
    ),
  )
  return [...new Set(texts)].slice(0, MAX_REASON_WARNINGS)
}

/** The fault as callers may see it: the text of one that nobody expected could hold anything, so it stays in the log. */
export function publicFault(error: AdmissionError): AdmissionError {
  return error.code === 'INTERNAL'
    ? new AdmissionError('INTERNAL', 'image verification failed internally')
    : error
}

/** The engine's part of a decision's log line: as much of it as a line may hold, and how much is missing. */
export function toRecord(
  findings: readonly Finding[],
  { inquiry, seal }: { inquiry: Inquiry; seal: SealUse },
): Record<string, unknown> {
  const images = [...new Set(findings.flatMap((finding) => finding.images))]
  const reasons = findings.flatMap(({ status, reasons: all }) => (status === 'pass' ? [] : all))
  return {
    policies: findings.map(({ prepared, status, message, failedOpen }) => ({
      policy: prepared.policy.name,
      status: failedOpen ? 'failed-open' : status,
      ...(status === 'pass' && !failedOpen ? {} : { message: cut(message) }),
    })),
    images: images
      .slice(0, MAX_RECORDED)
      .map((image) => ({ image: cut(image), digest: pinnedDigest(image) })),
    reasons: reasons
      .slice(0, MAX_RECORDED)
      .map(({ image, reason, ...whose }) => ({ image: cut(image), ...whose, reason: cut(reason) })),
    ...omitted('imagesOmitted', images.length),
    ...omitted('reasonsOmitted', reasons.length),
    seal,
    calls: inquiry.calls,
  }
}

function omitted(name: string, count: number): Record<string, number> {
  return count > MAX_RECORDED ? { [name]: count - MAX_RECORDED } : {}
}

function cut(text: string): string {
  return text.length <= MAX_RECORDED_CHARS ? text : `${text.slice(0, MAX_RECORDED_CHARS - 1)}…`
}
