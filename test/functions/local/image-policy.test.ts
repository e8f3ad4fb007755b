import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { compose } from '#functions/compose.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { type ApiServer, createApiServer } from '#functions/local/apiserver.ts'
import type { Submission } from '#functions/local/submission.ts'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'
import { startNodeServer } from '#functions/node.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { deploymentOf, ENV, TOKEN } from '#test/contract/deploy.ts'
import { policyDocument } from '#test/shared/policy/documents.ts'

/** ImagePolicyWebhook of the local API server (kubernetes-admission.md 9), against a backend that follows a script. */

let certificates: DevCertificates
let server: https.Server
let url: string
let bodies: string[]
let answers: (Script | 'reset')[]
const opened: ApiServer[] = []

beforeAll(async () => {
  certificates = await createDevCertificates({ hosts: ['127.0.0.1'] })
  const { cert, key } = certificates
  server = https.createServer({ cert, key }, async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    bodies.push(body)
    const answer = answers.shift() ?? YES
    if (answer === 'reset') {
      request.socket.destroy()
      return
    }
    response.writeHead(answer.status ?? 200)
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/image-review`
})
afterAll(() => {
  for (const each of opened) each.close()
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  bodies = []
  answers = []
  clock.now = Date.UTC(2030, 0, 2)
})

interface Script {
  status?: number
  body?: unknown
}

const clock = { now: 0 }
const SHELL = { kind: 'ImageReview', apiVersion: 'imagepolicy.k8s.io/v1alpha1' }
const saying = (status: object, more: object = {}): Script => ({
  body: { ...SHELL, ...more, status },
})
const YES = saying({ allowed: true })

type Policy = NonNullable<Parameters<typeof createApiServer>[0]['imagePolicy']>

function apiServer(policy: Partial<Policy> = {}): ApiServer {
  const imagePolicy = { url, wait: async () => undefined, ...policy }
  const made = createApiServer({ ca: certificates.ca, now: () => clock.now, imagePolicy })
  opened.push(made)
  return made
}

const image = (name: string) => ({ name, image: name })
const POD: JsonObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    containers: [image('a'), image('b')],
    initContainers: [image('i')],
    ephemeralContainers: [image('e')],
    volumes: [{ name: 'v', image: { reference: 'registry.test/data:1' } }],
  },
}

const create = (object: JsonObject = POD, more: Partial<Submission> = {}): Submission => ({
  operation: 'CREATE',
  object,
  ...more,
})

const specIn = (body: string | undefined) => JSON.parse(body ?? '{}').spec

describe('which images are asked about (REV-01)', () => {
  test('the body of a Pod, to the letter', async () => {
    await apiServer().admit(create())
    expect(bodies).toEqual([
      '{"kind":"ImageReview","apiVersion":"imagepolicy.k8s.io/v1alpha1","metadata":{},"spec":{"containers":[{"image":"a"},{"image":"b"},{"image":"i"}],"namespace":"shop"},"status":{"allowed":false}}',
    ])
  })

  test.each<[string, Submission, string[] | undefined]>([
    ['a Pod on update', create(POD, { operation: 'UPDATE', oldObject: POD }), ['a', 'b', 'i']],
    [
      'ephemeral containers alone on their subresource',
      create(POD, { operation: 'UPDATE', oldObject: POD, subResource: 'ephemeralcontainers' }),
      ['e'],
    ],
    [
      'nothing of another subresource',
      create(POD, { operation: 'UPDATE', oldObject: POD, subResource: 'status' }),
      undefined,
    ],
    ['nothing of what is deleted', create(POD, { operation: 'DELETE', oldObject: POD }), undefined],
    [
      'nothing of a Deployment',
      create({ ...POD, apiVersion: 'apps/v1', kind: 'Deployment' }),
      undefined,
    ],
    [
      'an image as often as it is there',
      create({ ...POD, spec: { containers: [image('a'), image('a')] } }),
      ['a', 'a'],
    ],
  ])('%s', async (_, submission, images) => {
    const { allowed } = await apiServer().admit(submission)
    expect(allowed).toBe(true)
    const asked = bodies.map((body) =>
      specIn(body).containers.map((each: JsonObject) => each.image),
    )
    expect(asked).toEqual(images === undefined ? [] : [images])
  })

  test('with annotations whose keys hold the part, in the order of their keys (REV-02)', async () => {
    const annotations = {
      'mycluster.image-policy.k8s.io/ticket': '1',
      'image-policy.k8s.io/x': '2',
      'a.image-policy.k8s.io/': '3',
      other: '4',
    }
    await apiServer().admit(
      create({ ...POD, metadata: { name: 'web', namespace: 'shop', annotations } }),
    )
    expect(Object.entries(specIn(bodies[0]).annotations)).toEqual([
      ['a.image-policy.k8s.io/', '3'],
      ['mycluster.image-policy.k8s.io/ticket', '1'],
    ])
  })
})

const forbidden = (text: string) => ({
  allowed: false,
  code: 403,
  message: `pods "web" is forbidden: ${text}`,
})

describe('what answers mean (REV-02)', () => {
  test.each<[string, object | string | undefined, object]>([
    ['a yes', saying({ allowed: true }), { allowed: true, code: 0, message: '' }],
    [
      'a no with a reason',
      saying({ allowed: false, reason: 'no' }),
      forbidden('image policy webhook backend denied one or more images: no'),
    ],
    [
      'a no without',
      saying({ allowed: false }),
      forbidden('one or more images rejected by webhook backend'),
    ],
    [
      'a yes with another spec, which means nothing',
      saying({ allowed: true }, { spec: { containers: [{ image: 'changed' }] } }),
      { allowed: true },
    ],
    ['a yes without kind and version', { body: { status: { allowed: true } } }, { allowed: true }],
    ['nothing', { body: {} }, forbidden('one or more images rejected by webhook backend')],
    [
      'another version',
      saying({ allowed: true }, { apiVersion: 'imagepolicy.k8s.io/v1beta1' }),
      { allowed: false, code: 403 },
    ],
    ['another kind', saying({ allowed: true }, { kind: 'Review' }), { allowed: false, code: 403 }],
    ['what is no JSON', { body: '{' }, { allowed: false, code: 403 }],
    ['an error', { status: 503, body: '' }, forbidden('Error contacting webhook: 503')],
    [
      'a 403, which is not wrapped again',
      { status: 403, body: 'no' },
      {
        allowed: false,
        code: 403,
        message: expect.not.stringContaining('is forbidden'),
      },
    ],
  ])('%s', async (_, answer, expected) => {
    answers = [answer as (typeof answers)[number]]
    const admission = await apiServer().admit(create())
    expect(admission).toMatchObject(expected)
    expect(admission.imageReviews).toHaveLength(1)
    const lenient = apiServer({ defaultAllow: true })
    answers = [answer as (typeof answers)[number]]
    const isFailure = admission.imageReviews[0]?.failure !== undefined
    const { allowed, auditAnnotations } = await lenient.admit(create())
    expect(allowed).toBe(isFailure || admission.allowed)
    expect(auditAnnotations).toEqual(
      isFailure ? { 'imagepolicywebhook.image-policy.k8s.io/failed-open': 'true' } : {},
    )
  })

  test('a Pod that has no name yet is called by the beginning of it, or what the store made of it', async () => {
    answers = [saying({ allowed: false })]
    const object = { ...POD, metadata: { generateName: 'web-', namespace: 'shop' } }
    const { message } = await apiServer().admit(create(object))
    expect(message).toMatch(/^pods "web-[a-z0-9]{5}" is forbidden: /)
  })

  test('audit annotations of a yes and of a no, kept or not, and no bad keys', async () => {
    const auditAnnotations = { found: 'x', 'bad key': 'y' }
    answers = [saying({ allowed: false, auditAnnotations })]
    const plugin = apiServer()
    for (const cached of [false, true]) {
      const admission = await plugin.admit(create())
      expect(admission.auditAnnotations).toEqual({
        'imagepolicywebhook.image-policy.k8s.io/found': 'x',
      })
      expect(admission.imageReviews[0]).toMatchObject({ cached })
    }
    expect(bodies).toHaveLength(1)
  })
})

describe('what is kept', () => {
  const yes = saying({ allowed: true })
  const no = saying({ allowed: false })

  test.each<[string, object, Partial<Policy>, number, number]>([
    ['a yes for five minutes', yes, {}, 299, 1],
    ['and no longer', yes, {}, 300, 2],
    ['a no for half a minute', no, {}, 29, 1],
    ['and no longer', no, {}, 30, 2],
    ['a yes for as long as is said', yes, { allowTTL: 2 }, 2, 2],
    ['a no for as long as is said', no, { denyTTL: 1800 }, 1799, 1],
    ['nothing for -1', yes, { allowTTL: -1 }, 0, 2],
    ['no failure', { status: 503 }, {}, 0, 2],
  ])('%s', async (_, answer, policy, seconds, calls) => {
    answers = [answer, answer]
    const plugin = apiServer(policy)
    await plugin.admit(create())
    clock.now += seconds * 1000
    await plugin.admit(create())
    expect(bodies).toHaveLength(calls)
  })

  test('by what was asked, so that another namespace or other images are asked about', async () => {
    const plugin = apiServer()
    const other = { ...POD, metadata: { name: 'other', namespace: 'shop' } }
    const elsewhere = { ...POD, metadata: { name: 'web', namespace: 'lab' } }
    for (const object of [POD, other, elsewhere, { ...POD, spec: { containers: [image('a')] } }]) {
      await plugin.admit(create(object))
    }
    expect(bodies).toHaveLength(3)
  })
})

describe('what is tried again', () => {
  test.each<[string, typeof answers, number, boolean]>([
    ['a broken connection', ['reset', 'reset', YES], 3, true],
    ['500, 504 and 429', [{ status: 500 }, { status: 504 }, { status: 429 }, YES], 4, true],
    ['five times and no more', Array(6).fill({ status: 500 }), 5, false],
    ['not what will not change', [{ status: 503 }, YES], 1, false],
  ])('%s', async (_, script, tries, allowed) => {
    answers = script
    const waited: number[] = []
    const plugin = apiServer({ wait: async (ms) => void waited.push(ms) })
    const admission = await plugin.admit(create())
    expect([admission.allowed, bodies.length]).toEqual([allowed, tries])
    expect(waited).toEqual([500, 750, 1125, 1687.5].slice(0, tries - 1))
  })
})

describe('the backend of Countersign', () => {
  test('is asked by the API server, says no in its words, and is not asked again', async () => {
    const noLatest = policyDocument({
      validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false },
      validations: [
        {
          expression: `images.containers.all(image, !image.endsWith(':latest'))`,
          message: 'no latest',
        },
      ],
    })
    const deployment = await deploymentOf([noLatest], {}, { imageReview: true })
    const app = compose(
      deployment,
      { env: ENV, log: () => undefined, hash: nodeHash, maxBodyBytes: 1_000_000 },
      ALL_FLOWS,
    )
    const backend = await startNodeServer({ app, tls: certificates, host: '127.0.0.1' })
    const plugin = apiServer({
      url: `https://127.0.0.1:${backend.port}/v1/prod/${TOKEN}/image-review`,
    })
    try {
      const init = (name: string) => ({
        ...POD,
        spec: { containers: [image('registry.example/a:1')], initContainers: [image(name)] },
      })
      const denied = await plugin.admit(create(init('registry.example/b:latest')))
      expect(denied).toMatchObject(
        forbidden(
          'image policy webhook backend denied one or more images: Policy must-sign failed: no latest',
        ),
      )
      const admitted = await plugin.admit(create(init('registry.example/b:1')))
      expect(admitted).toMatchObject({ allowed: true })
      expect(Object.keys(admitted.auditAnnotations)).toEqual([
        'imagepolicywebhook.image-policy.k8s.io/image-policy-set',
      ])
      const again = await plugin.admit(create(init('registry.example/b:1')))
      expect(again.imageReviews[0]).toMatchObject({ cached: true })
    } finally {
      await backend.close()
    }
    const gone = await plugin.admit(create({ ...POD, spec: { containers: [image('x')] } }))
    expect(gone).toMatchObject({ allowed: false, code: 403 })
    expect(gone.message).toMatch(/^pods "web" is forbidden: Post "https:.*connection refused$/)
  })
})
