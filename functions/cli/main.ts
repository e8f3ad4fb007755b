import { once } from 'node:events'
import picocolors from 'picocolors'
import { run } from './index.ts'
import { forTerminal } from './terminal.ts'

/** The entry of the `countersign` executable: the only file of the command line that touches the process. */
const stop = new AbortController()
// The AWS SDK would warn about Node 20 on every run; which Node this program needs, its package says.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())

// Whoever reads may stop early, as `| head` does; that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

/** Standard input, opened when it is first asked for. It ends when the process is told to stop. */
async function* standardInput(): AsyncGenerator<Uint8Array> {
  const { stdin } = process
  stop.signal.addEventListener('abort', () => stdin.destroy())
  try {
    yield* stdin
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown
  }
}

/** Prints on a stream; a terminal is shown what it would otherwise act on. */
function printOn(stream: NodeJS.WriteStream): (text: string) => void {
  return (text) => void stream.write(stream.isTTY ? forTerminal(text) : text)
}

async function drained(): Promise<void> {
  if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain')
}

process.exitCode = await run(process.argv.slice(2), {
  out: printOn(process.stdout),
  err: printOn(process.stderr),
  input: standardInput(),
  drained,
  env: process.env,
  colors: picocolors.createColors(picocolors.isColorSupported),
  columns: process.stdout.columns ?? 100,
  signal: stop.signal,
})
