/** One measured thing: CPU of this process for one run, median over rounds, and how that compares with the baseline. */
export interface Row {
  name: string
  /** Microseconds of CPU, user and system, for one run. */
  cpuUs: number
  /** Times the baseline of the same run. */
  ratio: number
  note?: string
}

export type Bench = { name: string; run: () => unknown; note?: () => string; runs?: number }

const ROUNDS = 7

/**
 * Rows for the benches, measured in turns (baseline, first, second, … and again), so that whatever else the machine does strikes
 * all of them alike.
 */
export async function measure(baseline: Bench, benches: readonly Bench[]): Promise<Row[]> {
  const all = [baseline, ...benches]
  const times = new Map<Bench, number[]>(all.map((bench) => [bench, []]))
  for (const bench of all) await cpuOf(bench)
  for (let round = 0; round < ROUNDS; round++) {
    for (const bench of all) times.get(bench)?.push(await cpuOf(bench))
  }
  const base = median(times.get(baseline) ?? [])
  return all.map((bench) => {
    const cpuUs = median(times.get(bench) ?? [])
    const note = bench.note?.()
    return { name: bench.name, cpuUs, ratio: cpuUs / base, ...(note === undefined ? {} : { note }) }
  })
}

async function cpuOf({ run, runs = 200 }: Bench): Promise<number> {
  const before = process.cpuUsage()
  for (let i = 0; i < runs; i++) await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / runs
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

export function print(title: string, rows: readonly Row[]): void {
  console.log(`\n${title}`)
  for (const { name, cpuUs, ratio, note = '' } of rows) {
    const time = `${cpuUs.toFixed(1)} µs`.padStart(12)
    console.log(`  ${name.padEnd(46)} ${time} ${`×${ratio.toFixed(2)}`.padStart(8)}  ${note}`)
  }
}
