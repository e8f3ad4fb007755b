import type { ConfigDocument } from '#functions/config-schema.ts'
import type { ReviewPhase } from '#shared/engine/types.ts'
import type { Fault } from '#shared/errors.ts'
import type { EventStatus } from '#shared/report/event.ts'

/** A header whose value is in a variable. */
interface SinkHeader {
  name: string
  valueEnv: string
}

/** An endpoint of the operator that takes events by POST. */
export interface HttpSinkConfig {
  kind: 'http'
  url: string
  format: 'ndjson' | 'json' | 'cloudevents'
  headers: readonly SinkHeader[]
}

/** An event bus of Amazon EventBridge. */
export interface EventBridgeSinkConfig {
  kind: 'eventbridge'
  /** Name or ARN. */
  bus: string
  /** That of the function when absent. */
  region?: string
  source: string
}

export type SinkConfig = HttpSinkConfig | EventBridgeSinkConfig

/** What becomes of events. */
export interface EventsConfig {
  /** Whether each is a line of the log. */
  log: boolean
  /** Statuses that are told; all when absent. */
  include?: readonly EventStatus[]
  /** Phases that are told; all when absent. */
  phases?: readonly ReviewPhase[]
  /** Events of one delivery at most. */
  batch: number
  sinks: readonly SinkConfig[]
}

type Entry = ConfigDocument['events']['sinks'][number]

/** What `events` without a fault says. */
export function toEvents(events: ConfigDocument['events']): EventsConfig {
  return { ...events, sinks: events.sinks.map(toSink) }
}

function toSink({ url = '', bus = '', region, source, format, headers, kind }: Entry): SinkConfig {
  if (kind === 'http') {
    return { kind, url, format: format ?? 'ndjson', headers: headers ?? [] }
  }
  return { kind, bus, ...(region !== undefined && { region }), source: source ?? 'countersign' }
}

/** What an entry of each kind has beside `kind`; the first is required. */
const FIELDS: Readonly<Record<SinkConfig['kind'], readonly string[]>> = {
  http: ['url', 'format', 'headers'],
  eventbridge: ['bus', 'region', 'source'],
}

/** Of `events.sinks`, whatever it is: fields that a kind lacks or does not know. */
export function sinkFaults(entries: unknown): Fault[] {
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: unknown, index) => {
    const fields: Record<string, unknown> = { ...Object(entry) }
    const { kind } = fields
    if (kind !== 'http' && kind !== 'eventbridge') return []
    const known = FIELDS[kind]
    const [required = ''] = known
    const foreign = Object.keys(fields).filter((name) => name !== 'kind' && !known.includes(name))
    const at = `events.sinks[${index}]`
    return [
      ...(Object.hasOwn(fields, required)
        ? []
        : [{ path: `${at}.${required}`, message: `is required by kind: ${kind}` }]),
      ...foreign.map((name) => ({
        path: `${at}.${name}`,
        message: `is not for kind: ${kind}, which has ${known.join(', ')}`,
      })),
    ]
  })
}
