import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { bothPhases } from './app.ts'
import { opened, TARGETS } from './targets.ts'
import { createWorld, type World } from './world.ts'

let kms: KmsEmulator
let world: World
beforeAll(async () => {
  kms = await startKms()
  world = await createWorld(kms)
})
afterAll(async () => {
  await world?.close()
  await kms?.close()
})

describe.each(Object.keys(TARGETS).filter((name) => !name.includes('server')))('%s', (name) => {
  const target = opened(() => TARGETS[name]!(world))

  test('loads the KMS client when it is needed, verifies and seals with keys in KMS', async () => {
    const before = kms.calls
    await bothPhases(target(), world)
    expect(kms.calls.GetPublicKey ?? 0).toBeGreaterThan(before.GetPublicKey ?? 0)
    expect(kms.calls.GenerateMac ?? 0).toBeGreaterThan(before.GenerateMac ?? 0)
    const after = kms.calls
    await bothPhases(target(), world)
    expect(kms.calls).toEqual(after)
  })
})
