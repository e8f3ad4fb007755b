import { randomUUID } from 'node:crypto'

/** An AdmissionReview as an API server sends it for a dry run of this object. */
export function dryRunReview(object: Readonly<Record<string, unknown>>): {
  uid: string
  body: string
} {
  const uid = randomUUID()
  const kind = { group: '', version: 'v1', kind: 'Pod' }
  const resource = { group: '', version: 'v1', resource: 'pods' }
  const body = {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid,
      kind,
      resource,
      requestKind: kind,
      requestResource: resource,
      name: 'countersign-doctor',
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'countersign-doctor', groups: ['system:authenticated'] },
      object,
      oldObject: null,
      dryRun: true,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', dryRun: ['All'] },
    },
  }
  return { uid, body: JSON.stringify(body) }
}

/** A Pod with this image. Where annotations are given they are its own. */
export function doctorPod(
  image: string,
  annotations?: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'countersign-doctor',
      namespace: 'default',
      ...(annotations && { annotations }),
    },
    spec: { containers: [{ name: 'doctor', image }] },
  }
}

/** The body of an ImageReview, as an API server sends it when a Pod with this image is created (specs/kubernetes-admission.md 9.1). */
export function imageReviewBody(image: string): string {
  return JSON.stringify({
    kind: 'ImageReview',
    apiVersion: 'imagepolicy.k8s.io/v1alpha1',
    metadata: {},
    spec: { containers: [{ image }], namespace: 'default' },
    status: { allowed: false },
  })
}
