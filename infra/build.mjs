// Bundles the TypeScript sources, since nothing here runs them as they are: the command line into dist/cli, bench, conformance and generator,
// and then, through the command line, the functions with the example config. `--budgets` is handed on to `countersign build`.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const dist = path.join(root, 'dist')

/** Programs by their output. Packages stay outside: they are installed beside dist in a checkout and in an installed package. */
const programs = [
  { source: 'functions/cli/main.ts', out: 'cli/countersign' },
  { source: 'test/bench/bench.ts', out: 'bench/bench' },
  { source: 'test/conformance/run.ts', out: 'conformance/run' },
  { source: 'test/generator/main.ts', out: 'generator/generate' },
]

for (const { source, out } of programs) {
  const folder = path.join(dist, path.dirname(out))
  await rm(folder, { recursive: true, force: true })
  if (!existsSync(path.join(root, source))) continue
  await build({
    absWorkingDir: root,
    entryPoints: [{ in: source, out: path.basename(out) }],
    outdir: folder,
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    chunkNames: '[name]-[hash]',
    banner: out.startsWith('cli/') ? { js: '#!/usr/bin/env node' } : {},
    logLevel: 'warning',
  })
}

const args = [
  'build',
  '--config',
  'infra/countersign.yaml',
  '--out',
  'dist',
  ...process.argv.slice(2),
]
const { status } = spawnSync(process.execPath, [path.join(dist, 'cli/countersign.mjs'), ...args], {
  cwd: root,
  stdio: 'inherit',
})
process.exitCode = status ?? 1
