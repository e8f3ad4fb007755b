import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Updater } from 'tuf-js'
import { AdmissionError } from '#shared/errors.ts'
import { writeWhole } from '../write.ts'
import { createFetcher, type MirrorFetcher } from './fetcher.ts'
import { metadataFolder, type RepositoryState, ROLES, readIfThere, readState } from './metadata.ts'
import { TRUSTED_ROOT } from './seed.ts'

/** What to refresh, and from where. */
export interface RefreshRequest {
  mirror: string
  /** The TUF root that is trusted to begin with. */
  root: Uint8Array
  /** The trusted root on disk; metadata of earlier refreshes is beside it. */
  file: string
  signal: AbortSignal
}

/** What the repository has now. Nothing of it is on disk until it is kept. */
export type Refreshed =
  | {
      status: 'verified'
      trustedRoot: Uint8Array
      state: RepositoryState
      /** Writes the trusted root and the metadata, each file in one step. */
      keep: () => Promise<void>
    }
  | { status: 'refused'; reason: string }
  | { status: 'unreachable'; reason: string }

/**
 * The trusted root of a mirror, verified through TUF from the root that is given: signatures and thresholds, ends, versions against those
 * of the last refresh, hashes and lengths. `refused`: the repository is not what it has to be. `unreachable`: nobody could tell.
 */
export async function refresh(request: RefreshRequest): Promise<Refreshed> {
  const scratch = await mkdtemp(path.join(tmpdir(), 'countersign-trust-'))
  try {
    return await refreshIn(scratch, request)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function refreshIn(scratch: string, request: RefreshRequest): Promise<Refreshed> {
  const { mirror, root, file, signal } = request
  const kept = metadataFolder(file)
  await mkdir(path.join(scratch, 'targets'))
  // Trust begins with the root that was given; what earlier refreshes left only says how old the repository may not be.
  await writeFile(path.join(scratch, 'root.json'), root)
  for (const role of ROLES.slice(1)) {
    const bytes = await readIfThere(path.join(kept, `${role}.json`))
    if (bytes !== undefined) await writeFile(path.join(scratch, `${role}.json`), bytes)
  }
  // Both are large, and only this command needs them.
  const { Updater } = await import('tuf-js')
  const { DownloadHTTPError } = await import('tuf-js/dist/error.js')
  const fetcher = createFetcher({ folder: scratch, signal, httpError: DownloadHTTPError })
  const updater = createUpdater(Updater, { scratch, mirror, fetcher })
  let trustedRoot: Uint8Array
  try {
    trustedRoot = await targetOf(updater)
  } catch (thrown) {
    return failure(thrown, fetcher)
  }
  const state = await readState(scratch)
  const before = (await readState(kept)).root?.version ?? 0
  if ((state.root?.version ?? 0) < before) {
    const reason = `the newest root.json has version ${state.root?.version}, the last refresh saw ${before}`
    return { status: 'refused', reason }
  }
  const metadata = await Promise.all(
    ROLES.map((role) => readFile(path.join(scratch, `${role}.json`))),
  )
  return {
    status: 'verified',
    trustedRoot,
    state,
    async keep() {
      await writeWhole([
        { file, content: trustedRoot },
        ...metadata.map((content, index) => ({
          file: path.join(kept, `${ROLES[index]}.json`),
          content,
        })),
      ])
    },
  }
}

/** Throws `CONFIG_INVALID` when what was given to begin with is no root that has signed itself. */
function createUpdater(
  Client: typeof Updater,
  { scratch, mirror, fetcher }: { scratch: string; mirror: string; fetcher: MirrorFetcher },
): Updater {
  try {
    return new Client({
      metadataDir: scratch,
      metadataBaseUrl: mirror,
      // Away from the metadata, whose files are named by roles.
      targetDir: path.join(scratch, 'targets'),
      targetBaseUrl: `${mirror}/targets`,
      fetcher,
    })
  } catch (cause) {
    const message = `the TUF root to begin with is none: ${textOf(cause)}`
    throw new AdmissionError('CONFIG_INVALID', message, { cause })
  }
}

async function targetOf(updater: Updater): Promise<Uint8Array> {
  await updater.refresh()
  const target = await updater.getTargetInfo(TRUSTED_ROOT)
  if (target === undefined) throw new Error(`the repository has no target ${TRUSTED_ROOT}`)
  return readFile(await updater.downloadTarget(target))
}

function failure(thrown: unknown, { unreachable }: MirrorFetcher): Refreshed {
  if (unreachable !== undefined) return { status: 'unreachable', reason: unreachable }
  // The client puts one error's text into another's.
  const reason = textOf(thrown).replace(/^Unable to load .*? error \w*Error: /, '')
  return { status: 'refused', reason }
}

const textOf = (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown))
