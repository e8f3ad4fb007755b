import { afterEach, describe, expect, test } from 'vitest'
import { createApp, type Transport } from '#functions/app.ts'
import { parseConfig } from '#functions/config.ts'
import { createEvents } from '#functions/events.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { toLambdaHandler } from '#functions/lambda.ts'
import type { Platform } from '#functions/ports.ts'
import { lazyEvents } from '#functions/tell.ts'
import { admitted, denied } from '#shared/admission/response.ts'
import type { AppliedPolicy } from '#shared/engine/applied.ts'
import type { EngineDecision } from '#shared/engine/types.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { hashOf, review } from '../contract/review.ts'
import { startSink } from './sinks/sink-server.ts'

const TOKEN = 'tokentokentokentokentokentoken22'
const NOW = Date.parse('2026-11-30T12:00:00Z')
const APPLIED: AppliedPolicy = {
  policy: 'signed',
  kind: 'ImageValidatingPolicy',
  autogen: undefined,
  policyHash: 'b'.repeat(64),
  validationActions: ['Deny'],
  status: 'pass',
  message: 'success',
  auditAnnotations: {},
  images: ['app:1'],
  checks: [],
  exceptions: [],
}

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function sinkServer(...args: Parameters<typeof startSink>) {
  const sink = await startSink(...args)
  closing.push(sink.close)
  return sink
}

const decided = (...applied: Partial<AppliedPolicy>[]): EngineDecision => ({
  ...admitted(),
  applied: () => applied.map((each) => ({ ...APPLIED, ...each })),
})

/** A door whose engine decides as told, with these `events` in its config. */
function door(
  events: object | undefined,
  decision: EngineDecision = decided({}),
  create: typeof lazyEvents = createEvents,
) {
  const lines: Record<string, unknown>[] = []
  const config = parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)] }],
    ...(events && { events }),
  })
  const platform: Platform = {
    env: { SEAL: 'x' },
    log: (record) => lines.push(record),
    hash: nodeHash,
    maxBodyBytes: 100_000,
    now: () => NOW,
  }
  const app = createApp({
    // The door reads nothing but names of policies.
    deployment: {
      config,
      policies: [{ name: 'signed' }] as CompiledPolicy[],
      hash: 'f'.repeat(64),
    },
    engine: { mutate: async () => decision, validate: async () => decision },
    maxBodyBytes: 100_000,
    now: () => NOW,
    log: platform.log,
    hash: nodeHash,
    events: create(config, platform),
  })
  const post = (phase: string, transport: Transport = {}) =>
    app.fetch(
      new Request(`https://door.example/v1/prod/${TOKEN}/ivpol/${phase}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(review()),
      }),
      transport,
    )
  const names = () => lines.map(({ event }) => event)
  return { app, post, lines, names }
}

describe('events in the log', () => {
  test('are there without a word in the config, beside the one line of the decision', async () => {
    const { post, lines, names } = door(undefined, decided({}, { policy: 'b', status: 'fail' }))
    await post('validate')
    expect(names()).toEqual(['decision', 'policy', 'policy'])
    expect(lines.slice(1)).toMatchObject([
      { level: 'info', policy: 'signed', status: 'pass', deployment: 'f'.repeat(12) },
      { level: 'warn', policy: 'b', status: 'fail' },
    ])
    expect(lines[0]).not.toHaveProperty('applied')
  })

  test.each<[string, object, string, string[]]>([
    ['none when the config says so', { log: false }, 'validate', []],
    ['the wanted statuses only', { include: ['fail'] }, 'validate', ['b']],
    ['the wanted phases only', { phases: ['validate'] }, 'mutate', []],
    ['both phases otherwise', {}, 'mutate', ['signed', 'b']],
  ])('are %s', async (_, events, phase, expected) => {
    const { post, lines } = door(events, decided({}, { policy: 'b', status: 'fail' }))
    await post(phase)
    const told = lines.filter(({ event }) => event === 'policy')
    expect(told.map(({ policy }) => policy)).toEqual(expected)
  })

  test('tell of a denial that no policy made', async () => {
    const { post, lines } = door({}, denied('no verdict in time'))
    await post('validate')
    expect(lines.at(-1)).toMatchObject({ event: 'policy', status: 'error', verdict: 'deny' })
  })

  test('that cannot be made change no answer', async () => {
    const broken = {
      ...admitted(),
      applied: () => {
        throw new Error('broken')
      },
    }
    const { post, names } = door({}, broken)
    const response = await post('validate')
    expect(await response.json()).toMatchObject({ response: { allowed: true } })
    expect(names()).toEqual(['decision', 'fault'])
  })
})

describe('events for sinks', () => {
  test('are sent after the answer, as work that the platform is given', async () => {
    const sink = await sinkServer()
    const { post } = door({ log: false, sinks: [{ kind: 'http', url: sink.url }] })
    const work: { done: Promise<void>; leftMs: number }[] = []
    const response = await post('validate', {
      afterAnswer: (done, leftMs) => work.push({ done, leftMs }),
    })
    expect(response.status).toBe(200)
    expect(work.map(({ leftMs }) => leftMs > 0)).toEqual([true])
    await work[0]?.done
    expect(sink.received.map(({ body }) => JSON.parse(body).policy)).toEqual(['signed'])
  })

  test.each<[string, Parameters<typeof startSink>[0]]>([
    ['never answers', () => undefined],
    ['answers 500', (response) => response.writeHead(500).end()],
    ['hangs up', (response) => response.destroy()],
  ])('leave verdict and answer as they are when the sink %s', async (_, answer) => {
    const sink = await sinkServer(answer)
    const hostile = door({ sinks: [{ kind: 'http', url: sink.url }] }, denied('unsigned'))
    const plain = door({ log: false }, denied('unsigned'))
    const [got, expected] = [await hostile.post('validate'), await plain.post('validate')]
    expect(await got.text()).toBe(await expected.text())
    expect(got.status).toBe(200)
  })

  test('are told after the first answer too, for which their code is loaded', async () => {
    const sink = await sinkServer()
    const config = { sinks: [{ kind: 'http', url: sink.url }] }
    const { post, names } = door(config, decided({}), lazyEvents)
    const work: Promise<void>[] = []
    const transport: Transport = { afterAnswer: (done) => work.push(done) }
    await post('validate', transport)
    await post('validate', transport)
    await Promise.all(work)
    expect(names().toSorted()).toEqual(['decision', 'decision', 'policy', 'policy'])
    const bodies = sink.received.map(({ body }) => body).join('')
    expect(bodies.match(/"event":"policy"/g)).toHaveLength(2)
  })

  test('are not even loaded when nobody wants them', async () => {
    const { post, names } = door({ log: false }, decided({}), lazyEvents)
    await post('validate')
    expect(names()).toEqual(['decision'])
    expect(lazyEvents({ events: { log: false, sinks: [], batch: 1 } } as never, {} as never)).toBe(
      undefined,
    )
  })

  const lambdaEvent = {
    version: '2.0',
    rawPath: `/v1/prod/${TOKEN}/ivpol/validate`,
    headers: { 'content-type': 'application/json' },
    requestContext: { stage: '$default', http: { method: 'POST', sourceIp: '203.0.113.1' } },
    body: JSON.stringify(review()),
  }

  test('are out before a Lambda function gives its answer', async () => {
    const sink = await sinkServer()
    const { app } = door({ log: false, sinks: [{ kind: 'http', url: sink.url }] })
    const { statusCode } = await toLambdaHandler(app)(lambdaEvent, {})
    expect(statusCode).toBe(200)
    expect(sink.received).toHaveLength(1)
  })

  test.each([
    ['for long', {}],
    ['at all when no time is left', { getRemainingTimeInMillis: () => 100 }],
  ])('do not hold the answer of a Lambda function %s', async (_, context) => {
    const sink = await sinkServer(() => undefined)
    const { app } = door({ log: false, sinks: [{ kind: 'http', url: sink.url }] })
    const { statusCode, body } = await toLambdaHandler(app)(lambdaEvent, context)
    expect(statusCode).toBe(200)
    expect(JSON.parse(body)).toMatchObject({ response: { allowed: true } })
  })
})
