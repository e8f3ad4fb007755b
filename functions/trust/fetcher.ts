import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { UpdaterOptions } from 'tuf-js'
import { concat } from '#shared/bytes.ts'
import { MAX_TRUSTED_ROOT_BYTES, TUF_DOWNLOAD_MS } from '#shared/limits.ts'

/** How files of a mirror are fetched, and why that ended: the TUF client hides it in errors of its own. */
export type MirrorFetcher = NonNullable<UpdaterOptions['fetcher']> & {
  /** Set once a file could not be fetched for a reason that says nothing about the repository. */
  unreachable?: string
}

/** What a fetcher needs from outside. */
export interface FetcherOptions {
  /** Folder for files on their way. */
  folder: string
  signal: AbortSignal
  /** The error that tells the TUF client of an answer without a file; it looks for 403 and 404 behind the newest root. */
  httpError: new (
    message: string,
    statusCode: number,
  ) => Error
}

/**
 * A fetcher that stops reading at the length the client allows, however long the answer goes on, and after `TUF_DOWNLOAD_MS`. What the
 * metadata says a target is long counts up to the bound of a trusted root.
 */
export function createFetcher({ folder, signal, httpError }: FetcherOptions): MirrorFetcher {
  const fetcher: MirrorFetcher = {
    downloadBytes: async (url, maxLength) => Buffer.from(await download(url, maxLength)),
    async downloadFile(url, maxLength, handler) {
      const file = path.join(folder, randomUUID())
      await writeFile(file, await download(url, Math.min(maxLength, MAX_TRUSTED_ROOT_BYTES)))
      return handler(file)
    },
  }
  const download = async (address: string, maxLength: number): Promise<Uint8Array> => {
    const name = new URL(address).pathname
    const response = await attempt(name, () => get(address))
    if (!response.ok) throw refused(name, response.status)
    return attempt(name, () => readUpTo(response, maxLength, name))
  }
  const get = (address: string) =>
    fetch(address, { signal: AbortSignal.any([signal, AbortSignal.timeout(TUF_DOWNLOAD_MS)]) })
  const attempt = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (thrown) {
      if (!(thrown instanceof LengthError)) fetcher.unreachable = `${name}: ${reasonOf(thrown)}`
      throw thrown
    }
  }
  const refused = (name: string, status: number) => {
    // Whether a missing file matters is the client's to say; an overloaded mirror says nothing about the repository.
    if (status === 429 || status >= 500) fetcher.unreachable = `${name}: HTTP ${status}`
    return new httpError(`${name}: HTTP ${status}`, status)
  }
  return fetcher
}

/** More bytes than the metadata, or the protocol, allows. */
class LengthError extends Error {}

async function readUpTo(response: Response, maxLength: number, name: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > maxLength) {
      throw new LengthError(`${name} is longer than the ${maxLength} bytes it may have`)
    }
    chunks.push(chunk)
  }
  return concat(...chunks)
}

function reasonOf(thrown: unknown): string {
  const { name, cause } = thrown as { name?: string; cause?: { code?: string } }
  if (name === 'TimeoutError') return `no answer in ${TUF_DOWNLOAD_MS} ms`
  return cause?.code ?? name ?? 'failed'
}
