import { SEAL_TTL_MS } from '#shared/limits.ts'
import {
  callFor,
  createWorld,
  patched,
  podWith,
  policyText,
  requestFor,
} from '#test/fakes/world.ts'
import { type Bench, measure, type Row } from './measure.ts'

const SIZES = [1, 10, 100]
/** A hundred policies and a hundred containers are more checks than a request may ask for. */
const MOST_CHECKS = 1000
/** Twenty policies and ten containers must take less, microseconds on Node 24, or on a slower machine less than so many times the baseline. */
const TARGET = { policies: 20, containers: 10, cpuUs: 3000, ratio: 300 }
/** A hundred times as much may take so many times as long: as much again as a hundred is for what the machine does beside. */
const MOST_GROWTH = 200

/** One sealed review by the number of policies and containers, beside reading and writing the largest object as JSON. */
export async function growthRows(): Promise<Row[]> {
  const world = await createWorld()
  try {
    const images = await Promise.all(
      Array.from({ length: 100 }, (_, i) => world.push(`bench/app-${i}`, ['release'])),
    )
    const bench = async (policies: number, containers: number): Promise<Bench> => {
      const texts = Array.from({ length: policies }, (_, i) =>
        policyText(world.keys, { name: `signed-${i}` }),
      )
      const engine = await world.engine(texts, {
        outcomes: { onMissing: 'verify', lifetimeMs: SEAL_TTL_MS },
      })
      const pod = podWith(images.slice(0, containers).map(({ tagged }) => tagged))
      const mutated = await engine.mutate(requestFor(pod), callFor())
      const request = requestFor(patched(pod, mutated))
      return {
        name: `validate: ${policies} policies, ${containers} containers`,
        runs: Math.max(3, Math.ceil(1000 / (policies * containers))),
        run: async () => {
          const { allowed, record, status } = await engine.validate(request, callFor())
          if (!allowed || record.seal !== 'open') throw new Error(status?.message)
        },
      }
    }
    const benches: Bench[] = []
    for (const policies of SIZES) {
      for (const containers of SIZES) {
        if (policies * containers <= MOST_CHECKS) benches.push(await bench(policies, containers))
      }
    }
    benches.push(await bench(TARGET.policies, TARGET.containers))
    const text = JSON.stringify(podWith(images.slice(0, 10).map(({ pinned }) => pinned)))
    const baseline: Bench = {
      name: 'baseline: read and write a 10-container Pod as JSON',
      run: () => JSON.stringify(JSON.parse(text)),
      runs: 2000,
    }
    return await measure(baseline, benches)
  } finally {
    await world.close()
  }
}

/** What misses its target, or undefined. */
export function growthFault(rows: readonly Row[]): string | undefined {
  const cpuOf = (policies: number, containers: number) =>
    rows.find(({ name }) => name === `validate: ${policies} policies, ${containers} containers`)
  const target = cpuOf(TARGET.policies, TARGET.containers)
  if (target !== undefined && target.cpuUs > TARGET.cpuUs && target.ratio > TARGET.ratio) {
    return `${target.name}: more than ${TARGET.cpuUs} µs`
  }
  const [one, hundred] = [cpuOf(10, 1), cpuOf(10, 100)]
  const [few, many] = [cpuOf(1, 10), cpuOf(100, 10)]
  for (const [small, large] of [
    [one, hundred],
    [few, many],
  ]) {
    if (small && large && large.cpuUs > small.cpuUs * MOST_GROWTH) {
      return `${large.name}: more than ×${MOST_GROWTH} of ${small.name}`
    }
  }
  return undefined
}
