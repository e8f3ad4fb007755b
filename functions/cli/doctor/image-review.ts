import { AUDIT_POLICY_SET } from '#functions/review.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { toAdmissionError } from '#shared/errors.ts'
import { getOwn, isJsonObject, parseJson } from '#shared/json.ts'
import { newToken } from '../token.ts'
import { doorFor, routeUrl } from './doors.ts'
import { imageReviewBody } from './pods.ts'
import { policySetCheck, quoted, type Visit } from './reviews.ts'
import { type Check, fail, ok } from './types.ts'

const CHECK = 'image-review'
/** As an API server asks: its client names how long one request may take. */
const AS_CLIENT = '?timeout=30s'

/**
 * Whether ImageReviews are answered: to nobody with another token, and to this cluster in a way that ImagePolicyWebhook takes
 * (specs/kubernetes-admission.md 9.2). Rejects where no connection can be had.
 */
export async function checkImageReview(visit: Visit, image: string): Promise<Check[]> {
  const { caller, patient, doors } = visit
  const door = doorFor(doors, CHECK)
  const body = imageReviewBody(image)
  const ask = (token: string) =>
    caller.post(`${routeUrl({ ...patient, token }, door, CHECK)}${AS_CLIENT}`, body)
  const wrong = await ask(newToken())
  if (wrong.status !== 404) {
    const fix = 'whatever answers there is no Countersign: look at the routes of the front door'
    return [fail(CHECK, `a wrong token gets HTTP ${wrong.status} in place of 404`, fix)]
  }
  const { status, text } = await ask(patient.token)
  if (status === 404) {
    const fix =
      'deploy the function for image reviews that `countersign build` writes, and lead POST /v1/{cluster}/{token}/image-review to it'
    return [fail(CHECK, 'HTTP 404', fix)]
  }
  const fix = 'an API server counts this as no answer, and admits no Pod: look into the log'
  if (status < 200 || status > 299) return [fail(CHECK, `HTTP ${status}`, fix)]
  const read = readAnswer(text)
  if (typeof read === 'string') return [fail(CHECK, read, fix)]
  const policies = policySetCheck(`policies of ${CHECK}`, policySetOf(read), {
    expected: patient.reviewedPolicySet,
    cluster: patient.cluster.name,
  })
  return [verdictCheck(read), policies]
}

/** The `status` of an answer, or what keeps it from being one. */
function readAnswer(text: string): JsonObject | string {
  try {
    const answer = parseJson(text)
    if (!isJsonObject(answer)) return 'the answer is no object'
    const [kind, version] = [getOwn(answer, 'kind'), getOwn(answer, 'apiVersion')]
    if (kind !== 'ImageReview' || version !== 'imagepolicy.k8s.io/v1alpha1') {
      return 'the answer is no ImageReview of imagepolicy.k8s.io/v1alpha1'
    }
    const status = getOwn(answer, 'status')
    const isVerdict = isJsonObject(status) && typeof getOwn(status, 'allowed') === 'boolean'
    return isVerdict ? status : 'the answer has no status.allowed, which an API server takes for no'
  } catch (thrown) {
    return `the answer is no JSON: ${toAdmissionError(thrown, 'reading').message}`
  }
}

function verdictCheck(status: JsonObject): Check {
  if (getOwn(status, 'allowed') === true) return ok(CHECK, 'allowed')
  const reason = getOwn(status, 'reason')
  return ok(CHECK, `denied: ${quoted(typeof reason === 'string' ? reason : 'no reason given')}`)
}

function policySetOf(status: JsonObject): unknown {
  const annotations = getOwn(status, 'auditAnnotations')
  return isJsonObject(annotations) ? getOwn(annotations, AUDIT_POLICY_SET) : undefined
}
