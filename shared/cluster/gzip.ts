import { type Bytes, concat, fromBase64, fromUtf8, toBase64, utf8 } from '../bytes.ts'
import { MAX_UNPACKED_BYTES } from '../limits.ts'

/** The base64 of a text in gzip's format. */
export async function compress(text: string): Promise<string> {
  return toBase64(
    await through(new CompressionStream('gzip'), utf8(text), Number.POSITIVE_INFINITY),
  )
}

/** The text in the base64 of gzip's format. Throws for what is none, and for more than `MAX_UNPACKED_BYTES`. */
export async function decompress(base64: string): Promise<string> {
  const bytes = fromBase64(base64)
  if (bytes === undefined) throw new TypeError('not base64')
  return fromUtf8(await through(new DecompressionStream('gzip'), bytes, MAX_UNPACKED_BYTES))
}

async function through(
  stream: CompressionStream | DecompressionStream,
  bytes: Bytes,
  maxBytes: number,
): Promise<Bytes> {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader()
  const chunks: Uint8Array[] = []
  for (let length = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) return concat(...chunks)
    length += value.length
    if (length > maxBytes) {
      reader.cancel().catch(() => undefined)
      throw new RangeError(`unpacks to more than ${maxBytes} bytes`)
    }
    chunks.push(value)
  }
}
