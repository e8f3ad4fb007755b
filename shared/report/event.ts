import type { AdmissionRequest, JsonObject, Operation } from '../admission/types.ts'
import type { AppliedPolicy } from '../engine/applied.ts'
import type { EngineDecision, ReviewPhase } from '../engine/types.ts'
import { pinnedDigest } from '../image/pin.ts'
import { getOwn, isJsonObject } from '../json.ts'
import { MAX_EVENT_PROPERTIES, MAX_RECORDED, MAX_RECORDED_CHARS } from '../limits.ts'

/** Results as reports spell them. `warn`: admitted without having been looked at, since failurePolicy is Ignore. */
export type EventStatus = 'pass' | 'fail' | 'error' | 'skip' | 'warn'
export const EVENT_STATUSES: readonly EventStatus[] = ['fail', 'error', 'warn', 'skip', 'pass']

/** An image that a policy looked at. */
export interface EventImage {
  image: string
  /** Where the image string has one. */
  digest?: string | undefined
  /** Attestors whose signature was good, and `attestor/attestation` where an attestation of theirs was. */
  verifiedBy: string[]
}

/** What a request is about. An ImageReview is a resource of its own, without a name. */
export interface EventResource {
  group: string
  version: string
  resource: string
  subresource?: string
  kind: string
  namespace?: string
  name?: string
  generateName?: string
  /** `metadata.uid` of the object, once it has one. */
  uid?: string
}

/**
 * What one policy said about one request, for logs and sinks of others. Holds no token, credential or object, and no user: who asked is
 * in the log of decisions, as a hash, under the same `uid`.
 */
export interface PolicyEvent {
  event: 'policy'
  /** The same for the same decision however often it is delivered. */
  id: string
  /** RFC 3339. */
  time: string
  cluster: string
  phase: ReviewPhase
  /** Of the AdmissionRequest; an ImageReview has one of its own. */
  uid: string
  /** Absent for image reviews, which do not say. */
  operation?: Operation | undefined
  resource: EventResource
  dryRun?: true | undefined
  /** What became of the request. */
  verdict: 'allow' | 'deny'
  /** `name`, or `namespace/name` of a namespaced policy. Absent when no policy came to a result and the request was denied for that. */
  policy?: string | undefined
  policyKind?: AppliedPolicy['kind'] | undefined
  autogen?: 'defaults' | 'cronjobs' | undefined
  /** As Kyverno names it: the policy's own name, `exception` for what an exception skipped. */
  rule?: string | undefined
  policyHash?: string | undefined
  status: EventStatus
  /** What followed from this policy; the mutate phase refuses nothing. */
  action: 'deny' | 'warn' | 'audit' | 'allow'
  message?: string | undefined
  /** The policy's own audit annotations. */
  properties?: Record<string, string> | undefined
  images: EventImage[]
  imagesOmitted?: number | undefined
  exceptions?: string[] | undefined
  /** Checks of images by how they were known. */
  checks: { sealed: number; cached: number; live: number }
  /** `open`, `absent`, `unused`, or why the seal did not count. */
  seal?: string | undefined
  /** The whole review, milliseconds. */
  ms: number
  /** Start of the hash of the policies and the config that decided. */
  deployment: string
  /** The trace id of the caller's `traceparent`. */
  trace?: string | undefined
  /** The cluster is in audit mode: nothing is denied. */
  mode?: 'audit' | undefined
}

/** An answered review. */
export interface Reviewed {
  cluster: string
  phase: ReviewPhase
  request: AdmissionRequest
  decision: EngineDecision
  /** Epoch milliseconds of the answer. */
  time: number
  ms: number
  deployment: string
  trace?: string | undefined
  mode?: 'enforce' | 'audit' | undefined
}

/** The events of a review: one for every applied policy whose status is wanted, or one without a policy for a denial that none made. */
export function policyEvents(
  reviewed: Reviewed,
  wants: (status: EventStatus) => boolean = () => true,
): PolicyEvent[] {
  const { decision } = reviewed
  const applied = decision.applied?.() ?? []
  if (applied.length === 0) {
    const denial = decision.status ?? decision.audited
    return denial === undefined || !wants('error') ? [] : [withoutPolicy(reviewed, denial.message)]
  }
  const wanted = applied.filter(({ status }) => wants(status))
  if (wanted.length === 0) return []
  const common = commonOf(reviewed)
  return wanted.map((policy) => eventOf(common, policy))
}

type Common = ReturnType<typeof commonOf>

function commonOf(reviewed: Reviewed) {
  const { cluster, phase, request, decision, time, ms, deployment, trace, mode } = reviewed
  const { seal } = decision.record
  return {
    event: 'policy' as const,
    time: new Date(time).toISOString(),
    cluster,
    phase,
    uid: request.uid,
    operation: phase === 'image-review' ? undefined : request.operation,
    resource: phase === 'image-review' ? reviewOf(request) : resourceOf(request),
    dryRun: request.dryRun === true ? (true as const) : undefined,
    verdict: decision.allowed ? ('allow' as const) : ('deny' as const),
    seal: typeof seal === 'string' ? seal : undefined,
    ms,
    deployment,
    trace,
    mode: mode === 'audit' ? mode : undefined,
  }
}

function withoutPolicy(reviewed: Reviewed, message: string): PolicyEvent {
  const common = commonOf(reviewed)
  return {
    ...common,
    id: `${common.uid}:${reviewed.phase}`,
    status: 'error',
    action: reviewed.mode === 'audit' ? 'audit' : 'deny',
    message: cut(message),
    images: [],
    checks: { sealed: 0, cached: 0, live: 0 },
  }
}

/** Member by member, and each of them there: a spread would take longer than all the rest. */
function eventOf(common: Common, applied: AppliedPolicy): PolicyEvent {
  const { phase, mode } = common
  const { policy, autogen, status, message, images, exceptions } = applied
  const variant = autogen === undefined ? '' : `:${autogen}`
  const omitted = new Set(images).size - MAX_RECORDED
  return {
    event: common.event,
    id: `${common.uid}:${phase}:${policy}${variant}`,
    time: common.time,
    cluster: common.cluster,
    phase,
    uid: common.uid,
    operation: common.operation,
    resource: common.resource,
    dryRun: common.dryRun,
    verdict: common.verdict,
    policy,
    policyKind: applied.kind,
    autogen,
    rule: status === 'skip' ? 'exception' : policy.slice(policy.indexOf('/') + 1),
    policyHash: applied.policyHash.slice(0, 12),
    status,
    action: actionOf(applied, phase, mode),
    message: message === 'success' ? undefined : cut(message),
    properties: boundedProperties(applied.auditAnnotations),
    images: imagesOf(applied),
    imagesOmitted: omitted > 0 ? omitted : undefined,
    exceptions: exceptions.length > 0 ? exceptions.slice(0, MAX_RECORDED) : undefined,
    checks: countsOf(applied),
    seal: common.seal,
    ms: common.ms,
    deployment: common.deployment,
    trace: common.trace,
    mode,
  }
}

function actionOf(
  { status, validationActions }: AppliedPolicy,
  phase: ReviewPhase,
  mode: 'audit' | undefined,
) {
  if (status === 'warn') return 'warn'
  if (status !== 'fail' && status !== 'error') return 'allow'
  if (phase !== 'mutate' && validationActions.includes('Deny')) {
    return mode === 'audit' ? 'audit' : 'deny'
  }
  if (validationActions.includes('Warn')) return 'warn'
  return phase === 'mutate' ? 'allow' : 'audit'
}

function imagesOf({ images, checks }: AppliedPolicy): EventImage[] {
  const found = new Map<string, EventImage>()
  for (const image of images) {
    if (found.size === MAX_RECORDED) break
    found.set(image, { image: cut(image), digest: pinnedDigest(image), verifiedBy: [] })
  }
  for (const { image, status, attestor, attestation } of checks) {
    if (status !== 'verified') continue
    const by = attestation === undefined ? attestor : `${attestor}/${attestation}`
    found.get(image)?.verifiedBy.push(by)
  }
  return [...found.values()]
}

function countsOf({ checks }: AppliedPolicy): PolicyEvent['checks'] {
  const counts = { sealed: 0, cached: 0, live: 0 }
  for (const { from } of checks) counts[from]++
  return counts
}

function reviewOf({ namespace }: AdmissionRequest): EventResource {
  const review = { group: 'imagepolicy.k8s.io', version: 'v1alpha1', resource: 'imagereviews' }
  return { ...review, kind: 'ImageReview', ...(namespace && { namespace }) }
}

function resourceOf(request: AdmissionRequest): EventResource {
  const { resource, kind, subResource, namespace } = request
  const metadata = metadataOf(request.object ?? request.oldObject)
  const name = request.name || metadata('name')
  const [generateName, uid] = [metadata('generateName'), metadata('uid')]
  return {
    group: resource.group,
    version: resource.version,
    resource: resource.resource,
    ...(subResource && { subresource: subResource }),
    kind: kind.kind,
    ...(namespace && { namespace }),
    ...(name && { name }),
    ...(generateName && { generateName }),
    ...(uid && { uid }),
  }
}

/** Reads texts of `metadata` that are short enough to be what they should be. */
function metadataOf(object: JsonObject | null): (key: string) => string | undefined {
  const metadata = object === null ? undefined : getOwn(object, 'metadata')
  return (key) => {
    const value = isJsonObject(metadata) ? getOwn(metadata, key) : undefined
    return typeof value === 'string' && value.length <= MAX_RECORDED_CHARS ? value : undefined
  }
}

function boundedProperties(
  annotations: Readonly<Record<string, string>>,
): Record<string, string> | undefined {
  const entries = Object.entries(annotations).slice(0, MAX_EVENT_PROPERTIES)
  if (entries.length === 0) return undefined
  return Object.fromEntries(entries.map(([key, value]) => [cut(key), cut(value)]))
}

/** At most so much of a text, without half a character at its end. */
function cut(text: string): string {
  if (text.length <= MAX_RECORDED_CHARS) return text
  return `${text.slice(0, MAX_RECORDED_CHARS - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}
