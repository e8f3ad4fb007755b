import { type Bytes, concat, fromUtf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'

/** A request body: its text, or why there is none, with its beginning where that is known. */
export type Body =
  | { status: 'text'; text: string }
  | { status: 'refused'; error: AdmissionError; head: string }

/** Past the limit, this many times the limit is still read and thrown away, so that the caller gets to read the answer. */
const DRAIN_FACTOR = 4
/** Enough to find the uid in, bytes. */
const HEAD_BYTES = 1024

/** The text of a body given as text or bytes, at most `maxBytes` long. */
export function checkBody(body: string | Bytes, maxBytes: number): Body {
  if (typeof body !== 'string') {
    return body.length > maxBytes ? tooLarge(body, maxBytes) : decode(body)
  }
  // A UTF-16 unit takes one to three bytes, so most texts need not be measured.
  const fits = body.length * 3 <= maxBytes || new TextEncoder().encode(body).length <= maxBytes
  return fits ? { status: 'text', text: body } : tooLarge(body.slice(0, HEAD_BYTES), maxBytes)
}

/** The text of a request's body, read in bounded memory. Ends with `DEADLINE_EXCEEDED` when the signal fires first. */
export async function readBody(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Body> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = stream?.getReader()
  // Cancelling makes the pending read come back as the end of the stream.
  const stop = () => void reader?.cancel().catch(() => undefined)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
      if (length < maxBytes) chunks.push(part.value.subarray(0, maxBytes - length))
      length += part.value.length
      if (length > maxBytes * DRAIN_FACTOR) break
    }
  } catch (cause) {
    const error = new AdmissionError('REVIEW_INVALID', 'the body ended before it was complete', {
      cause,
    })
    return { status: 'refused', error, head: headOf(concat(...chunks)) }
  } finally {
    signal.removeEventListener('abort', stop)
    if (length > maxBytes) stop()
  }
  const bytes = concat(...chunks)
  if (length > maxBytes) return tooLarge(bytes, maxBytes)
  if (!signal.aborted) return decode(bytes)
  const error = new AdmissionError('DEADLINE_EXCEEDED', 'the body did not arrive in time')
  return { status: 'refused', error, head: headOf(bytes) }
}

function decode(bytes: Bytes): Body {
  try {
    return { status: 'text', text: fromUtf8(bytes) }
  } catch (cause) {
    const error = new AdmissionError('JSON_INVALID', 'the body is not UTF-8', { cause })
    return { status: 'refused', error, head: headOf(bytes) }
  }
}

function tooLarge(head: string | Bytes, maxBytes: number): Body {
  const error = new AdmissionError(
    'REQUEST_TOO_LARGE',
    `the AdmissionReview is larger than ${maxBytes} bytes; exclude such objects with a matchCondition`,
  )
  return { status: 'refused', error, head: typeof head === 'string' ? head : headOf(head) }
}

/** The beginning as text, whatever its bytes are. */
function headOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.subarray(0, HEAD_BYTES))
}
