// Writes the CloudFormation template of the stack: what `cdk` runs (infra/cdk.json), and `node infra/stack/synth.mjs` by itself, which needs neither
// account nor network. `CDK_OUTDIR` says where to, and `CDK_CONTEXT_JSON` holds the settings.
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const here = path.dirname(fileURLToPath(import.meta.url))
// Beside node_modules, where the packages of the program are found from.
const outfile = path.join(here, '../node_modules/.countersign/stack.mjs')
await mkdir(path.dirname(outfile), { recursive: true })
await build({
  absWorkingDir: here,
  entryPoints: ['app.ts'],
  outfile,
  bundle: true,
  packages: 'external',
  platform: 'node',
  target: 'node20',
  format: 'esm',
  logLevel: 'warning',
})
await import(pathToFileURL(outfile).href)
