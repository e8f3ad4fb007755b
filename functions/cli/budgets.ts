import { execFile } from 'node:child_process'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { BundleName, BundleReport } from './bundle.ts'

const KB = 1000

/** Bytes of minified code; milliseconds of import in a fresh process. */
export interface Budget {
  eagerBytes?: number
  ownBytes?: number
  totalBytes?: number
  loadMs?: number
}

/** Most that a bundle may weigh and take (design.md 5). */
const BUDGETS: Readonly<Record<BundleName, Budget>> = {
  'lambda/validate': { eagerBytes: 150 * KB, loadMs: 30 },
  'lambda/mutate': { eagerBytes: 400 * KB, loadMs: 80 },
  'lambda/image-review': { eagerBytes: 400 * KB, loadMs: 80 },
  worker: { ownBytes: 400 * KB, totalBytes: 600 * KB },
}

/** A Worker whose policies come from bundles holds what any policy may need. */
const WORKER_FOR_ANY_POLICY: Budget = { ownBytes: 500 * KB, totalBytes: 700 * KB }

/** The budget of a bundle. */
export function budgetOf({
  name,
  forAnyPolicy,
}: Pick<BundleReport, 'name' | 'forAnyPolicy'>): Budget {
  return name === 'worker' && forAnyPolicy ? WORKER_FOR_ANY_POLICY : BUDGETS[name]
}

/** A bundle beside its budget. */
export interface Measured extends BundleReport {
  /** Milliseconds to import it in a fresh process; undefined where it was not measured. */
  loadMs?: number
  /** What is over its budget, in words; empty when all is well. */
  over: readonly string[]
}

/** Fresh processes per bundle. */
const RUNS = 12
/** More of them while the result is over the budget: one disturbed process must not decide. */
const MAX_RUNS = 60

/** The report with its load time measured (Lambda bundles only) and compared with its budget. */
export async function measure(report: BundleReport): Promise<Measured> {
  const { loadMs: limit } = budgetOf(report)
  return compare(
    limit === undefined ? report : { ...report, loadMs: await coldLoadMs(report.entry, limit) },
  )
}

/** The report compared with its budget. */
export function compare(report: BundleReport & { loadMs?: number }): Measured {
  const budget = budgetOf(report)
  const over: string[] = []
  for (const [name, what] of [
    ['eagerBytes', 'loaded at the start'],
    ['ownBytes', 'without the KMS client'],
    ['totalBytes', 'in all'],
  ] as const) {
    const limit = budget[name]
    if (limit !== undefined && report[name] > limit) {
      over.push(`${kilobytes(report[name])} ${what}, at most ${kilobytes(limit)}`)
    }
  }
  const { loadMs } = report
  if (loadMs !== undefined && budget.loadMs !== undefined && loadMs > budget.loadMs) {
    over.push(`${loadMs.toFixed(1)} ms to load, at most ${budget.loadMs} ms`)
  }
  return { ...report, over }
}

/** `126 KB`. */
export function kilobytes(bytes: number): string {
  return `${Math.round(bytes / KB)} KB`
}

/** Compiles and runs some code that never changes, then imports the module: how long the one took says how fast the machine is. */
const SCRIPT = `
import vm from 'node:vm'
const code = Array.from({ length: 400 }, (_, i) =>
  'function f' + i + '(a, b) { const c = { x: a, y: [b, ' + i + '] }; return c.x + c.y[1] } f' + i + '(1, 2)')
const start = performance.now()
new vm.Script(code.join('\\n')).runInThisContext()
const yardstickMs = performance.now() - start
const started = performance.now()
await import(process.argv[1])
console.log(JSON.stringify({ yardstickMs, ms: performance.now() - started }))
process.exit()
`

/** What the yardstick takes on the machine that the budgets were set on: there the validate function loaded in 25 ms. */
const YARDSTICK_MS = 5.8

/**
 * Milliseconds to import a module in a fresh process of this Node, as if on the machine that the budgets were set on: the median of
 * several runs, each by what the yardstick took in the same process. More runs while that is over the limit.
 */
export async function coldLoadMs(entry: string, limit = 0): Promise<number> {
  const url = pathToFileURL(path.resolve(entry)).href
  const yardsticks: number[] = []
  const normal = () => (median(yardsticks) ?? Number.POSITIVE_INFINITY) * YARDSTICK_MS
  for (let run = 0; run < RUNS || (normal() > limit && run < MAX_RUNS); run++) {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '-e', SCRIPT, url],
      { env: {} },
    )
    // The last line is the script's own.
    const text = stdout.trim().split('\n').at(-1) ?? ''
    const { ms, yardstickMs } = JSON.parse(text) as { ms: number; yardstickMs: number }
    yardsticks.push(ms / yardstickMs)
  }
  return normal()
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}
