import https from 'node:https'
import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'
import { toAdmissionError } from '#shared/errors.ts'
import { getOwn, isJsonObject, type JsonValue, parseJson, stringifyJson } from '#shared/json.ts'
import { exchange, growth } from './webhook.ts'

/** ImagePolicyWebhook as an API server is configured with it (`specs/kubernetes-admission.md` 9.3). */
export interface ImagePolicyOptions {
  /** `server` of the kubeconfig: called as it is. */
  url: string
  /** PEM. */
  ca: string
  /** Seconds; 0 is the default, -1 keeps nothing. */
  allowTTL?: number
  denyTTL?: number
  /** Milliseconds before the second try, and half as many again before each one after it; 0 is the default. */
  retryBackoff?: number
  /** Whether Pods are admitted where the backend does not answer. */
  defaultAllow?: boolean
  /** Epoch milliseconds. */
  now: () => number
  /** Waits between tries; the platform's timer when absent. */
  wait?: (ms: number) => Promise<void>
  /** Counters to read around every call. */
  meter?: () => Readonly<Record<string, number>>
}

/** An ImageReview that was asked, or answered from memory. */
export interface ImageReviewCall {
  /** As it went over the wire. */
  spec: JsonObject
  /** What came back, or was kept; undefined where nothing did. */
  status?: ReviewStatus
  /** Why the call counts as failed, in the API server's words, and its HTTP status if it had one. */
  failure?: string
  code?: number
  cached: boolean
  tries: number
  ms: number
  used: Readonly<Record<string, number>>
}

export interface ReviewStatus {
  allowed: boolean
  reason: string
  auditAnnotations: Readonly<Record<string, string>>
}

/** What became of a request. */
export interface Reviewed {
  call: ImageReviewCall
  refusal: { code: number; message: string } | undefined
  auditAnnotations: Record<string, string>
}

export interface ImagePolicy {
  /** Undefined for what the plugin does not look at. Never throws for anything a backend does. */
  review(request: AdmissionRequest): Promise<Reviewed | undefined>
  close(): void
}

const AUDIT_PREFIX = 'imagepolicywebhook.image-policy.k8s.io/'
const ANNOTATION = '.image-policy.k8s.io/'
/** Defaults of an API server: seconds, and milliseconds for the last. */
const ALLOW_TTL = 300
const DENY_TTL = 30
const RETRY_BACKOFF = 500
const TRIES = 5
const BACKOFF_FACTOR = 1.5
/** One try, milliseconds. */
const TRY_TIMEOUT_MS = 30_000
/** Answers that are kept. */
const KEPT = 1024
const AGAIN: ReadonlySet<number | undefined> = new Set([429, 500, 504])

/** The plugin, with a memory of its own. */
export function createImagePolicy(options: ImagePolicyOptions): ImagePolicy {
  const agent = new https.Agent({ ca: options.ca, keepAlive: true })
  const kept = new Map<string, { status: ReviewStatus; until: number }>()
  return {
    review: async (request) => {
      const images = imagesOf(request)
      if (images === undefined) return undefined
      const spec = specOf(request, images)
      return outcomeOf(await ask(spec, agent, kept, options), request, options)
    },
    close: () => agent.destroy(),
  }
}

/** Images of containers, then of init containers; of ephemeral ones on their own subresource. Undefined for everything else. */
function imagesOf({ resource, subResource, operation, object }: AdmissionRequest) {
  if (operation !== 'CREATE' && operation !== 'UPDATE') return undefined
  if (resource.group !== '' || resource.resource !== 'pods') return undefined
  const spec = object === null ? undefined : getOwn(object, 'spec')
  const listed = (name: string) => {
    const list = isJsonObject(spec) ? getOwn(spec, name) : undefined
    return Array.isArray(list) ? list : []
  }
  if (subResource === undefined) return [...listed('containers'), ...listed('initContainers')]
  return subResource === 'ephemeralcontainers' ? listed('ephemeralContainers') : undefined
}

/** Members in the order of the Go structs, empty ones left out; maps are written in the order of their keys. */
function specOf({ object, namespace }: AdmissionRequest, containers: readonly JsonValue[]) {
  const images = containers.map((container): JsonObject => {
    const image = isJsonObject(container) ? getOwn(container, 'image') : undefined
    return image === undefined || image === '' ? {} : { image }
  })
  const metadata = object === null ? undefined : getOwn(object, 'metadata')
  const annotations = isJsonObject(metadata) ? getOwn(metadata, 'annotations') : undefined
  const sent = Object.entries(isJsonObject(annotations) ? annotations : {})
    .filter(([key]) => key.includes(ANNOTATION))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const spec: JsonObject = {}
  if (images.length > 0) spec.containers = images
  if (sent.length > 0) spec.annotations = Object.fromEntries(sent)
  if (namespace) spec.namespace = namespace
  return spec
}

async function ask(
  spec: JsonObject,
  agent: https.Agent,
  kept: Map<string, { status: ReviewStatus; until: number }>,
  options: ImagePolicyOptions,
): Promise<ImageReviewCall> {
  const key = stringifyJson(spec)
  const known = kept.get(key)
  const call = { spec, tries: 0, ms: 0, used: {} }
  if (known !== undefined && known.until > options.now()) {
    kept.delete(key)
    kept.set(key, known)
    return { ...call, status: known.status, cached: true }
  }
  const before = options.meter?.() ?? {}
  const { reply, tries } = await tryAgain(spec, agent, options)
  const used = growth(before, options.meter?.() ?? {})
  const asked = { ...call, cached: false, tries, ms: reply.ms, used }
  if (!reply.ok) {
    const { reason: failure, status: code } = reply
    return { ...asked, failure, ...(code !== undefined && { code }) }
  }
  try {
    const status = readAnswer(reply.body)
    keep(kept, key, status, options)
    return { ...asked, status }
  } catch (thrown) {
    return { ...asked, failure: toAdmissionError(thrown, 'reading the answer').message }
  }
}

/** Answers that were given once; the one that was asked for least lately goes first. */
function keep(
  kept: Map<string, { status: ReviewStatus; until: number }>,
  key: string,
  status: ReviewStatus,
  { allowTTL, denyTTL, now }: ImagePolicyOptions,
): void {
  const seconds = status.allowed ? allowTTL || ALLOW_TTL : denyTTL || DENY_TTL
  kept.delete(key)
  kept.set(key, { status, until: now() + Math.max(seconds, 0) * 1000 })
  const [oldest] = kept.keys()
  if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest)
}

/** Asks up to five times, where the next one may be answered: the connection broke, or the server said so. */
async function tryAgain(spec: JsonObject, agent: https.Agent, options: ImagePolicyOptions) {
  const review = {
    kind: 'ImageReview',
    apiVersion: 'imagepolicy.k8s.io/v1alpha1',
    metadata: {},
    spec,
    status: { allowed: false },
  }
  const url = new URL(options.url)
  const { wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms)) } = options
  let pause = options.retryBackoff || RETRY_BACKOFF
  for (let tries = 1; ; tries++) {
    const reply = await exchange(agent, url, stringifyJson(review), TRY_TIMEOUT_MS)
    const isLost = !reply.ok && reply.status === undefined && reply.reason.endsWith(': EOF')
    const mayHelp = !reply.ok && (isLost || AGAIN.has(reply.status))
    if (!mayHelp || tries === TRIES) return { reply, tries }
    await wait(pause)
    pause *= BACKOFF_FACTOR
  }
}

/** Kind and version may be missing; where they are there they have to be right. Without a status the answer is no. */
function readAnswer(body: string): ReviewStatus {
  const answer = parseJson(body)
  if (!isJsonObject(answer)) throw new TypeError('the answer is no object')
  const wanted = { kind: 'ImageReview', apiVersion: 'imagepolicy.k8s.io/v1alpha1' }
  for (const [name, expected] of Object.entries(wanted)) {
    const found = getOwn(answer, name) ?? expected
    if (found !== expected) throw new TypeError(`${name} is ${JSON.stringify(found)}`)
  }
  const given = getOwn(answer, 'status')
  const status = isJsonObject(given) ? given : {}
  const reason = getOwn(status, 'reason')
  const annotations = getOwn(status, 'auditAnnotations')
  return {
    allowed: getOwn(status, 'allowed') === true,
    reason: typeof reason === 'string' ? reason : '',
    auditAnnotations: Object.fromEntries(
      Object.entries(isJsonObject(annotations) ? annotations : {}).filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string',
      ),
    ),
  }
}

/** Whether the key of an audit annotation is one: a name behind the prefix. */
const AUDIT_KEY = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/

function outcomeOf(
  call: ImageReviewCall,
  request: AdmissionRequest,
  { defaultAllow = false }: ImagePolicyOptions,
): Reviewed {
  const { status, failure = 'no answer', code } = call
  const forbidden = (text: string) => {
    return { code: 403, message: `pods "${nameOf(request)}" is forbidden: ${text}` }
  }
  if (status === undefined) {
    if (defaultAllow) {
      const auditAnnotations = { [`${AUDIT_PREFIX}failed-open`]: 'true' }
      return { call, refusal: undefined, auditAnnotations }
    }
    const text = code === undefined || code === 403 ? failure : `Error contacting webhook: ${code}`
    // What is forbidden already is not wrapped again.
    const refusal = code === 403 ? { code, message: text } : forbidden(text)
    return { call, refusal, auditAnnotations: {} }
  }
  const annotations = Object.entries(status.auditAnnotations).filter(([key]) => AUDIT_KEY.test(key))
  return {
    call,
    refusal: status.allowed ? undefined : forbidden(denialText(status.reason)),
    auditAnnotations: Object.fromEntries(
      annotations.map(([key, value]) => [AUDIT_PREFIX + key, value]),
    ),
  }
}

function denialText(reason: string): string {
  return reason === ''
    ? 'one or more images rejected by webhook backend'
    : `image policy webhook backend denied one or more images: ${reason}`
}

/** While the API server has not made up the name yet, the beginning of it. */
function nameOf({ name, object }: AdmissionRequest): string {
  const metadata = object === null ? undefined : getOwn(object, 'metadata')
  const [own, generated] = ['name', 'generateName'].map((key) =>
    isJsonObject(metadata) ? getOwn(metadata, key) : undefined,
  )
  const found = [name, own, generated].find((text) => typeof text === 'string' && text !== '')
  return typeof found === 'string' ? found : 'Unknown'
}
