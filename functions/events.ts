import { toAdmissionError } from '#shared/errors.ts'
import type { LogPort } from '#shared/ports.ts'
import { type PolicyEvent, policyEvents } from '#shared/report/event.ts'
import type { Config } from './config.ts'
import type { Platform } from './ports.ts'
import type { SinkSet } from './sinks/set.ts'
import type { TellEvents } from './tell.ts'

/** The TellEvents of a config, or undefined when nobody wants events. Sinks are loaded with the first event, if there are any. */
export function createEvents(config: Config, platform: Platform): TellEvents | undefined {
  const { events } = config
  if (events === undefined || !(events.log || events.sinks.length > 0)) return undefined
  const { log } = platform
  const { include, phases } = events
  const sinks = events.sinks.length > 0 ? new LazySinks(config, platform) : undefined
  return (reviewed, leftMs, after) => {
    if (phases?.includes(reviewed.phase) === false) return
    try {
      const told = policyEvents(reviewed, (status) => include?.includes(status) ?? true)
      if (events.log) for (const event of told) log({ level: levelOf(event), ...event })
      if (sinks === undefined || told.length === 0) return
      const work = sinks.deliver(told)
      after?.(work, leftMs)
    } catch (thrown) {
      logFault(log, thrown)
    }
  }
}

function levelOf({ status }: PolicyEvent): 'info' | 'warn' {
  return status === 'pass' || status === 'skip' ? 'info' : 'warn'
}

function logFault(log: LogPort, thrown: unknown): void {
  const { code, message } = toAdmissionError(thrown, 'telling of events')
  log({ level: 'error', event: 'fault', error: { code, message } })
}

/** The sinks of one isolate, a module of its own that a function without sinks never loads. */
class LazySinks {
  readonly #config: Config
  readonly #platform: Platform
  #set: SinkSet | undefined

  constructor(config: Config, platform: Platform) {
    this.#config = config
    this.#platform = platform
  }

  /** Queues events and sends what is queued. Never rejects. */
  async deliver(events: readonly PolicyEvent[]): Promise<void> {
    try {
      const { createSinks } = await import('./sinks/set.ts')
      this.#set ??= createSinks(this.#config, this.#platform)
      await this.#set.deliver(events)
    } catch (thrown) {
      logFault(this.#platform.log, thrown)
    }
  }
}
