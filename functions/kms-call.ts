import { AdmissionError } from '#shared/errors.ts'
import { KMS_BACKOFF_MS, MAX_TRIES } from '#shared/limits.ts'
import type { KmsFault } from './kms-error.ts'

/** One operation of a key service: what it is, how it is sent, and what its errors mean. */
export interface KmsCall<T> {
  /** For messages: `KMS GetPublicKey of alias/release in eu-central-1`. */
  doing: string
  /** Of the request that wants the answer. */
  signal: AbortSignal
  /** One try without an answer, milliseconds. */
  timeoutMs: number
  send(signal: AbortSignal): Promise<T>
  describe(thrown: unknown): KmsFault
}

/**
 * The answer of a key service. A call that was throttled, failed or did not get through is tried once more after a short wait,
 * one that takes too long is not. Throws `KMS_REFUSED`, `KMS_UNAVAILABLE`, or `DEADLINE_EXCEEDED` when the request ended.
 */
export async function callKms<T>(call: KmsCall<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      call.signal.throwIfAborted()
      const either = AbortSignal.any([call.signal, AbortSignal.timeout(call.timeoutMs)])
      return await orAborted(call.send(either), either)
    } catch (thrown) {
      const { error, retry } = toFault(thrown, call)
      if (!retry || tries >= MAX_TRIES) throw error
      await pause(call.signal)
    }
  }
}

/** The promise, or a rejection as soon as the signal ends: credential providers know no signal. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function toFault(
  thrown: unknown,
  { doing, signal, describe }: KmsCall<unknown>,
): { error: AdmissionError; retry: boolean } {
  if (signal.aborted) {
    const error = new AdmissionError('DEADLINE_EXCEEDED', `${doing}: no time left`, {
      cause: thrown,
    })
    return { error, retry: false }
  }
  const { code, reason, retry } = describe(thrown)
  return { error: new AdmissionError(code, `${doing}: ${reason}`, { cause: thrown }), retry }
}

/** A short wait with jitter, over at once when the signal ends. */
function pause(signal: AbortSignal): Promise<void> {
  const ms = KMS_BACKOFF_MS * (1 + Math.random() / 2)
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}
