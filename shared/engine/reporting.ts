import { AdmissionError } from '../errors.ts'
import { pinnedDigest } from '../image/pin.ts'
import { MAX_RECORDED, MAX_RECORDED_CHARS } from '../limits.ts'
import type { FailedImage, PolicyResult } from '../policy/decide.ts'
import { policyKey } from '../policy/types.ts'
import type { Finding } from './evaluation.ts'
import type { SealUse } from './hand-over.ts'
import type { Inquiry } from './inquiry.ts'
import type { PinningFailure } from './pinning.ts'

/** Reasons given as warnings on one denial: enough to act on, few enough to read. */
const MAX_REASON_WARNINGS = 5

/** The findings as `policy/decide.ts` takes them. */
export function toResults(findings: readonly Finding[]): PolicyResult[] {
  return findings.map((finding) => {
    const { prepared, status, message, auditAnnotations, failedOpen } = finding
    return {
      policy: prepared.policy.name,
      key: policyKey(prepared.policy),
      validationActions: prepared.policy.validationActions,
      status,
      message,
      auditAnnotations,
      ...(failedOpen && { failedOpen }),
      ...(finding.exceptions && { exempted: exemptedText(finding, finding.exceptions) }),
      ...(status === 'fail' || status === 'error' ? { images: failedImages(finding) } : {}),
    }
  })
}

/** The rule a finding is of, as upstream names it (image-validating-policy.md, appendix B). */
export function ruleOf({ prepared, status, message, exempt }: Finding): string {
  if (exempt) return 'exception'
  if (status !== 'error') return prepared.policy.name
  return message.startsWith('failed to execute matching: ') ? 'match' : 'evaluation'
}

function exemptedText(
  { message, exempt, exempted }: Finding,
  exceptions: readonly string[],
): string {
  if (exempt) return message
  const images = [...(exempted ?? [])].map(([image, by]) => `image ${image} (${by})`)
  const exempting = new Set(exempted?.values())
  const others = exceptions.filter((name) => !exempting.has(name))
  return [
    ...(images.length > 0 ? [`exempt are ${images.join(', ')}`] : []),
    ...(others.length > 0 ? [`values are allowed by ${others.join(', ')}`] : []),
  ].join(', ')
}

/** The images that are why a policy is against a request, as far as that is known, each with what was found of it. */
function failedImages({ image, reasons }: Finding): FailedImage[] {
  const found = new Map<string, string[]>(image === undefined ? [] : [[image, []]])
  for (const each of reasons) {
    if (image !== undefined && image !== each.image) continue
    const texts = found.get(each.image)
    const text = `attestor ${each.attestor}: ${each.reason}`
    if (texts === undefined) found.set(each.image, [text])
    else texts.push(text)
  }
  return [...found].map(([name, texts]) => ({ image: name, reason: texts.join('; ') }))
}

/** What the mutate phase could not pin, for policies that do more than audit. */
export function unpinnedWarnings(failures: readonly PinningFailure[]): string[] {
  return failures
    .filter(({ policy }) => policy.validationActions.some((action) => action !== 'Audit'))
    .map(({ policy, message }) => `Policy ${policy.name} error: ${message}`)
}

/**
 * Why signatures did not count, one warning each: the policy's own message says what it wants, not what was found. The reason
 * comes first, because a long warning loses its end. Policies that only audit stay silent.
 */
export function warningsOf(findings: readonly Finding[]): string[] {
  const told = findings.filter(({ status, prepared }) => {
    return (
      (status === 'fail' || status === 'error') &&
      prepared.policy.validationActions.some((name) => name !== 'Audit')
    )
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
    policies: findings.map(({ prepared, status, message, failedOpen, exceptions }) => ({
      policy: policyKey(prepared.policy),
      ...(prepared.policy.autogen && { autogen: prepared.policy.autogen }),
      status: failedOpen ? 'failed-open' : status,
      ...(status === 'pass' && !failedOpen ? {} : { message: cut(message) }),
      ...(exceptions && { exceptions: exceptions.slice(0, MAX_RECORDED) }),
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
