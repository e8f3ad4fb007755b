import picocolors from 'picocolors'
import { run } from '#functions/cli/index.ts'
import type { Io } from '#functions/cli/io.ts'

/** What a command line did. */
export interface Ran {
  code: number
  out: string
  err: string
}

/** Runs one command line in this process, without colours and in an 100-column terminal. */
export async function countersign(args: readonly string[], io: Partial<Io> = {}): Promise<Ran> {
  const ran = { out: '', err: '' }
  const code = await run(args, {
    out: (text) => {
      ran.out += text
    },
    err: (text) => {
      ran.err += text
    },
    env: {},
    colors: picocolors.createColors(false),
    columns: 100,
    signal: new AbortController().signal,
    ...io,
  })
  return { code, ...ran }
}
