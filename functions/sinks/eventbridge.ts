import { signed } from '#functions/credentials/sigv4.ts'
import type { AwsCredentials } from '#functions/kms.ts'
import { fromUtf8, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import {
  EVENTBRIDGE_MAX_BYTES,
  EVENTBRIDGE_MAX_ENTRIES,
  MAX_SINK_ANSWER_BYTES,
} from '#shared/limits.ts'
import type { FetchPort, HashPort } from '#shared/ports.ts'
import { readBody } from '#shared/registry/body.ts'
import type { PolicyEvent } from '#shared/report/event.ts'
import type { EventBridgeSinkConfig } from './config.ts'
import { DeliveryError, demandSuccess, type Sink } from './delivery.ts'

/** What calls of EventBridge are made with. */
export interface EventBridgeOptions {
  fetch: FetchPort
  hash: HashPort
  /** Epoch milliseconds. */
  now: () => number
  /** The role of the function; undefined where there is none. */
  keys: () => Promise<AwsCredentials | undefined>
  /** That of the function; an ARN names its own. */
  region: string | undefined
}

interface Entry {
  Time: number
  Source: string
  DetailType: string
  Detail: string
  EventBusName: string
}

/** A Sink that puts events on a bus of EventBridge (needs `events:PutEvents`). */
export function eventBridgeSink(
  { bus, source, region: named }: EventBridgeSinkConfig,
  maxEvents: number,
  { fetch, hash, now, keys, region: own }: EventBridgeOptions,
): Sink {
  const region = named ?? /^arn:[^:]+:events:([^:]+):/.exec(bus)?.[1] ?? own
  const host = region === undefined ? '' : `events.${region}.${domainOf(region)}`
  const entryOf = (event: PolicyEvent): Entry => ({
    Time: Math.floor(Date.parse(event.time) / 1000),
    Source: source,
    DetailType: `Image policy ${event.status}`,
    Detail: JSON.stringify(event),
    EventBusName: bus,
  })
  const put = async (entries: readonly Entry[], signal: AbortSignal) => {
    if (region === undefined) throw invalid(`no region for event bus ${bus}`)
    const credentials = await keys()
    if (credentials === undefined) throw invalid('no AWS credentials for EventBridge')
    const body = JSON.stringify({ Entries: entries })
    const headers = {
      'content-type': 'application/x-amz-json-1.1',
      'x-amz-target': 'AWSEvents.PutEvents',
    }
    const request = { host, region, service: 'events', headers, body }
    const response = await fetch(`https://${host}/`, {
      method: 'POST',
      headers: signed(request, credentials, hash, now()),
      body,
      redirect: 'manual',
      signal,
    })
    const reader = { signal, onBytes() {} }
    const answer = await readBody(response, MAX_SINK_ANSWER_BYTES, reader, 'PutEvents')
    demandSuccess(response.status)
    return refusedIn(answer, entries.length)
  }
  return {
    name: `eventbridge ${bus.slice(bus.lastIndexOf('/') + 1)}`,
    maxEvents: Math.min(maxEvents, EVENTBRIDGE_MAX_ENTRIES),
    async send(events, signal) {
      const entries = events.map(entryOf)
      for (const part of partsOf(entries)) {
        const refused = await put(
          part.map(({ entry }) => entry),
          signal,
        )
        const left = events.slice((part.at(-1)?.index ?? 0) + 1)
        const again = part
          .filter((_, at) => refused.has(at))
          .flatMap(({ index }) => events[index] ?? [])
        if (again.length > 0) {
          throw new DeliveryError(`took ${part.length - again.length} of ${part.length}`, true, [
            ...again,
            ...left,
          ])
        }
      }
    },
  }
}

/** Entries in parts that fit into one call. One that fits into none goes alone, and is refused. */
function partsOf(entries: readonly Entry[]): { entry: Entry; index: number }[][] {
  const parts: { entry: Entry; index: number }[][] = []
  let room = 0
  for (const [index, entry] of entries.entries()) {
    const { Detail, DetailType, Source } = entry
    // EventBridge counts 14 bytes for a time.
    const size = 14 + utf8(Detail).length + DetailType.length + Source.length
    if (parts.length === 0 || size > room) {
      parts.push([])
      room = EVENTBRIDGE_MAX_BYTES
    }
    parts.at(-1)?.push({ entry, index })
    room -= size
  }
  return parts
}

/** Places of the entries that were not taken. An answer that does not say so has taken all of them. */
function refusedIn(answer: Uint8Array, count: number): Set<number> {
  const refused = new Set<number>()
  try {
    const { FailedEntryCount, Entries }: Record<string, unknown> = JSON.parse(fromUtf8(answer))
    if (!FailedEntryCount || !Array.isArray(Entries)) return refused
    for (const [at, entry] of Entries.slice(0, count).entries()) {
      if (entry?.ErrorCode !== undefined) refused.add(at)
    }
    return refused
  } catch {
    throw new DeliveryError('answered without JSON', true)
  }
}

function domainOf(region: string): string {
  return region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
}

function invalid(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}
