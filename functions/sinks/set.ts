import type { Config } from '#functions/config.ts'
import { awsCredentials, fetchFrom, type Platform } from '#functions/ports.ts'
import { DEFAULT_EVENT_BATCH } from '#shared/limits.ts'
import type { PolicyEvent } from '#shared/report/event.ts'
import type { SinkConfig } from './config.ts'
import type { Sink } from './delivery.ts'
import { eventBridgeSink } from './eventbridge.ts'
import { httpSink } from './http.ts'
import { SinkQueue } from './queue.ts'

/** Every sink of a config. */
export interface SinkSet {
  /** Queues the events for every sink and sends what waits. Never rejects. */
  deliver(events: readonly PolicyEvent[]): Promise<void>
}

/** The sinks of a config on a platform. */
export function createSinks(config: Config, platform: Platform): SinkSet {
  const { events } = config
  const { now = Date.now, log } = platform
  const sinks = (events?.sinks ?? []).map((sink) => sinkOf(sink, config, platform))
  const queues = sinks.map((sink) => new SinkQueue(sink, { now, log }))
  return {
    async deliver(told) {
      for (const queue of queues) queue.add(told)
      await Promise.all(queues.map((queue) => queue.flush()))
    },
  }
}

function sinkOf(sink: SinkConfig, { kms, events }: Config, platform: Platform): Sink {
  const { env, hash, now = Date.now } = platform
  const fetch = fetchFrom(platform)
  const maxEvents = events?.batch ?? DEFAULT_EVENT_BATCH
  if (sink.kind === 'http') return httpSink(sink, maxEvents, { fetch, env })
  const found = [kms?.region, env.AWS_REGION, env.AWS_DEFAULT_REGION].find((name) => name)
  return eventBridgeSink(sink, maxEvents, {
    fetch,
    hash,
    now,
    keys: async () => awsCredentials(env) ?? (await platform.awsCredentials?.()),
    region: typeof found === 'string' ? found : undefined,
  })
}
