import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ApiServerOptions, createApiServer } from '#functions/local/apiserver.ts'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'
import type { Webhook } from '#functions/local/webhook.ts'
import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'

/** What the scripted webhook answers a request with: an AdmissionResponse without its uid, or raw status and body. */
type Script = (request: AdmissionRequest) => object | { raw: string; status: number } | 'silence'

let certificates: DevCertificates
let server: https.Server
let url: string
let seen: { path: string; request: AdmissionRequest }[]
let script: Script

beforeAll(async () => {
  certificates = await createDevCertificates({ hosts: ['127.0.0.1'] })
  server = https.createServer(
    { cert: certificates.cert, key: certificates.key },
    async (request, response) => {
      let body = ''
      for await (const chunk of request.setEncoding('utf8')) body += chunk
      const review = JSON.parse(body)
      seen.push({ path: request.url!, request: review.request })
      const answer = script(review.request)
      if (answer === 'silence') return
      if ('raw' in answer) {
        response.writeHead(answer.status).end(answer.raw)
        return
      }
      const reply = { uid: review.request.uid, ...answer }
      response.end(
        JSON.stringify({
          apiVersion: 'admission.k8s.io/v1',
          kind: 'AdmissionReview',
          response: reply,
        }),
      )
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  seen = []
  script = () => ({ allowed: true })
})

const pod = (name: string | undefined, image: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { ...(name === undefined ? { generateName: 'web-' } : { name }), namespace: 'shop' },
  spec: { containers: [{ name: 'web', image }] },
})

const webhook = (verb: 'mutate' | 'validate', changes: Partial<Webhook> = {}): Webhook => ({
  name: `${verb}.countersign.dev`,
  url: `${url}/${verb}`,
  timeoutSeconds: 5,
  failurePolicy: 'Fail',
  ...changes,
})

const patch = (...operations: object[]) => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: btoa(JSON.stringify(operations)),
})

const toImage = (image: string) =>
  patch({ op: 'replace', path: '/spec/containers/0/image', value: image })

function chain(changes: Partial<ApiServerOptions> = {}) {
  return createApiServer({
    ca: certificates.ca,
    mutating: webhook('mutate'),
    validating: webhook('validate'),
    now: () => Date.UTC(2030, 0, 2, 3, 4, 5, 678),
    ...changes,
  })
}

const create = (object: JsonObject) => ({ operation: 'CREATE', object }) as const

describe('createApiServer', () => {
  test('mutates, applies the patch, and validates the patched object under another uid', async () => {
    script = (request) =>
      request.object === null || seen.length > 1 ? { allowed: true } : toImage('web@sha256:1')
    const admission = await chain().admit(create(pod('web', 'web')))
    expect(admission).toMatchObject({ allowed: true, code: 0, message: '' })
    expect(seen.map(({ path }) => path)).toEqual(['/mutate?timeout=5s', '/validate?timeout=5s'])
    const [mutate, validate] = seen.map(({ request }) => request)
    expect(mutate!.object).toEqual(pod('web', 'web'))
    expect(validate!.object).toMatchObject({ spec: { containers: [{ image: 'web@sha256:1' }] } })
    expect(validate!.uid).not.toBe(mutate!.uid)
    expect(admission.object).toEqual(validate!.object)
    expect(admission.calls.map(({ phase, patch: { length } }) => [phase, length])).toEqual([
      ['mutate', 1],
      ['validate', 0],
    ])
  })

  test('asks with the fields of a real AdmissionReview', async () => {
    await chain().admit(create(pod('web', 'web')))
    expect(seen[0]!.request).toEqual({
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      requestKind: { group: '', version: 'v1', kind: 'Pod' },
      requestResource: { group: '', version: 'v1', resource: 'pods' },
      name: 'web',
      namespace: 'shop',
      operation: 'CREATE',
      userInfo: { username: 'dev@example.com', groups: ['system:authenticated'] },
      object: pod('web', 'web'),
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    })
  })

  test('each call records by how much the counters grew', async () => {
    const admission = await chain({ meter: () => ({ requests: seen.length }) }).admit(
      create(pod('web', 'web')),
    )
    expect(admission.calls.map(({ used }) => used)).toEqual([{ requests: 1 }, { requests: 1 }])
  })

  test('a generated name is unknown to mutate and known to validate, with uid and creationTimestamp', async () => {
    await chain().admit(create(pod(undefined, 'web')))
    const [mutate, validate] = seen.map(({ request }) => request)
    expect(mutate).not.toHaveProperty('name')
    expect(validate!.name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    expect(validate!.object!.metadata).toEqual({
      generateName: 'web-',
      name: validate!.name,
      namespace: 'shop',
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      creationTimestamp: '2030-01-02T03:04:05Z',
    })
  })

  const swap = (object: JsonObject): JsonObject => ({
    ...object,
    spec: { containers: [{ name: 'web', image: 'other' }] },
  })
  test.each([
    {
      name: 'IfNeeded runs again when a later webhook changed the object',
      policy: 'IfNeeded',
      later: swap,
      phases: ['mutate', 'reinvoke', 'validate'],
    },
    {
      name: 'IfNeeded does not run again when a later webhook changed nothing',
      policy: 'IfNeeded',
      later: (object: JsonObject) => object,
      phases: ['mutate', 'validate'],
    },
    {
      name: 'Never does not run again',
      policy: 'Never',
      later: swap,
      phases: ['mutate', 'validate'],
    },
  ] as const)('$name', async ({ policy, later, phases }) => {
    const server = chain({ mutating: webhook('mutate', { reinvocationPolicy: policy }) })
    const admission = await server.admit(create(pod('web', 'web')), { later: [later] })
    expect(admission.calls.map(({ phase }) => phase)).toEqual(phases)
    expect(admission.object).toMatchObject({
      spec: { containers: [{ image: later === swap ? 'other' : 'web' }] },
    })
  })

  test.each([
    {
      name: 'with a message',
      status: { message: 'unsigned', code: 403 },
      code: 403,
      text: ': unsigned',
    },
    { name: 'with a reason only', status: { reason: 'Forbidden' }, code: 400, text: ': Forbidden' },
    {
      name: 'with a code that is none',
      status: { message: 'no', code: 200 },
      code: 400,
      text: ': no',
    },
    { name: 'without explanation', status: undefined, code: 400, text: ' without explanation' },
  ])('a denial $name reads as the API server words it', async ({ status, code, text }) => {
    script = () => (seen.length > 1 ? { allowed: false, status } : { allowed: true })
    const admission = await chain().admit(create(pod('web', 'web')))
    expect(admission).toMatchObject({
      allowed: false,
      code,
      message: `admission webhook "validate.countersign.dev" denied the request${text}`,
    })
  })

  test('a denial by the mutating webhook ends the request', async () => {
    script = () => ({ allowed: false, status: { message: 'no' } })
    const admission = await chain().admit(create(pod('web', 'web')))
    expect(admission.message).toBe(
      'admission webhook "mutate.countersign.dev" denied the request: no',
    )
    expect(seen).toHaveLength(1)
  })

  test('warnings and audit annotations count on a denial too, and under the name of their webhook', async () => {
    script = () => ({
      allowed: false,
      status: { message: 'no' },
      warnings: ['old'],
      auditAnnotations: { policy: 'a' },
    })
    const admission = await chain({ mutating: undefined }).admit(create(pod('web', 'web')))
    expect(admission.warnings).toEqual(['old'])
    expect(admission.auditAnnotations).toEqual({ 'validate.countersign.dev/policy': 'a' })
  })

  const called = 'Internal error occurred: failed calling webhook "validate.countersign.dev": '
  test.each<{ name: string; answer: Script; text: string }>([
    {
      name: 'another uid',
      answer: () => ({ uid: 'x', allowed: true }),
      text: 'received invalid webhook response: expected response.uid=',
    },
    {
      name: 'a patch',
      answer: () => patch({ op: 'add', path: '/a', value: 1 }),
      text: 'received invalid webhook response: validating webhook may not return response.patch',
    },
    {
      name: '404',
      answer: () => ({ raw: '', status: 404 }),
      text: 'failed to call webhook: the server could not find the requested resource',
    },
    {
      name: '500',
      answer: () => ({ raw: 'oops', status: 500 }),
      text: 'failed to call webhook: an error on the server ("oops") has prevented the request from succeeding',
    },
    {
      name: 'an empty body',
      answer: () => ({ raw: '', status: 200 }),
      text: 'failed to call webhook: 0-length response with status code: 200',
    },
    {
      name: 'no JSON',
      answer: () => ({ raw: '<html>', status: 200 }),
      text: 'failed to call webhook: ',
    },
  ])(
    'an answer with $name is a failed call, which Fail refuses and Ignore lets pass on record',
    async ({ answer, text }) => {
      script = answer
      const strict = await chain({ mutating: undefined }).admit(create(pod('web', 'web')))
      expect(strict).toMatchObject({ allowed: false, code: 500 })
      expect(strict.message.slice(0, (called + text).length)).toBe(called + text)
      const lax = await chain({
        mutating: undefined,
        validating: webhook('validate', { failurePolicy: 'Ignore' }),
      }).admit(create(pod('web', 'web')))
      expect(lax.allowed).toBe(true)
      expect(lax.auditAnnotations).toEqual({
        'failed-open.validating.webhook.admission.k8s.io/round_0_index_0':
          'validate.countersign.dev',
      })
    },
  )

  test('a webhook that does not answer fails after its timeout', async () => {
    script = () => 'silence'
    const server = chain({
      mutating: undefined,
      validating: webhook('validate', { timeoutSeconds: 1 }),
    })
    const admission = await server.admit(create(pod('web', 'web')))
    expect(admission.message).toBe(
      `${called}failed to call webhook: Post "${url}/validate?timeout=1s": context deadline exceeded`,
    )
  })

  test('a webhook that nobody listens for, or with a certificate of another CA, fails', async () => {
    const nobody = chain({
      mutating: undefined,
      validating: webhook('validate', { url: 'https://127.0.0.1:1/' }),
    })
    expect((await nobody.admit(create(pod('web', 'web')))).message).toBe(
      `${called}failed to call webhook: Post "https://127.0.0.1:1/?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused`,
    )
    const other = await createDevCertificates({ hosts: ['127.0.0.1'] })
    const untrusted = chain({ ca: other.ca, mutating: undefined })
    expect((await untrusted.admit(create(pod('web', 'web')))).message).toContain(
      `${called}failed to call webhook: Post "${url}/validate?timeout=5s": tls: failed to verify certificate: x509: `,
    )
  })

  test.each([
    { name: 'does not apply', operations: [{ op: 'test', path: '/spec', value: 1 }] },
    { name: 'has no parent', operations: [{ op: 'add', path: '/status/a/b', value: 1 }] },
  ])('a patch that $name refuses the request even under Ignore', async ({ operations }) => {
    script = () => patch(...operations)
    const server = chain({ mutating: webhook('mutate', { failurePolicy: 'Ignore' }) })
    const admission = await server.admit(create(pod('web', 'web')))
    expect(admission).toMatchObject({ allowed: false, code: 500 })
    expect(admission.message).toMatch(/^Internal error occurred: /)
  })

  test('DELETE sends the stored object as oldObject, and a patch for it refuses the request', async () => {
    script = () => patch({ op: 'add', path: '/a', value: 1 })
    const admission = await chain().admit({
      operation: 'DELETE',
      object: null,
      oldObject: pod('web', 'web'),
    })
    expect(seen[0]!.request).toMatchObject({
      operation: 'DELETE',
      name: 'web',
      object: null,
      oldObject: pod('web', 'web'),
    })
    expect(admission.message).toBe(
      'Internal error occurred: admission webhook "mutate.countersign.dev" attempted to modify the object, which is not supported for this operation',
    )
  })
})
