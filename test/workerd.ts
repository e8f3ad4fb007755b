import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { Log, LogLevel, Miniflare } from 'miniflare'

/** A Worker in workerd behind a real socket. */
export interface LocalWorker {
  url: string
  /** Stores an object in a bucket that is bound to it. */
  put(bucket: string, key: string, content: string): Promise<void>
  close(): Promise<void>
}

/** Runs a built Worker, every module of its folder, with these bindings. */
export async function startWorker(
  entry: string,
  bindings: Record<string, string> = {},
  /** What Cloudflare says of every connection. */
  cf: Record<string, unknown> | false = false,
  /** Buckets of R2, by the names of their bindings. */
  r2Buckets: string[] = [],
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
    r2Buckets,
    compatibilityDate: '2026-01-01',
    host: '127.0.0.1',
    port: 0,
    cf,
    log: new Log(LogLevel.NONE),
    handleRuntimeStdio: () => undefined,
  })
  const url = await miniflare.ready
  return {
    url: url.origin,
    put: async (bucket, key, content) => {
      // Miniflare's types of it need those of Cloudflare, which nothing else here does.
      const bound = (await miniflare.getR2Bucket(bucket)) as unknown as {
        put(key: string, content: string): Promise<unknown>
      }
      await bound.put(key, content)
    },
    close: () => miniflare.dispose(),
  }
}
