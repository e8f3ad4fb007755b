import { secretFrom } from '#functions/ports.ts'
import type { FetchPort } from '#shared/ports.ts'
import { discard } from '#shared/registry/body.ts'
import type { PolicyEvent } from '#shared/report/event.ts'
import type { HttpSinkConfig } from './config.ts'
import { demandSuccess, type Sink } from './delivery.ts'

const CONTENT_TYPES: Readonly<Record<HttpSinkConfig['format'], string>> = {
  ndjson: 'application/x-ndjson',
  json: 'application/json',
  cloudevents: 'application/cloudevents-batch+json',
}

/** A Sink that POSTs to an endpoint of the operator. Its answer is not read, and redirects are not followed. */
export function httpSink(
  config: HttpSinkConfig,
  maxEvents: number,
  { fetch, env }: { fetch: FetchPort; env: Readonly<Record<string, unknown>> },
): Sink {
  const { format, url } = config
  return {
    name: `http ${new URL(url).host}`,
    maxEvents,
    async send(events, signal) {
      const own = config.headers.map(({ name, valueEnv }) => [name, secretFrom(env, valueEnv)])
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...Object.fromEntries(own), 'content-type': CONTENT_TYPES[format] },
        body: bodyOf(events, format),
        redirect: 'manual',
        signal,
      })
      discard(response)
      demandSuccess(response.status)
    },
  }
}

function bodyOf(events: readonly PolicyEvent[], format: HttpSinkConfig['format']): string {
  switch (format) {
    case 'ndjson':
      return events.map((event) => `${JSON.stringify(event)}\n`).join('')
    case 'json':
      return JSON.stringify(events)
    case 'cloudevents':
      return JSON.stringify(events.map(toCloudEvent))
  }
}

/** CloudEvents 1.0, JSON format: `source` and `id` together name an event. */
function toCloudEvent(event: PolicyEvent): Record<string, unknown> {
  const { namespace, kind, name, generateName } = event.resource
  const called = name ?? (generateName && `${generateName}*`)
  return {
    specversion: '1.0',
    id: event.id,
    source: `/countersign/${event.cluster}`,
    type: `dev.countersign.policy.${event.status}`,
    subject: [namespace, kind, called].filter(Boolean).join('/'),
    time: event.time,
    datacontenttype: 'application/json',
    data: event,
  }
}
