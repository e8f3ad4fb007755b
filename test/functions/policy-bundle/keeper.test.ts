import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Transport } from '#functions/app.ts'
import { compose } from '#functions/compose.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { type ObjectStore, startObjects } from '#functions/local/objects.ts'
import type { Platform } from '#functions/ports.ts'
import { MAX_POLICY_BUNDLE_BYTES, MAX_POLICY_BUNDLE_LOOKS } from '#shared/limits.ts'
import type { FetchPort } from '#shared/ports.ts'
import { hashOf, pod, review } from '../../contract/review.ts'
import {
  bundleOf,
  configWith,
  deploymentOf,
  forbids,
  ISSUED,
  NOW,
  newKey,
  SEAL,
  type SigningOptions,
  signPayload,
  TOKEN,
} from './setup.ts'

const PLACE = '/policies/prod.json'
const KEY = newKey()
const OTHER_KEY = newKey()

let store: ObjectStore
beforeEach(async () => {
  store = await startObjects()
})
afterEach(() => store.close())

/** An isolate whose build forbids `built`, in a world whose time the test moves. */
async function isolate(bundle: object = {}, changes: Partial<Platform> = {}, members: object = {}) {
  const config = configWith({ url: `${store.url}${PLACE}` }, KEY, bundle, members)
  const deployment = await deploymentOf([forbids('built')], config)
  const lines: Record<string, unknown>[] = []
  const clock = { now: NOW }
  const app = compose(
    deployment,
    {
      env: { SEAL },
      log: (record) => lines.push(record),
      hash: nodeHash,
      maxBodyBytes: 1e6,
      now: () => clock.now,
      ...changes,
    },
    ALL_FLOWS,
  )
  const work: Promise<void>[] = []
  const transport: Transport = { afterAnswer: (done) => work.push(done) }
  const ask = async (tag: string, path = 'validate?timeout=9s') => {
    const body = JSON.stringify(review({ object: pod(`registry.example/web:${tag}`) }))
    const headers = { 'content-type': 'application/json' }
    const request = new Request(`https://x/v1/prod/${TOKEN}/ivpol/${path}`, {
      method: 'POST',
      headers,
      body,
    })
    const response = await app.fetch(request, transport)
    const { allowed, status, auditAnnotations } = JSON.parse(await response.text()).response
    return {
      said: allowed ? 'admitted' : status.message,
      set: auditAnnotations?.['image-policy-set'],
    }
  }
  return {
    deployment,
    config,
    lines,
    clock,
    app,
    transport,
    ask,
    said: async (tag: string) => (await ask(tag)).said,
    /** Until what goes on after answers has ended. */
    settled: async () => {
      await Promise.all(work.splice(0))
    },
    told: () =>
      lines
        .filter(({ event }) => event === 'policy-bundle')
        .map(({ outcome, error }) => [outcome, (error as { message?: string })?.message].flat()),
    put: async (tag: string, options: SigningOptions = {}) =>
      store.put(PLACE, await bundleOf(await deploymentOf([forbids(tag)], config), KEY, options)),
  }
}

/** A promise, and what resolves it. */
function withResolve() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve: () => resolve() }
}

const denied = (tag: string) => expect.stringContaining(`no ${tag}`)

describe('a function that has just started', () => {
  test('waits for the bundle, and answers by it from the first review on', async () => {
    const { put, said, told, lines } = await isolate()
    await put('stored')
    expect(await said('stored')).toEqual(denied('stored'))
    expect(await said('built')).toBe('admitted')
    expect(told()).toEqual([['swapped', undefined]])
    expect(lines.find(({ event }) => event === 'policy-bundle')).toMatchObject({
      sequence: 1,
      issued: new Date(ISSUED).toISOString(),
      phase: expect.stringContaining('validate'),
      policyBundleAge: 0,
      policyBundleFaults: 0,
    })
  })

  test('has the policies of its build where there is none', async () => {
    const { said, told } = await isolate()
    expect(await said('built')).toEqual(denied('built'))
    expect(await said('stored')).toBe('admitted')
    expect(told()).toEqual([['failed', expect.stringContaining('answered 404')]])
  })

  test('denies everything where there is none and that is what the operator wants', async () => {
    const { said } = await isolate({ onUnavailable: 'deny' })
    expect(await said('any')).toContain('the policies are not available')
    expect(await said('built')).toContain('the policies are not available')
  })

  test('leaves objects as they are in the mutate phase meanwhile', async () => {
    const { ask } = await isolate({ onUnavailable: 'deny' })
    expect((await ask('any', 'mutate?timeout=9s')).said).toBe('admitted')
  })

  test('denies reviews of images, too, in the words that their API servers read', async () => {
    const members = { clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)], imageReview: true }] }
    const { app, transport, put, clock } = await isolate({ onUnavailable: 'deny' }, {}, members)
    const send = async () => {
      const body = JSON.stringify({
        apiVersion: 'imagepolicy.k8s.io/v1alpha1',
        kind: 'ImageReview',
        spec: { containers: [{ image: 'registry.example/web:built' }], namespace: 'shop' },
      })
      const headers = { 'content-type': 'application/json' }
      const url = `https://x/v1/prod/${TOKEN}/image-review`
      const request = new Request(url, { method: 'POST', headers, body })
      const answer = await app.fetch(request, transport)
      const { status } = JSON.parse(await answer.text())
      return [answer.status, status.allowed, status.reason]
    }
    expect(await send()).toEqual([
      200,
      false,
      expect.stringContaining('policies are not available'),
    ])
    await put('stored')
    clock.now += 10_000
    expect((await send()).slice(0, 2)).toEqual([200, true])
  })

  test('finds the bundle with a later review, once it is there', async () => {
    const { said, put, clock } = await isolate({ onUnavailable: 'deny' })
    expect(await said('any')).toContain('not available')
    await put('stored')
    // Not at once: a store that is away is not asked by every review.
    expect(await said('any')).toContain('not available')
    expect(store.requests).toHaveLength(1)
    clock.now += 10_000
    expect(await said('any')).toBe('admitted')
  })

  test('does not wait longer than a third of what the review has', async () => {
    store.faults.add({ kind: 'stall' })
    const { ask } = await isolate()
    const started = performance.now()
    expect((await ask('built', 'validate?timeout=1s')).said).toEqual(denied('built'))
    expect(performance.now() - started).toBeLessThan(900)
  })

  test('tells probes that it is there without looking', async () => {
    const { app, transport } = await isolate({ onUnavailable: 'deny' })
    const answer = await app.fetch(new Request('https://x/readyz'), transport)
    expect([answer.status, store.requests]).toEqual([200, []])
  })

  test('looks for each of the reviews that come at once: none waits for what another one began', async () => {
    const { put, said } = await isolate()
    await put('stored')
    const answers = await Promise.all(['stored', 'stored', 'stored'].map(said))
    expect(answers).toEqual([denied('stored'), denied('stored'), denied('stored')])
    expect(store.requests).toHaveLength(3)
  })
})

describe('requests that come at once to a function that has just started', () => {
  const many = Array.from({ length: 12 }, () => 'stored')

  test('look a few times, however many they are, and all are answered by what was found', async () => {
    const { put, said, told } = await isolate()
    await put('stored')
    expect(await Promise.all(many.map(said))).toEqual(many.map(() => denied('stored')))
    expect(store.requests).toHaveLength(MAX_POLICY_BUNDLE_LOOKS)
    expect(told().filter(([outcome]) => outcome === 'swapped')).toHaveLength(1)
  })

  test('from nobody whom the config knows look a few times, too', async () => {
    const { app, transport } = await isolate()
    store.faults.add({ kind: 'stall' })
    const stranger = () =>
      app.fetch(new Request('https://x/v1/a/b/validate?timeout=1s', { method: 'POST' }), transport)
    const answers = await Promise.all(many.map(stranger))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
    expect(store.requests).toHaveLength(MAX_POLICY_BUNDLE_LOOKS)
  })

  test('look again when those before them have ended without a word', async () => {
    const { said, clock, put, ask } = await isolate()
    store.faults.add({ kind: 'stall' })
    await Promise.all(many.map(() => ask('built', 'validate?timeout=1s')))
    store.faults.clear()
    await put('stored')
    clock.now += 5000
    expect(await said('stored')).toEqual(denied('stored'))
  })
})

describe('a function that has a bundle', () => {
  test('looks again after refreshSeconds, with the ETag, and never in the way of the review that does', async () => {
    const { put, said, told, settled, clock } = await isolate({ refreshSeconds: 60 })
    const etag = await put('first')
    await said('any')
    clock.now += 59_000
    await said('any')
    expect(store.requests).toHaveLength(1)
    clock.now += 1000
    expect(await said('first')).toEqual(denied('first'))
    await settled()
    expect(store.requests[1]?.headers['if-none-match']).toBe(etag)
    await put('second', { sequence: 2 })
    clock.now += 60_000
    // This review still ends by what it began with.
    expect(await said('second')).toBe('admitted')
    await settled()
    expect(await said('second')).toEqual(denied('second'))
    expect(told()).toEqual([
      ['swapped', undefined],
      ['swapped', undefined],
    ])
  })

  test('counts reviews under way by older policies against the limit of their cluster', async () => {
    const gate = withResolve()
    const reached = withResolve()
    const members = {
      http: { allow: ['api.example.com'] },
      clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)], limits: { concurrentReviews: 1 } }],
    }
    const fetch: FetchPort = async (url, init) => {
      if (!url.startsWith('https://api.')) return globalThis.fetch(url, init)
      reached.resolve()
      await gate.promise
      return Response.json({ ok: true })
    }
    const { config, ask, put, clock, settled } = await isolate(
      { refreshSeconds: 10 },
      { fetch },
      members,
    )
    const asking = {
      validations: [{ expression: "http.Get('https://api.example.com/').ok == true" }],
    }
    store.put(PLACE, await bundleOf(await deploymentOf([forbids('', asking)], config), KEY))
    const long = 'validate?timeout=30s'
    const slow = ask('any', long)
    await reached.promise
    await put('second', { sequence: 2 })
    clock.now += 10_000
    const tooMany = { said: expect.stringContaining('limits.concurrentReviews') }
    expect(await ask('any', long)).toMatchObject(tooMany)
    await settled()
    expect(await ask('second', long)).toMatchObject(tooMany)
    gate.resolve()
    expect(await slow).toMatchObject({ said: 'admitted' })
    expect(await ask('second', long)).toMatchObject({ said: denied('second') })
  })

  test('a review under way ends with what it began with', async () => {
    const gate = withResolve()
    let calls = 0
    const reached = withResolve()
    const members = { http: { allow: ['api.example.com'] } }
    const fetch: FetchPort = async (url, init) => {
      if (!url.startsWith('https://api.')) return globalThis.fetch(url, init)
      reached.resolve()
      // The others are answered at once.
      if (calls++ === 0) await gate.promise
      return Response.json({ tag: 'first' })
    }
    const { config, said, clock, settled } = await isolate({}, { fetch }, members)
    const asking = {
      validations: [
        {
          expression:
            "images.containers.all(image, !image.endsWith(':' + http.Get('https://api.example.com/').tag))",
          message: 'no first',
        },
      ],
    }
    const first = await deploymentOf([forbids('', asking)], config)
    store.put(PLACE, await bundleOf(first, KEY))
    const slow = said('first')
    await reached.promise
    const second = await deploymentOf([forbids('second')], config)
    store.put(PLACE, await bundleOf(second, KEY, { sequence: 2 }))
    clock.now += 60_000
    await said('any')
    await settled()
    expect(await said('second')).toEqual(denied('second'))
    gate.resolve()
    expect(await slow).toEqual(denied('first'))
  })

  test('keeps it while the store is away, and says how old what it knows is', async () => {
    const { put, said, settled, clock, lines } = await isolate({}, { metrics: true })
    await put('stored')
    await said('any')
    store.faults.add({ kind: 'status', status: 503 })
    clock.now += 60_000
    await said('any')
    await settled()
    expect(await said('stored')).toEqual(denied('stored'))
    expect(lines.filter(({ event }) => event === 'policy-bundle').at(-1)).toMatchObject({
      level: 'error',
      outcome: 'failed',
      sequence: 1,
      policyBundleAge: 60,
      policyBundleFaults: 1,
      error: { code: 'POLICY_BUNDLE_UNAVAILABLE' },
      _aws: {
        Timestamp: clock.now,
        CloudWatchMetrics: [
          {
            Namespace: 'Countersign',
            Dimensions: [['phase']],
            Metrics: [
              { Name: 'policyBundleAge', Unit: 'Seconds' },
              { Name: 'policyBundleFaults', Unit: 'Count' },
            ],
          },
        ],
      },
    })
  })

  test('counts a 304 as confirmed', async () => {
    const { put, said, settled, clock, lines } = await isolate({}, { metrics: true })
    await put('stored')
    await said('any')
    clock.now += 60_000
    await said('any')
    await settled()
    expect(lines.filter(({ event }) => event === 'policy-bundle').at(-1)).toMatchObject({
      outcome: 'current',
      policyBundleAge: 0,
      policyBundleFaults: 0,
    })
  })

  test('changes the policy set of its answers and the deployment of its log with it', async () => {
    const { put, ask, lines, deployment, clock, settled } = await isolate()
    await put('first')
    const { set } = await ask('any')
    await put('second', { sequence: 2 })
    clock.now += 60_000
    await ask('any')
    await settled()
    const { set: next } = await ask('any')
    expect(next).not.toBe(set)
    const logged = lines.filter(({ event }) => event === 'decision').map((line) => line.deployment)
    expect(new Set([deployment.hash.slice(0, 12), ...logged]).size).toBe(3)
  })

  test('looks again when a look of before has ended without a word', async () => {
    let looks = 0
    const fetch: FetchPort = (url, init) => {
      looks++
      return globalThis.fetch(url, init)
    }
    const { put, said, clock } = await isolate({}, { fetch })
    await put('first')
    await said('any')
    store.faults.add({ kind: 'stall' }, { times: 1 })
    await put('second', { sequence: 2 })
    clock.now += 60_000
    await said('any')
    // Nobody else does as long as it may still be under way.
    clock.now += 4000
    await said('any')
    expect(looks).toBe(2)
    clock.now += 1000
    let answer: unknown
    for (let tries = 0; tries < 5000 && !String(answer).includes('no second'); tries++) {
      // The store has its turn.
      await new Promise((resolve) => setImmediate(resolve))
      answer = await said('second')
    }
    expect(answer).toEqual(denied('second'))
    expect(looks).toBe(3)
  })

  test('still looks after its clock was set back', async () => {
    const { put, said, settled, clock } = await isolate()
    await put('first')
    await said('any')
    clock.now -= 3_600_000
    await said('any')
    await settled()
    expect(store.requests).toHaveLength(2)
  })

  test('keeps an expired one, unless nothing is what counts then', async () => {
    for (const [onUnavailable, answer] of [
      ['embedded', denied('stored')],
      ['deny', expect.stringContaining('not available')],
    ] as const) {
      const { put, said, settled, clock, told } = await isolate({ onUnavailable })
      await put('stored', { expiresAt: NOW + 30_000 })
      expect(await said('stored')).toEqual(denied('stored'))
      clock.now += 60_000
      await said('any')
      await settled()
      expect(await said('stored')).toEqual(answer)
      // The store confirms the file, which says of itself that it is over.
      expect(told().slice(0, 2)).toEqual([
        ['swapped', undefined],
        ['refused', expect.stringContaining('it expired at 2027-01-01T00:00:30')],
      ])
    }
  })
})

describe('the last good bundle stays when what is stored', () => {
  /** What is stored after a good one of sequence 5, and what the log says of it. */
  type Bad = [string, (made: Made) => Promise<string>, RegExp]
  type Made = {
    bundle: (options?: SigningOptions, key?: typeof KEY) => Promise<string>
    envelope: () => Promise<{ payload: string; signatures: { sig: string }[] }>
  }
  const NEXT = { sequence: 6 }

  test.each<Bad>([
    [
      'is signed twice',
      async ({ envelope }) => {
        const { signatures, ...rest } = await envelope()
        return JSON.stringify({ ...rest, signatures: [...signatures, ...signatures] })
      },
      /2 signatures, expected one/,
    ],
    [
      'is not signed',
      async ({ envelope }) => JSON.stringify({ ...(await envelope()), signatures: [] }),
      /0 signatures, expected one/,
    ],
    ['is signed by another key', ({ bundle }) => bundle(NEXT, OTHER_KEY), /signature is not by/],
    [
      'was changed afterwards',
      async ({ envelope }) => {
        const { payload, ...rest } = await envelope()
        const text = Buffer.from(payload, 'base64').toString().replace('no evil', 'no one!')
        return JSON.stringify({ ...rest, payload: Buffer.from(text).toString('base64') })
      },
      /signature is not by/,
    ],
    ['is older', ({ bundle }) => bundle({ sequence: 4 }), /it is older: its sequence is 4/],
    [
      'is another one of the same sequence',
      ({ bundle }) => bundle({ sequence: 5 }),
      /another one of the same sequence/,
    ],
    [
      'is for another endpoint',
      ({ bundle }) =>
        bundle({
          ...NEXT,
          change: (p) =>
            Object.assign(p, {
              audience: { endpoints: ['https://staging.example'], clusters: ['prod'] },
            }),
        }),
      /it is for https:\/\/staging\.example, and this function is at https:\/\/admission\.example\.com/,
    ],
    [
      'is for other clusters',
      ({ bundle }) =>
        bundle({
          ...NEXT,
          change: (p) =>
            Object.assign(p, {
              audience: { endpoints: ['https://admission.example.com'], clusters: ['staging'] },
            }),
        }),
      /it is for clusters staging, and not for prod/,
    ],
    [
      'says nothing of whom it is for',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => delete p.audience }),
      /does not say whom it is for/,
    ],
    [
      'is signed as something else',
      ({ bundle }) => bundle({ ...NEXT, payloadType: 'application/vnd.in-toto+json' }),
      /payload type is "application\/vnd\.in-toto\+json"/,
    ],
    ['is cut short', async ({ bundle }) => (await bundle(NEXT)).slice(0, -40), /JSON is not valid/],
    ['is no JSON', async () => '<html>', /JSON is not valid/],
    ['is a list', async () => '[]', /payload type/],
    [
      'holds no JSON',
      async () => signPayload(new TextEncoder().encode('{"format":1,'), KEY),
      /its payload cannot be read/,
    ],
    [
      'is too large',
      async () => ' '.repeat(MAX_POLICY_BUNDLE_BYTES + 1),
      /has more than 4194304 bytes/,
    ],
    [
      'was compiled for another engine',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => Object.assign(p, { format: 2 }) }),
      /compiled to format 2, and this function reads format 1: build the functions and the bundle with the same version/,
    ],
    [
      'has a member that nobody knows',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => Object.assign(p, { except: ['prod'] }) }),
      /members that nobody knows: except/,
    ],
    [
      'holds no policy',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => Object.assign(p, { policies: [] }) }),
      /holds no policy/,
    ],
    [
      'holds a policy of a kind that nobody knows',
      ({ bundle }) =>
        bundle({ ...NEXT, change: (p) => Object.assign(first(p), { kind: 'DeletingPolicy' }) }),
      /policies\[0\]: its kind is none that this version knows/,
    ],
    [
      'holds a policy with a member that nobody knows',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => Object.assign(first(p), { unless: [] }) }),
      /policies\[0\]: its unless is none/,
    ],
    [
      'holds a policy without validations',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => delete first(p).validations }),
      /policies\[0\]: its validations is none/,
    ],
    [
      'holds something else among its policies',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => Object.assign(first(p), { attestors: 1 }) }),
      /something else among its policies|its attestors is none/,
    ],
    [
      'holds a policy twice',
      ({ bundle }) =>
        bundle({ ...NEXT, change: (p) => Object.assign(p, { policies: [first(p), first(p)] }) }),
      /policy tags is in it twice/,
    ],
    [
      'holds an expression that calls what nobody knows',
      ({ bundle }) =>
        bundle({
          ...NEXT,
          change: (p) => {
            const text = JSON.stringify(p)
              .replaceAll('ends_with_string', 'ends_at_string')
              .replaceAll('"fn":"endsWith"', '"fn":"endsAt"')
            Object.assign(p, JSON.parse(text))
          },
        }),
      /policy tags \(0\.json:1\) cannot run here/,
    ],
    [
      'has expired',
      ({ bundle }) => bundle({ ...NEXT, expiresAt: NOW }),
      /it expired at 2027-01-01T00:00:00\.000Z/,
    ],
    [
      'is from the future',
      ({ bundle }) => bundle({ ...NEXT, issuedAt: NOW + 3_600_000 }),
      /which is still to come/,
    ],
    [
      'has a sequence that is none',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => Object.assign(p, { sequence: 6.5 }) }),
      /its sequence is no whole number/,
    ],
    [
      'was signed at no time',
      ({ bundle }) => bundle({ ...NEXT, change: (p) => Object.assign(p, { issuedAt: 'now' }) }),
      /its issuedAt is no time/,
    ],
    [
      'has pinned keys that are none',
      ({ bundle }) =>
        bundle({
          ...NEXT,
          change: (p) => Object.assign(p, { pinned: { fetchedAt: '', keys: [{}] } }),
        }),
      /its pinned keys are none/,
    ],
  ])('%s', async (_, make, message) => {
    const { config, put, said, settled, clock, told } = await isolate()
    await put('good', { sequence: 5 })
    expect(await said('good')).toEqual(denied('good'))
    const evil = await deploymentOf([forbids('evil')], config)
    const bundle: Made['bundle'] = (options, key = KEY) => bundleOf(evil, key, options)
    const envelope = async () => JSON.parse(await bundle(NEXT))
    store.put(PLACE, await make({ bundle, envelope }))
    clock.now += 60_000
    await said('any')
    await settled()
    expect(told().at(-1)).toEqual(['refused', expect.stringMatching(message)])
    expect(await said('good')).toEqual(denied('good'))
    expect(await said('evil')).toBe('admitted')
  })

  const first = (payload: Record<string, unknown>) =>
    (payload.policies as Record<string, unknown>[])[0]!

  test('one that the row above would refuse is taken without the change', async () => {
    const { put, said, settled, clock } = await isolate()
    await put('good', { sequence: 5 })
    await said('any')
    await put('evil', NEXT)
    clock.now += 60_000
    await said('any')
    await settled()
    expect(await said('evil')).toEqual(denied('evil'))
  })
})

describe('a place that does not give a bundle', () => {
  test.each<[string, Parameters<ObjectStore['faults']['add']>[0], RegExp]>([
    ['is not there', { kind: 'down' }, /connection failed/],
    ['answers 403', { kind: 'status', status: 403 }, /answered 403/],
    ['answers 404', { kind: 'status', status: 404 }, /answered 404/],
    ['answers 500', { kind: 'status', status: 500 }, /answered 500/],
    ['answers 304 to who has nothing', { kind: 'status', status: 304 }, /answered 304/],
    ['answers 204', { kind: 'status', status: 204 }, /answered 204/],
    [
      'redirects',
      { kind: 'redirect', to: 'http://127.0.0.1:1/elsewhere' },
      /answered 302; redirects are not followed/,
    ],
    ['announces too much', { kind: 'content-length', bytes: 5_000_000 }, /more than 4194304 bytes/],
    ['never ends', { kind: 'endless' }, /more than 4194304 bytes/],
  ])('%s', async (_, fault, message) => {
    const { put, said, told } = await isolate()
    await put('stored')
    store.faults.add(fault)
    expect(await said('built')).toEqual(denied('built'))
    expect(told()).toEqual([
      [expect.stringMatching(/^(failed|refused)$/), expect.stringMatching(message)],
    ])
    // The place is named once.
    expect(String(told()[0]?.[1]).split('/prod.json')).toHaveLength(2)
  })

  test('and never answers is given up', async () => {
    const { put, said, settled, told } = await isolate()
    await put('stored')
    store.faults.add({ kind: 'stall' })
    expect(await said('built')).toEqual(denied('built'))
    await settled()
    const place = `${new URL(store.url).host}${PLACE}`
    expect(told()).toEqual([['failed', `${place}: no answer in 5000 ms`]])
  }, 20_000)
})

describe('two isolates', () => {
  test('each have what they have seen', async () => {
    const one = await isolate()
    const two = await isolate()
    await one.put('first')
    await one.said('any')
    await one.put('second', { sequence: 2 })
    expect(await two.said('second')).toEqual(denied('second'))
    expect(await one.said('second')).toBe('admitted')
  })

  test('that started later takes an old bundle which the first one refuses, unless the config knows better', async () => {
    const one = await isolate()
    await one.put('second', { sequence: 2 })
    await one.said('any')
    await one.put('first', { sequence: 1 })
    one.clock.now += 60_000
    await one.said('any')
    await one.settled()
    expect(await one.said('second')).toEqual(denied('second'))
    expect(await (await isolate()).said('first')).toEqual(denied('first'))
    const careful = await isolate({ minSequence: 2 })
    expect(await careful.said('first')).toBe('admitted')
    expect(careful.told()).toEqual([
      ['refused', expect.stringContaining('its sequence is 1, and policyBundle.minSequence is 2')],
    ])
  })
})
