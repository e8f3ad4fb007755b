import { randomUUID } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { readTextIfThere } from '#functions/files.ts'
import { AdmissionError } from '#shared/errors.ts'
import { FILE_NAMES, type OutputFile, yamlOf } from './files.ts'

/** Secrets are for their owner alone. */
const SECRET_MODE = 0o600
const FILE_MODE = 0o644

/**
 * Writes every file below the folder, each in one step, and none before all of them could be written down beside their places. Throws
 * `CONFIG_INVALID` where the folder cannot be written.
 */
export async function writeFiles(folder: string, files: readonly OutputFile[]): Promise<void> {
  const scratch: { from: string; to: string }[] = []
  try {
    for (const file of files) {
      const to = path.join(folder, file.name)
      const from = `${to}.${randomUUID()}.tmp`
      await mkdir(path.dirname(to), { recursive: true })
      scratch.push({ from, to })
      await writeFile(from, yamlOf(file), {
        mode: file.isSecret ? SECRET_MODE : FILE_MODE,
        flag: 'wx',
      })
    }
    for (const { from, to } of scratch) await rename(from, to)
  } catch (thrown) {
    await Promise.all(scratch.map(({ from }) => rm(from, { force: true })))
    const { code = 'unknown' } = thrown as { code?: string }
    throw new AdmissionError('CONFIG_INVALID', `cannot write to ${folder}: ${code}`, {
      cause: thrown,
    })
  }
}

/** Names of the files that are missing below the folder or hold something else. */
export async function differingFiles(
  folder: string,
  files: readonly OutputFile[],
): Promise<string[]> {
  const differing = await Promise.all(
    files.map(async (file) => {
      const found = await readTextIfThere(path.join(folder, file.name))
      return found === yamlOf(file) ? [] : [file.name]
    }),
  )
  return differing.flat()
}

/** Files that this command writes for other options and that are still below the folder: whoever applies all of it applies them, too. */
export async function staleFiles(folder: string, files: readonly OutputFile[]): Promise<string[]> {
  const written = new Set(files.map(({ name }) => name))
  const others = FILE_NAMES.filter((name) => !written.has(name))
  const found = await Promise.all(
    others.map(async (name) =>
      (await readTextIfThere(path.join(folder, name))) === undefined ? [] : [name],
    ),
  )
  return found.flat()
}
