import { describe, expect, test } from 'vitest'
import { generate, type Kind } from '#test/generator/generate.ts'
import { PROFILES } from '#test/generator/settings.ts'

/**
 * Random expressions from a seed: whatever they are, compiling and running them keeps every invariant of
 * `test/generator/invariants.ts` (printed they parse to the same tree, reloaded they give the same value at the same cost, …).
 */
const RUNS: readonly [Kind, number, number][] = [
  ['sound', 101, 500],
  ['flawed', 102, 300],
  ['damaged', 103, 700],
]

describe.each(PROFILES)('in the %s profile', (profile) => {
  test.each(RUNS)('%s expressions of seed %i keep every invariant', async (kind, seed, count) => {
    const broken: unknown[] = []
    const phases = new Set<string>()
    for await (const each of generate(profile, kind, seed, count)) {
      phases.add(each.phase)
      if (each.broken.length > 0) broken.push(each)
    }
    expect(broken).toEqual([])
    // A generator that writes only one kind of expression would prove little.
    expect(phases.size).toBeGreaterThanOrEqual(3)
  })
})

test('the same seed gives the same expressions', async () => {
  const twice = await Promise.all(
    [1, 2].map(async () => {
      const sources: string[] = []
      for await (const { source } of generate('spec', 'sound', 7, 20)) sources.push(source)
      return sources
    }),
  )
  expect(twice[0]).toEqual(twice[1])
})
