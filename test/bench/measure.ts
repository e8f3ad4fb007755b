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

/** Something far below a microsecond; it is told how many times it has run, so that it need not do the same thing twice. */
export type Quick = { name: string; run: (turn: number) => unknown }

/** CPU of one round of a Quick, microseconds: enough for the clock, little enough for many rounds. */
const QUICK_ROUND_US = 10_000
const QUICK_ROUNDS = 21
/** Rounds before the first one that counts: what is compiled on the fly is compiled by then. */
const WARM_UP_ROUNDS = 6

/** Runs per second of CPU, by name: the median over rounds, measured in turns as `measure` does. */
export function perSecond(benches: readonly Quick[]): Map<string, number> {
  const counts = benches.map((bench) => runsFor(bench))
  const rates = benches.map((): number[] => [])
  for (let round = 0; round < WARM_UP_ROUNDS + QUICK_ROUNDS; round++) {
    for (const [i, bench] of benches.entries()) {
      const runs = counts[i] ?? 1
      const rate = (runs / cpuOfRuns(bench, runs)) * 1e6
      if (round >= WARM_UP_ROUNDS) rates[i]?.push(rate)
    }
  }
  return new Map(benches.map(({ name }, i) => [name, median(rates[i] ?? [])]))
}

function runsFor(bench: Quick): number {
  for (let runs = 64; ; runs *= 2) {
    const spent = cpuOfRuns(bench, runs)
    if (spent >= QUICK_ROUND_US / 2) return Math.ceil((runs * QUICK_ROUND_US) / spent)
  }
}

/** What a run gave last: kept, so that none can be left out. */
export let kept: unknown

function cpuOfRuns({ run }: Quick, runs: number): number {
  const before = process.cpuUsage()
  for (let turn = 0; turn < runs; turn++) kept = run(turn)
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** The geometric mean; 0 of nothing. */
export function geometricMean(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + Math.log(value), 0)
  return values.length === 0 ? 0 : Math.exp(sum / values.length)
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
