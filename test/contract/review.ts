import { createHash } from 'node:crypto'

/** SHA-256 hex, the form in which the config holds tokens. */
export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** A Pod with these images. */
export function pod(...images: string[]): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { containers: images.map((image, index) => ({ name: `c${index}`, image })) },
  }
}

/** An AdmissionReview as the API server sends it, with members of the request replaced. */
export function review(request: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: 'a7c3f1d2-0000-4000-8000-000000000001',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      requestKind: { group: '', version: 'v1', kind: 'Pod' },
      requestResource: { group: '', version: 'v1', resource: 'pods' },
      name: 'web',
      namespace: 'shop',
      operation: 'CREATE',
      userInfo: { username: 'alice', groups: ['system:authenticated'] },
      object: pod('registry.example/web:1'),
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      ...request,
    },
  }
}

export const UID = 'a7c3f1d2-0000-4000-8000-000000000001'
