import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AUDIT_WARNINGS,
  parseImageReview,
  podRequest,
  toImageReview,
} from '#shared/admission/image-review.ts'
import { admitted, denied } from '#shared/admission/response.ts'
import { AdmissionError } from '#shared/errors.ts'
import { type JsonValue, parseJson } from '#shared/json.ts'
import { MAX_MESSAGE_CHARS, MAX_REVIEWED_IMAGES } from '#shared/limits.ts'

const review = (spec: unknown, members: object = {}) => ({
  kind: 'ImageReview',
  apiVersion: 'imagepolicy.k8s.io/v1alpha1',
  metadata: {},
  spec,
  status: { allowed: false },
  ...members,
})

/** As the wire brings it. */
const parsed = (value: unknown) => parseImageReview(parseJson(JSON.stringify(value)))

function faultOf(value: unknown): AdmissionError {
  try {
    parsed(value)
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return thrown
    throw thrown
  }
  throw new TypeError('it is valid')
}

describe('parseImageReview', () => {
  test.each<[string, unknown, ReturnType<typeof parseImageReview>]>([
    [
      'a review as an API server sends it, duplicates and all (REV-01)',
      {
        containers: [{ image: 'a:1' }, { image: 'b@sha256:00' }, { image: 'a:1' }],
        annotations: { 'mycluster.image-policy.k8s.io/ticket': '1' },
        namespace: 'shop',
      },
      {
        images: ['a:1', 'b@sha256:00', 'a:1'],
        annotations: { 'mycluster.image-policy.k8s.io/ticket': '1' },
        namespace: 'shop',
      },
    ],
    ['an empty spec', {}, { images: [], annotations: {} }],
    [
      'nulls',
      { containers: null, annotations: null, namespace: null },
      { images: [], annotations: {} },
    ],
    ['an empty namespace', { namespace: '' }, { images: [], annotations: {} }],
    [
      'members that nobody knows',
      { containers: [{ image: 'a', digest: 'x' }], volumes: [7] },
      { images: ['a'], annotations: {} },
    ],
    [
      'annotations without the part that an API server sends them by, which are left out (REV-02)',
      {
        annotations: {
          'mycluster.image-policy.k8s.io/ticket': '1',
          'image-policy.k8s.io/x': '2',
          'a.image-policy.k8s.io/': '3',
          other: '4',
        },
      },
      {
        images: [],
        annotations: { 'mycluster.image-policy.k8s.io/ticket': '1', 'a.image-policy.k8s.io/': '3' },
      },
    ],
  ])('takes %s', (_, spec, expected) => {
    expect(parsed(review(spec))).toEqual(expected)
  })

  test('takes an older review, whose metadata has a creationTimestamp', () => {
    const older = review({}, { metadata: { creationTimestamp: null }, status: undefined })
    expect(parsed(older)).toEqual({ images: [], annotations: {} })
  })

  test.each<[string, unknown, string[]]>([
    ['null', null, ['(review)', 'apiVersion', 'kind', 'spec']],
    ['a list', [], ['(review)', 'apiVersion', 'kind', 'spec']],
    ['another kind', review({}, { kind: 'AdmissionReview' }), ['kind']],
    ['no kind', review({}, { kind: undefined }), ['kind']],
    ['another version', review({}, { apiVersion: 'imagepolicy.k8s.io/v1beta1' }), ['apiVersion']],
    ['a version without its group', review({}, { apiVersion: 'v1alpha1' }), ['apiVersion']],
    ['no spec', review(undefined), ['spec']],
    ['containers that are no list', review({ containers: {} }), ['spec.containers']],
    [
      'containers without an image',
      review({ containers: [{ image: 'a' }, {}, { image: '' }, { image: null }, { image: 7 }] }),
      [1, 2, 3, 4].map((index) => `spec.containers[${index}].image`),
    ],
    [
      'containers that are none',
      review({ containers: ['a', null] }),
      ['spec.containers[0]', 'spec.containers[1]'],
    ],
    ['annotations that are no object', review({ annotations: ['a'] }), ['spec.annotations']],
    ['an annotation that is no text', review({ annotations: { a: 1 } }), ['spec.annotations["a"]']],
    ['a namespace that is no text', review({ namespace: 7 }), ['spec.namespace']],
    [
      'all of it at once',
      { spec: { containers: 7, annotations: 7, namespace: {} } },
      ['apiVersion', 'kind', 'spec.containers', 'spec.annotations', 'spec.namespace'],
    ],
  ])('names every bad path of %s', (_, value, paths) => {
    const { code, faults, message } = faultOf(value)
    expect([code, faults.map(({ path }) => path)]).toEqual(['REVIEW_INVALID', paths])
    expect(message).toMatch(/^ImageReview is not valid: /)
  })

  test('refuses more images than are looked at, and takes as many', () => {
    const containers = (count: number) => review({ containers: Array(count).fill({ image: 'a' }) })
    expect(parsed(containers(MAX_REVIEWED_IMAGES)).images).toHaveLength(MAX_REVIEWED_IMAGES)
    expect(faultOf(containers(MAX_REVIEWED_IMAGES + 1)).code).toBe('IMAGE_LIST_INVALID')
  })

  test('believes no key of a prototype', () => {
    const text = JSON.stringify(review({ containers: [] })).replace(
      '"containers"',
      '"__proto__":{"containers":[{"image":"a"}],"namespace":"kube-system"},"containers"',
    )
    expect(parseImageReview(parseJson(text))).toEqual({ images: [], annotations: {} })
  })

  test('throws nothing but its codes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (spec) => {
        try {
          parsed(review(spec))
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(AdmissionError)
          expect(['REVIEW_INVALID', 'IMAGE_LIST_INVALID']).toContain(
            (thrown as AdmissionError).code,
          )
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('podRequest', () => {
  test('is the creation of a Pod with every image in every list', () => {
    const annotations = { 'a.image-policy.k8s.io/b': 'c' }
    const request = podRequest({ images: ['a', 'b', 'a'], annotations, namespace: 'shop' }, 'uid')
    const containers = [{ image: 'a' }, { image: 'b' }, { image: 'a' }]
    expect(request).toMatchObject({ uid: 'uid', operation: 'CREATE', namespace: 'shop' })
    expect(request.object).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'shop', annotations },
      spec: { containers, initContainers: containers, ephemeralContainers: containers },
    })
  })
})

describe('toImageReview', () => {
  const shell = { apiVersion: 'imagepolicy.k8s.io/v1alpha1', kind: 'ImageReview' }

  test.each<[string, Parameters<typeof toImageReview>[0], object]>([
    ['a plain yes', admitted(), { allowed: true }],
    ['a plain no', denied('because'), { allowed: false, reason: 'because' }],
    [
      'a no without a status',
      { ...admitted(), allowed: false },
      { allowed: false, reason: 'denied without explanation' },
    ],
    [
      'a yes with warnings and annotations',
      admitted({ warnings: ['one', 'two'], auditAnnotations: { 'bad key/': 'x', good: 'y' } }),
      {
        allowed: true,
        auditAnnotations: { bad_key: 'x', good: 'y', [AUDIT_WARNINGS]: 'one; two' },
      },
    ],
    [
      'a yes with a status that says no',
      { ...admitted(), status: denied('because').status! },
      { allowed: true },
    ],
  ])('has kind, version and status of %s', (_, decision, status) => {
    expect(toImageReview(decision)).toEqual({ ...shell, status })
  })

  test('cuts a reason that no terminal would show', () => {
    const { reason } = toImageReview(denied('x'.repeat(MAX_MESSAGE_CHARS * 2))).status
    expect(reason).toHaveLength(MAX_MESSAGE_CHARS)
  })

  test('is JSON whatever a decision holds', () => {
    const value = toImageReview(denied('half \ud800 a character')) as unknown as JsonValue
    expect(JSON.parse(JSON.stringify(value))).toMatchObject(shell)
  })
})
