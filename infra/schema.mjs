// Writes infra/countersign.schema.json from the schema the code checks with. A test fails while the two differ.
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: ['functions/config-schema.ts'],
  bundle: true,
  format: 'esm',
  write: false,
})
const module = `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`
const { CONFIG_SCHEMA } = await import(module)
const $schema = 'https://json-schema.org/draft/2020-12/schema'
const text = JSON.stringify({ $schema, title: 'countersign.yaml', ...CONFIG_SCHEMA }, null, 2)
await writeFile(path.join(root, 'infra/countersign.schema.json'), `${text}\n`)
