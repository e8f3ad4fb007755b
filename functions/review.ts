import {
  admitted,
  denied,
  errorDecision,
  type Phase,
  toReview,
} from '#shared/admission/response.ts'
import { parseReview, peekUid, readUid } from '#shared/admission/review.ts'
import type { AdmissionRequest, Decision } from '#shared/admission/types.ts'
import type {
  EngineCall,
  EngineDecision,
  ImagePolicyEngine,
  ReviewPhase,
} from '#shared/engine/types.ts'
import { AdmissionError, type ErrorCode, toAdmissionError } from '#shared/errors.ts'
import { type JsonValue, parseJson, stringifyJson } from '#shared/json.ts'
import { admitInAuditMode } from '#shared/policy/decide.ts'
import type { Body } from './body.ts'
import type { Deadline } from './deadline.ts'

/** Audit annotation of every answer: start of the hash of the policies and exceptions that it rests on. */
export const AUDIT_POLICY_SET = 'image-policy-set'

/** What decides about a request in one phase. */
export type Flow = ImagePolicyEngine[Phase]

/** One call to answer: whose, and the body as it was read. */
export interface Call extends Omit<EngineCall, 'signal' | 'scope' | 'policies'> {
  phase: ReviewPhase
  body: Body
  /** Hash of the policies and exceptions of this cluster. */
  policySet: string
  /** `audit`: nothing is denied. */
  mode?: 'enforce' | 'audit'
  deadline: Deadline
}

/** One call of a webhook, and about which policies. */
export interface ReviewCall extends Call, Pick<EngineCall, 'scope' | 'policies'> {
  phase: Phase
  /** Names that this cluster's URLs of this scope may have. */
  known: ReadonlySet<string>
}

/** What goes back, and what is known about the call for the log. */
export interface ReviewAnswer {
  /** 200 for every review that is answered, allowed or denied: the API server reads no other. */
  httpStatus: 200 | 400 | 413 | 415
  /** An AdmissionReview or an ImageReview, or plain text when not even a uid could be read. */
  text: string
  request?: AdmissionRequest
  decision?: EngineDecision
  error?: AdmissionError
}

/**
 * The answer to one AdmissionReview. Never throws. What cannot be read is denied as long as its uid can be found, and answered
 * with 400, 413 or 415 and a text otherwise; what goes wrong outside any policy denies in the validate phase and leaves the
 * object as it is in the mutate phase, where nothing is decided.
 */
export async function answerReview(flow: Flow, call: ReviewCall): Promise<ReviewAnswer> {
  const read = readReview(call.body)
  if (read.status === 'refused') {
    const { uid, error } = read
    if (uid !== undefined) return reviewAnswer(uid, errorDecision(error), call, { error })
    return { httpStatus: TEXT_STATUS[error.code] ?? 400, text: `${error.message}\n`, error }
  }
  const { request } = read
  const { decision, error } = await decide(flow, request, call)
  const told = withUnknownNames(decision, call)
  return reviewAnswer(request.uid, told, call, { request, ...(error && { error }) })
}

const TEXT_STATUS: Partial<Record<ErrorCode, 413 | 415>> = {
  REQUEST_TOO_LARGE: 413,
  CONTENT_TYPE_UNSUPPORTED: 415,
}

type ReadReview =
  | { status: 'read'; request: AdmissionRequest }
  | { status: 'refused'; error: AdmissionError; uid: string | undefined }

function readReview(body: Body): ReadReview {
  if (body.status === 'refused') {
    return { status: 'refused', error: body.error, uid: peekUid(body.head) }
  }
  let value: JsonValue | undefined
  try {
    value = parseJson(body.text)
    return { status: 'read', request: parseReview(value) }
  } catch (thrown) {
    const error = toAdmissionError(thrown, 'reading the AdmissionReview')
    const uid = value === undefined ? peekUid(body.text) : readUid(value)
    return { status: 'refused', error, uid }
  }
}

/**
 * The decision, unless the URL has names that no policy of this cluster has: who registered it relies on them, so in the validate phase
 * nothing gets in. Upstream takes such names for nothing at all and admits (specs/image-validating-policy.md 6).
 */
function withUnknownNames(
  decision: EngineDecision,
  { phase, policies, known }: ReviewCall,
): EngineDecision {
  const names = policies.filter((name) => !known.has(name))
  if (names.length === 0) return decision
  const listed = names.slice(0, 5).map((name) => JSON.stringify(name.slice(0, 100)))
  const list = listed.join(', ') + (names.length > 5 ? ` and ${names.length - 5} more` : '')
  const text = `not evaluated: the webhook URL names ${list}, but this cluster has no such policy loaded`
  return {
    ...decision,
    ...(phase === 'validate' && decision.allowed ? denialOf(text) : {}),
    warnings: [...decision.warnings, text],
    auditAnnotations: { ...decision.auditAnnotations, 'image-policy-not-loaded': text },
    record: { ...decision.record, notLoaded: list },
  }
}

function denialOf(text: string): Partial<Decision> {
  const { allowed, status } = denied(text)
  return { allowed, ...(status && { status }) }
}

async function decide(
  flow: Flow,
  request: AdmissionRequest,
  { phase, deadline, cluster, scope, policies, granted, exceptions }: ReviewCall,
): Promise<{ decision: EngineDecision; error?: AdmissionError }> {
  const { signal } = deadline
  const call: EngineCall = {
    cluster,
    scope,
    policies,
    signal,
    ...(granted && { granted }),
    ...(exceptions && { exceptions }),
  }
  try {
    // A flow that throws at once must not throw past the catch below.
    const work = (async () => flow(request, call))()
    return { decision: await deadline.race(work, late) }
  } catch (thrown) {
    const error = toAdmissionError(thrown, `evaluating the ${phase} phase`)
    return { decision: phase === 'validate' ? refusal(error) : unchanged(error), error }
  }
}

/** Ends a call whose time is up. */
export function late(): never {
  throw new AdmissionError('DEADLINE_EXCEEDED', 'no verdict within the time the API server gave')
}

/** Nothing about the object is known, so it does not get in. The message of an internal fault stays in the log. */
export function refusal(error: AdmissionError): Decision {
  return error.code === 'INTERNAL'
    ? errorDecision(new AdmissionError('INTERNAL', 'image verification failed internally'))
    : errorDecision(error)
}

/** Mutate decides nothing: without a patch the validate phase finds no seal and verifies for itself. */
function unchanged(error: AdmissionError): Decision {
  return admitted({
    warnings: ['images were not pinned: the mutate phase did not finish'],
    auditAnnotations: { 'mutate-error': error.code },
    record: { error: error.code },
  })
}

/** The decision as the mode of the cluster has it, with what it rests on. */
export function ruled(
  reached: EngineDecision,
  { policySet, mode }: { policySet: string; mode: Call['mode'] | undefined },
): EngineDecision {
  const decision = mode === 'audit' ? admitInAuditMode(reached) : reached
  const auditAnnotations = { ...decision.auditAnnotations, [AUDIT_POLICY_SET]: policySet }
  return { ...decision, auditAnnotations }
}

function reviewAnswer(
  uid: string,
  reached: EngineDecision,
  { phase, policySet, mode }: ReviewCall,
  about: { request?: AdmissionRequest; error?: AdmissionError },
): ReviewAnswer {
  const decision = ruled(reached, { policySet, mode })
  // A ReviewAnswer of toReview is JSON by construction; interfaces just have no index signature.
  const review = toReview(uid, decision, phase) as unknown as JsonValue
  return { httpStatus: 200, text: stringifyJson(review), decision, ...about }
}
