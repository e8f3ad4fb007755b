import { AdmissionError, toAdmissionError } from '#shared/errors.ts'
import { MAX_QUEUED_EVENTS, MAX_TRIES, SINK_PAUSE_MS, SINK_TIMEOUT_MS } from '#shared/limits.ts'
import type { LogPort } from '#shared/ports.ts'
import { withTimeout } from '#shared/registry/timeout.ts'
import type { PolicyEvent } from '#shared/report/event.ts'
import { DeliveryError, type Sink } from './delivery.ts'

/** What a queue runs with. */
export interface QueueOptions {
  /** Epoch milliseconds. */
  now: () => number
  log: LogPort
  /** One delivery without an answer, milliseconds. */
  timeoutMs?: number
}

interface Waiting {
  event: PolicyEvent
  tries: number
}

/**
 * The events that wait for one sink. One delivery is under way at a time and takes what has gathered meanwhile; what failed is tried
 * once more, later; then, or when too much waits, it is dropped, counted and logged.
 */
export class SinkQueue {
  readonly #sink: Sink
  readonly #options: QueueOptions
  #waiting: Waiting[] = []
  #dropped = 0
  #pausedUntil = 0
  /** Until when the delivery under way keeps others from starting: a platform may end it without a word. */
  #busyUntil = 0

  constructor(sink: Sink, options: QueueOptions) {
    this.#sink = sink
    this.#options = options
  }

  add(events: readonly PolicyEvent[]): void {
    this.#waiting.push(...events.map((event) => ({ event, tries: 0 })))
    this.#drop(this.#waiting.length - MAX_QUEUED_EVENTS)
  }

  /** Sends what waits, unless that is being done or the sink is left alone for a while. Never rejects. */
  async flush(): Promise<void> {
    const { now } = this.#options
    if (now() < this.#busyUntil) return
    while (this.#waiting.length > 0 && now() >= this.#pausedUntil) {
      this.#busyUntil = now() + this.#timeoutMs + 1000
      if (!(await this.#sendNext())) break
    }
    this.#busyUntil = 0
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? SINK_TIMEOUT_MS
  }

  async #sendNext(): Promise<boolean> {
    const batch = this.#waiting.splice(0, this.#sink.maxEvents)
    const events = batch.map(({ event }) => event)
    try {
      const signal = new AbortController().signal
      await withTimeout(signal, this.#timeoutMs, this.#sink.name, (own) =>
        this.#sink.send(events, own),
      )
      if (this.#dropped > 0) this.#report('recovered')
      return true
    } catch (thrown) {
      this.#failed(batch, thrown)
      return false
    }
  }

  #failed(batch: readonly Waiting[], thrown: unknown): void {
    const { reason, isPassing, refused } = describe(thrown)
    const again = batch.filter(({ event, tries }) => {
      return isPassing && tries + 1 < MAX_TRIES && (refused?.includes(event) ?? true)
    })
    this.#dropped += (refused ?? batch).length - again.length
    this.#waiting.unshift(...again.map(({ event, tries }) => ({ event, tries: tries + 1 })))
    this.#drop(this.#waiting.length - MAX_QUEUED_EVENTS)
    this.#pausedUntil = this.#options.now() + SINK_PAUSE_MS
    this.#report(reason)
  }

  /** The oldest go first: what happens now is what somebody looks for. */
  #drop(count: number): void {
    if (count <= 0) return
    this.#waiting.splice(0, count)
    this.#dropped += count
  }

  #report(reason: string): void {
    const { name } = this.#sink
    const dropped = this.#dropped
    this.#dropped = 0
    const waiting = this.#waiting.length
    this.#options.log({ level: 'warn', event: 'sink', sink: name, reason, waiting, dropped })
  }
}

/** What went wrong in words of ours: what the platform throws may quote a header. */
function describe(thrown: unknown): {
  reason: string
  isPassing: boolean
  refused?: readonly PolicyEvent[] | undefined
} {
  if (thrown instanceof DeliveryError) {
    return { reason: thrown.message, isPassing: thrown.isPassing, refused: thrown.refused }
  }
  if (!(thrown instanceof AdmissionError)) return { reason: 'no answer', isPassing: true }
  const { code, message } = toAdmissionError(thrown, '')
  return { reason: message, isPassing: code !== 'CONFIG_INVALID' }
}
