import {
  type ImageReview,
  parseImageReview,
  podRequest,
  toImageReview,
} from '#shared/admission/image-review.ts'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import { createImageReview, type DecideImageReview } from '#shared/engine/image-review.ts'
import type { Isolate } from '#shared/engine/isolate.ts'
import type { EngineDecision } from '#shared/engine/types.ts'
import { AdmissionError, toAdmissionError } from '#shared/errors.ts'
import { type JsonValue, parseJson, stringifyJson } from '#shared/json.ts'
import type { HashPort } from '#shared/ports.ts'
import type { ImageReviews } from './app.ts'
import type { Body } from './body.ts'
import type { ClusterConfig } from './config.ts'
import { type Deployment, policiesOf } from './deployment.ts'
import { reviewedCluster } from './image-review-policies.ts'
import { type Call, late, type ReviewAnswer, refusal, ruled } from './review.ts'

/** What answers ImageReviews is made of. */
export interface ImageReviewOptions {
  deployment: Deployment
  isolate: Isolate
  hash: HashPort
}

/** Answers the ImageReviews of a deployment. */
export function createImageReviews({
  deployment,
  isolate,
  hash,
}: ImageReviewOptions): ImageReviews {
  const decide = createImageReview(isolate)
  const known = new Map<ClusterConfig, ReturnType<ImageReviews['policiesOf']>>()
  return {
    policiesOf: (cluster) => {
      const found = known.get(cluster) ?? grantedTo(cluster, deployment, hash)
      known.set(cluster, found)
      return found
    },
    answer: (call, refused) => answerImageReview(decide, call, refused),
  }
}

/** Without the names of policies: the path of reviews has none. */
function grantedTo(cluster: ClusterConfig, deployment: Deployment, hash: HashPort) {
  const { names: _, ...granted } = policiesOf(deployment, reviewedCluster(cluster), hash)
  return granted
}

/**
 * The answer to one ImageReview: HTTP 200 whatever happened, because the API server hands anything else to `defaultAllow`, which may let every
 * image in. So what cannot be read, what is too large and what came too late is a denial. Never throws.
 */
async function answerImageReview(
  decide: DecideImageReview,
  call: Call,
  refused: AdmissionError | undefined,
): Promise<ReviewAnswer> {
  // The API server names no review; this is what logs and events know it by.
  const uid = crypto.randomUUID()
  const { request, reached, error } = await reach(decide, call, refused, uid)
  const decision = ruled(reached, { policySet: call.policySet, mode: call.mode })
  // An ImageReview is JSON by construction; interfaces just have no index signature.
  const text = stringifyJson(toImageReview(decision) as unknown as JsonValue)
  return { httpStatus: 200, text, decision, ...(request && { request }), ...(error && { error }) }
}

interface Reached {
  /** The Pod that stands for the review, where that could be read. */
  request?: AdmissionRequest
  reached: EngineDecision
  error?: AdmissionError
}

async function reach(
  decide: DecideImageReview,
  { cluster, granted, exceptions, body, deadline }: Call,
  refused: AdmissionError | undefined,
  uid: string,
): Promise<Reached> {
  let request: AdmissionRequest | undefined
  try {
    const review = readReview(body)
    request = podRequest(review, uid)
    if (refused !== undefined) throw refused
    const { signal } = deadline
    const whose = {
      cluster,
      signal,
      ...(granted && { granted }),
      ...(exceptions && { exceptions }),
    }
    return { request, reached: await deadline.race(decide(review, uid, whose), late) }
  } catch (thrown) {
    const error = toAdmissionError(thrown, 'answering an ImageReview')
    return { ...(request && { request }), reached: refusal(error), error }
  }
}

/** Throws AdmissionError for what is no ImageReview. */
function readReview(body: Body): ImageReview {
  if (body.status === 'text') return parseImageReview(parseJson(body.text))
  const { error } = body
  if (error.code !== 'REQUEST_TOO_LARGE') throw error
  const message = 'the ImageReview is larger than limits.bodyBytes or this platform allows'
  throw new AdmissionError('REQUEST_TOO_LARGE', message, { cause: error })
}
