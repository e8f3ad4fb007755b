import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startVault, type VaultEmulator } from '#functions/local/vault.ts'
import { bothPhases } from './app.ts'
import { ENV } from './deploy.ts'
import { opened, TARGETS } from './targets.ts'
import { createWorld, type World } from './world.ts'

let vault: VaultEmulator
let world: World
beforeAll(async () => {
  vault = await startVault({ token: ENV.VAULT_TOKEN })
  world = await createWorld(vault)
})
afterAll(async () => {
  await world?.close()
  await vault?.close()
})

describe.each(Object.entries(TARGETS))('%s', (_, open) => {
  const target = opened(() => open(world))

  test('verifies with a key in Vault, and asks for it once', async () => {
    const asked = () => vault.requests.filter(({ method }) => method === 'GET').length
    const before = asked()
    await bothPhases(target(), world)
    expect(asked()).toBeGreaterThan(before)
    const after = asked()
    await bothPhases(target(), world)
    expect(asked()).toBe(after)
  })
})

test.each(['lambda/mutate', 'lambda/validate', 'worker'] as const)(
  '%s holds the client of Vault and not that of AWS',
  async (name) => {
    const folder = path.dirname(world.bundles[name])
    const texts = await Promise.all(
      (await readdir(folder)).map((file) => readFile(path.join(folder, file), 'utf8')),
    )
    const text = texts.join('\n')
    expect([text.includes('x-vault-token'), text.includes('TrentService')]).toEqual([true, false])
    expect((await readFile(world.bundles[name], 'utf8')).includes('x-vault-token')).toBe(false)
  },
)
