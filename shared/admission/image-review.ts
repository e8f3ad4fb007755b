import { AdmissionError } from '../errors.ts'
import { getOwn, isJsonObject, type JsonValue } from '../json.ts'
import { MAX_REVIEWED_IMAGES } from '../limits.ts'
import { describe, isAbsent, quote, Reader } from './reader.ts'
import { cleanAuditAnnotations, denialMessage } from './response.ts'
import type { AdmissionRequest, Decision } from './types.ts'

/** `imagepolicy.k8s.io/v1alpha1`: the only version there is. */
export const IMAGE_REVIEW_API_VERSION = 'imagepolicy.k8s.io/v1alpha1'

/** What the key of an annotation has to contain, anywhere, for the API server to send it. */
export const REVIEWED_ANNOTATION = '.image-policy.k8s.io/'

/** A checked ImageReview. */
export interface ImageReview {
  /** In their order, as often as they are there. */
  images: readonly string[]
  /** Those whose keys contain `.image-policy.k8s.io/`. */
  annotations: Readonly<Record<string, string>>
  namespace?: string
}

/** An ImageReview as an answer: `spec` may be left out, a missing `status` would mean no. */
export interface ImageReviewAnswer {
  apiVersion: typeof IMAGE_REVIEW_API_VERSION
  kind: 'ImageReview'
  status: { allowed: boolean; reason?: string; auditAnnotations?: Record<string, string> }
}

/**
 * The checked ImageReview of a body (specs/kubernetes-admission.md 9.1). Throws `REVIEW_INVALID` with every bad path, and
 * `IMAGE_LIST_INVALID` for more images than are looked at. Containers, annotations and namespace may be null or missing, and members that
 * it does not know are ignored; kind and version must be right to the letter, because a version in alpha may mean anything by the next.
 */
export function parseImageReview(value: JsonValue): ImageReview {
  const reader = new Reader('ImageReview')
  const review = reader.object('(review)', value) ?? {}
  const wanted = { apiVersion: IMAGE_REVIEW_API_VERSION, kind: 'ImageReview' }
  for (const [key, expected] of Object.entries(wanted)) {
    const found = getOwn(review, key)
    if (found !== expected) reader.fault(key, `must be "${expected}", is ${describe(found)}`)
  }
  const spec = reader.object('spec', getOwn(review, 'spec')) ?? {}
  const images = readImages(reader, getOwn(spec, 'containers'))
  const annotations = readAnnotations(reader, getOwn(spec, 'annotations'))
  const namespace = reader.optionalText('spec.namespace', getOwn(spec, 'namespace'))
  if (reader.hasFaults) throw reader.error()
  return { images, annotations, ...(namespace && { namespace }) }
}

function readImages(reader: Reader, list: JsonValue | undefined): string[] {
  if (isAbsent(list)) return []
  if (!Array.isArray(list)) {
    reader.fault('spec.containers', `must be a list, is ${describe(list)}`)
    return []
  }
  if (list.length > MAX_REVIEWED_IMAGES) {
    const message = `the ImageReview has ${list.length} images, at most ${MAX_REVIEWED_IMAGES} may be`
    throw new AdmissionError('IMAGE_LIST_INVALID', message)
  }
  return list.flatMap((container, index) => {
    const path = `spec.containers[${index}]`
    const image = isJsonObject(container) ? getOwn(container, 'image') : undefined
    if (typeof image === 'string' && image !== '') return [image]
    if (!isJsonObject(container)) reader.object(path, container)
    else reader.fault(`${path}.image`, `must be an image reference, is ${describe(image)}`)
    return []
  })
}

function readAnnotations(reader: Reader, value: JsonValue | undefined): Record<string, string> {
  // Keys come from outside: without a prototype none of them can mean anything.
  const annotations: Record<string, string> = Object.create(null)
  if (isAbsent(value)) return annotations
  for (const [key, text] of Object.entries(reader.object('spec.annotations', value) ?? {})) {
    if (typeof text !== 'string') {
      reader.fault(`spec.annotations[${quote(key)}]`, `must be a string, is ${describe(text)}`)
    } else if (key.includes(REVIEWED_ANNOTATION)) annotations[key] = text
  }
  return annotations
}

/**
 * The request that an ImageReview is decided as: the creation of a Pod with every image in all three lists, because a review does not
 * say which of them an image is in, and a rule about one of them must not be passed by naming the image in another. Policies
 * that read anything else of it are refused for image reviews (`policy/image-review-needs.ts`).
 *
 * @param uid what logs and events know the review by; the API server gives it none
 */
export function podRequest(
  { images, annotations, namespace }: ImageReview,
  uid: string,
): AdmissionRequest {
  const containers = images.map((image) => ({ image }))
  const kind = { group: '', version: 'v1', kind: 'Pod' }
  const resource = { group: '', version: 'v1', resource: 'pods' }
  return {
    uid,
    kind,
    resource,
    requestKind: kind,
    requestResource: resource,
    ...(namespace !== undefined && { namespace }),
    operation: 'CREATE',
    userInfo: {},
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...(namespace !== undefined && { namespace }), annotations },
      spec: { containers, initContainers: containers, ephemeralContainers: containers },
    },
    oldObject: null,
    options: null,
  }
}

/** Audit annotation: what policies and the engine warn of, since an ImageReview has no other place for it. */
export const AUDIT_WARNINGS = 'image-policy-warnings'

/** The ImageReview that carries a decision: always with kind, version and status, whatever the decision holds. */
export function toImageReview(decision: Decision): ImageReviewAnswer {
  const { allowed, status, warnings } = decision
  const auditAnnotations = cleanAuditAnnotations({
    ...decision.auditAnnotations,
    ...(warnings.length > 0 && { [AUDIT_WARNINGS]: warnings.join('; ') }),
  })
  return {
    apiVersion: IMAGE_REVIEW_API_VERSION,
    kind: 'ImageReview',
    status: {
      allowed,
      ...(!allowed && { reason: denialMessage(status) }),
      ...(Object.keys(auditAnnotations).length > 0 && { auditAnnotations }),
    },
  }
}
