import picocolors from 'picocolors'
import type { App } from '#functions/app.ts'
import { readDeployment } from '#functions/cli/deployment.ts'
import { run } from '#functions/cli/index.ts'
import type { ExitCode, Io } from '#functions/cli/io.ts'
import { compose } from '#functions/compose.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'

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

/** The functions of a config and its policies as they are on disk now, which seal with the variable `SEAL`. */
export async function appOf(config: string, maxBodyBytes: number): Promise<App> {
  const { deployment } = await readDeployment(config)
  const env = { SEAL: Buffer.alloc(32, 7).toString('base64') }
  const log = () => undefined
  return compose(deployment, { env, log, hash: nodeHash, maxBodyBytes }, ALL_FLOWS)
}
