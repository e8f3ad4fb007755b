import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { Log, LogLevel, Miniflare } from 'miniflare'

/** A Worker in workerd behind a real socket. */
export interface LocalWorker {
  url: string
  close(): Promise<void>
}

/** Runs a built Worker, every module of its folder, with these bindings. */
export async function startWorker(
  entry: string,
  bindings: Record<string, string> = {},
  /** What Cloudflare says of every connection. */
  cf: Record<string, unknown> | false = false,
): Promise<LocalWorker> {
  const folder = path.dirname(entry)
  const names = (await readdir(folder)).filter((name) => name.endsWith('.mjs'))
  // The first module is the one that is started.
  names.sort((a, b) => Number(b === path.basename(entry)) - Number(a === path.basename(entry)))
  const modules = await Promise.all(
    names.map(async (name) => ({
      type: 'ESModule' as const,
      path: path.join(folder, name),
      contents: await readFile(path.join(folder, name), 'utf8'),
    })),
  )
  const miniflare = new Miniflare({
    modulesRoot: folder,
    modules,
    bindings,
    compatibilityDate: '2026-01-01',
    host: '127.0.0.1',
    port: 0,
    cf,
    log: new Log(LogLevel.NONE),
    handleRuntimeStdio: () => undefined,
  })
  const url = await miniflare.ready
  return { url: url.origin, close: () => miniflare.dispose() }
}
