import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { build } from 'esbuild'
import { coldLoadMs, kilobytes } from './budgets.ts'
import { packageRoot } from './package.ts'

/** What running checked expressions takes, without parser and checker. */
export type CelBundleName = 'cel/core' | 'cel/regex' | 'cel/all'

/** Such a bundle beside its budget. */
export interface CelBundle {
  name: CelBundleName
  /** Minified code. */
  bytes: number
  /** Milliseconds to import it in a fresh process, the regex engine started; the best of several. */
  loadMs: number
  /** What is over its budget, in words. */
  over: readonly string[]
}

/** Most that each may weigh and take: bytes and milliseconds. */
export const CEL_BUDGETS: Readonly<Record<CelBundleName, { bytes?: number; loadMs: number }>> = {
  'cel/core': { bytes: 60_000, loadMs: 40 },
  'cel/regex': { bytes: 85_000, loadMs: 40 },
  'cel/all': { loadMs: 40 },
}

const PLAN = "export { plan } from './plan.ts'\nexport { Variables } from './variables.ts'\n"
const CORE = `${PLAN}export { toJson } from './to-json.ts'\nexport { coreLibrary } from './core-library.ts'\n`
const REGEX = "import { loadRegex } from './regex.ts'\nexport const regex = await loadRegex()\n"

/** By bundle: what it is made of. All libraries is more than any one policy uses, so that functions load them apart. */
const ENTRIES: Readonly<Record<CelBundleName, string>> = {
  'cel/core': CORE,
  'cel/regex': `${CORE}${REGEX}`,
  'cel/all': `${CORE}${REGEX}export { kubernetesLibrary } from './libraries.ts'\n`,
}

/** Every CEL bundle, measured one after the other; nothing of them is left. */
export async function measureCelBundles(): Promise<CelBundle[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'countersign-cel-'))
  try {
    const measured: CelBundle[] = []
    // The names are those of the entries.
    for (const name of Object.keys(ENTRIES) as CelBundleName[]) {
      const code = await bundled(ENTRIES[name])
      const entry = path.join(folder, `${path.basename(name)}.mjs`)
      await writeFile(entry, code)
      const loadMs = await coldLoadMs(entry, CEL_BUDGETS[name].loadMs)
      measured.push(compareCel({ name, bytes: code.length, loadMs }))
    }
    return measured
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The measures compared with the budget. */
export function compareCel(measured: Omit<CelBundle, 'over'>): CelBundle {
  const budget = CEL_BUDGETS[measured.name]
  const over: string[] = []
  if (budget.bytes !== undefined && measured.bytes > budget.bytes) {
    over.push(`${kilobytes(measured.bytes)}, at most ${kilobytes(budget.bytes)}`)
  }
  if (measured.loadMs > budget.loadMs) {
    over.push(`${measured.loadMs.toFixed(1)} ms to load, at most ${budget.loadMs} ms`)
  }
  return { ...measured, over }
}

async function bundled(contents: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: path.join(packageRoot(), 'shared', 'cel') },
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    minify: true,
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
  })
  // One entry without splitting is one file.
  return outputFiles[0]?.contents ?? new Uint8Array()
}
