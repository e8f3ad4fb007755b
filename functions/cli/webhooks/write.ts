import path from 'node:path'
import { readTextIfThere } from '#functions/files.ts'
import { writeWhole } from '#functions/write.ts'
import { FILE_NAMES, type OutputFile, yamlOf } from './files.ts'

/** Secrets are for their owner alone. */
const SECRET_MODE = 0o600
const FILE_MODE = 0o644

/** Writes every file below the folder, or none. Throws `CONFIG_INVALID` with the one that cannot be written. */
export async function writeFiles(folder: string, files: readonly OutputFile[]): Promise<void> {
  await writeWhole(
    files.map((file) => ({
      file: path.join(folder, file.name),
      content: yamlOf(file),
      mode: file.isSecret ? SECRET_MODE : FILE_MODE,
    })),
  )
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
