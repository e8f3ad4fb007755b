import { AdmissionError } from '../errors.ts'

/**
 * What `run` gives, unless the request ends or the time of the call is over first. Does not rely on the platform to honour
 * the signal it is handed.
 */
export async function withTimeout<T>(
  outer: AbortSignal,
  timeoutMs: number,
  what: string,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (outer.aborted) throw deadlineExceeded(what)
  const controller = new AbortController()
  const end = (): void => controller.abort(deadlineExceeded(what))
  const timer = setTimeout(() => controller.abort(noAnswer(what, timeoutMs)), timeoutMs)
  outer.addEventListener('abort', end, { once: true })
  try {
    return await Promise.race([run(controller.signal), aborted(controller.signal)])
  } catch (thrown) {
    throw controller.signal.aborted ? controller.signal.reason : thrown
  } finally {
    clearTimeout(timer)
    outer.removeEventListener('abort', end)
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** Ends after `ms`, or throws the signal's reason when that is aborted first. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await Promise.race([over, aborted(signal)])
  } finally {
    clearTimeout(timer)
  }
}

function deadlineExceeded(what: string): AdmissionError {
  return new AdmissionError('DEADLINE_EXCEEDED', `${what}: not answered before the deadline`)
}

function noAnswer(what: string, timeoutMs: number): AdmissionError {
  return new AdmissionError('REGISTRY_UNREACHABLE', `${what}: no answer in ${timeoutMs} ms`)
}
