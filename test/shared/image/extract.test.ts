import { describe, expect, test } from 'vitest'
import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'
import type { AdmissionError, Fault } from '#shared/errors.ts'
import { extractImages, hasPodTemplate } from '#shared/image/extract.ts'
import type { JsonValue } from '#shared/json.ts'

/** A request about an object of `group/version/resource` and kind. */
function request(
  resource: string,
  kind: string,
  object: JsonValue,
  changes: Partial<AdmissionRequest> = {},
): AdmissionRequest {
  const [group = '', version = '', name = ''] = resource.split('/')
  return {
    uid: 'u',
    kind: { group, version, kind },
    resource: { group, version, resource: name },
    requestResource: { group, version, resource: name },
    operation: 'CREATE',
    userInfo: {},
    object: object as JsonObject,
    oldObject: null,
    options: null,
    ...changes,
  }
}

const pod = (spec: JsonValue, changes: Partial<AdmissionRequest> = {}) =>
  request('/v1/pods', 'Pod', { spec }, changes)

const SPEC: JsonObject = {
  initContainers: [{ name: 'i', image: 'init:1' }],
  containers: [
    { name: 'a', image: 'app:1' },
    { name: 'b', image: 'app:1' },
  ],
}

function faultsOf(given: AdmissionRequest): readonly Fault[] {
  try {
    extractImages(given)
  } catch (thrown) {
    const { code, faults } = thrown as AdmissionError
    if (code === 'IMAGE_LIST_INVALID') return faults
    throw thrown
  }
  throw new Error('accepted')
}

describe('extractImages', () => {
  test('gives every image of a Pod with its place, and the map with all three keys', () => {
    const ephemeralContainers = [{ name: 'e', image: 'debug:1' }]
    expect(extractImages(pod({ ...SPEC, ephemeralContainers }))).toEqual({
      images: [
        { extractor: 'containers', pointer: '/spec/containers/0/image', image: 'app:1' },
        { extractor: 'containers', pointer: '/spec/containers/1/image', image: 'app:1' },
        { extractor: 'initContainers', pointer: '/spec/initContainers/0/image', image: 'init:1' },
        {
          extractor: 'ephemeralContainers',
          pointer: '/spec/ephemeralContainers/0/image',
          image: 'debug:1',
        },
      ],
      map: {
        containers: ['app:1', 'app:1'],
        initContainers: ['init:1'],
        ephemeralContainers: ['debug:1'],
      },
    })
  })

  test.each([
    { resource: 'apps/v1/deployments', kind: 'Deployment', at: '/spec/template/spec' },
    { resource: 'apps/v1/statefulsets', kind: 'StatefulSet', at: '/spec/template/spec' },
    { resource: 'apps/v1/daemonsets', kind: 'DaemonSet', at: '/spec/template/spec' },
    { resource: 'apps/v1/replicasets', kind: 'ReplicaSet', at: '/spec/template/spec' },
    {
      resource: '/v1/replicationcontrollers',
      kind: 'ReplicationController',
      at: '/spec/template/spec',
    },
    { resource: 'batch/v1/jobs', kind: 'Job', at: '/spec/template/spec' },
    { resource: 'batch/v1/cronjobs', kind: 'CronJob', at: '/spec/jobTemplate/spec/template/spec' },
    { resource: '/v1/podtemplates', kind: 'PodTemplate', at: '/template/spec' },
  ])('finds the Pod template of $kind', ({ resource, kind, at }) => {
    const object = at
      .slice(1)
      .split('/')
      .reduceRight<JsonValue>((inner, key) => ({ [key]: inner }), SPEC)
    const given = request(resource, kind, object)
    expect(hasPodTemplate(given)).toBe(true)
    const { images, map } = extractImages(given)
    expect(images.map(({ pointer }) => pointer)).toEqual([
      `${at}/containers/0/image`,
      `${at}/containers/1/image`,
      `${at}/initContainers/0/image`,
    ])
    expect(map).toEqual({
      containers: ['app:1', 'app:1'],
      initContainers: ['init:1'],
      ephemeralContainers: [],
    })
  })

  test.each([
    { name: 'a ConfigMap', given: request('/v1/configmaps', 'ConfigMap', { data: {} }) },
    {
      name: 'a custom resource called Pod',
      given: request('example.test/v1/pods', 'Pod', { spec: SPEC }),
    },
    {
      name: 'exec into a Pod',
      given: request(
        '/v1/pods',
        'PodExecOptions',
        { command: ['sh'] },
        { operation: 'CONNECT', subResource: 'exec' },
      ),
    },
    { name: 'a CONNECT that claims to be a Pod', given: pod(SPEC, { operation: 'CONNECT' }) },
    {
      name: 'a DELETE without old object',
      given: pod(null, { operation: 'DELETE', object: null }),
    },
    {
      name: 'a kind named like a member of every object',
      given: request('/v1/constructor', 'constructor', {}),
    },
    {
      name: 'a subresource of a Pod that nobody knows',
      given: request(
        '/v1/pods',
        'Runner',
        { containers: [{ image: 'a:1' }] },
        { kind: { group: '', version: 'v1', kind: 'Runner' }, subResource: 'runner' },
      ),
    },
    {
      name: 'the scale of something else',
      given: request(
        'example.test/v1/apps',
        'Scale',
        {},
        { kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, subResource: 'scale' },
      ),
    },
  ])('nothing in $name, and no key in the map', ({ given }) => {
    expect(extractImages(given)).toEqual({ images: [], map: {} })
  })

  test.each([
    {
      name: 'the scale of a Deployment',
      given: request(
        'apps/v1/deployments',
        'Scale',
        { spec: { replicas: 1 } },
        { kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, subResource: 'scale' },
      ),
    },
    {
      name: 'the eviction of a Pod',
      given: request(
        '/v1/pods',
        'Eviction',
        {},
        { kind: { group: 'policy', version: 'v1', kind: 'Eviction' }, subResource: 'eviction' },
      ),
    },
  ])('nothing in $name, and every list is empty', ({ given }) => {
    expect(extractImages(given)).toEqual({
      images: [],
      map: { containers: [], initContainers: [], ephemeralContainers: [] },
    })
  })

  test.each([
    { name: 'null', object: null },
    { name: 'empty', object: {} },
  ])('a DELETE whose object is $name is about the old object', ({ object }) => {
    const given = pod(null, { operation: 'DELETE', object, oldObject: { spec: SPEC } })
    expect(extractImages(given).map.containers).toEqual(['app:1', 'app:1'])
  })

  test('an UPDATE is about the new object', () => {
    const given = pod(SPEC, { operation: 'UPDATE', oldObject: { spec: { containers: [] } } })
    expect(extractImages(given).map.containers).toEqual(['app:1', 'app:1'])
  })

  test('the ephemeralcontainers subresource is a Pod', () => {
    const given = pod(
      { ...SPEC, ephemeralContainers: [{ name: 'e', image: 'debug:1' }] },
      { subResource: 'ephemeralcontainers', operation: 'UPDATE' },
    )
    expect(extractImages(given).map.ephemeralContainers).toEqual(['debug:1'])
  })

  test('the kind is found by the resource when it says nothing', () => {
    const given = request('/v1/pods', 'Something', { spec: SPEC })
    expect(extractImages(given).map.containers).toEqual(['app:1', 'app:1'])
  })

  test('image volumes are not images, as in Kyverno', () => {
    const spec = { ...SPEC, volumes: [{ name: 'v', image: { reference: 'data:1' } }] }
    expect(extractImages(pod(spec)).images).toHaveLength(3)
  })

  test.each<{ name: string; spec: JsonValue; faults: Fault[] }>([
    {
      name: 'no spec',
      spec: null,
      faults: [{ path: '/spec', message: 'must be an object, is null' }],
    },
    {
      name: 'no containers',
      spec: {},
      faults: [{ path: '/spec/containers', message: 'must be a list, is missing' }],
    },
    {
      name: 'null lists',
      spec: { containers: null, initContainers: null, ephemeralContainers: null },
      faults: [
        { path: '/spec/containers', message: 'must be a list, is null' },
        { path: '/spec/initContainers', message: 'must be a list, is null' },
        { path: '/spec/ephemeralContainers', message: 'must be a list, is null' },
      ],
    },
    {
      name: 'a map in place of a list',
      spec: { containers: { 0: { image: 'a' } } },
      faults: [{ path: '/spec/containers', message: 'must be a list, is an object' }],
    },
    {
      name: 'every bad container of every list',
      spec: {
        containers: [null, 'x', {}, { image: 'fine' }],
        initContainers: [{ image: 1 }, { image: '' }, { image: ['a'] }],
      },
      faults: [
        { path: '/spec/containers/0', message: 'must be an object, is null' },
        { path: '/spec/containers/1', message: 'must be an object, is a string' },
        { path: '/spec/containers/2/image', message: 'must be an image reference, is missing' },
        {
          path: '/spec/initContainers/0/image',
          message: 'must be an image reference, is a number',
        },
        { path: '/spec/initContainers/1/image', message: 'must be an image reference, is empty' },
        { path: '/spec/initContainers/2/image', message: 'must be an image reference, is a list' },
      ],
    },
  ])('refuses $name', ({ spec, faults }) => {
    expect(faultsOf(pod(spec))).toEqual(faults)
  })

  test('an image that is only inherited is missing', () => {
    const container = Object.create({ image: 'hidden:1' }) as JsonObject
    expect(faultsOf(pod({ containers: [container] }))).toEqual([
      { path: '/spec/containers/0/image', message: 'must be an image reference, is missing' },
    ])
  })

  test('a Deployment without template is refused with the place', () => {
    const given = request('apps/v1/deployments', 'Deployment', { spec: {} })
    expect(faultsOf(given)).toEqual([
      { path: '/spec/template', message: 'must be an object, is missing' },
    ])
  })

  test('a thousand images are read, one more is refused', () => {
    const containers = Array.from({ length: 1000 }, (_, i) => ({ image: `app:${i}` }))
    expect(extractImages(pod({ containers })).images).toHaveLength(1000)
    const one = [{ image: 'more:1' }]
    expect(() => extractImages(pod({ containers, initContainers: one }))).toThrow(
      expect.objectContaining({
        code: 'IMAGE_LIST_INVALID',
        message: 'the object has 1001 images, at most 1000 may be',
      }),
    )
  })

  test('a million bad containers make a bounded message', () => {
    const containers = new Array<JsonValue>(1_000_000).fill(null)
    expect(faultsOf(pod({ containers }))).toHaveLength(1000)
    expect(() => extractImages(pod({ containers }))).toThrow(/^.{0,2000}; and 980 more$/)
  })
})
