import { fromUtf8 } from '#shared/bytes.ts'

/** A line of a stream, without its end; or why it could not be read. */
export type Line = { text: string } | { fault: string }

const NEWLINE = 0x0a

/**
 * The lines of a stream of UTF-8, those of each chunk as soon as it is there; lines of nothing but white space are left out. Of a
 * line past `maxBytes` nothing is kept, so that a stream of any length needs bounded memory.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Line[]> {
  const open = new OpenLine(maxBytes)
  for await (const chunk of chunks) {
    const lines: Line[] = []
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      open.add(chunk.subarray(from, end))
      push(lines, open.close())
      from = end + 1
    }
    open.add(chunk.subarray(from))
    if (lines.length > 0) yield lines
  }
  const last: Line[] = []
  push(last, open.close())
  if (last.length > 0) yield last
}

function push(lines: Line[], line: Line): void {
  if ('fault' in line || line.text.trim() !== '') lines.push(line)
}

/** The line that has not ended yet. */
class OpenLine {
  readonly #maxBytes: number
  #bytes = new Uint8Array(1024)
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(part: Uint8Array): void {
    const start = this.#length
    this.#length += part.length
    if (this.#length > this.#maxBytes) return
    if (this.#length > this.#bytes.length) this.#grow()
    this.#bytes.set(part, start)
  }

  /** The line as it is now; the next one begins. */
  close(): Line {
    const length = this.#length
    this.#length = 0
    if (length > this.#maxBytes) {
      return { fault: `a line of ${length} bytes; at most ${this.#maxBytes} are read` }
    }
    try {
      return { text: fromUtf8(this.#bytes.subarray(0, length)) }
    } catch {
      // The decoder throws for nothing else.
      return { fault: 'a line is not UTF-8' }
    }
  }

  #grow(): void {
    const grown = new Uint8Array(Math.min(2 * this.#length, this.#maxBytes))
    grown.set(this.#bytes)
    this.#bytes = grown
  }
}
