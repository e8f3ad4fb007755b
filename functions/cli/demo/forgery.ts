import { nodeHash } from '#functions/hash-node.ts'
import { toAdmissionRequest } from '#functions/local/submission.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { fromBase64Url, fromUtf8, utf8 } from '#shared/bytes.ts'
import {
  annotationOf,
  OUTCOMES_ANNOTATION as OUTCOMES,
  SEAL_ANNOTATION as SEAL,
} from '#shared/outcome/annotation.ts'
import { decodeBody } from '#shared/outcome/body.ts'
import { sealContext } from '#shared/outcome/context.ts'
import { sealOutcomes } from '#shared/outcome/seal.ts'
import { type DemoImage, pinnedReference } from './images.ts'
import { pod } from './pod.ts'

/** What the forger has read: a Pod that was admitted, with its seal, and the image in it. */
export interface Model {
  object: JsonObject
  image: DemoImage
}

/** A lifetime as ours, milliseconds. */
const LIFETIME_MS = 120_000

/**
 * A Pod with an image nobody signed and annotations that say otherwise: a passing outcome, and a seal that is right in every
 * respect (version, key id, facts, context, times) but made with the forger's own key.
 */
export function forgedPod(name: string, image: DemoImage, model: Model): JsonObject {
  const [, kid = '', body = ''] = annotationOf(model.object, SEAL)?.split('.') ?? []
  const text = fromUtf8(fromBase64Url(body) ?? new Uint8Array())
    .replaceAll(pinnedReference(model.image), pinnedReference(image))
    .replaceAll(model.image.digest, image.digest)
  const { outcomes } = decodeBody(utf8(text))
  const object = pod({ name, image: pinnedReference(image) })
  const context = sealContext(
    toAdmissionRequest({ operation: 'CREATE', object }, object),
    'prod-eu',
  )
  const secret = crypto.getRandomValues(new Uint8Array(32))
  const key = { mac: (message: Uint8Array) => nodeHash.hmacSha256(secret, message) }
  const seal = sealOutcomes(outcomes, context, { kid, key }, Date.now(), LIFETIME_MS)
  const annotations = { [OUTCOMES]: passingRecord(), [SEAL]: seal }
  return pod({ name, image: pinnedReference(image), annotations })
}

function passingRecord(): string {
  const outcome = {
    name: 'signed-images',
    ruleType: 'ImageVerify',
    message: 'success',
    status: 'pass',
  }
  return JSON.stringify({ 'signed-images': outcome })
}
