import { toAdmissionError } from '#shared/errors.ts'
import type { Reviewed } from '#shared/report/event.ts'
import type { Config } from './config.ts'
import type { Platform } from './ports.ts'

/** Takes work that goes on once an answer is ready, and how long it may be waited for at most, milliseconds. It never rejects. */
export type AfterAnswer = (work: Promise<void>, leftMs: number) => void

/** Tells of answered reviews. Never throws, and nothing in it changes an answer. */
export type TellEvents = (reviewed: Reviewed, leftMs: number, after?: AfterAnswer) => void

/**
 * The TellEvents of a config, or undefined when nobody wants events. What makes events is loaded with the first one, once its answer is
 * there: no start has to wait for it.
 */
export function lazyEvents(config: Config, platform: Platform): TellEvents | undefined {
  const { events } = config
  if (events === undefined || !(events.log || events.sinks.length > 0)) return undefined
  let tell: TellEvents | undefined
  const first = async (reviewed: Reviewed, leftMs: number): Promise<void> => {
    try {
      const { createEvents } = await import('./events.ts')
      tell ??= createEvents(config, platform)
      let rest: Promise<void> | undefined
      tell?.(reviewed, leftMs, (work) => {
        rest = work
      })
      await rest
    } catch (thrown) {
      const { code, message } = toAdmissionError(thrown, 'telling of events')
      platform.log({ level: 'error', event: 'fault', error: { code, message } })
    }
  }
  return (reviewed, leftMs, after) => {
    if (tell !== undefined) return tell(reviewed, leftMs, after)
    const work = first(reviewed, leftMs)
    after?.(work, leftMs)
  }
}
