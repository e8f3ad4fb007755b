import type http from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { type Config, parseConfig } from '#functions/config.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { missingVariables, type Platform } from '#functions/ports.ts'
import { DeliveryError, type Sink } from '#functions/sinks/delivery.ts'
import { SinkQueue } from '#functions/sinks/queue.ts'
import { createSinks } from '#functions/sinks/set.ts'
import { MAX_QUEUED_EVENTS, SINK_PAUSE_MS } from '#shared/limits.ts'
import { eventWith, type Received, startSink } from './sink-server.ts'

const NOW = Date.parse('2026-11-30T12:00:00Z')
const SECRET = 'Bearer s3cr3t-of-the-sink'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function sinkServer(answer?: (response: http.ServerResponse, received: Received) => void) {
  const sink = await startSink(answer)
  closing.push(sink.close)
  return sink
}

function configWith(sinks: object[], more: object = {}): Config {
  return parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: ['a'.repeat(64)] }],
    events: { sinks, ...more },
  })
}

function platformWith(more: Partial<Platform> = {}) {
  const lines: Record<string, unknown>[] = []
  const clock = { now: NOW }
  const platform: Platform = {
    env: {},
    log: (record) => lines.push(record),
    hash: nodeHash,
    maxBodyBytes: 1e6,
    now: () => clock.now,
    ...more,
  }
  return { platform, lines, clock }
}

const NOTHING: Received = { path: '', headers: {}, body: '' }

describe('an HTTP sink', () => {
  test.each<[string, string | undefined, string, (body: string) => unknown]>([
    [
      'as lines',
      undefined,
      'application/x-ndjson',
      (body) =>
        body
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line)),
    ],
    ['as a list', 'json', 'application/json', (body) => JSON.parse(body)],
  ])('gets events %s, with the headers of the config', async (_, format, type, read) => {
    const sink = await sinkServer()
    const headers = [{ name: 'Authorization', valueEnv: 'SINK_AUTH' }]
    const config = configWith([{ kind: 'http', url: sink.url, ...(format && { format }), headers }])
    const { platform, lines } = platformWith({ env: { SINK_AUTH: SECRET } })
    const events = [eventWith(), eventWith({ policy: 'other' })]
    await createSinks(config, platform).deliver(events)
    expect(sink.received).toHaveLength(1)
    expect(sink.received[0]?.path).toBe('/events')
    expect(sink.received[0]?.headers).toMatchObject({ authorization: SECRET, 'content-type': type })
    expect(read(sink.received[0]?.body ?? '')).toEqual(events)
    expect(lines).toEqual([])
  })

  test('gets a batch of CloudEvents whose source and id name each', async () => {
    const sink = await sinkServer()
    const config = configWith([{ kind: 'http', url: sink.url, format: 'cloudevents' }])
    const event = eventWith({ status: 'fail' })
    await createSinks(config, platformWith().platform).deliver([event])
    expect(sink.received[0]?.headers['content-type']).toBe('application/cloudevents-batch+json')
    expect(JSON.parse(sink.received[0]?.body ?? '')).toEqual([
      {
        specversion: '1.0',
        id: event.id,
        source: '/countersign/prod',
        type: 'dev.countersign.policy.fail',
        subject: 'shop/Deployment/web',
        time: event.time,
        datacontenttype: 'application/json',
        data: event,
      },
    ])
  })

  test.each([
    ['its own name', { name: 'web' }, 'shop/Pod/web'],
    ['the beginning of one', { generateName: 'web-' }, 'shop/Pod/web-*'],
    ['no name at all, as image reviews are', {}, 'shop/Pod'],
  ])('a CloudEvent is about something with %s', async (_, named, subject) => {
    const sink = await sinkServer()
    const config = configWith([{ kind: 'http', url: sink.url, format: 'cloudevents' }])
    const pod = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespace: 'shop' }
    const event = eventWith({ resource: { ...pod, ...named } })
    await createSinks(config, platformWith().platform).deliver([event])
    expect(JSON.parse(sink.received[0]?.body ?? '')).toMatchObject([{ subject }])
  })

  test('gets no more events at once than the config says', async () => {
    const sink = await sinkServer()
    const config = configWith([{ kind: 'http', url: sink.url, format: 'json' }], { batch: 2 })
    const events = ['a', 'b', 'c', 'd', 'e'].map((policy) => eventWith({ policy }))
    await createSinks(config, platformWith().platform).deliver(events)
    expect(sink.received.map(({ body }) => JSON.parse(body).length)).toEqual([2, 2, 1])
  })

  test('that redirects is not followed', async () => {
    const target = await sinkServer()
    const sink = await sinkServer((response) => {
      response.writeHead(307, { location: target.url }).end()
    })
    const { platform, lines } = platformWith({ env: { A: SECRET } })
    const headers = [{ name: 'Authorization', valueEnv: 'A' }]
    await createSinks(configWith([{ kind: 'http', url: sink.url, headers }]), platform).deliver([
      eventWith(),
    ])
    expect(target.received).toEqual([])
    expect(lines).toMatchObject([{ event: 'sink', reason: 'answered 307', dropped: 1, waiting: 0 }])
  })

  test('that answers without end is let go of at once', async () => {
    const sink = await sinkServer((response) => {
      const chunk = 'x'.repeat(65_536)
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', more)
      more()
    })
    const { platform, lines } = platformWith()
    await createSinks(configWith([{ kind: 'http', url: sink.url }]), platform).deliver([
      eventWith(),
    ])
    expect(lines).toEqual([])
  })

  test('that is not there is tried once more later, then its events are dropped and counted', async () => {
    const sink = await startSink()
    await sink.close()
    const { platform, lines, clock } = platformWith({ env: { A: SECRET } })
    const headers = [{ name: 'X-Key', valueEnv: 'A' }]
    const sinks = createSinks(configWith([{ kind: 'http', url: sink.url, headers }]), platform)
    await sinks.deliver([eventWith()])
    clock.now += SINK_PAUSE_MS
    await sinks.deliver([])
    clock.now += SINK_PAUSE_MS
    await sinks.deliver([])
    const name = `http ${new URL(sink.url).host}`
    const line = { level: 'warn', event: 'sink', sink: name, reason: 'no answer' }
    expect(lines).toEqual([
      { ...line, waiting: 1, dropped: 0 },
      { ...line, waiting: 0, dropped: 1 },
    ])
  })

  test('whose header nobody set is not called, and says which variable is missing', async () => {
    const sink = await sinkServer()
    const headers = [{ name: 'Authorization', valueEnv: 'NOT_THERE' }]
    const config = configWith([{ kind: 'http', url: sink.url, headers }])
    const { platform, lines } = platformWith()
    await createSinks(config, platform).deliver([eventWith()])
    expect(sink.received).toEqual([])
    expect(lines).toMatchObject([{ reason: expect.stringContaining('NOT_THERE'), dropped: 1 }])
    expect(missingVariables(config, { SEAL: 'x' })).toEqual(['NOT_THERE'])
  })

  test('whose header cannot be sent fails without its value in the log', async () => {
    const sink = await sinkServer()
    const headers = [{ name: 'Authorization', valueEnv: 'A' }]
    const { platform, lines } = platformWith({ env: { A: `${SECRET}\nX-Evil: 1` } })
    await createSinks(configWith([{ kind: 'http', url: sink.url, headers }]), platform).deliver([
      eventWith(),
    ])
    expect(sink.received).toEqual([])
    expect(lines).toMatchObject([{ reason: 'no answer' }])
    expect(JSON.stringify(lines)).not.toContain('s3cr3t')
  })
})

describe('a queue', () => {
  function queueOf(send: Sink['send'], timeoutMs?: number) {
    const { platform, lines, clock } = platformWith()
    const sink: Sink = { name: 'test', maxEvents: 100, send }
    const options = { now: () => clock.now, log: platform.log }
    return {
      queue: new SinkQueue(sink, { ...options, ...(timeoutMs && { timeoutMs }) }),
      lines,
      clock,
    }
  }

  test.each<[string, DeliveryError, number]>([
    ['once more after what may pass', new DeliveryError('answered 503', true), 2],
    ['not again after what will not', new DeliveryError('answered 401', false), 1],
  ])('tries %s', async (_, error, tries) => {
    const sent: string[][] = []
    const { queue, clock, lines } = queueOf(async (events) => {
      sent.push(events.map(({ id }) => id))
      throw error
    })
    queue.add([eventWith()])
    for (let i = 0; i < 5; i++) {
      await queue.flush()
      clock.now += SINK_PAUSE_MS
    }
    expect(sent).toHaveLength(tries)
    expect(lines.at(-1)).toMatchObject({ reason: error.message, dropped: 1, waiting: 0 })
  })

  test('leaves a sink that failed alone for a while', async () => {
    let calls = 0
    const { queue, clock } = queueOf(async () => {
      calls++
      throw new DeliveryError('answered 500', true)
    })
    queue.add([eventWith()])
    await queue.flush()
    clock.now += SINK_PAUSE_MS - 1
    await queue.flush()
    expect(calls).toBe(1)
  })

  test('gives up on a sink that does not answer', async () => {
    const { queue, lines } = queueOf(() => new Promise(() => undefined), 20)
    queue.add([eventWith()])
    await queue.flush()
    expect(lines).toMatchObject([{ reason: 'test: no answer in 20 ms', waiting: 1, dropped: 0 }])
  })

  test('holds so many events and no more, the newest ones', async () => {
    const sent: string[] = []
    let isDown = true
    const { queue, lines, clock } = queueOf(async (events) => {
      if (isDown) throw new DeliveryError('answered 500', true)
      sent.push(...events.map(({ id }) => id))
    })
    queue.add([eventWith({ policy: 'first' })])
    await queue.flush()
    for (let i = 0; i < MAX_QUEUED_EVENTS + 5; i++) queue.add([eventWith({ policy: `p${i}` })])
    isDown = false
    clock.now += SINK_PAUSE_MS
    await queue.flush()
    expect(sent).toHaveLength(MAX_QUEUED_EVENTS)
    expect(sent.at(-1)).toContain(`p${MAX_QUEUED_EVENTS + 4}`)
    expect(lines.at(-1)).toMatchObject({ reason: 'recovered', dropped: 6 })
  })

  test('has one delivery under way, which takes along what came meanwhile', async () => {
    const sent: number[] = []
    let release = () => {}
    const { queue } = queueOf(async (events) => {
      sent.push(events.length)
      if (sent.length === 1) {
        await new Promise<void>((resolve) => {
          release = resolve
        })
      }
    })
    queue.add([eventWith()])
    const first = queue.flush()
    for (const policy of ['a', 'b', 'c']) {
      queue.add([eventWith({ policy })])
      await queue.flush()
    }
    release()
    await first
    expect(sent).toEqual([1, 3])
  })

  test('starts again when a platform ended a delivery without a word', async () => {
    let calls = 0
    const { queue, clock } = queueOf(() => {
      calls++
      return calls === 1 ? new Promise(() => undefined) : Promise.resolve()
    })
    queue.add([eventWith()])
    void queue.flush()
    queue.add([eventWith({ policy: 'b' })])
    await queue.flush()
    expect(calls).toBe(1)
    clock.now += 60_000
    await queue.flush()
    expect(calls).toBe(2)
  })
})

describe('an EventBridge sink', () => {
  const keys = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'wJalr' }

  /** Calls of AWS go to a server here instead; what they were signed for is what counts. */
  async function bridge(answer: (received: Received) => object, env: Platform['env'] = keys) {
    const server = await sinkServer((response, received) =>
      response.end(JSON.stringify(answer(received))),
    )
    const urls: string[] = []
    const made = platformWith({
      env,
      fetch: (url, init) => {
        urls.push(url)
        return fetch(server.url, init)
      },
    })
    return { ...made, server, urls }
  }

  const ok = ({ body }: Received) => ({
    FailedEntryCount: 0,
    Entries: JSON.parse(body).Entries.map(() => ({ EventId: 'x' })),
  })

  test.each<[string, object, Platform['env'], string]>([
    ['the region of the config', { region: 'eu-west-1' }, {}, 'events.eu-west-1.amazonaws.com'],
    [
      'the region of the function',
      {},
      { AWS_REGION: 'us-east-2' },
      'events.us-east-2.amazonaws.com',
    ],
    [
      'the region of the ARN',
      { bus: 'arn:aws-cn:events:cn-north-1:111122223333:event-bus/audit' },
      { AWS_REGION: 'us-east-2' },
      'events.cn-north-1.amazonaws.com.cn',
    ],
  ])('puts entries on its bus in %s', async (_, fields, env, host) => {
    const { platform, server, urls, lines } = await bridge(ok, { ...keys, ...env })
    const sink = { kind: 'eventbridge', bus: 'audit', ...fields }
    const event = eventWith()
    await createSinks(configWith([sink]), platform).deliver([event])
    expect(urls).toEqual([`https://${host}/`])
    const [{ headers, body } = NOTHING] = server.received
    expect(headers['x-amz-target']).toBe('AWSEvents.PutEvents')
    expect(headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/20261130\/[a-z0-9-]+\/events\/aws4_request, /,
    )
    const [entry] = JSON.parse(body).Entries
    expect(entry).toMatchObject({ Source: 'countersign', DetailType: 'Image policy pass' })
    expect(entry.EventBusName).toBe(sink.bus)
    expect(entry.Time).toBe(Date.parse(event.time) / 1000)
    expect(JSON.parse(entry.Detail)).toEqual(event)
    expect(lines).toEqual([])
  })

  test('puts ten entries at most, and fewer where they are large', async () => {
    const { platform, server } = await bridge(ok)
    const small = Array.from({ length: 11 }, (_, i) => eventWith({ policy: `p${i}` }))
    const large = ['x', 'y', 'z'].map((policy) =>
      eventWith({ policy, message: policy.repeat(100_000) }),
    )
    const sinks = createSinks(
      configWith([{ kind: 'eventbridge', bus: 'b', region: 'eu-west-1' }]),
      platform,
    )
    await sinks.deliver(small)
    await sinks.deliver(large)
    const sizes = server.received.map(({ body }) => JSON.parse(body).Entries.length)
    expect(sizes).toEqual([10, 1, 2, 1])
  })

  test('tries again only what was not taken', async () => {
    const { platform, server, lines, clock } = await bridge(({ body }) => ({
      FailedEntryCount: body.includes('"late') ? 1 : 0,
      Entries: JSON.parse(body).Entries.map(({ Detail }: { Detail: string }) =>
        Detail.includes('"late"') ? { ErrorCode: 'ThrottlingException' } : { EventId: 'x' },
      ),
    }))
    const sinks = createSinks(
      configWith([{ kind: 'eventbridge', bus: 'b', region: 'eu-west-1' }]),
      platform,
    )
    await sinks.deliver([eventWith({ policy: 'a' }), eventWith({ policy: 'late' })])
    clock.now += SINK_PAUSE_MS
    await sinks.deliver([])
    const policies = server.received.map(({ body }) =>
      JSON.parse(body).Entries.map(({ Detail }: { Detail: string }) => JSON.parse(Detail).policy),
    )
    expect(policies).toEqual([['a', 'late'], ['late']])
    expect(lines.map(({ waiting, dropped }) => [waiting, dropped])).toEqual([
      [1, 0],
      [0, 1],
    ])
  })

  test.each<[string, object, Platform['env'], string]>([
    ['without credentials', { region: 'eu-west-1' }, {}, 'no AWS credentials for EventBridge'],
    ['without a region', {}, keys, 'no region for event bus b'],
  ])('%s says so and calls nobody', async (_, fields, env, reason) => {
    const { platform, server, lines } = await bridge(ok, env)
    const sinks = createSinks(configWith([{ kind: 'eventbridge', bus: 'b', ...fields }]), platform)
    await sinks.deliver([eventWith()])
    expect(server.received).toEqual([])
    expect(lines).toMatchObject([{ sink: 'eventbridge b', reason, dropped: 1 }])
  })

  test('takes an answer that is no JSON, or too long, for a failure', async () => {
    const server = await sinkServer((response) => response.end('x'.repeat(100_000)))
    const { platform, lines } = platformWith({
      env: keys,
      fetch: (_, init) => fetch(server.url, init),
    })
    const sink = { kind: 'eventbridge', bus: 'b', region: 'eu-west-1' }
    await createSinks(configWith([sink]), platform).deliver([eventWith()])
    expect(lines).toMatchObject([{ reason: expect.stringContaining('more than'), waiting: 1 }])
  })
})

describe('the config of events', () => {
  const faultsOf = (sinks: object[], more: object = {}) => {
    try {
      configWith(sinks, more)
      return []
    } catch (thrown) {
      return (thrown as { faults: { path: string }[] }).faults.map(({ path }) => path)
    }
  }

  test.each<[string, object, string[]]>([
    [
      'an address without TLS',
      { kind: 'http', url: 'http://sink.example.com' },
      ['events.sinks[0].url'],
    ],
    [
      'an address with a login',
      { kind: 'http', url: 'https://u:p@sink.example.com' },
      ['events.sinks[0].url'],
    ],
    [
      'an address with a query',
      { kind: 'http', url: 'https://sink.example.com/?k=1' },
      ['events.sinks[0].url'],
    ],
    ['no address', { kind: 'http' }, ['events.sinks[0].url']],
    ['no bus', { kind: 'eventbridge' }, ['events.sinks[0].bus']],
    [
      'fields of another kind',
      { kind: 'http', url: 'https://s.example', bus: 'b' },
      ['events.sinks[0].bus'],
    ],
    [
      'a source of AWS',
      { kind: 'eventbridge', bus: 'b', source: 'aws.ecr' },
      ['events.sinks[0].source'],
    ],
    [
      'a header that frames the body',
      {
        kind: 'http',
        url: 'https://s.example',
        headers: [{ name: 'Content-Length', valueEnv: 'A' }],
      },
      ['events.sinks[0].headers[0].name'],
    ],
    [
      'the value of a header itself',
      { kind: 'http', url: 'https://s.example', headers: [{ name: 'X', valueEnv: 'Bearer abc' }] },
      ['events.sinks[0].headers[0].valueEnv'],
    ],
  ])('refuses %s', (_, sink, paths) => {
    expect(faultsOf([sink])).toEqual(paths)
  })

  test('refuses statuses and phases that do not exist', () => {
    expect(faultsOf([], { include: ['passed'], phases: ['audit'] })).toEqual([
      'events.include[0]',
      'events.phases[0]',
    ])
  })
})
