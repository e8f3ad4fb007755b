import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AppOptions, createApp, type Transport } from '#functions/app.ts'
import { type ClusterConfig, parseConfig } from '#functions/config.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { admitted, denied, verifyResponse } from '#shared/admission/response.ts'
import type { EngineCall, ImagePolicyEngine } from '#shared/engine/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { parseJson } from '#shared/json.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { hashOf, review, UID } from '../contract/review.ts'

const TOKEN = 'tokentokentokentokentokentoken22'
const OTHER_TOKEN = 'other2other2other2other2other222'
const BEARER = 'bearer-of-the-cluster'
const NOW = Date.parse('2027-01-01T00:00:00Z')

const CLUSTERS: Omit<ClusterConfig, 'timeouts'>[] = [
  { name: 'prod', tokens: [hashOf(OTHER_TOKEN), hashOf(TOKEN)] },
  { name: 'bearer', tokens: [hashOf(TOKEN)], bearer: [hashOf(BEARER)] },
  { name: 'ranges', tokens: [hashOf(TOKEN)], cidrs: ['203.0.113.0/24', '2001:db8::/32'] },
  { name: 'expired', tokens: [hashOf(TOKEN)], notAfter: '2027-01-01T00:00:00Z' },
  { name: 'expiring', tokens: [hashOf(TOKEN)], notAfter: '2027-01-01T00:00:01Z' },
  { name: 'few', tokens: [hashOf(TOKEN)], policies: ['signed'] },
]

const config = parseConfig({
  policies: 'policies',
  endpoint: 'https://admission.example.com',
  outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
  clusters: CLUSTERS,
})
// The door reads nothing but names of policies.
const policies = [
  { name: 'signed', hash: 'a' },
  { name: 'other', hash: 'b' },
  { name: 'own', namespace: 'shop', hash: 'c' },
] as CompiledPolicy[]

/** What every answer to a cluster with all three policies says of them. */
const SET = { 'image-policy-set': '9ae51642d124' }

/** An engine of the contract that answers as told, and the calls it got. */
function fakeEngine(answer: Partial<ImagePolicyEngine> = {}) {
  const calls: EngineCall[] = []
  const engine: ImagePolicyEngine = {
    mutate: async (request, call) => {
      calls.push(call)
      return answer.mutate?.(request, call) ?? admitted()
    },
    validate: async (request, call) => {
      calls.push(call)
      return answer.validate?.(request, call) ?? admitted()
    },
  }
  return { engine, calls }
}

function door(options: Partial<AppOptions> = {}) {
  const { engine, calls } = fakeEngine()
  const lines: Record<string, unknown>[] = []
  const app = createApp({
    deployment: { config, policies, hash: 'f'.repeat(64) },
    engine,
    hash: nodeHash,
    maxBodyBytes: 100_000,
    now: () => NOW,
    log: (record) => lines.push(record),
    ...options,
  })
  async function post(
    path: string,
    {
      body = JSON.stringify(review()) as BodyInit,
      headers = {} as Record<string, string>,
      transport = {} as Transport,
    } = {},
  ) {
    const init: RequestInit & { duplex: 'half' } = {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      duplex: 'half',
    }
    const response = await app.fetch(new Request(`https://door.example${path}`, init), transport)
    const text = await response.text()
    const headerList = [...response.headers]
    return {
      status: response.status,
      headers: headerList,
      text,
      review: () => JSON.parse(text).response,
    }
  }
  return { app, post, lines, calls }
}

const at = (cluster: string, rest = 'ivpol/validate', token = TOKEN) =>
  `/v1/${cluster}/${token}/${rest}`

describe('callers', () => {
  test.each<[string, string, { headers?: Record<string, string>; transport?: Transport }]>([
    ['the newer token', at('prod'), {}],
    ['the older token', at('prod', 'ivpol/validate', OTHER_TOKEN), {}],
    ['a bearer', at('bearer'), { headers: { authorization: `Bearer ${BEARER}` } }],
    ['a bearer in lower case', at('bearer'), { headers: { authorization: `bearer ${BEARER}` } }],
    ['an address in an IPv4 range', at('ranges'), { transport: { address: '203.0.113.77' } }],
    ['an address in an IPv6 range', at('ranges'), { transport: { address: '2001:db8::7' } }],
    ['a mapped address', at('ranges'), { transport: { address: '::ffff:203.0.113.77' } }],
    ['a cluster that has not ended yet', at('expiring'), {}],
  ])('with %s get in', async (_, path, options) => {
    const answer = await door().post(path, options)
    expect(answer.status).toBe(200)
    expect(answer.review()).toEqual({ uid: UID, allowed: true, auditAnnotations: SET })
  })

  test.each<[string, string, string, Parameters<ReturnType<typeof door>['post']>[1]]>([
    ['of an unknown cluster', 'cluster', at('nowhere'), {}],
    ['with a wrong token', 'token', at('prod', 'ivpol/validate', 'wrong'), {}],
    ['with the token of a hash', 'token', at('prod', 'ivpol/validate', hashOf(TOKEN)), {}],
    [
      'with the token of another case',
      'token',
      at('prod', 'ivpol/validate', TOKEN.toUpperCase()),
      {},
    ],
    ['without a bearer', 'bearer', at('bearer'), {}],
    [
      'with a wrong bearer',
      'bearer',
      at('bearer'),
      { headers: { authorization: `Bearer ${TOKEN}` } },
    ],
    [
      'with a bearer by another scheme',
      'bearer',
      at('bearer'),
      { headers: { authorization: `Basic ${BEARER}` } },
    ],
    ['from outside the ranges', 'address', at('ranges'), { transport: { address: '203.0.114.1' } }],
    ['from an unknown address', 'address', at('ranges'), {}],
    ['from an address that is none', 'address', at('ranges'), { transport: { address: 'unix' } }],
    [
      'with a header that claims another address',
      'address',
      at('ranges'),
      {
        transport: { address: '198.51.100.1' },
        headers: {
          'x-forwarded-for': '203.0.113.7',
          'cf-connecting-ip': '203.0.113.7',
          forwarded: 'for=203.0.113.7',
        },
      },
    ],
    ['of a cluster that has ended', 'expired', at('expired'), {}],
  ])('%s get the same empty 404', async (_, refusal, path, options) => {
    const { post, lines, calls } = door()
    const nowhere = await post('/nothing/here')
    expect(nowhere).toMatchObject({ status: 404, text: '', headers: [] })
    const answer = await post(path, options)
    expect({ ...answer, review: null }).toEqual({ ...nowhere, review: null })
    expect(calls).toEqual([])
    expect(lines).toMatchObject([{ event: 'refused', refusal }])
    expect(JSON.stringify(lines)).not.toMatch(new RegExp(`${TOKEN}|${BEARER}|wrong`, 'i'))
  })

  test.each([
    ['GET of a review route', 'GET', at('prod')],
    ['PUT of a review route', 'PUT', at('prod')],
    ['a route without its token', 'POST', '/v1/prod/ivpol/validate'],
    ['an empty token', 'POST', '/v1/prod//ivpol/validate'],
    ['another version', 'POST', `/v2/prod/${TOKEN}/ivpol/validate`],
    ['another phase', 'POST', at('prod', 'ivpol/delete')],
    ['image-review', 'POST', at('prod', 'image-review')],
    ['a phase with more to its name', 'POST', at('prod', 'ivpol/validated')],
    ['POST of livez', 'POST', '/livez'],
  ])('by %s get it, too', async (_, method, path) => {
    const { app } = door()
    const response = await app.fetch(new Request(`https://door.example${path}`, { method }), {})
    expect([response.status, await response.text(), [...response.headers]]).toEqual([404, '', []])
  })

  test('of an unknown cluster leave neither its name nor the token in the log', async () => {
    const { post, lines } = door()
    await post(at('nowhere'))
    expect(JSON.stringify(lines)).not.toMatch(new RegExp(`nowhere|${TOKEN}`))
  })
})

describe('routes', () => {
  test.each(['/livez', '/readyz'])('%s needs no tenant', async (path) => {
    const { app, lines } = door()
    const response = await app.fetch(new Request(`https://door.example${path}`), {})
    expect([response.status, await response.text(), lines]).toEqual([200, 'ok\n', []])
  })

  test.each([
    ['ivpol/validate', { scope: 'ivpol', policies: [] }],
    ['ivpol/validate/', { scope: 'ivpol', policies: [] }],
    ['ivpol/mutate///', { scope: 'ivpol', policies: [] }],
    ['ivpol/mutate/signed', { scope: 'ivpol', policies: ['signed'] }],
    ['ivpol/validate//signed/other/', { scope: 'ivpol', policies: ['signed', 'other'] }],
    ['ivpol/validate/s%69gned', { scope: 'ivpol', policies: ['signed'] }],
  ])('%s asks the engine for %j', async (rest, expected) => {
    const { post, calls } = door()
    await post(at('prod', rest))
    expect(calls).toMatchObject([{ cluster: 'prod', ...expected }])
  })

  test.each([
    ['prod', 'ivpol/validate/missing', ['"missing"']],
    ['prod', 'ivpol/mutate/signed/missing', ['"missing"']],
    ['prod', 'ivpol/validate/Signed', ['"Signed"']],
    ['prod', 'ivpol/validate/toString', ['"toString"']],
    ['prod', 'ivpol/validate/%zz', ['"%zz"']],
    ['prod', 'ivpol/validate/own', ['"own"']],
    ['prod', 'nivpol/validate/signed', ['"signed"']],
    ['few', 'ivpol/validate/other', ['"other"']],
    ['few', 'nivpol/validate/own', ['"own"']],
    ['prod', `ivpol/validate/${'x/'.repeat(9)}`, ['"x"', 'and 4 more']],
  ])(
    'of %s, %s names a policy that is not loaded: nothing gets past validate, and the answer says why',
    async (cluster, rest, words) => {
      const { post, calls, lines } = door()
      const { status, review } = await post(at(cluster, rest))
      expect(status).toBe(200)
      const [warning = ''] = review().warnings ?? []
      const allowed = rest.includes('mutate')
      expect(review()).toMatchObject({
        uid: UID,
        allowed,
        ...(allowed ? {} : { status: { code: 403, reason: 'Forbidden', message: warning } }),
        auditAnnotations: { 'image-policy-not-loaded': warning },
      })
      for (const word of words) expect(warning).toContain(word)
      expect(calls).toMatchObject([{ policies: rest.split('/').slice(2).filter(Boolean) }])
      expect(lines).toMatchObject([{ notLoaded: expect.stringContaining(words[0] ?? '') }])
    },
  )

  test.each([
    ['prod', 'ivpol/validate', ['signed', 'other', 'shop/own']],
    ['prod', 'nivpol/mutate/own', ['signed', 'other', 'shop/own']],
    ['few', 'ivpol/validate', ['signed']],
    ['few', 'nivpol/validate', ['signed']],
  ])('of %s, %s may reach the policies %j', async (cluster, rest, keys) => {
    const { post, calls } = door()
    const { review } = await post(at(cluster, rest))
    expect(calls.map(({ granted }) => [...(granted ?? [])])).toEqual([keys])
    expect(review().warnings).toBeUndefined()
  })

  test('of the other phase do not exist in a function of one phase', async () => {
    const { post } = door({ engine: { validate: async () => admitted() } })
    expect((await post(at('prod', 'ivpol/mutate'))).status).toBe(404)
    expect((await post(at('prod', 'ivpol/validate'))).status).toBe(200)
  })
})

describe('bodies', () => {
  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json ;x=y',
  ])('of type %s are read', async (type) => {
    const { post } = door()
    expect((await post(at('prod'), { headers: { 'content-type': type } })).status).toBe(200)
  })

  test.each([
    '',
    'text/plain',
    'application/json-patch+json',
    'application/jsonp',
    'application/yaml',
    'x application/json',
  ])('of type %j are refused with 415 and not read', async (type) => {
    const { post, calls } = door()
    const answer = await post(at('prod'), { headers: { 'content-type': type } })
    expect(answer.status).toBe(415)
    expect(answer.text).toBe(`Content-Type must be application/json, is ${JSON.stringify(type)}\n`)
    expect(calls).toEqual([])
  })

  const large = JSON.stringify(review({ object: { kind: 'Pod', padding: 'x'.repeat(200_000) } }))

  test.each<[string, BodyInit, Transport]>([
    ['from a stream', large, {}],
    ['as text', '', { body: large }],
    ['as bytes', '', { body: new TextEncoder().encode(large) as Uint8Array<ArrayBuffer> }],
    [
      'in characters of three bytes',
      '',
      { body: large.replaceAll('x', '\u20ac').slice(0, 60_000) },
    ],
  ])('too large %s are denied by their uid', async (_, body, transport) => {
    const { post, calls } = door()
    const answer = await post(at('prod'), { body, transport })
    expect(answer.status).toBe(200)
    expect(answer.review()).toMatchObject({
      uid: UID,
      allowed: false,
      status: { code: 413, reason: 'RequestEntityTooLarge' },
    })
    expect(calls).toEqual([])
  })

  test('without an end are left alone after a bounded amount', async () => {
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 65_536
        controller.enqueue(new Uint8Array(65_536).fill(0x20))
      },
    })
    const answer = await door().post(at('prod'), { body: endless })
    expect([answer.status, answer.text]).toEqual([
      413,
      'the AdmissionReview is larger than 100000 bytes; exclude such objects with a matchCondition\n',
    ])
    expect(sent).toBeLessThan(1_000_000)
  })

  test('that break off are denied by their uid', async () => {
    const text = JSON.stringify(review())
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text.slice(0, 400)))
      },
      pull(controller) {
        controller.error(new Error('reset'))
      },
    })
    const answer = await door().post(at('prod'), { body: broken })
    expect(answer.review()).toMatchObject({ uid: UID, allowed: false, status: { code: 400 } })
  })

  test('that stall are denied by their uid when the time is up', async () => {
    const timers: (() => void)[] = []
    const stalling = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(JSON.stringify(review()).slice(0, 400)))
      },
      pull: () => {
        timers[0]?.()
        return new Promise(() => undefined)
      },
    })
    const { post } = door({
      schedule: (work) => {
        timers.push(work)
        return () => undefined
      },
    })
    const answer = await post(at('prod'), { body: stalling })
    expect(answer.review()).toMatchObject({
      uid: UID,
      allowed: false,
      status: { code: 504, reason: 'Timeout' },
    })
  })

  test('that are no UTF-8 are denied by their uid', async () => {
    const bytes = new TextEncoder().encode(JSON.stringify(review()))
    bytes[bytes.length - 4] = 0xff
    const answer = await door().post(at('prod'), { body: bytes })
    expect(answer.review()).toMatchObject({ uid: UID, status: { code: 400 } })
  })

  test.each<[string, string]>([
    ['nothing', ''],
    ['no JSON', '{'],
    ['null', 'null'],
    ['a list', '[]'],
    ['no request', '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}'],
    ['no uid', JSON.stringify(review({ uid: '' }))],
    ['a uid that is no text', JSON.stringify(review({ uid: 7 }))],
  ])('with %s get 400 and a text', async (_, body) => {
    const { post, calls } = door()
    const answer = await post(at('prod'), { transport: { body } })
    expect(answer.status).toBe(400)
    expect(answer.headers).toEqual([['content-type', 'text/plain; charset=utf-8']])
    expect(answer.text.length).toBeGreaterThan(10)
    expect(calls).toEqual([])
  })

  test('that are wrong in several places are denied with every bad path', async () => {
    const { post } = door()
    const bad = review({ operation: 'PATCH', kind: { group: 7, version: 'v1' }, userInfo: null })
    const { review: answer } = await post(at('prod'), { body: JSON.stringify(bad) })
    const { status } = answer()
    expect(status.code).toBe(400)
    expect(status.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      'request.kind.group',
      'request.kind.kind',
      'request.operation',
      'request.userInfo',
    ])
  })
})

describe('whatever comes', () => {
  /** A review with some bytes of it replaced, left out or repeated. */
  const damaged = fc
    .tuple(fc.nat(), fc.nat(40), fc.uint8Array({ maxLength: 40 }))
    .map(([at, length, bytes]) => {
      const text = Buffer.from(JSON.stringify(review()))
      const start = at % text.length
      return Buffer.concat([text.subarray(0, start), bytes, text.subarray(start + length)])
    })
  const json = fc.json().map((text) => Buffer.from(text))

  test('the answer is a review that the API server accepts or a text, and only what can be read gets to the engine', async () => {
    const { post, calls } = door()
    await fc.assert(
      fc.asyncProperty(fc.oneof(damaged, json, fc.uint8Array()), async (bytes) => {
        calls.length = 0
        const body = new Uint8Array(bytes)
        const { status, text } = await post(at('prod'), { transport: { body } })
        if (status !== 200) {
          expect([status, calls.length]).toEqual([400, 0])
          return
        }
        const value = parseJson(text)
        const { uid } = JSON.parse(text).response
        expect(verifyResponse(value, uid, 'validate').allowed).toBe(calls.length === 1)
      }),
      { numRuns: 300 },
    )
  })
})

describe('time', () => {
  /** A schedule whose clock never runs by itself. */
  function clock() {
    const timers: { work: () => void; ms: number; cancelled: boolean }[] = []
    return {
      timers,
      schedule: (work: () => void, ms: number) => {
        const timer = { work, ms, cancelled: false }
        timers.push(timer)
        return () => {
          timer.cancelled = true
        }
      },
    }
  }

  test.each([
    ['validate', { uid: UID, allowed: false, status: { code: 504, reason: 'Timeout' } }],
    [
      'mutate',
      {
        uid: UID,
        allowed: true,
        auditAnnotations: { ...SET, 'mutate-error': 'DEADLINE_EXCEEDED' },
      },
    ],
  ] as const)('%s answers in time when the engine does not', async (phase, expected) => {
    const { schedule, timers } = clock()
    const aborted: boolean[] = []
    const { engine } = fakeEngine({
      [phase]: (_: unknown, { signal }: EngineCall) => {
        aborted.push(signal.aborted)
        for (const { work } of timers) work()
        aborted.push(signal.aborted)
        return new Promise(() => undefined)
      },
    })
    const { post } = door({ engine, schedule })
    const answer = await post(at('prod', `ivpol/${phase}?timeout=10s`))
    expect(answer.review()).toMatchObject(expected)
    expect(answer.review().patch).toBeUndefined()
    expect(aborted).toEqual([false, true])
    expect(timers.map(({ ms, cancelled }) => [ms, cancelled])).toEqual([
      [8700, true],
      [8800, true],
    ])
  })

  test('what the engine says after it was told to stop still counts', async () => {
    const { schedule, timers } = clock()
    const { engine } = fakeEngine({
      validate: async () => {
        timers[0]?.work()
        return denied('registry.example did not answer', { code: 504, reason: 'Timeout' })
      },
    })
    const answer = await door({ engine, schedule }).post(at('prod'))
    expect(answer.review().status.message).toBe('registry.example did not answer')
  })

  test('an engine that fails after its time is up does no harm', async () => {
    const { schedule, timers } = clock()
    let fail = (_: Error) => {}
    const { engine } = fakeEngine({
      validate: () => {
        for (const { work } of timers) work()
        return new Promise((_, reject) => {
          fail = reject
        })
      },
    })
    const answer = await door({ engine, schedule }).post(at('prod'))
    fail(new Error('too late'))
    expect(answer.review().status.code).toBe(504)
  })

  test('the platform may give less', async () => {
    const { schedule, timers } = clock()
    await door({ schedule }).post(at('prod', 'ivpol/validate?timeout=10s'), {
      transport: { remainingMs: () => 2000 },
    })
    expect(timers[0]?.ms).toBe(1700)
  })
})

describe('faults outside any policy', () => {
  test.each([
    [
      'throws',
      () => {
        throw new TypeError('secret detail')
      },
    ],
    ['rejects', () => Promise.reject(new TypeError('secret detail'))],
  ])('validate denies when the engine %s, without the detail', async (_, validate) => {
    const { engine } = fakeEngine({ validate })
    const { post, lines } = door({ engine })
    const answer = await post(at('prod'))
    expect(answer.review()).toEqual({
      uid: UID,
      allowed: false,
      auditAnnotations: SET,
      status: {
        status: 'Failure',
        code: 500,
        reason: 'InternalError',
        message: 'image verification failed internally',
      },
    })
    expect(lines[0]).toMatchObject({
      level: 'error',
      verdict: 'deny',
      error: {
        code: 'INTERNAL',
        message: 'evaluating the validate phase: TypeError: secret detail',
      },
    })
  })

  test('mutate changes nothing and warns', async () => {
    const { engine } = fakeEngine({
      mutate: () => Promise.reject(new AdmissionError('KMS_REFUSED', 'no')),
    })
    const answer = await door({ engine }).post(at('prod', 'ivpol/mutate'))
    expect(answer.review()).toEqual({
      uid: UID,
      allowed: true,
      warnings: ['images were not pinned: the mutate phase did not finish'],
      auditAnnotations: { ...SET, 'mutate-error': 'KMS_REFUSED' },
    })
  })

  test('a patch never leaves validate', async () => {
    const patch = [{ op: 'remove', path: '/spec' }] as const
    const { engine } = fakeEngine({ validate: async () => admitted({ patch }) })
    expect((await door({ engine }).post(at('prod'))).review()).toEqual({
      uid: UID,
      allowed: true,
      auditAnnotations: SET,
    })
  })
})

describe('the log', () => {
  test('has one line per decision, with no token and no object in it', async () => {
    const { engine } = fakeEngine({
      validate: async () => ({
        ...denied('no signature'),
        record: { policies: { signed: 'fail' }, images: 1, registryCalls: 0 },
      }),
    })
    const { post, lines } = door({ engine })
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    await post(at('prod', 'ivpol/validate/signed?timeout=5s'), {
      headers: {
        traceparent: `00-${trace}-00f067aa0ba902b7-01`,
        authorization: `Bearer ${BEARER}`,
      },
    })
    const user = hashOf('prod\nalice').slice(0, 16)
    expect(lines).toEqual([
      {
        level: 'info',
        event: 'decision',
        cluster: 'prod',
        phase: 'validate',
        scope: 'ivpol',
        asked: ['signed'],
        uid: UID,
        operation: 'CREATE',
        kind: 'v1/Pod',
        namespace: 'shop',
        name: 'web',
        user,
        verdict: 'deny',
        code: 403,
        message: 'no signature',
        policies: { signed: 'fail' },
        images: 1,
        registryCalls: 0,
        trace,
        deployment: 'ffffffffffff',
        cause: 'rejected',
        policySet: SET['image-policy-set'],
        timeoutMs: 3700,
        ms: 0,
      },
    ])
  })

  test('has a line for a body that could not be read', async () => {
    const { post, lines } = door()
    await post(at('prod'), { transport: { body: '{' } })
    expect(lines).toMatchObject([
      { cluster: 'prod', verdict: 'unreadable', code: 400, error: { code: 'JSON_INVALID' } },
    ])
  })
})
