import { type Bytes, concat } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'

/** Who waits for a body. */
export interface BodyReader {
  signal: AbortSignal
  /** Told of every chunk; what it throws ends the reading. */
  onBytes(count: number): void
}

/**
 * The whole body of a response. Throws `REGISTRY_TOO_LARGE` as soon as more than `maxBytes` are announced or have
 * arrived, and lets go of the connection: what was announced is never believed further than that.
 */
export async function readBody(
  response: Response,
  maxBytes: number,
  reader: BodyReader,
  what: string,
): Promise<Bytes> {
  const announced = Number(response.headers.get('content-length') ?? 0)
  const body = announced > maxBytes ? undefined : await readUpTo(response, maxBytes, reader)
  if (body === undefined || body.length > maxBytes) {
    discard(response)
    throw new AdmissionError('REGISTRY_TOO_LARGE', `${what}: more than ${maxBytes} bytes`)
  }
  return body
}

/** The first `maxBytes` of a body that is read for its message only. */
export async function readStart(
  response: Response,
  maxBytes: number,
  reader: BodyReader,
): Promise<Bytes> {
  return (await readUpTo(response, maxBytes, reader)).slice(0, maxBytes)
}

/** Ends a response nobody reads. How the transport takes that is of no interest: nothing more is wanted from it. */
export function discard(response: Response): void {
  if (response.body !== null && !response.body.locked) ignore(response.body.cancel())
}

/** All of the body, or what had arrived when it passed `maxBytes`. */
async function readUpTo(
  response: Response,
  maxBytes: number,
  { signal, onBytes }: BodyReader,
): Promise<Bytes> {
  if (response.body === null) return new Uint8Array(0)
  const reader = response.body.getReader()
  const giveUp = (): void => ignore(reader.cancel())
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    const chunks: Uint8Array[] = []
    let length = 0
    while (length <= maxBytes) {
      const { done, value } = await reader.read()
      // A reader given up ends like a body that is complete.
      signal.throwIfAborted()
      if (done) return concat(...chunks)
      chunks.push(value)
      length += value.length
      onBytes(value.length)
    }
    giveUp()
    return concat(...chunks)
  } catch (thrown) {
    giveUp()
    throw thrown
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

function ignore(ending: Promise<unknown>): void {
  ending.catch(() => undefined)
}
