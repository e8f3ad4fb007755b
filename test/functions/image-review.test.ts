import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { compose } from '#functions/compose.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { createImageReviewApp } from '#functions/image-review.ts'
import type { Platform } from '#functions/ports.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_REVIEWED_IMAGES } from '#shared/limits.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { hashOf } from '#test/contract/review.ts'
import { createWorld, NO_KMS, type PushedImage, policyText, type World } from '#test/fakes/world.ts'

/** The image review backend from the door to the registry: what it lets in, and everything it must not (kubernetes-admission.md 9). */

const TOKEN = 'tokentokentokentokentokentoken22'

let world: World
let signed: PushedImage
let unsigned: PushedImage
let audited: PushedImage

beforeAll(async () => {
  world = await createWorld()
  signed = await world.push('shop/signed', ['release'])
  unsigned = await world.push('shop/unsigned', [])
  audited = await world.push('shop/audited', ['release', 'audit'])
})
afterAll(() => world.close())
beforeEach(() => world.reset())

interface Answer {
  status: number
  allowed: boolean
  reason: string | undefined
  annotations: Record<string, string>
}

interface Backend {
  /** Asks about images; whatever else is given replaces members of the spec. */
  ask(images: readonly string[] | undefined, spec?: object, query?: string): Promise<Answer>
  send(
    body: string | Uint8Array,
    path?: string,
    headers?: Record<string, string>,
  ): Promise<Response>
  lines: Record<string, unknown>[]
}

interface Setup {
  policies?: readonly string[]
  cluster?: object
  members?: object
  platform?: Partial<Platform>
  make?: (deployment: Deployment, platform: Platform) => ReturnType<typeof compose>
}

function configOf({ cluster = {}, members = {} }: Setup) {
  const tokens = [hashOf(TOKEN)]
  return parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    registries: { plainHttp: [world.registry.host] },
    clusters: [
      { name: 'prod', tokens, imageReview: true, ...cluster },
      { name: 'webhooks-only', tokens },
    ],
    ...members,
  })
}

async function policiesIn(texts: readonly string[]): Promise<readonly CompiledPolicy[]> {
  const files = texts.map((text, index) => ({ name: `${index}.yaml`, text }))
  const { policies, faults } = await loadPolicies(files, { kmsRegion: 'eu-central-1' })
  expect(faults).toEqual([])
  return policies
}

async function backend(setup: Setup = {}): Promise<Backend> {
  const { policies = [policy()], platform = {}, make } = setup
  return served(await createDeployment(configOf(setup), await policiesIn(policies)), platform, make)
}

function served(
  deployment: Deployment,
  platform: Partial<Platform> = {},
  make: Setup['make'] = (...args) => compose(...args, ALL_FLOWS),
): Backend {
  const lines: Record<string, unknown>[] = []
  const app = make(deployment, {
    env: { SEAL: Buffer.alloc(32, 7).toString('base64') },
    log: (record) => lines.push(record),
    hash: nodeHash,
    maxBodyBytes: 1_000_000,
    now: () => world.clock.now,
    kms: NO_KMS,
    ...platform,
  })
  const send = async (
    body: string | Uint8Array,
    path = `prod/${TOKEN}/image-review`,
    headers: Record<string, string> = { 'content-type': 'application/json' },
  ) => {
    const url = `https://door.example/v1/${path}`
    return app.fetch(new Request(url, { method: 'POST', headers, body: body as BodyInit }), {})
  }
  return {
    lines,
    send,
    ask: async (images, spec = {}, query = '') => {
      const containers = images?.map((image) => ({ image }))
      const body = JSON.stringify(reviewOf({ containers, namespace: 'shop', ...spec }))
      return read(await send(body, `prod/${TOKEN}/image-review${query}`))
    },
  }
}

const reviewOf = (spec: unknown, members: object = {}) => ({
  kind: 'ImageReview',
  apiVersion: 'imagepolicy.k8s.io/v1alpha1',
  metadata: {},
  spec,
  status: { allowed: false },
  ...members,
})

/** The answer as the API server reads it: of the wrong kind or version it would be none. */
async function read(response: Response): Promise<Answer> {
  const { apiVersion, kind, status } = await response.json()
  expect([apiVersion, kind]).toEqual(['imagepolicy.k8s.io/v1alpha1', 'ImageReview'])
  expect(response.headers.get('content-type')).toBe('application/json')
  return {
    status: response.status,
    allowed: status.allowed,
    reason: status.reason,
    annotations: status.auditAnnotations ?? {},
  }
}

const UNSIGNED = 'Policy signed failed: every image must be signed'
const LENIENT = '  validationConfigurations: {required: false, verifyDigest: false}'

function policy(changes: Parameters<typeof policyText>[1] = {}): string {
  return policyText(world.keys, changes)
}

function inNamespace(namespace: string, changes: Parameters<typeof policyText>[1] = {}): string {
  return policy(changes)
    .replace('kind: Image', 'kind: NamespacedImage')
    .replace('metadata:', `metadata:\n  namespace: ${namespace}`)
}

function exception(spec: string, name = 'let'): string {
  return `
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: ${name}, namespace: shop}
spec:
  policyRefs: [{name: signed, kind: ImageValidatingPolicy}]
${spec}
`
}

describe('images', () => {
  test.each<[string, () => string[] | undefined, string | undefined]>([
    ['a signed image', () => [signed.pinned], undefined],
    [
      'signed images, one of them twice',
      () => [signed.pinned, audited.pinned, signed.pinned],
      undefined,
    ],
    ['an unsigned image', () => [unsigned.pinned], UNSIGNED],
    [
      'an unsigned image among signed ones',
      () => [signed.pinned, unsigned.pinned, signed.pinned],
      UNSIGNED,
    ],
    ['no images', () => [], undefined],
    ['no containers', () => undefined, undefined],
  ])('%s', async (_, images, reason) => {
    const { ask } = await backend()
    const answer = await ask(images())
    expect(answer).toMatchObject({ status: 200, allowed: reason === undefined, reason })
  })

  test.each(['containers', 'initContainers', 'ephemeralContainers'])(
    'a rule about %s holds for every image, because a review does not say where it is',
    async (list) => {
      const expression = `images.${list}.all(image, verifyImageSignatures(image, [attestors.release]) > 0)`
      const validations = `    - {expression: "${expression}", message: not signed}`
      const { ask } = await backend({ policies: [policy({ validations, spec: LENIENT })] })
      expect(await ask([signed.pinned])).toMatchObject({ allowed: true })
      expect(await ask([signed.pinned, unsigned.pinned])).toMatchObject({
        allowed: false,
        reason: 'Policy signed failed: not signed',
      })
    },
  )

  test('null containers, annotations and namespace are answered', async () => {
    const { ask } = await backend()
    const nothing = { containers: null, annotations: null, namespace: null }
    expect(await ask([], nothing)).toMatchObject({ status: 200, allowed: true })
    expect(await ask([unsigned.pinned], { annotations: null, namespace: null })).toMatchObject({
      allowed: false,
      reason: UNSIGNED,
    })
  })

  test.each<[string, string, boolean]>([
    ['with verifyDigest a tag is no image to run', '', false],
    ['without verifyDigest a tag is resolved and verified', LENIENT, true],
  ])('%s', async (_, spec, allowed) => {
    const { ask } = await backend({ policies: [policy({ spec })] })
    expect(await ask([signed.tagged])).toMatchObject({
      allowed,
      ...(!allowed && {
        reason: `Policy signed failed: image ${signed.tagged} does not have a digest`,
      }),
    })
    expect(await ask([unsigned.tagged])).toMatchObject({ allowed: false })
  })

  test('a tag is resolved once, however often and in whatever scope it is looked at', async () => {
    const { ask } = await backend({
      policies: [policy({ spec: LENIENT }), inNamespace('shop', { spec: LENIENT, name: 'own' })],
    })
    expect(await ask([signed.tagged, signed.tagged])).toMatchObject({ allowed: true })
    const resolved = world.registry.requests.filter(({ url }) => url.endsWith('/manifests/1.0'))
    expect(resolved).toHaveLength(1)
  })

  test.each([
    ['no reference', 'shop/signed:not a tag'],
    ['a text longer than any reference', `registry.example/${'a'.repeat(2000)}`],
  ])('%s is denied', async (_, image) => {
    const { ask } = await backend()
    expect(await ask([image])).toMatchObject({ status: 200, allowed: false })
  })

  test('are verified live whatever the seal contract says', async () => {
    const outcomes = { key: { secrets: [{ id: 'a', env: 'SEAL' }] }, onMissing: 'deny' }
    const { ask } = await backend({ members: { outcomes } })
    expect(await ask([signed.pinned])).toMatchObject({ allowed: true })
    expect(await ask([unsigned.pinned])).toMatchObject({ allowed: false, reason: UNSIGNED })
  })

  test('more checks than one request may ask for are an error, and an error denies', async () => {
    const attestors = Array.from({ length: 13 }, (_, index) => `a${index}`)
    const names = attestors.map((name) => `attestors.${name}`).join(', ')
    const [before = '', rest = ''] = policy({ spec: LENIENT }).split('  attestors:\n')
    const [one = ''] = rest.split('  validations:')
    const all = attestors.map((name) => one.replace('name: release', `name: ${name}`)).join('')
    const expression = `images.containers.all(image, verifyImageSignatures(image, [${names}]) > 0)`
    const text = `${before}  attestors:\n${all}  validations:\n    - {expression: "${expression}"}\n`
    const { ask } = await backend({ policies: [text] })
    const images = Array.from(
      { length: MAX_REVIEWED_IMAGES },
      (_, index) => `${signed.reference}:t${index}@${signed.digest}`,
    )
    expect(await ask(images)).toMatchObject({
      status: 200,
      allowed: false,
      reason: expect.stringMatching(/^Policy signed error: .*4000/),
    })
    expect(await ask([...images, 'one:more'])).toMatchObject({
      status: 200,
      allowed: false,
      reason: `the ImageReview has ${MAX_REVIEWED_IMAGES + 1} images, at most ${MAX_REVIEWED_IMAGES} may be`,
    })
  })
})

describe('what stands in the way', () => {
  test('a registry that is down denies, and the log says that nobody could tell', async () => {
    const { ask, lines } = await backend()
    world.registry.faults.add({ kind: 'status', status: 503 })
    const answer = await ask([signed.pinned])
    expect(answer).toMatchObject({ status: 200, allowed: false })
    expect(answer.reason).toMatch(
      /^Policy signed error: failed to evaluate policy: could not verify/,
    )
    expect(lines.at(-1)).toMatchObject({ phase: 'image-review', cause: 'inconclusive' })
  })

  test('a key that nobody gives out denies', async () => {
    const text = policy().replace(/data: \|\n(?: {12}.*\n)+/, 'kms: awskms:///alias/release\n')
    const { ask } = await backend({
      policies: [text],
      members: { kms: { region: 'eu-central-1' } },
    })
    const answer = await ask([signed.pinned])
    expect(answer).toMatchObject({ status: 200, allowed: false })
    expect(answer.reason).toContain('could not verify')
  })

  test('time that is up denies with HTTP 200', async () => {
    const { ask, lines } = await backend()
    world.registry.faults.add({ kind: 'stall' })
    const answer = await ask([signed.pinned], {}, '?timeout=1s')
    expect(answer).toMatchObject({ status: 200, allowed: false })
    expect(lines.at(-1)).toMatchObject({ verdict: 'deny', cause: 'inconclusive' })
    world.registry.faults.clear()
  })

  test.each<[string, string | Uint8Array, RegExp]>([
    ['nothing', '', /JSON/],
    ['what is no JSON', '{"kind":', /JSON/],
    ['bytes that are no text', new Uint8Array([0xff, 0xfe]), /UTF-8/],
    ['null', 'null', /\(review\)/],
    ['an AdmissionReview', JSON.stringify(reviewOf({}, { kind: 'AdmissionReview' })), /kind/],
    [
      'another version',
      JSON.stringify(reviewOf({}, { apiVersion: 'imagepolicy.k8s.io/v1' })),
      /apiVersion: must be "imagepolicy.k8s.io\/v1alpha1"/,
    ],
    ['no spec', JSON.stringify(reviewOf(null)), /spec/],
    [
      'an image that is no text',
      JSON.stringify(reviewOf({ containers: [{ image: ['a'] }] })),
      /containers\[0\]\.image/,
    ],
    ['nesting without an end', `{"spec":${'['.repeat(100_000)}`, /JSON|nest|deep/],
  ])(
    '%s is denied with HTTP 200: anything else would be left to defaultAllow',
    async (_, body, reason) => {
      const { send, lines } = await backend()
      const answer = await read(await send(body))
      expect(answer).toMatchObject({ status: 200, allowed: false })
      expect(answer.reason).toMatch(reason)
      expect(lines.at(-1)).toMatchObject({
        event: 'decision',
        verdict: 'deny',
        cause: 'inconclusive',
      })
    },
  )

  test('whatever a body holds gets an answer, and a yes only what is nothing but good images', async () => {
    const { send } = await backend()
    const odd = fc.jsonValue({ maxDepth: 2 })
    const image = fc.oneof(
      { weight: 3, arbitrary: fc.constant(signed.pinned) },
      { weight: 1, arbitrary: fc.constant(unsigned.pinned) },
      { weight: 1, arbitrary: odd },
    )
    const spec = fc.record(
      {
        containers: fc.oneof(fc.array(fc.record({ image }), { maxLength: 3 }), odd),
        annotations: fc.oneof(fc.constant({}), odd),
        namespace: fc.oneof(fc.constant('shop'), odd),
      },
      { requiredKeys: [] },
    )
    const kind = fc.oneof(
      { weight: 5, arbitrary: fc.constant('ImageReview') },
      { weight: 1, arbitrary: odd },
    )
    let admissions = 0
    await fc.assert(
      fc.asyncProperty(spec, kind, async (given, named) => {
        const answer = await read(await send(JSON.stringify(reviewOf(given, { kind: named }))))
        expect(answer.status).toBe(200)
        if (!answer.allowed) return
        admissions++
        expect(named).toBe('ImageReview')
        const list = (given.containers ?? []) as { image: unknown }[]
        for (const each of list) expect(each).toEqual({ image: signed.pinned })
      }),
      { numRuns: 300 },
    )
    expect(admissions).toBeGreaterThan(20)
  })

  test('a body that is too large, and one of another type, are denied with HTTP 200', async () => {
    const { send, ask } = await backend({ cluster: { limits: { bodyBytes: 65_536 } } })
    const large = { annotations: { 'a.image-policy.k8s.io/b': 'x'.repeat(70_000) } }
    expect(await ask([signed.pinned], large)).toMatchObject({
      status: 200,
      allowed: false,
      reason: 'the ImageReview is larger than limits.bodyBytes or this platform allows',
    })
    const typed = await send(JSON.stringify(reviewOf({})), undefined, {
      'content-type': 'text/plain',
    })
    expect(await read(typed)).toMatchObject({ status: 200, allowed: false })
  })

  test('an unexpected fault denies with HTTP 200 and keeps its text in the log', async () => {
    const fetch = () => {
      throw new TypeError('secret inside')
    }
    const broken = { ...NO_KMS, getPublicKey: fetch }
    const deployment = await createDeployment(configOf({}), await policiesIn([policy()]))
    const policies = [{ ...deployment.policies[0]!, matchConditions: 7 }]
    const { ask, lines } = served(
      { ...deployment, policies: policies as unknown as CompiledPolicy[] },
      { kms: broken },
    )
    const answer = await ask([signed.pinned])
    expect(answer).toMatchObject({ status: 200, allowed: false })
    expect(answer.reason).toBe('image verification failed internally')
    expect(JSON.stringify(lines.at(-1))).toContain('INTERNAL')
  })

  test('reviews beyond the limit of a cluster are denied with HTTP 200', async () => {
    const { ask } = await backend({ cluster: { limits: { concurrentReviews: 1 } } })
    const answers = await Promise.all([ask([signed.pinned]), ask([signed.pinned])])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers.map(({ allowed }) => allowed).sort()).toEqual([false, true])
  })
})

describe('callers', () => {
  test.each([
    ['an unknown cluster', `nowhere/${TOKEN}/image-review`, 'cluster'],
    ['a wrong token', 'prod/wrong/image-review', 'token'],
    ['a cluster without image reviews', `webhooks-only/${TOKEN}/image-review`, 'image-review'],
  ])('%s gets the empty 404 of a path that is not there', async (_, path, refusal) => {
    const { send, lines } = await backend()
    const response = await send(JSON.stringify(reviewOf({})), path)
    expect([response.status, await response.text()]).toEqual([404, ''])
    expect(lines.at(-1)).toMatchObject({ event: 'refused', refusal, phase: 'image-review' })
    expect(JSON.stringify(lines)).not.toContain(TOKEN)
  })

  test.each(['/signed', '/ivpol', 's'])('the path has nothing behind it: %j', async (rest) => {
    const { send } = await backend()
    const response = await send(JSON.stringify(reviewOf({})), `prod/${TOKEN}/image-review${rest}`)
    expect(response.status).toBe(404)
  })

  test('the function for image reviews answers for nothing else', async () => {
    const { ask, send } = await backend({ make: createImageReviewApp })
    expect(await ask([unsigned.pinned])).toMatchObject({ allowed: false, reason: UNSIGNED })
    for (const path of ['ivpol/validate', 'ivpol/mutate', 'nivpol/validate/signed']) {
      expect((await send('{}', `prod/${TOKEN}/${path}`)).status).toBe(404)
    }
  })
})

describe('which policies count', () => {
  test('those of the cluster and those of the namespace, each in its own place', async () => {
    const own = inNamespace('shop', { name: 'own', attestors: ['audit'] })
    const { ask } = await backend({ policies: [policy(), own] })
    expect(await ask([audited.pinned])).toMatchObject({ allowed: true })
    expect(await ask([signed.pinned])).toMatchObject({
      allowed: false,
      reason: 'Policy own failed: every image must be signed',
    })
    expect(await ask([signed.pinned], { namespace: 'other' })).toMatchObject({ allowed: true })
    expect(await ask([unsigned.pinned])).toMatchObject({
      reason: `${UNSIGNED}; Policy own failed: every image must be signed`
        .split('; ')
        .sort()
        .join('; '),
    })
  })

  test('what a namespace verifies is no evidence for the cluster', async () => {
    const anything = policy({ validations: '    - {expression: "true"}' })
    const own = inNamespace('shop', { name: 'own' })
    const { ask } = await backend({ policies: [anything, own] })
    expect(await ask([signed.pinned])).toMatchObject({
      allowed: false,
      reason: `Policy signed failed: image ${signed.pinned} is not verified: no policy performed a signature or attestation check on it`,
    })
  })

  test('without a namespace nobody can tell whether policies of namespaces are about it', async () => {
    const { ask } = await backend({ policies: [policy(), inNamespace('shop', { name: 'own' })] })
    expect(await ask([signed.pinned], { namespace: undefined })).toMatchObject({
      status: 200,
      allowed: false,
      reason:
        'the ImageReview names no namespace, so that it cannot be told whether policy shop/own is about it',
    })
  })

  test('those that are listed for image reviews, of those that the cluster has', async () => {
    const strict = policy({ name: 'strict', attestors: ['audit'] })
    const lists = { policies: ['signed', 'strict'], imageReview: { policies: ['signed'] } }
    const { ask } = await backend({ policies: [policy(), strict], cluster: lists })
    expect(await ask([signed.pinned])).toMatchObject({ allowed: true })
    const all = await backend({ policies: [policy(), strict] })
    expect(await all.ask([signed.pinned])).toMatchObject({ allowed: false })
  })

  test.each<[string, object | undefined, string | undefined]>([
    ['prod', { tier: 'prod' }, UNSIGNED],
    ['lab', { tier: 'lab' }, undefined],
    ['unknown, because the cluster does not answer', undefined, 'Policy signed error: '],
  ])('by labels of the namespace, which are looked up: %s', async (_, labels, reason) => {
    const selector = 'matchConstraints:\n    namespaceSelector: {matchLabels: {tier: prod}}'
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels } }
    const asked: string[] = []
    const fetchOf: Platform['fetch'] = async (url, init) => {
      const { host, pathname } = new URL(url)
      if (host !== 'kubernetes.example.com') return fetch(url, init)
      asked.push(pathname)
      return labels === undefined ? new Response('', { status: 503 }) : Response.json(namespace)
    }
    const api = { server: 'https://kubernetes.example.com', tokenEnv: 'KUBERNETES' }
    const cluster = { name: 'prod', tokens: [hashOf(TOKEN)], imageReview: true, api }
    const { ask } = await backend({
      policies: [policy().replace('matchConstraints:', selector)],
      members: { clusters: [cluster] },
      platform: { env: { SEAL: btoa('s'.repeat(32)), KUBERNETES: 'token' }, fetch: fetchOf },
    })
    const answer = await ask([unsigned.pinned])
    expect(answer.allowed).toBe(reason === undefined)
    expect(answer.reason ?? '').toContain(reason ?? '')
    expect(asked[0]).toBe('/api/v1/namespaces/shop')
  })

  test('what they see: namespace, annotations, and what they are named by', async () => {
    const seen = policy({
      spec: `${LENIENT}
  matchConditions:
    - {name: ticket, expression: "!has(object.metadata.annotations) || !('prod.image-policy.k8s.io/ticket' in object.metadata.annotations)"}`,
      validations: `    - {expression: "request.namespace == 'shop' && object.metadata.namespace == 'shop'", message: elsewhere}`,
    })
    const { ask } = await backend({ policies: [seen] })
    expect(await ask([signed.pinned])).toMatchObject({ allowed: true })
    expect(await ask([signed.pinned], { namespace: 'other' })).toMatchObject({ allowed: false })
    const annotations = { 'prod.image-policy.k8s.io/ticket': '1' }
    expect(await ask([unsigned.pinned], { namespace: 'other', annotations })).toMatchObject({
      allowed: true,
    })
  })

  test.each<[string, () => string[]]>([
    ['none is about Pods', () => [policy().replace('pods, pods/ephemeralcontainers', 'nodes')]],
    ['none is among those that are listed', () => [policy({ name: 'other' })]],
    ['there are none', () => []],
  ])('where %s, nothing is let in', async (_, texts) => {
    const policies = await policiesIn(texts())
    const config = configOf({ cluster: { imageReview: { policies: ['signed'] } } })
    const { ask } = served({ config, policies, hash: 'f'.repeat(64) })
    expect(await ask([signed.pinned])).toMatchObject({
      status: 200,
      allowed: false,
      reason: 'no policy of this cluster is about the creation of Pods',
    })
  })

  test('a policy that no review can decide denies, however it got there', async () => {
    const labels = policy({
      spec: LENIENT,
      validations: `    - {expression: "!has(object.metadata.labels)", message: labelled}`,
    })
    const policies = await policiesIn([labels])
    const { ask } = served({ config: configOf({}), policies, hash: 'f'.repeat(64) })
    expect(await ask([signed.pinned])).toMatchObject({
      status: 200,
      allowed: false,
      reason:
        'policy signed needs object.metadata.labels in spec.validations[0].expression, which no ImageReview carries',
    })
  })
})

describe('what lets something in', () => {
  test('exceptions, for clusters that count them, and with an audit annotation', async () => {
    const policies = [policy(), exception('')]
    const { ask } = await backend({ policies })
    expect(await ask([unsigned.pinned])).toMatchObject({
      allowed: true,
      annotations: {
        'image-policy-exceptions': expect.stringContaining('shop/let'),
      },
    })
    const without = await backend({ policies, cluster: { exceptions: [] } })
    expect(await without.ask([unsigned.pinned])).toMatchObject({ allowed: false, reason: UNSIGNED })
  })

  test('exceptions for images and for an annotation', async () => {
    const images = exception(`  images: ["*/shop/unsigned@*"]`)
    const ticket = exception(
      `  matchConditions: [{name: t, expression: "has(object.metadata.annotations) && 'prod.image-policy.k8s.io/ticket' in object.metadata.annotations"}]`,
      'ticket',
    )
    const some = await backend({ policies: [policy(), images] })
    expect(await some.ask([signed.pinned, unsigned.pinned])).toMatchObject({ allowed: true })
    const { ask } = await backend({ policies: [policy(), ticket] })
    expect(await ask([unsigned.pinned])).toMatchObject({ allowed: false })
    const annotations = { 'prod.image-policy.k8s.io/ticket': 'break-glass' }
    expect(await ask([unsigned.pinned], { annotations })).toMatchObject({ allowed: true })
    const foreign = { 'image-policy.k8s.io/ticket': 'break-glass' }
    expect(await ask([unsigned.pinned], { annotations: foreign })).toMatchObject({ allowed: false })
  })

  test('audit mode, which says what it let in', async () => {
    const { ask, lines } = await backend({ cluster: { mode: 'audit' } })
    expect(await ask([unsigned.pinned])).toMatchObject({
      status: 200,
      allowed: true,
      reason: undefined,
      annotations: {
        'image-policy-audit-mode': expect.stringContaining(UNSIGNED),
        'image-policy-warnings': expect.stringContaining('no signature'),
      },
    })
    expect(lines.at(-1)).toMatchObject({ mode: 'audit', verdict: 'allow', cause: 'rejected' })
  })

  test('policies that only audit or warn', async () => {
    const { ask } = await backend({
      policies: [policy({ spec: '  validationActions: [Audit, Warn]' })],
    })
    expect(await ask([unsigned.pinned])).toMatchObject({
      allowed: true,
      annotations: {
        'image-policy-findings': UNSIGNED,
        'image-policy-warnings': expect.stringContaining(UNSIGNED),
      },
    })
  })

  test.each([
    ['Ignore', true],
    ['Fail', false],
  ])('conditions that cannot be told, under failurePolicy: %s', async (failurePolicy, allowed) => {
    const spec = `  failurePolicy: ${failurePolicy}
  matchConditions: [{name: t, expression: "object.metadata.annotations['prod.image-policy.k8s.io/t'] == '1'"}]`
    const { ask } = await backend({ policies: [policy({ spec })] })
    const answer = await ask([signed.pinned])
    expect(answer.allowed).toBe(allowed)
    if (allowed) expect(answer.annotations).toHaveProperty('image-policy-failed-open')
  })

  test('conditions that may fail only because every image is in every list are no reason to let it in', async () => {
    const created = (text: string) =>
      text
        .replace('operations: [CREATE, UPDATE]', 'operations: [CREATE]')
        .replace('pods, pods/ephemeralcontainers', 'pods')
    const spec = `  failurePolicy: Ignore
  matchConditions: [{name: t, expression: "object.spec.containers.filter(c, c.image.split('@')[1] != '').size() > 0"}]`
    const { ask } = await backend({ policies: [created(policy({ spec }))] })
    expect(await ask([signed.pinned])).toMatchObject({ allowed: true })
    // In a container the first would be denied: that the other one has no digest says nothing of it.
    const answer = await ask([unsigned.pinned, 'registry.example/scanner'])
    expect(answer).toMatchObject({ status: 200, allowed: false })
    expect(answer.reason).toMatch(/^Policy signed error: .*match condition t/)
  })

  test('a policy for what is in a namespace, where the review names none', async () => {
    const text = policy().replace('operations:', 'scope: Namespaced, operations:')
    const { ask } = await backend({ policies: [text] })
    expect(await ask([signed.pinned])).toMatchObject({ allowed: true })
    const answer = await ask([unsigned.pinned], { namespace: null })
    expect(answer).toMatchObject({ status: 200, allowed: false })
    expect(answer.reason).toContain('the ImageReview names no namespace')
  })
})

describe('what is told', () => {
  test('one line of the log and an event for each policy, without name, user and operation', async () => {
    const { ask, lines } = await backend({ platform: { metrics: true } })
    const { annotations } = await ask([signed.pinned, unsigned.pinned])
    expect(annotations['image-policy-set']).toMatch(/^[0-9a-f]{12}$/)
    await expect.poll(() => lines.length).toBe(2)
    const [decision, event] = lines
    expect(decision).toMatchObject({
      event: 'decision',
      cluster: 'prod',
      phase: 'image-review',
      verdict: 'deny',
      cause: 'rejected',
      namespace: 'shop',
      policySet: annotations['image-policy-set'],
      seal: 'unused',
      reviews: 1,
    })
    for (const name of ['user', 'operation', 'name', 'scope', 'asked']) {
      expect(decision?.[name], name).toBeUndefined()
    }
    expect(event).toMatchObject({
      event: 'policy',
      phase: 'image-review',
      verdict: 'deny',
      policy: 'signed',
      status: 'fail',
      action: 'deny',
      resource: {
        group: 'imagepolicy.k8s.io',
        version: 'v1alpha1',
        resource: 'imagereviews',
        kind: 'ImageReview',
        namespace: 'shop',
      },
      images: [{ image: signed.pinned }, { image: unsigned.pinned }],
    })
    expect(event?.operation).toBeUndefined()
    expect(decision?.uid).toBe(event?.uid)
    expect(JSON.stringify(lines)).not.toContain(TOKEN)
  })

  test.each([
    ['image-review', 1],
    ['validate', 0],
  ])('events of %s, where the config wants them', async (phase, count) => {
    const { ask, lines } = await backend({ members: { events: { phases: [phase] } } })
    await ask([signed.pinned])
    await expect.poll(() => lines.filter(({ event }) => event === 'decision').length).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(lines.filter(({ event }) => event === 'policy')).toHaveLength(count)
  })
})

describe('clusters whose policies no review can decide', () => {
  const faultsOf = async (setup: Setup) => {
    const thrown = await backend(setup).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (thrown === undefined) return []
    expect(thrown).toBeInstanceOf(AdmissionError)
    return (thrown as AdmissionError).faults.map(({ path, message }) => `${path}: ${message}`)
  }
  const FIX = 'list the policies for image reviews in clusters[0].imageReview.policies'
  const labels = () => policy({ name: 'labels', spec: LENIENT, validations: READS_LABELS })
  const READS_LABELS = `    - {expression: "!has(object.metadata.labels)"}`

  test.each<[string, () => Setup, string[]]>([
    ['one that can be decided', () => ({}), []],
    [
      'one that needs labels',
      () => ({ policies: [policy(), labels()] }),
      [
        `clusters[0].imageReview: policy labels (1.yaml:1) needs object.metadata.labels in spec.validations[0].expression, which no ImageReview carries: ${FIX}`,
      ],
    ],
    [
      'one that needs labels and is not listed',
      () => ({
        policies: [policy(), labels()],
        cluster: { imageReview: { policies: ['signed'] } },
      }),
      [],
    ],
    [
      'one that needs labels and is not of the cluster',
      () => ({ policies: [policy(), labels()], cluster: { policies: ['signed'] } }),
      [],
    ],
    [
      'an exception that needs the user, where it counts',
      () => ({
        policies: [
          policy(),
          exception(
            `  matchConditions: [{name: u, expression: "request.userInfo.username == 'a'"}]`,
          ),
        ],
      }),
      [
        `clusters[0].imageReview: policy signed (0.yaml:1) needs request.userInfo in exception shop/let: spec.matchConditions[0].expression, which no ImageReview carries: ${FIX}`,
      ],
    ],
    [
      'policies that are not there',
      () => ({
        policies: [policy(), policy({ name: 'other' })],
        cluster: {
          policies: ['signed'],
          imageReview: { policies: ['missing', 'signed', 'other'] },
        },
      }),
      [
        'clusters[0].imageReview.policies[0]: no policy of the folder is named "missing"; it has other, signed',
        'clusters[0].imageReview.policies[2]: "other" is not among the policies of the cluster',
      ],
    ],
    [
      'none that is about Pods',
      () => ({ policies: [policy().replace('pods, pods/ephemeralcontainers', 'configmaps')] }),
      [
        'clusters[0].imageReview: none of its policies is about the creation of Pods: every image would be let in; list one that is, or leave imageReview out',
      ],
    ],
  ])('%s', async (_, setup, faults) => {
    expect(await faultsOf(setup())).toEqual(faults)
  })
})
