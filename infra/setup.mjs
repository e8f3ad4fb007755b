// Makes a checkout ready to run: dependencies as the lock file says, and `dist` as the sources are. Quiet and quick when nothing has changed.
// `--no-build` stops after the dependencies.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const MIN_NODE = [20, 19]

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return
  console.error(`countersign needs Node ${MIN_NODE.join('.')} or newer; this is ${process.version}`)
  process.exit(2)
}

/** Runs a command that shows its output; ends this process with its code when it fails. */
function run(command, args) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    // Standard output belongs to whatever runs after this.
    stdio: ['ignore', 2, 2],
  })
  if (error) console.error(`cannot run ${command}: ${error.message}`)
  if (status !== 0) process.exit(status ?? 1)
}

function hashOf(...texts) {
  return createHash('sha256').update(texts.join('\n')).digest('hex')
}

function read(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

function install() {
  const stamp = path.join(root, 'node_modules/.countersign-lock')
  const lockFile = path.join(root, 'package-lock.json')
  const lock = hashOf(read(lockFile), process.versions.modules)
  if (read(stamp) === lock) return
  // Somebody may have run `npm ci` themselves: npm notes in this file what it installed.
  const installed = path.join(root, 'node_modules/.package-lock.json')
  if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(lockFile).mtimeMs) {
    console.error('Installing dependencies, once …')
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
    const npm = process.env.npm_execpath
    if (npm?.endsWith('.js')) run(process.execPath, [npm, ...args])
    else run('npm', args)
  }
  writeFileSync(stamp, lock)
}

/** Whatever the build reads. */
const SOURCES = [
  'functions',
  'shared',
  'infra',
  'test/bench',
  'test/conformance',
  'test/generator',
  'package.json',
]

function sourceFiles(where) {
  const full = path.join(root, where)
  if (!existsSync(full)) return []
  if (!statSync(full).isDirectory()) return [where]
  return readdirSync(full, { withFileTypes: true })
    .filter((entry) => entry.name !== 'node_modules')
    .flatMap((entry) => sourceFiles(path.join(where, entry.name)))
}

function buildIfNeeded() {
  const stamp = path.join(root, 'dist/.built')
  const state = SOURCES.flatMap(sourceFiles)
    .sort()
    .map((file) => `${file} ${statSync(path.join(root, file)).mtimeMs}`)
  const now = hashOf(...state, read(path.join(root, 'node_modules/.countersign-lock')))
  if (read(stamp) === now) return
  console.error('Building …')
  run(process.execPath, [path.join(root, 'infra/build.mjs')])
  writeFileSync(stamp, now)
}

checkNode()
install()
if (!process.argv.includes('--no-build')) buildIfNeeded()
