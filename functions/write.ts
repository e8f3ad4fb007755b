import { randomUUID } from 'node:crypto'
import { lstat, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { AdmissionError } from '#shared/errors.ts'
import { fileReason } from './file-reason.ts'

/** A file to write. */
export interface NewContent {
  file: string
  content: string | Uint8Array
  /** That of the file that is there when absent. */
  mode?: number
}

/** A file as it will be, written down beside its place. */
interface Scratch {
  from: string
  to: string
}

const FILE_MODE = 0o644

/**
 * Writes files with their folders, each in one step: whoever reads one meanwhile sees the old one or the new one. None takes its place
 * before all could be written down beside theirs. Links stay links. `folderMode` is that of folders that have to be made. Throws `CONFIG_INVALID` with the file that cannot be written.
 */
export async function writeWhole(
  files: readonly NewContent[],
  { folderMode }: { folderMode?: number } = {},
): Promise<void> {
  const scratch: Scratch[] = []
  const made: string[] = []
  let at = ''
  try {
    for (const { file, content, mode } of files) {
      at = file
      const folder = path.dirname(file)
      made.push(...(await missingFolders(folder)))
      await makeFolder(folder, folderMode)
      const to = await realpath(file).catch(() => file)
      const there = await stat(to).catch(() => undefined)
      if (there?.isDirectory()) throw Object.assign(new Error(to), { code: 'EISDIR' })
      const from = `${to}.${randomUUID()}.tmp`
      scratch.push({ from, to })
      await writeFile(from, content, { mode: mode ?? there?.mode ?? FILE_MODE, flag: 'wx' })
    }
    for (const { from, to } of scratch) {
      at = to
      await rename(from, to)
    }
  } catch (thrown) {
    await removeAll([...scratch.map(({ from }) => from), ...made])
    throw new AdmissionError('CONFIG_INVALID', `cannot write ${at}: ${fileReason(thrown)}`, {
      cause: thrown,
    })
  }
}

/** The uppermost folder that has to be made for this one to be there, in a list; an empty one when it is. */
export async function missingFolders(folder: string): Promise<string[]> {
  let missing: string[] = []
  for (let at = path.resolve(folder); !(await isThere(at)); at = path.dirname(at)) missing = [at]
  return missing
}

/** Makes a folder with those it is in, unless it is there. */
export async function makeFolder(folder: string, mode?: number): Promise<void> {
  // Node tries for ever where a folder that is there takes no other, as that of processes.
  for (const first of await missingFolders(folder)) await mkdir(first, { mode })
  await mkdir(folder, { recursive: true, mode })
}

/** Removes files, and folders with all in them, as far as that goes: it is for what a failed command has begun. */
export async function removeAll(paths: readonly string[]): Promise<void> {
  await Promise.all(
    // What failed is told already.
    paths.map((each) => rm(each, { recursive: true, force: true }).catch(() => undefined)),
  )
}

/** True for whatever has this name, a link that leads nowhere included. */
export async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file)
    return true
  } catch {
    // Whatever else is wrong with it, writing says so.
    return false
  }
}

const BYTE_ORDER_MARK = '\uFEFF'

/** Replaces the text of a file in one step; a byte order mark stays, which whoever read the text never saw. */
export async function replaceText(file: string, text: string): Promise<void> {
  const old = await readFile(file, 'utf8')
  const mark = old.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : ''
  await writeWhole([{ file, content: mark + text }])
}
