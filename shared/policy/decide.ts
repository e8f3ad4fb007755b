import type { AdmissionStatus, Decision } from '../admission/types.ts'
import {
  MAX_AUDIT_VALUE_CHARS,
  MAX_CAUSE_CHARS,
  MAX_LISTED_FAULTS,
  MAX_MESSAGE_CHARS,
  MAX_RECORDED_CHARS,
} from '../limits.ts'
import type { OutcomeStatus } from '../outcome/types.ts'
import { type CompiledPolicy, compareTexts, type ValidationAction } from './types.ts'

/** An image that is why a policy is against a request. */
export interface FailedImage {
  image: string
  /** What was found of it; empty where the policy's message says it all. */
  reason: string
}

/** What one policy found for one request. */
export interface PolicyResult {
  /** Its name, as sentences about it use it. */
  policy: string
  /** `namespace/name` of a namespaced policy, whose name alone may be another's too; the name when absent. */
  key?: string
  validationActions: readonly ValidationAction[]
  status: OutcomeStatus
  /** `success`, or why not. */
  message: string
  /** The policy's own audit annotations. */
  auditAnnotations?: Readonly<Record<string, string>>
  /** The policy was not applied because its match conditions failed and its failurePolicy is Ignore. */
  failedOpen?: true
  /** What exceptions let in against the policy. */
  exempted?: string
  /** Where the policy failed: the images, as far as they are known. */
  images?: readonly FailedImage[]
}

/** The parts of a Decision that follow from what the policies found. */
export interface Ruling {
  allowed: boolean
  /** Present exactly when `allowed` is false. */
  status?: AdmissionStatus
  warnings: string[]
  auditAnnotations: Record<string, string>
}

/** Audit annotation: what policies with the Audit or the Warn action found. */
export const AUDIT_FINDINGS = 'image-policy-findings'
/** Audit annotation: policies that were not applied because failurePolicy is Ignore. */
export const AUDIT_FAILED_OPEN = 'image-policy-failed-open'
/** Audit annotation: what exceptions let in. */
export const AUDIT_EXCEPTIONS = 'image-policy-exceptions'
/** Audit annotation: the policies' own annotations, JSON of policy → key → value. */
export const AUDIT_ANNOTATIONS = 'image-policy-annotations'

/**
 * What follows from the policies' results: the only place where an outcome becomes allow or deny. Deny refuses, Warn warns, Audit
 * and Warn leave an audit annotation; a policy with several actions does all of them (image-validating-policy.md 3.11). An error
 * counts like a failure: being unable to tell never admits. Policies speak in the order of their keys.
 */
export function decide(results: readonly PolicyResult[]): Ruling {
  const ordered = [...results].sort((a, b) => compareTexts(keyOf(a), keyOf(b)))
  const denials = ordered.filter((result) => isAgainst(result, 'Deny'))
  // What a policy lets in against itself leaves an audit annotation, also where somebody is warned.
  const findings = ordered.filter(
    (result) =>
      isAgainst(result, 'Audit') || (isAgainst(result, 'Warn') && !isAgainst(result, 'Deny')),
  )
  const warned = ordered.filter((result) => isAgainst(result, 'Warn') || result.failedOpen)
  return {
    allowed: denials.length === 0,
    ...(denials.length === 0 ? {} : { status: denialStatus(denials) }),
    warnings: warned.map(sentence),
    auditAnnotations: {
      ...auditEntry(AUDIT_FINDINGS, findings.map(sentence).join('; ')),
      ...auditEntry(
        AUDIT_FAILED_OPEN,
        ordered
          .filter((r) => r.failedOpen)
          .map(sentence)
          .join('; '),
      ),
      ...auditEntry(
        AUDIT_EXCEPTIONS,
        ordered
          .flatMap((r) => (r.exempted === undefined ? [] : `Policy ${r.policy}: ${r.exempted}`))
          .join('; '),
      ),
      ...auditEntry(AUDIT_ANNOTATIONS, ownAnnotations(ordered)),
    },
  }
}

/** Audit annotation: the denial that a cluster in audit mode let in. */
export const AUDIT_MODE = 'image-policy-audit-mode'

/**
 * The decision as a cluster in audit mode gets it: a denial becomes a warning, an audit annotation and part of the record, and the
 * request is let in. What admits anyway stays as it is.
 */
export function admitInAuditMode<D extends Decision>(
  decision: D,
): Omit<D, 'status'> & { audited?: AdmissionStatus } {
  const { status, ...rest } = decision
  if (decision.allowed) return rest
  const message = status?.message ?? 'denied without explanation'
  const told = `would be denied, but this cluster is in audit mode: ${message}`
  return {
    ...rest,
    allowed: true,
    warnings: [told, ...decision.warnings],
    auditAnnotations: { ...decision.auditAnnotations, ...auditEntry(AUDIT_MODE, told) },
    record: { ...decision.record, wouldDeny: cut(message, MAX_RECORDED_CHARS) },
    ...(status && { audited: status }),
  }
}

/**
 * True when an error in match conditions means that the policy is not applied. This is all that failurePolicy decides: a
 * failed or impossible verification is never admitted by it (image-validating-policy.md 3.7).
 */
export function failsOpen(policy: Pick<CompiledPolicy, 'failurePolicy'>): boolean {
  return policy.failurePolicy === 'Ignore'
}

function keyOf({ key, policy }: PolicyResult): string {
  return key ?? policy
}

function isAgainst(result: PolicyResult, action: ValidationAction): boolean {
  const isBad = result.status === 'fail' || result.status === 'error'
  return isBad && result.validationActions.includes(action)
}

/** `Policy <name> failed: <message>`, `Policy <name> error: <message>`. */
function sentence(result: PolicyResult): string {
  if (result.failedOpen) return `Policy ${result.policy} not applied: ${result.message}`
  const verb = result.status === 'error' ? 'error' : 'failed'
  return `Policy ${result.policy} ${verb}: ${result.message}`
}

function denialStatus(denials: readonly PolicyResult[]): AdmissionStatus {
  return {
    status: 'Failure',
    code: 403,
    reason: 'Forbidden',
    message: cut(denials.map(sentence).join('; '), MAX_MESSAGE_CHARS),
    details: {
      causes: denials.slice(0, MAX_LISTED_FAULTS).flatMap(causesOf).slice(0, MAX_LISTED_FAULTS),
    },
  }
}

/** One for each image that the policy is known to have failed for, else one for the policy. */
function causesOf(denial: PolicyResult): Causes {
  const reason = denial.status === 'error' ? 'ImageVerificationError' : 'ImageVerificationFailed'
  const text = sentence(denial)
  const field = keyOf(denial)
  const images = (denial.images ?? []).map(({ image, reason: why }) => ({
    reason,
    field: `${field}[${image}]`,
    message: cut(why === '' ? text : `${text} (${why})`, MAX_CAUSE_CHARS),
  }))
  return images.length > 0 ? images : [{ reason, field, message: cut(text, MAX_CAUSE_CHARS) }]
}

type Causes = NonNullable<AdmissionStatus['details']>['causes']

/** JSON of as many policies' annotations as fit, so that what is there can always be read. */
function ownAnnotations(results: readonly PolicyResult[]): string {
  let json = ''
  const shown: Record<string, Readonly<Record<string, string>>> = {}
  for (const result of results) {
    const { auditAnnotations } = result
    if (auditAnnotations === undefined || Object.keys(auditAnnotations).length === 0) continue
    const key = keyOf(result)
    const next = JSON.stringify({ ...shown, [key]: auditAnnotations })
    if (next.length > MAX_AUDIT_VALUE_CHARS) continue
    shown[key] = auditAnnotations
    json = next
  }
  return json
}

function auditEntry(key: string, value: string): Record<string, string> {
  return value === '' ? {} : { [key]: cut(value, MAX_AUDIT_VALUE_CHARS) }
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}
