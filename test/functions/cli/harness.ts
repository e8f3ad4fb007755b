import picocolors from 'picocolors'
import { run } from '#functions/cli/index.ts'
import type { ExitCode, Io } from '#functions/cli/io.ts'

/** What a command line did. */
export interface Ran {
  code: ExitCode
  out: string
  err: string
}

/** An Io without colours in an 100-column terminal, and what is printed on it. */
export function recorder(changes: Partial<Io> = {}): { io: Io; ran: Omit<Ran, 'code'> } {
  const ran = { out: '', err: '' }
  const io: Io = {
    out: (text) => {
      ran.out += text
    },
    err: (text) => {
      ran.err += text
    },
    input: (async function* () {})(),
    drained: async () => undefined,
    env: {},
    colors: picocolors.createColors(false),
    columns: 100,
    signal: new AbortController().signal,
    ...changes,
  }
  return { io, ran }
}

/** Runs one command line in this process. */
export async function countersign(
  args: readonly string[],
  changes: Partial<Io> = {},
): Promise<Ran> {
  const { io, ran } = recorder(changes)
  const code = await run(args, io)
  return { code, ...ran }
}
