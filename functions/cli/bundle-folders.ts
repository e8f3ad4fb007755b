import { randomUUID } from 'node:crypto'
import { mkdir, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { missingFolders, removeAll } from '#functions/write.ts'
import { AdmissionError } from '#shared/errors.ts'

/** A bundle that is to be written: its folder, and what is in it by name. */
export interface NewBundle {
  folder: string
  files: readonly { name: string; contents: Uint8Array | string }[]
}

/** What bundles consist of; in a folder with anything else there is somebody's work. */
const OF_A_BUNDLE = /\.(mjs|mjs\.LEGAL\.txt)$/

/** Throws `CONFIG_INVALID` when something other than a bundle is in the place of this one: a build replaces nothing else. */
export async function demandOurs(folder: string): Promise<void> {
  const other = await foreignIn(folder)
  if (other === undefined) return
  const message = `${folder} ${other}: name another folder with --out, or remove it`
  throw new AdmissionError('CONFIG_INVALID', message)
}

/** Removes a bundle of an earlier build; what is none stays. */
export async function removeBundle(folder: string): Promise<void> {
  if ((await foreignIn(folder)) === undefined) await rm(folder, { recursive: true, force: true })
}

/** What makes this no bundle, or undefined for a bundle and for nothing at all. */
async function foreignIn(folder: string): Promise<string | undefined> {
  const there = await stat(folder).catch(() => undefined)
  if (there === undefined) return undefined
  if (!there.isDirectory()) return 'is a file'
  const entries = await readdir(folder, { withFileTypes: true })
  const other = entries.find((entry) => !entry.isFile() || !OF_A_BUNDLE.test(entry.name))
  return other && `holds ${other.name}, which no bundle has`
}

/** Writes bundles in the places of older ones: all of them, or, when one cannot be written, none. */
export async function replaceBundles(bundles: readonly NewBundle[]): Promise<void> {
  const begun: string[] = []
  const done: (() => Promise<void>)[] = []
  const replaced: string[] = []
  try {
    const places: { from: string; to: string }[] = []
    for (const { folder, files } of bundles) {
      begun.push(...(await missingFolders(path.dirname(folder))))
      // A link to a folder stays one.
      const to = await realpath(folder).catch(() => folder)
      const from = `${to}.${randomUUID()}.tmp`
      begun.push(from)
      await mkdir(from, { recursive: true })
      for (const { name, contents } of files) await writeFile(path.join(from, name), contents)
      places.push({ from, to })
    }
    for (const { from, to } of places) {
      const old = `${from}.old`
      if (await moved(to, old)) {
        done.push(() => rename(old, to))
        replaced.push(old)
      }
      await rename(from, to)
      done.push(() => rename(to, from))
    }
  } catch (thrown) {
    for (const undo of done.reverse()) await undo()
    await removeAll(begun)
    throw thrown
  }
  await removeAll(replaced)
}

/** Moves a folder, if there is one. */
async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (thrown) {
    if ((thrown as { code?: string }).code === 'ENOENT') return false
    throw thrown
  }
}
