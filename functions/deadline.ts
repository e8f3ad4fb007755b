import {
  DEADLINE_GRACE_MS,
  DEADLINE_RESERVE_MS,
  DEFAULT_TIMEOUT_SECONDS,
  MAX_TIMEOUT_SECONDS,
  MIN_DEADLINE_MS,
  TIMEOUT_ROUNDING_MS,
} from '#shared/limits.ts'

/** Runs work after so many milliseconds; gives back what cancels it. The platform's timer, or a test's. */
export type Schedule = (work: () => void, ms: number) => () => void

/** The platform's timer as a Schedule. */
export const schedule: Schedule = (work, ms) => {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
const DURATION = /^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/
const PART = /([\d.]+)([a-zµμ]+)/g

/** Milliseconds of a positive Go duration such as `10s`, `1m0s` or `500ms`, or undefined. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 40 || !DURATION.test(text)) return undefined
  let ms = 0
  for (const [, number, unit = ''] of text.matchAll(PART))
    ms += Number(number) * (UNIT_MS[unit] ?? 0)
  return ms > 0 && Number.isFinite(ms) ? ms : undefined
}

/**
 * Milliseconds from now until the answer must be under way (`specs/serverless.md` 1). The API server rounds what is left
 * of its own timeout up to whole seconds, so unless `timeout` is exactly what the webhook is configured with, up to a
 * second of it may not exist. Without a usable `timeout` the configured one counts, or the API server's default.
 */
export function timeLeftMs(input: {
  /** `?timeout=` as it came. */
  timeout?: string | undefined
  /** `timeoutSeconds` of this webhook in this cluster, from the config. */
  configuredSeconds?: number | undefined
  /** What the platform still grants this invocation. */
  remainingMs?: number | undefined
  /** What of the time is gone already, milliseconds. */
  waitedMs?: number | undefined
}): number {
  const configuredMs = (input.configuredSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000
  const asked = input.timeout === undefined ? undefined : parseDuration(input.timeout)
  const isExact = asked === undefined || asked === (input.configuredSeconds ?? 0) * 1000
  const statedMs = Math.min(asked ?? configuredMs, MAX_TIMEOUT_SECONDS * 1000)
  const existingMs = (isExact ? statedMs : statedMs - TIMEOUT_ROUNDING_MS) - (input.waitedMs ?? 0)
  const ms = Math.min(existingMs, input.remainingMs ?? existingMs) - DEADLINE_RESERVE_MS
  return Math.max(Math.floor(ms), MIN_DEADLINE_MS)
}

/** One request's time. */
export interface Deadline {
  /** Aborted when the time is up: work under way should come to its answer. */
  signal: AbortSignal
  /** The work's result, or `late()` when it has none shortly after the signal. */
  race<T>(work: Promise<T>, late: () => T): Promise<T>
  /** Stops the clock. */
  stop(): void
}

/** A Deadline that ends in so many milliseconds. */
export function startDeadline(ms: number, timer: Schedule = schedule): Deadline {
  const controller = new AbortController()
  const cancels: (() => void)[] = []
  const late = new Promise<void>((resolve) => {
    cancels.push(timer(() => controller.abort(), ms))
    cancels.push(timer(resolve, ms + DEADLINE_GRACE_MS))
  })
  return {
    signal: controller.signal,
    race: (work, answer) => {
      // Work that loses may still fail later; nobody is left to hear it.
      work.catch(() => undefined)
      return Promise.race([work, late.then(answer)])
    },
    stop: () => {
      for (const cancel of cancels) cancel()
    },
  }
}
