import type { createColors } from 'picocolors'

/** Where a command reads from and writes to. Only `main.ts` fills it from the process. */
export interface Io {
  out: (text: string) => void
  err: (text: string) => void
  /** Standard input; nothing is read before somebody asks. */
  input: AsyncIterable<Uint8Array>
  /** Settles once so much of what was printed on `out` has been taken that more may be. */
  drained: () => Promise<void>
  env: Readonly<Record<string, string | undefined>>
  /** Colours for text on `out`; all of them the identity under NO_COLOR or when `out` is no terminal. */
  colors: ReturnType<typeof createColors>
  /** Columns of the terminal. */
  columns: number
  /** Ends commands that run until they are stopped. */
  signal: AbortSignal
}

/** 0: fine. 1: the verdict says no. 2: bad input or usage. */
export type ExitCode = 0 | 1 | 2

/** Formats of `--output`. */
export type Format = 'text' | 'json' | 'yaml'
export const FORMATS: readonly Format[] = ['text', 'json', 'yaml']

/** What every command is made with. */
export interface Cli {
  io: Io
  /** A commander action around `work`: keeps its exit code, and prints what it throws as one line with its faults. */
  action: <A extends unknown[]>(
    name: string,
    work: (...args: A) => Promise<ExitCode>,
  ) => (...args: A) => Promise<void>
}
