import { performance } from 'node:perf_hooks'
import { isDeepStrictEqual } from 'node:util'
import { applyPatch } from '#shared/admission/patch.ts'
import { type VerifiedResponse, verifyResponse } from '#shared/admission/response.ts'
import type { AdmissionRequest, JsonObject, JsonPatchOperation } from '#shared/admission/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { copyJson, parseJson } from '#shared/json.ts'
import {
  createImagePolicy,
  type ImagePolicy,
  type ImagePolicyOptions,
  type ImageReviewCall,
} from './image-policy.ts'
import { type Submission, toAdmissionRequest, withStoreFields } from './submission.ts'
import { createWebhookClient, growth, type Webhook, type WebhookClient } from './webhook.ts'

/** Where in the chain a call was made; `reinvoke` is the second and last round of a mutating webhook. */
export type Phase = 'mutate' | 'reinvoke' | 'validate'

/** One webhook call, with everything that went over the wire. */
export interface WebhookCall {
  phase: Phase
  webhook: string
  request: AdmissionRequest
  /** The answer once it passed the API server's checks. */
  response?: VerifiedResponse
  /** The decoded patch; empty when nothing was to be changed. */
  patch: readonly JsonPatchOperation[]
  /** Why the call counts as failed, in the API server's words. */
  failure?: string
  ms: number
  /** By how much each counter of `meter` grew during the call. */
  used: Readonly<Record<string, number>>
}

/** The API server's last word on one submission. */
export interface Admission {
  allowed: boolean
  /** HTTP status of a refusal; 0 when allowed. */
  code: number
  /** What `kubectl` prints after `Error from server:`; empty when allowed. */
  message: string
  /** The object as it is stored, or as it was when it was refused; null on DELETE. */
  object: JsonObject | null
  calls: readonly WebhookCall[]
  /** The ImageReview of this submission, if ImagePolicyWebhook is on and there was one. */
  imageReviews: readonly ImageReviewCall[]
  warnings: readonly string[]
  /** As they stand in the audit log: `<webhook name>/<key>`, and the chain's own. */
  auditAnnotations: Readonly<Record<string, string>>
  ms: number
}

/** A step of the chain that is not ours: another mutating webhook, configured after ours. Returns the changed object. */
export type OtherWebhook = (object: JsonObject) => JsonObject

export interface ApiServerOptions {
  /** PEM; the `caBundle` of both webhooks. */
  ca: string
  /** Absent when the mutating webhook is not configured or does not match. */
  mutating?: Webhook | undefined
  validating?: Webhook | undefined
  /** ImagePolicyWebhook; off when absent. */
  imagePolicy?: Omit<ImagePolicyOptions, 'ca' | 'now' | 'meter'> | undefined
  /** Epoch milliseconds, for `creationTimestamp`. */
  now: () => number
  /** Counters to read around every call, such as the requests a registry has received. */
  meter?: () => Readonly<Record<string, number>>
}

export interface ApiServer {
  /** Takes one submission through the chain. Never throws for anything a webhook does. */
  admit(submission: Submission, options?: { later?: readonly OtherWebhook[] }): Promise<Admission>
  close(): void
}

/**
 * The admission side of an API server: mutating webhook, other webhooks, one reinvocation, the names and ids the store sets, ImagePolicyWebhook,
 * validating webhook (`specs/kubernetes-admission.md` 0.1, 1, 2.6–2.10, 4, 9). It checks every answer as the API server does and speaks its words. Not
 * modelled: matching rules, in-tree plugins, schema defaulting, and `Retry-After`.
 */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const client = createWebhookClient(options.ca)
  const { ca, now, meter, imagePolicy } = options
  // What it has been told it keeps, however many submissions there are.
  const images =
    imagePolicy && createImagePolicy({ ...imagePolicy, ca, now, ...(meter && { meter }) })
  return {
    admit: (submission, { later = [] } = {}) =>
      new Chain(options, { client, images }, submission).run(later),
    close: () => {
      client.close()
      images?.close()
    },
  }
}

interface Refusal {
  code: number
  message: string
}

/** Whom a chain asks. */
interface Backends {
  client: WebhookClient
  images: ImagePolicy | undefined
}

/** One submission on its way through the chain. */
class Chain {
  readonly #options: ApiServerOptions
  readonly #client: WebhookClient
  readonly #images: ImagePolicy | undefined
  readonly #submission: Submission
  readonly #calls: WebhookCall[] = []
  readonly #imageReviews: ImageReviewCall[] = []
  readonly #warnings = new Set<string>()
  readonly #audit: Record<string, string> = {}
  #object: JsonObject | null

  constructor(options: ApiServerOptions, { client, images }: Backends, submission: Submission) {
    this.#options = options
    this.#client = client
    this.#images = images
    this.#submission = submission
    this.#object = submission.object && copyObject(submission.object)
  }

  async run(later: readonly OtherWebhook[]): Promise<Admission> {
    const started = performance.now()
    const refusal = (await this.#mutate(later)) ?? (await this.#validate())
    return {
      allowed: refusal === undefined,
      code: refusal?.code ?? 0,
      message: refusal?.message ?? '',
      object: this.#object,
      calls: this.#calls,
      imageReviews: this.#imageReviews,
      warnings: [...this.#warnings],
      auditAnnotations: this.#audit,
      ms: performance.now() - started,
    }
  }

  async #mutate(later: readonly OtherWebhook[]): Promise<Refusal | undefined> {
    const webhook = this.#options.mutating
    const refusal = webhook && (await this.#callMutating(webhook, 'mutate'))
    if (refusal !== undefined) return refusal
    const before = this.#object
    for (const change of later) {
      if (this.#object !== null) this.#object = change(copyObject(this.#object))
    }
    // Our own change never makes our own hook run again; a later hook's does, once, when the policy says so.
    const changed = !isDeepStrictEqual(before, this.#object)
    if (webhook?.reinvocationPolicy !== 'IfNeeded' || !changed) return undefined
    return this.#callMutating(webhook, 'reinvoke')
  }

  async #callMutating(webhook: Webhook, phase: Phase): Promise<Refusal | undefined> {
    const call = await this.#call(webhook, phase)
    if (call.failure !== undefined || call.response?.allowed === false)
      return this.#refusal(webhook, call)
    if (call.patch.length === 0) return undefined
    if (this.#object === null) {
      const message = `Internal error occurred: admission webhook "${webhook.name}" attempted to modify the object, which is not supported for this operation`
      return { code: 500, message }
    }
    try {
      this.#object = applyPatch(this.#object, call.patch)
      return undefined
    } catch (thrown) {
      // A patch that does not apply refuses the request whatever failurePolicy says.
      return {
        code: 500,
        message: `Internal error occurred: ${messageOf(thrown)}`,
      }
    }
  }

  async #validate(): Promise<Refusal | undefined> {
    if (this.#submission.operation === 'CREATE' && this.#object !== null) {
      this.#object = withStoreFields(this.#object, this.#options.now())
    }
    const refusal = await this.#reviewImages()
    if (refusal !== undefined) return refusal
    const webhook = this.#options.validating
    if (webhook === undefined) return undefined
    const call = await this.#call(webhook, 'validate')
    return this.#refusal(webhook, call)
  }

  /** Of the object as it will be stored: plugins of the API server itself come before webhooks. */
  async #reviewImages(): Promise<Refusal | undefined> {
    const request = toAdmissionRequest(this.#submission, this.#object)
    const reviewed = await this.#images?.review(request)
    if (reviewed === undefined) return undefined
    this.#imageReviews.push(reviewed.call)
    Object.assign(this.#audit, reviewed.auditAnnotations)
    return reviewed.refusal
  }

  /** Makes one call and records it, with its warnings and audit annotations (also those of a denial). */
  async #call(webhook: Webhook, phase: Phase): Promise<WebhookCall> {
    const request = toAdmissionRequest(this.#submission, this.#object)
    const before = this.#options.meter?.() ?? {}
    const reply = await this.#client.post(webhook, request)
    const used = growth(before, this.#options.meter?.() ?? {})
    const outcome = reply.ok
      ? readReply(reply.body, request.uid, phase)
      : { failure: `failed to call webhook: ${reply.reason}`, patch: [] }
    const call: WebhookCall = {
      phase,
      webhook: webhook.name,
      request,
      ...outcome,
      ms: reply.ms,
      used,
    }
    this.#calls.push(call)
    for (const warning of call.response?.warnings ?? []) this.#warnings.add(warning)
    for (const [key, value] of Object.entries(call.response?.auditAnnotations ?? {})) {
      this.#audit[`${webhook.name}/${key}`] ??= value
    }
    return call
  }

  #refusal(webhook: Webhook, call: WebhookCall): Refusal | undefined {
    if (call.failure === undefined) return call.response && rejection(webhook, call.response)
    if (webhook.failurePolicy === 'Fail') {
      const text = `failed calling webhook "${webhook.name}": ${call.failure}`
      return { code: 500, message: `Internal error occurred: ${text}` }
    }
    const phase = call.phase === 'validate' ? 'validating' : 'mutation'
    const round = call.phase === 'reinvoke' ? 1 : 0
    this.#audit[`failed-open.${phase}.webhook.admission.k8s.io/round_${round}_index_0`] =
      webhook.name
    return undefined
  }
}

/** The answer after the API server's checks, or the failure they make of it. */
function readReply(
  body: string,
  uid: string,
  phase: Phase,
): Pick<WebhookCall, 'response' | 'patch' | 'failure'> {
  try {
    const response = verifyResponse(
      parseJson(body),
      uid,
      phase === 'validate' ? 'validate' : 'mutate',
    )
    return { response, patch: response.patch }
  } catch (thrown) {
    return { failure: `${failureKind(thrown)}: ${messageOf(thrown)}`, patch: [] }
  }
}

function failureKind(thrown: unknown): string {
  const code = thrown instanceof AdmissionError ? thrown.code : undefined
  if (code === 'RESPONSE_INVALID') return 'received invalid webhook response'
  if (code === 'PATCH_INVALID') return 'received undecodable patch in webhook response'
  return 'failed to call webhook'
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** The status of a webhook's "no" (`specs/kubernetes-admission.md` 2.10), or undefined when it said yes. */
function rejection(webhook: Webhook, response: VerifiedResponse): Refusal | undefined {
  if (response.allowed) return undefined
  const { message, reason, code } = response.status ?? {}
  const said = message || reason
  return {
    code: Math.max(typeof code === 'number' ? code : 0, 400),
    message: `admission webhook "${webhook.name}" denied the request${said ? `: ${said}` : ' without explanation'}`,
  }
}

function copyObject(object: JsonObject): JsonObject {
  // The copy of an object is an object.
  return copyJson(object) as JsonObject
}
