import type { PolicyEvent } from '#shared/report/event.ts'

/** Why a delivery did not succeed. The text is ours: what a sink or the platform says could quote a header. */
export class DeliveryError extends Error {
  /** True when the same delivery may succeed later. */
  readonly isPassing: boolean
  /** Events of the delivery that were not taken, when some were. */
  readonly refused: readonly PolicyEvent[] | undefined

  constructor(message: string, isPassing: boolean, refused?: readonly PolicyEvent[]) {
    super(message)
    this.isPassing = isPassing
    this.refused = refused
  }
}

/** Where events go: one delivery of a few of them. Throws DeliveryError, or an AdmissionError where the config cannot be followed. */
export interface Sink {
  /** For the log: no path and no query. */
  name: string
  /** Most events of one delivery. */
  maxEvents: number
  send(events: readonly PolicyEvent[], signal: AbortSignal): Promise<void>
}

/** Throws what a status other than 2xx means. A redirect is no success: nothing says that its target is the operator's. */
export function demandSuccess(status: number): void {
  if (status >= 200 && status < 300) return
  throw new DeliveryError(`answered ${status}`, status === 408 || status === 429 || status >= 500)
}
