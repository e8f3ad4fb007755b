import { fromBase64 } from '../bytes.ts'
import { AdmissionError, type ErrorCode, type Fault } from '../errors.ts'
import { getOwn, isJsonObject, type JsonValue } from '../json.ts'
import {
  MAX_AUDIT_VALUE_CHARS,
  MAX_CAUSE_CHARS,
  MAX_LISTED_FAULTS,
  MAX_MESSAGE_CHARS,
  MAX_WARNING_CHARS,
  MAX_WARNINGS_CHARS,
} from '../limits.ts'
import { decodePatch, encodePatch } from './patch.ts'
import {
  ADMISSION_API_VERSION,
  type AdmissionResponse,
  type AdmissionStatus,
  type Decision,
  type JsonPatchOperation,
} from './types.ts'

/** The webhook that answers: only a mutating one may return a patch. */
export type Phase = 'mutate' | 'validate'

/** An AdmissionReview as an answer. */
export interface ReviewAnswer {
  apiVersion: typeof ADMISSION_API_VERSION
  kind: 'AdmissionReview'
  response: AdmissionResponse
}

/**
 * The AdmissionReview that carries a decision. It passes every check the API server makes (specs/kubernetes-admission.md 2.8), whatever the
 * decision holds: a denial has a code ≥ 400 and a message and no patch, a validate answer never has a patch, warnings and audit
 * annotations are cleaned and cut to what the API server keeps.
 */
export function toReview(uid: string, decision: Decision, phase: Phase): ReviewAnswer {
  const response: AdmissionResponse = { uid, allowed: decision.allowed }
  if (!decision.allowed) response.status = toStatus(decision.status)
  else if (phase === 'mutate' && decision.patch.length > 0) {
    response.patch = encodePatch(decision.patch)
    response.patchType = 'JSONPatch'
  }
  const warnings = cleanWarnings(decision.warnings)
  if (warnings.length > 0) response.warnings = warnings
  const auditAnnotations = cleanAuditAnnotations(decision.auditAnnotations)
  if (Object.keys(auditAnnotations).length > 0) response.auditAnnotations = auditAnnotations
  return { apiVersion: ADMISSION_API_VERSION, kind: 'AdmissionReview', response }
}

/** Optional parts of a decision that admits. */
export type Admission = Partial<Omit<Decision, 'allowed' | 'status'>>

/** A decision that admits. */
export function admitted(parts: Admission = {}): Decision {
  return { allowed: true, patch: [], warnings: [], auditAnnotations: {}, record: {}, ...parts }
}

/** How a denial is coded: 403 `Forbidden` unless said otherwise. */
export interface DenialOptions {
  code?: number
  reason?: string
  causes?: readonly Fault[]
}

/** A decision that denies with this message. */
export function denied(message: string, options: DenialOptions = {}): Decision {
  const status: AdmissionStatus = {
    status: 'Failure',
    code: options.code ?? 403,
    reason: options.reason ?? 'Forbidden',
    message,
  }
  const causes = options.causes ?? []
  if (causes.length > 0) {
    status.details = {
      causes: causes.slice(0, MAX_LISTED_FAULTS).map(({ path, message: text }) => ({
        reason: 'FieldValueInvalid',
        message: text,
        field: path,
      })),
    }
  }
  return {
    allowed: false,
    status,
    patch: [],
    warnings: [],
    auditAnnotations: {},
    record: {},
  }
}

/** A decision that denies because of a fault, with the HTTP code and the reason that fit it. */
export function errorDecision(error: AdmissionError): Decision {
  const [code, reason] = statusOf(error)
  const decision = denied(error.message, { code, reason, causes: error.faults })
  return { ...decision, record: { error: error.code } }
}

const STATUS: Partial<Record<ErrorCode, readonly [number, string]>> = {
  REVIEW_INVALID: [400, 'BadRequest'],
  JSON_INVALID: [400, 'BadRequest'],
  REQUEST_TOO_LARGE: [413, 'RequestEntityTooLarge'],
  CONTENT_TYPE_UNSUPPORTED: [415, 'UnsupportedMediaType'],
  IMAGE_LIST_INVALID: [422, 'Invalid'],
  IMAGE_REFERENCE_INVALID: [422, 'Invalid'],
  DEADLINE_EXCEEDED: [504, 'Timeout'],
  TOO_MANY_REVIEWS: [429, 'TooManyRequests'],
  INTERNAL: [500, 'InternalError'],
}

function statusOf(error: AdmissionError): readonly [number, string] {
  return STATUS[error.code] ?? (error.transient ? [503, 'ServiceUnavailable'] : [403, 'Forbidden'])
}

function toStatus(status: AdmissionStatus | undefined): AdmissionStatus {
  const code = status?.code ?? 0
  const causes = status?.details?.causes ?? []
  return {
    ...(causes.length === 0 ? {} : { details: { causes: causesOf(causes) } }),
    status: 'Failure',
    code: Number.isInteger(code) && code >= 400 && code <= 599 ? code : 400,
    reason: status?.reason || 'Forbidden',
    message: denialMessage(status),
  }
}

type Causes = NonNullable<AdmissionStatus['details']>['causes']

/** As many as fit: with many policies and long messages the causes alone could be larger than an answer may be. */
function causesOf(causes: Causes): Causes {
  return causes
    .slice(0, MAX_LISTED_FAULTS)
    .map((cause) => ({ ...cause, message: cut(cause.message, MAX_CAUSE_CHARS) }))
}

/** Control characters and lone surrogates: the API server drops a warning's, and JSON cannot carry the latter. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/gu

/** Warnings on one line each, without duplicates, cut to the API server's limits; the last says how many did not fit. */
function cleanWarnings(warnings: readonly string[]): string[] {
  const cleaned = warnings.map((warning) =>
    cut(warning.replace(/\s+/g, ' ').replace(UNPRINTABLE, '').trim(), MAX_WARNING_CHARS),
  )
  const distinct = [...new Set(cleaned)].filter((warning) => warning !== '')
  const out: string[] = []
  let chars = 0
  for (const warning of distinct) {
    chars += [...warning].length
    // One warning's worth is kept free for the one that counts the rest.
    if (chars > MAX_WARNINGS_CHARS - MAX_WARNING_CHARS && out.length < distinct.length - 1) {
      return [...out, `and ${distinct.length - out.length} more warnings`]
    }
    out.push(warning)
  }
  return out
}

/**
 * Audit annotations whose keys make `<webhook>/<key>` a qualified name, as the API server requires; two keys that
 * become the same are told apart by a number, because the API server keeps only the first.
 */
export function cleanAuditAnnotations(
  annotations: Readonly<Record<string, string>>,
): Record<string, string> {
  const out: Record<string, string> = {}
  for (const [key, value] of Object.entries(annotations)) {
    const base = cleanKey(key)
    let name = base
    for (let n = 2; Object.hasOwn(out, name); n++) name = `${base.slice(0, 58)}.${n}`
    out[name] = cut(value.replace(/\p{Cs}/gu, '\ufffd'), MAX_AUDIT_VALUE_CHARS)
  }
  return out
}

function cleanKey(key: string): string {
  const name = key
    .replace(/[^A-Za-z0-9_.-]/g, '_')
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '')
  return name === '' ? 'annotation' : name
}

/** The message of a denial as it may stand in an answer: never empty, and no longer than a terminal can take. */
export function denialMessage(status: AdmissionStatus | undefined): string {
  const message = cut(status?.message.trim() ?? '', MAX_MESSAGE_CHARS)
  return message === '' ? 'denied without explanation' : message
}

/** The text in at most `max` characters (code points), ending in `…` when something was left out. */
function cut(text: string, max: number): string {
  if (text.length <= max) return text
  const characters = [...text]
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`
}

/** An answer that the API server accepts. */
export interface VerifiedResponse {
  allowed: boolean
  patch: readonly JsonPatchOperation[]
  /** As the webhook sent it: the API server forces `code` to at least 400 and `status` to `Failure` on denial. */
  status: { [key: string]: JsonValue } | undefined
  warnings: readonly string[]
  auditAnnotations: Readonly<Record<string, string>>
}

/**
 * What a webhook answered, after the checks and with the messages of the API server (specs/kubernetes-admission.md 2.8). Throws
 * `RESPONSE_INVALID` where the API server reports a failed call, `PATCH_INVALID` for a patch that cannot be decoded.
 */
export function verifyResponse(review: JsonValue, uid: string, phase: Phase): VerifiedResponse {
  const response = isJsonObject(review) ? getOwn(review, 'response') : undefined
  if (!isJsonObject(review) || !isJsonObject(response)) throw invalid('webhook response was absent')
  const answeredUid = getOwn(response, 'uid') ?? ''
  if (answeredUid !== uid) {
    throw invalid(`expected response.uid="${uid}", got "${String(answeredUid)}"`)
  }
  const found = groupVersionKind(getOwn(review, 'apiVersion'), getOwn(review, 'kind'))
  const expected = groupVersionKind(ADMISSION_API_VERSION, 'AdmissionReview')
  if (found !== expected) throw invalid(`expected webhook response of ${expected}, got ${found}`)
  const patch = verifyPatch(response, phase)
  return {
    allowed: getOwn(response, 'allowed') === true,
    patch: patch === undefined ? [] : decodePatch(patch),
    status: objectOrUndefined(getOwn(response, 'status')),
    warnings: listOf(getOwn(response, 'warnings')),
    auditAnnotations: textsOf(getOwn(response, 'auditAnnotations')),
  }
}

/** The base64 patch, or undefined for "no change". */
function verifyPatch(response: { [key: string]: JsonValue }, phase: Phase): string | undefined {
  const patch = getOwn(response, 'patch') ?? undefined
  const type = getOwn(response, 'patchType') ?? undefined
  if (patch !== undefined && (typeof patch !== 'string' || fromBase64(patch) === undefined)) {
    throw invalid('response.patch is not base64')
  }
  // Go decodes an empty string to no bytes at all.
  const hasPatch = patch !== undefined && patch !== ''
  if (phase === 'validate') {
    if (hasPatch) throw invalid('validating webhook may not return response.patch')
    if (type !== undefined) throw invalid('validating webhook may not return response.patchType')
    return undefined
  }
  if (hasPatch && type === undefined) {
    throw invalid('webhook returned response.patch but not response.patchType')
  }
  if (!hasPatch && type !== undefined) {
    throw invalid('webhook returned response.patchType but not response.patch')
  }
  if (type !== undefined && type !== 'JSONPatch') {
    const text = typeof type === 'string' ? type : ''
    throw invalid(
      text === ''
        ? 'webhook returned invalid response.patchType of ""'
        : `unsupported patch type ${JSON.stringify(text)}`,
    )
  }
  return hasPatch ? patch : undefined
}

/** `group/version, Kind=kind` as Go prints it; both missing print `/, Kind=`. */
function groupVersionKind(apiVersion: JsonValue | undefined, kind: JsonValue | undefined): string {
  const text = typeof apiVersion === 'string' ? apiVersion : ''
  const [group, version] = text.includes('/') ? text.split('/', 2) : ['', text]
  return `${group}/${version}, Kind=${typeof kind === 'string' ? kind : ''}`
}

function invalid(message: string): AdmissionError {
  return new AdmissionError('RESPONSE_INVALID', message)
}

function objectOrUndefined(value: JsonValue | undefined): { [key: string]: JsonValue } | undefined {
  return isJsonObject(value) ? value : undefined
}

function listOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value)
    ? value.filter((item): item is string => typeof item === 'string')
    : []
}

function textsOf(value: JsonValue | undefined): Record<string, string> {
  const out: Record<string, string> = Object.create(null)
  for (const [key, member] of Object.entries(isJsonObject(value) ? value : {})) {
    if (typeof member === 'string') out[key] = member
  }
  return out
}
