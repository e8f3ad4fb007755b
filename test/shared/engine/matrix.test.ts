import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createApp } from '#functions/app.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { applyPatch, decodePatch } from '#shared/admission/patch.ts'
import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'
import { sha256, toHex, utf8 } from '#shared/bytes.ts'
import {
  createWorld,
  type PushedImage,
  podWith,
  policyText,
  requestFor,
  type World,
} from '#test/fakes/world.ts'

/** Every kind of request through the door, both phases (image-validating-policy.md 3.12). */

let world: World
let signed: PushedImage
let unsigned: PushedImage
const TOKEN = 'a'.repeat(32)

beforeAll(async () => {
  world = await createWorld()
  signed = await world.push('shop/signed', ['release'])
  unsigned = await world.push('shop/unsigned', [])
})
afterAll(() => world.close())
beforeEach(() => world.reset())

type Options = Parameters<World['engine']>[1]

/** Both phases of a deployment as an API server calls them. */
async function door(texts: readonly string[], options: Options = {}, granted?: string[]) {
  const policies = await world.load(texts)
  const tokens = [toHex(await sha256(utf8(TOKEN)))]
  const cluster = { name: 'prod', tokens, timeouts: {}, ...(granted && { policies: granted }) }
  const app = createApp({
    // The door reads nothing else of a config.
    deployment: {
      config: { clusters: [cluster] },
      policies,
      hash: 'test',
    } as unknown as Parameters<typeof createApp>[0]['deployment'],
    engine: await world.engine(texts, options),
    hash: nodeHash,
    maxBodyBytes: 1_000_000,
    now: () => world.clock.now,
    log: () => undefined,
  })
  return async (route: string, request: AdmissionRequest) => {
    const body = JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request,
    })
    const headers = { 'content-type': 'application/json' }
    const url = `https://door.example/v1/prod/${TOKEN}/${route}`
    const response = await app.fetch(new Request(url, { method: 'POST', headers, body }), {})
    expect(response.status).toBe(200)
    return (await response.json()).response
  }
}

/** A policy about these resources and operations, as YAML lines of its spec. */
function about(
  resources: string,
  { groups = '', operations = 'CREATE, UPDATE', spec = '', validations = '', name = 'signed' } = {},
): string {
  return policyText(world.keys, { name, spec, validations }).replace(
    /- \{apiGroups.*\}/,
    `- {apiGroups: ["${groups}"], apiVersions: ["*"], operations: [${operations}], resources: [${resources}]}`,
  )
}

const COUNTS_ONE = '    - {expression: size(images.containers) == 1, message: not one}'
const LENIENT = '  validationConfigurations: {required: false, verifyDigest: false}'
const MESSAGE = 'Policy signed failed: every image must be signed'

function deployment(image: string, kind = 'Deployment', apiVersion = 'apps/v1'): JsonObject {
  const template = { spec: { containers: [{ name: 'c0', image }] } }
  return { apiVersion, kind, metadata: { name: 'web', namespace: 'shop' }, spec: { template } }
}

describe('operations', () => {
  test.each([
    { operation: 'CREATE' as const, image: () => signed, allowed: true },
    { operation: 'CREATE' as const, image: () => unsigned, allowed: false },
    { operation: 'UPDATE' as const, image: () => signed, allowed: true },
    { operation: 'UPDATE' as const, image: () => unsigned, allowed: false },
  ])('$operation: allowed $allowed, dry run or not', async ({ operation, image, allowed }) => {
    const call = await door([about('pods')])
    const object = podWith([image().tagged])
    const oldObject = operation === 'UPDATE' ? object : null
    const patches: unknown[] = []
    for (const dryRun of [false, true]) {
      const mutated = await call(
        'ivpol/mutate',
        requestFor(object, { operation, oldObject, dryRun }),
      )
      const patch = decodePatch(mutated.patch)
      const final = applyPatch(object, patch)
      const validated = await call(
        'ivpol/validate',
        requestFor(final, { operation, oldObject, dryRun }),
      )
      expect([mutated.allowed, validated.allowed]).toEqual([true, allowed])
      patches.push(patch)
    }
    expect(patches[1]).toEqual(patches[0])
  })

  test('an UPDATE that changes no image is judged as ever, and asks nobody again', async () => {
    const call = await door([about('pods')])
    const oldObject = podWith([signed.pinned])
    const object = {
      ...oldObject,
      metadata: { name: 'web', namespace: 'shop', labels: { a: 'b' } },
    }
    const first = await call('ivpol/validate', requestFor(oldObject))
    world.registry.requests.length = 0
    const update = requestFor(object, { operation: 'UPDATE', oldObject })
    const second = await call('ivpol/validate', update)
    expect([first.allowed, second.allowed, world.registry.requests]).toEqual([true, true, []])
    const bad = podWith([unsigned.pinned])
    const same = await call(
      'ivpol/validate',
      requestFor(bad, { operation: 'UPDATE', oldObject: bad }),
    )
    expect(same.allowed).toBe(false)
  })

  test('DELETE is about the old object, and never has a patch (IVP-14)', async () => {
    const oldObject = podWith([unsigned.tagged])
    const spec = { operations: 'DELETE' }
    for (const [validations, allowed] of [
      [COUNTS_ONE, true],
      ['    - expression: size(images.containers) == 2', false],
    ] as const) {
      const call = await door([about('pods', { ...spec, spec: LENIENT, validations })])
      const request = requestFor(null, { operation: 'DELETE', oldObject })
      const mutated = await call('ivpol/mutate', request)
      expect([mutated.allowed, mutated.patch]).toEqual([true, undefined])
      expect((await call('ivpol/validate', request)).allowed).toBe(allowed)
    }
  })

  test.each(['verify', 'deny'] as const)(
    'DELETE asks for no digest and no evidence, and is not denied for want of a seal (onMissing: %s)',
    async (onMissing) => {
      const texts = [about('pods', { operations: '"*"', validations: COUNTS_ONE })]
      const call = await door(texts, { outcomes: { onMissing, lifetimeMs: 120_000 } })
      const oldObject = podWith([unsigned.tagged])
      const request = requestFor(null, { operation: 'DELETE', oldObject })
      expect((await call('ivpol/validate', request)).allowed).toBe(true)
      const create = await call('ivpol/validate', requestFor(oldObject))
      expect(create.allowed).toBe(false)
    },
  )

  test('DELETE is denied by a policy whose validations say so', async () => {
    const call = await door([about('pods', { operations: 'DELETE' })])
    const oldObject = podWith([unsigned.pinned])
    const request = requestFor(null, { operation: 'DELETE', oldObject })
    expect((await call('ivpol/validate', request)).status.message).toBe(MESSAGE)
  })

  test.each(['verify', 'deny'] as const)(
    'CONNECT has no images: what asks for some denies, what asks for none does not (onMissing: %s)',
    async (onMissing) => {
      const rule = { operations: 'CONNECT' }
      const silent = { ...rule, validations: "    - expression: request.name == 'web'" }
      const options = { apiVersion: 'v1', kind: 'PodExecOptions', command: ['sh'] }
      const request: AdmissionRequest = {
        ...requestFor(options, { operation: 'CONNECT' }),
        resource: { group: '', version: 'v1', resource: 'pods' },
        requestResource: { group: '', version: 'v1', resource: 'pods' },
        subResource: 'exec',
        name: 'web',
        namespace: 'shop',
      }
      for (const [texts, allowed] of [
        [about('"pods/*"', rule), false],
        [about('"pods/*"', silent), true],
      ] as const) {
        const call = await door([texts], { outcomes: { onMissing, lifetimeMs: 120_000 } })
        const mutated = await call('ivpol/mutate', request)
        expect([mutated.allowed, mutated.patch]).toEqual([true, undefined])
        expect((await call('ivpol/validate', request)).allowed).toBe(allowed)
      }
    },
  )

  test('a Pod whose name is made up is sealed by what its name begins with', async () => {
    const call = await door([about('pods')])
    const object = podWith([signed.tagged], { generateName: 'web-', namespace: 'shop' })
    const mutated = await call('ivpol/mutate', requestFor(object))
    const final = applyPatch(object, decodePatch(mutated.patch))
    const named = { ...final, metadata: { ...(final.metadata as JsonObject), name: 'web-x1' } }
    world.registry.requests.length = 0
    expect((await call('ivpol/validate', requestFor(named))).allowed).toBe(true)
    expect(world.registry.requests).toEqual([])
  })
})

test.each([
  { name: 'no annotations', annotations: undefined, kept: {} },
  { name: 'an empty map', annotations: {}, kept: {} },
  {
    name: 'annotations of others',
    annotations: { keep: 'me', 'with/slash~tilde': 'x' },
    kept: { keep: 'me', 'with/slash~tilde': 'x' },
  },
])('the patch applies to an object with $name (IVP-13)', async ({ annotations, kept }) => {
  const call = await door([about('pods')])
  const metadata = { name: 'web', namespace: 'shop', ...(annotations && { annotations }) }
  const object = podWith([signed.tagged], metadata)
  const { patch } = await call('ivpol/mutate', requestFor(object))
  const final = applyPatch(object, decodePatch(patch))
  expect((final.metadata as JsonObject).annotations).toEqual({
    ...kept,
    'kyverno.io/image-verification-outcomes': expect.stringContaining('"status":"pass"'),
    'countersign.dev/seal': expect.stringMatching(/^v1\./),
  })
})

describe('subresources', () => {
  const sub = (object: JsonObject, subResource: string, resource: object): AdmissionRequest => ({
    ...requestFor(object, { operation: 'UPDATE', oldObject: object }),
    // The group, version and resource of the object it belongs to.
    resource: resource as AdmissionRequest['resource'],
    requestResource: resource as AdmissionRequest['resource'],
    subResource,
    requestSubResource: subResource,
  })
  const PODS = { group: '', version: 'v1', resource: 'pods' }
  const DEPLOYMENTS = { group: 'apps', version: 'v1', resource: 'deployments' }

  test.each(['verify', 'deny'] as const)(
    'an unsigned debug container is denied whatever stale annotation the Pod has (IVP-02, onMissing: %s)',
    async (onMissing) => {
      const call = await door([about('pods, pods/ephemeralcontainers')], {
        outcomes: { onMissing, lifetimeMs: 120_000 },
      })
      const pod = podWith([signed.tagged])
      const created = await call('ivpol/mutate', requestFor(pod))
      const stored = applyPatch(pod, decodePatch(created.patch))
      const withDebug = (image: string) => ({
        ...stored,
        spec: { ...(stored.spec as JsonObject), ephemeralContainers: [{ name: 'd', image }] },
      })
      const bad = sub(withDebug(unsigned.pinned), 'ephemeralcontainers', PODS)
      expect((await call('ivpol/validate', bad)).status.message).toBe(MESSAGE)
      const good = sub(withDebug(signed.pinned), 'ephemeralcontainers', PODS)
      expect((await call('ivpol/validate', good)).allowed).toBe(true)
      const patch = decodePatch(
        (await call('ivpol/mutate', sub(withDebug(signed.tagged), 'ephemeralcontainers', PODS)))
          .patch,
      )
      expect(patch.map(({ path }) => path)).toEqual(['/spec/ephemeralContainers/0/image'])
    },
  )

  test('a rule about pods is not about their subresources', async () => {
    const call = await door([about('pods')])
    const request = sub(podWith([unsigned.pinned]), 'ephemeralcontainers', PODS)
    expect((await call('ivpol/validate', request)).allowed).toBe(true)
  })

  test('scale has no images, so that nothing is denied; status has those of the object', async () => {
    const call = await door([about('"deployments/*"', { groups: 'apps' })])
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', spec: { replicas: 2 } }
    const request = { ...sub(scale, 'scale', DEPLOYMENTS), name: 'web', namespace: 'shop' }
    const mutated = await call('ivpol/mutate', request)
    expect([mutated.allowed, mutated.patch]).toEqual([true, undefined])
    expect((await call('ivpol/validate', request)).allowed).toBe(true)
    const status = sub(deployment(unsigned.pinned), 'status', DEPLOYMENTS)
    expect((await call('ivpol/validate', status)).status.message).toBe(MESSAGE)
  })
})

describe('kinds', () => {
  test.each([
    { kind: 'ReplicationController', apiVersion: 'v1', path: '/spec/template/spec' },
    { kind: 'Deployment', apiVersion: 'apps/v1', path: '/spec/template/spec' },
    { kind: 'Job', apiVersion: 'batch/v1', path: '/spec/template/spec' },
    { kind: 'PodTemplate', apiVersion: 'v1', path: '/template/spec' },
    { kind: 'CronJob', apiVersion: 'batch/v1', path: '/spec/jobTemplate/spec/template/spec' },
  ])('the images of a $kind are pinned and judged', async ({ kind, apiVersion, path }) => {
    const group = apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : ''
    const call = await door([about(`${kind.toLowerCase()}s`, { groups: group })])
    for (const { tagged, allowed } of [
      { ...signed, allowed: true },
      { ...unsigned, allowed: false },
    ]) {
      const podSpec: JsonObject = { containers: [{ name: 'c0', image: tagged }] }
      const nested = path
        .split('/')
        .slice(1)
        .reduceRight<JsonObject>((inner, key) => ({ [key]: inner }), podSpec)
      const object = { apiVersion, kind, metadata: { name: 'web', namespace: 'shop' }, ...nested }
      const mutated = await call('ivpol/mutate', requestFor(object))
      const patch = decodePatch(mutated.patch)
      expect(patch[0]?.op === 'replace' && patch[0].path).toBe(`${path}/containers/0/image`)
      const validated = await call('ivpol/validate', requestFor(applyPatch(object, patch)))
      expect(validated.allowed).toBe(allowed)
    }
  })

  const WIDGET = (image: string) => ({
    apiVersion: 'example.test/v1',
    kind: 'Widget',
    metadata: { name: 'w', namespace: 'shop' },
    engine: { image },
  })
  const extractor = (references = '') => `  images:
    - {name: engine, expression: '[object.engine.image]'}
${references}`
  const validations =
    '    - {expression: "images.engine.all(i, verifyImageSignatures(i, [attestors.release]) > 0)", message: widget}'

  test('a custom extractor makes any resource have images; they are judged and never pinned', async () => {
    const text = about('widgets', { groups: 'example.test', spec: extractor(), validations })
    const call = await door([text])
    const mutated = await call('ivpol/mutate', requestFor(WIDGET(signed.tagged)))
    const paths = decodePatch(mutated.patch).map(({ path }) => path)
    expect(paths.filter((path) => !path.startsWith('/metadata/annotations'))).toEqual([])
    expect(world.registry.requests, 'what is not pinned is not resolved').toEqual([])
    const tagged = await call('ivpol/validate', requestFor(WIDGET(signed.tagged)))
    expect(tagged.status.message).toBe(
      `Policy signed failed: image ${signed.tagged} does not have a digest`,
    )
    const pinned = await call('ivpol/validate', requestFor(WIDGET(signed.pinned)))
    expect(pinned.allowed).toBe(true)
    const bad = await call('ivpol/validate', requestFor(WIDGET(unsigned.pinned)))
    expect(bad.status.message).toBe('Policy signed failed: widget')
  })

  test('matchImageReferences leaves the extractor, and its list empty', async () => {
    const references = '  matchImageReferences: [{glob: "ghcr.io/*"}]\n'
    const text = about('widgets', {
      groups: 'example.test',
      spec: extractor(references),
      validations: '    - expression: images.engine == []',
    })
    const call = await door([text])
    expect((await call('ivpol/validate', requestFor(WIDGET(unsigned.pinned)))).allowed).toBe(true)
  })

  test('a resource without images has none to speak of: expressions about them are errors', async () => {
    const call = await door([about('widgets', { groups: 'example.test' })])
    expect(await call('ivpol/mutate', requestFor(WIDGET('a')))).toMatchObject({ allowed: true })
    const validated = await call('ivpol/validate', requestFor(WIDGET('a')))
    expect(validated.status.message).toMatch(
      /^Policy signed error: failed to evaluate policy: .*no such key: containers/,
    )
  })

  test.each([
    { containers: null, says: '/spec/containers must be a list, is null' },
    { containers: { a: 1 }, says: '/spec/containers must be a list, is an object' },
    { containers: ['a'], says: '/spec/containers/0 must be an object, is a string' },
    {
      containers: [{ name: 'a', image: 1 }],
      says: '/spec/containers/0/image must be an image reference, is a number',
    },
  ])('a container list of $containers is refused with its place', async ({ containers, says }) => {
    const call = await door([about('pods')])
    const object = { ...podWith([]), spec: { containers } }
    const validated = await call('ivpol/validate', requestFor(object))
    expect(validated.status.message).toBe(
      `Policy signed error: failed to evaluate policy: images cannot be read: ${says}`,
    )
  })
})

describe('routes', () => {
  const saying = (name: string, message: string, namespace?: string) => {
    const validations = `    - {expression: 'false', message: ${message}}`
    const text = policyText(world.keys, { name, validations, spec: LENIENT })
    return namespace === undefined
      ? text
      : text
          .replace('kind: Image', 'kind: NamespacedImage')
          .replace(`  name: ${name}\n`, `  name: ${name}\n  namespace: ${namespace}\n`)
  }
  const texts = () => [
    saying('sign', 'A', 'team-a'),
    saying('sign', 'B', 'team-b'),
    saying('sign', 'cluster'),
    saying('other', 'other'),
  ]
  /** What the door says of names that no policy of the cluster has; undefined for none. */
  const notLoaded = (...names: string[]) =>
    names.length === 0
      ? undefined
      : `not evaluated: the webhook URL names ${names.map((name) => JSON.stringify(name)).join(', ')}, but this cluster has no such policy loaded`
  const podIn = (namespace?: string) =>
    requestFor(podWith([unsigned.tagged], { name: 'web', ...(namespace && { namespace }) }))

  test.each([
    { route: 'nivpol/validate/sign', namespace: 'team-a', says: 'Policy sign failed: A' },
    { route: 'nivpol/validate/sign', namespace: 'team-b', says: 'Policy sign failed: B' },
    { route: 'nivpol/validate', namespace: 'team-b', says: 'Policy sign failed: B' },
    { route: 'ivpol/validate/sign', namespace: 'team-a', says: 'Policy sign failed: cluster' },
    {
      route: 'ivpol/validate',
      namespace: 'team-a',
      says: 'Policy other failed: other; Policy sign failed: cluster',
    },
    { route: 'ivpol/validate//other//', namespace: 'team-a', says: 'Policy other failed: other' },
    { route: 'nivpol/validate/sign', namespace: 'team-c', says: undefined },
    { route: 'nivpol/validate', namespace: 'team-c', says: undefined },
    { route: 'nivpol/validate/sign', namespace: undefined, says: undefined },
    { route: 'nivpol/validate', namespace: undefined, says: undefined },
    { route: 'nivpol/validate/other', namespace: 'team-a', says: notLoaded('other') },
    { route: 'ivpol/validate/unknown', namespace: 'team-a', says: notLoaded('unknown') },
  ])('$route in $namespace: $says (IVP-11)', async ({ route, namespace, says }) => {
    const call = await door(texts())
    const answer = await call(route, podIn(namespace))
    expect([answer.allowed, answer.status?.message]).toEqual([says === undefined, says])
  })

  test.each([
    { route: 'nivpol/mutate/sign', namespace: 'team-a', pins: true },
    { route: 'nivpol/mutate/sign', namespace: 'team-c', pins: false },
    { route: 'nivpol/mutate', namespace: undefined, pins: false },
    { route: 'ivpol/mutate/sign', namespace: 'team-c', pins: true },
    { route: 'ivpol/mutate/unknown', namespace: 'team-c', pins: false },
  ])('$route in $namespace pins: $pins', async ({ route, namespace, pins }) => {
    const call = await door(texts())
    const answer = await call(route, podIn(namespace))
    expect([answer.allowed, answer.patch !== undefined]).toEqual([true, pins])
  })

  test.each([
    { granted: 'sign', ivpol: 'Policy sign failed: cluster', nivpol: undefined },
    { granted: 'team-a/sign', ivpol: undefined, nivpol: 'Policy sign failed: A' },
    { granted: 'team-b/sign', ivpol: undefined, nivpol: undefined },
  ])('of a cluster with $granted reach nothing else', async ({ granted, ivpol, nivpol }) => {
    const call = await door(texts(), {}, [granted])
    const isNamespaced = granted.includes('/')
    for (const names of [[], ['sign'], ['sign', 'other']]) {
      const path = ['validate', ...names].join('/')
      const cluster = await call(`ivpol/${path}`, podIn('team-a'))
      const own = await call(`nivpol/${path}`, podIn('team-a'))
      const unknown = (isKnown: boolean) =>
        notLoaded(...names.filter((name) => name !== 'sign' || !isKnown))
      expect([cluster.status?.message, own.status?.message]).toEqual([
        ivpol ?? unknown(!isNamespaced),
        nivpol ?? unknown(isNamespaced),
      ])
    }
  })

  test('variants for controllers are the policy itself, by its name', async () => {
    const text = about('pods', { name: 'sign' }).replace('apiVersions: ["*"]', 'apiVersions: [v1]')
    const call = await door([text])
    for (const object of [
      deployment(unsigned.pinned),
      {
        ...deployment('', 'CronJob', 'batch/v1'),
        spec: { jobTemplate: { spec: deployment(unsigned.pinned).spec as JsonObject } },
      },
    ]) {
      const denied = await call('ivpol/validate/sign', requestFor(object))
      expect(denied.status.message).toBe('Policy sign failed: every image must be signed')
      expect(denied.status.details.causes).toMatchObject([
        { reason: 'ImageVerificationFailed', field: `sign[${unsigned.pinned}]` },
      ])
    }
    const good = await call('ivpol/validate/sign', requestFor(deployment(signed.pinned)))
    expect(good.allowed).toBe(true)
  })
})

describe('required', () => {
  const noop = (spec = '') =>
    policyText(world.keys, {
      name: 'noop',
      validations: '    - expression: "true"',
      spec: `  validationConfigurations: {verifyDigest: false}\n${spec}`,
    })
  const real = () =>
    policyText(world.keys, {
      name: 'real',
      spec: `  validationConfigurations: {verifyDigest: false}\n  matchImageReferences: [{glob: "*/shop/signed*"}]`,
    })

  test.each([
    { name: 'is met by another policy', images: () => [signed.tagged], met: true },
    { name: 'names what nobody checked', images: () => [unsigned.tagged], met: false },
    { name: 'looks at every image', images: () => [signed.tagged, unsigned.tagged], met: false },
  ])('$name, in any order of policies (IVP-07)', async ({ images, met }) => {
    const expected = met
      ? undefined
      : `Policy noop failed: image ${unsigned.tagged} is not verified: no policy performed a signature or attestation check on it`
    for (const texts of [
      [noop(), real()],
      [real(), noop()],
      [real().replace('name: real', 'name: a'), noop()],
    ]) {
      const call = await door(texts)
      const { status } = await call('ivpol/validate', requestFor(podWith(images())))
      expect(status?.message).toBe(expected)
    }
  })

  test('evidence of one request is none for the next', async () => {
    const call = await door([noop(), real()])
    await call('ivpol/validate', requestFor(podWith([signed.tagged])))
    const alone = await call('ivpol/validate/noop', requestFor(podWith([signed.tagged])))
    expect(alone.status.message).toMatch(/no policy performed a signature or attestation check/)
  })
})

test('one gone image costs no other its digest, and denies (IVP-08)', async () => {
  const gone = signed.tagged.replace('shop/signed', 'shop/gone')
  const text = policyText(world.keys, {
    name: 'pin',
    spec: `  matchImageReferences: [{glob: "${world.registry.host}/*"}]`,
    validations: '    - expression: "true"',
  })
  const call = await door([text])
  const object = podWith([signed.tagged, gone, unsigned.pinned, 'docker.io/library/xx:1'])
  const mutated = await call('ivpol/mutate', requestFor(object))
  const patch = decodePatch(mutated.patch).filter(({ path }) => path.startsWith('/spec'))
  expect(patch).toEqual([{ op: 'replace', path: '/spec/containers/0/image', value: signed.pinned }])
  expect(mutated.warnings[0]).toMatch(
    /^Policy pin error: failed to update digest: failed to resolve digest for image .*shop\/gone:1\.0: /,
  )
  const final = applyPatch(object, decodePatch(mutated.patch))
  const again = await call('ivpol/mutate', requestFor(final))
  expect(again.patch).toBeUndefined()
  const validated = await call('ivpol/validate', requestFor(final))
  expect(validated.status.message).toBe(`Policy pin failed: image ${gone} does not have a digest`)
  expect(validated.status.details.causes).toEqual([
    {
      reason: 'ImageVerificationFailed',
      field: `pin[${gone}]`,
      message: `Policy pin failed: image ${gone} does not have a digest`,
    },
  ])
})
