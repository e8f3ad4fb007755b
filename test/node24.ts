import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'

/**
 * A Node 24, Lambda's runtime, fetched by npx when this is another one and kept in npm's cache from then on. Rejects where it cannot be
 * fetched.
 */
export async function node24(): Promise<string> {
  if (process.versions.node.startsWith('24.')) return process.execPath
  // The package of the platform itself: `node` would fetch it in an install script.
  const name = `node-${process.platform.replace('win32', 'win')}-${process.arch}@24`
  const { stdout } = await promisify(execFile)(
    'npx',
    ['--yes', `--package=${name}`, '--', 'node', '-p', 'process.execPath'],
    // Away from this package, whose own bin would otherwise be looked at first.
    { cwd: tmpdir(), shell: process.platform === 'win32' },
  )
  return stdout.trim()
}
