import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'yaml'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Whether the deploy tools are installed: most people who run tests do not need them. */
const hasTools = existsSync(`${ROOT}infra/node_modules/.package-lock.json`)

/** Why tests of what needs the deploy tools are skipped, for their names; undefined when they run. */
export const withoutTools = hasTools ? undefined : 'skipped: needs `npm ci --prefix infra`'

/** The name of a suite, and why it is skipped. */
export function suite(name: string): string {
  return withoutTools === undefined ? name : `${name} (${withoutTools})`
}

/** The program of a deploy tool. */
export function tool(name: string): string {
  return `${ROOT}infra/node_modules/.bin/${name}`
}

export interface Ended {
  code: number
  /** What it wrote to either of its outputs. */
  text: string
}

/** Runs a program from the root, or this folder of it, without credentials of anybody. */
export async function run(
  program: string,
  args: readonly string[],
  { env = {}, cwd = '' }: { env?: Record<string, string>; cwd?: string } = {},
): Promise<Ended> {
  const clean = Object.entries(process.env).filter(
    ([name]) => !/^(AWS|CLOUDFLARE|CDK|VITEST)_/.test(name),
  )
  const options = {
    cwd: `${ROOT}${cwd}`,
    env: { ...Object.fromEntries(clean), ...QUIET, ...env },
    maxBuffer: 32 * 1024 * 1024,
  }
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, options)
    return { code: 0, text: stdout + stderr }
  } catch (thrown) {
    // What execFile rejects with when a program ends with another code than 0.
    const { code, stdout = '', stderr = '' } = thrown as Partial<Record<string, string>>
    return { code: Number(code ?? 1), text: `${stdout}${stderr}` }
  }
}

/**
 * A new folder with something in the place of every function's bundle, below the root because osls packages nothing from elsewhere, and the
 * example config with image reviews on.
 */
export async function reviewingProject() {
  await mkdir(`${ROOT}dist`, { recursive: true })
  const folder = await mkdtemp(`${ROOT}dist/serverless-`)
  for (const name of ['mutate', 'validate', 'image-review']) {
    await mkdir(path.join(folder, 'lambda', name), { recursive: true })
    await writeFile(path.join(folder, 'lambda', name, 'index.mjs'), 'export const handler = 0')
  }
  const config = parse(await readFile(`${ROOT}infra/countersign.yaml`, 'utf8'))
  config.clusters[0].imageReview = true
  return { folder, below: path.relative(ROOT, folder), config }
}

/** Packages `serverless.yml` into a folder with these parameters. */
export function osls(to: string, parameters: Readonly<Record<string, string>>): Promise<Ended> {
  const given = Object.entries(parameters).map(([name, value]) => `--param=${name}=${value}`)
  return run(tool('osls'), ['package', '--package', to, ...given])
}

const QUIET = {
  WRANGLER_SEND_METRICS: 'false',
  SLS_TELEMETRY_DISABLED: '1',
  CI: '1',
  NO_COLOR: '1',
}
