import { afterAll, beforeAll } from 'vitest'
import { contract } from './app.ts'
import { TARGETS } from './targets.ts'
import { createWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world?.close())

for (const [name, open] of Object.entries(TARGETS)) contract(name, () => world, open)
