import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of this package, which is a different number of levels up from the sources and from the built executable. */
export function packageRoot(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url))
  while (!existsSync(path.join(folder, 'package.json'))) {
    const parent = path.dirname(folder)
    if (parent === folder) throw new TypeError('not inside the countersign package')
    folder = parent
  }
  return folder
}

/** The version of this package. */
export function packageVersion(): string {
  const text = readFileSync(path.join(packageRoot(), 'package.json'), 'utf8')
  // It is our own manifest, and npm does not pack one without a version.
  return (JSON.parse(text) as { version: string }).version
}
