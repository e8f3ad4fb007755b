import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENV, TOKEN } from '../contract/deploy.ts'
import { pod, review } from '../contract/review.ts'
import { createWorld, type World } from '../contract/world.ts'
import { ROOT, suite, tool, withoutTools } from './tools.ts'

/** How each runtime serves a bundle. */
const RUNTIMES = {
  deno: ['run', '--no-config', '--no-lock', '--allow-net', '--allow-env', '--allow-read'],
  bun: [],
} as const

describe.skipIf(withoutTools)(suite('the bundle of the Worker'), () => {
  let world: World
  beforeAll(async () => {
    world = await createWorld()
  }, 120_000)
  afterAll(() => world?.close())

  describe.each(Object.entries(RUNTIMES))('in %s', (name, options) => {
    let served: { url: string; process: ChildProcess }
    beforeAll(async () => {
      const args = [...options, `${ROOT}infra/serve/${name}.mjs`, world.bundles.worker]
      served = await serve(tool(name), args)
    }, 60_000)
    afterAll(() => served?.process.kill())

    const validate = async (image: string) => {
      const response = await fetch(`${served.url}/v1/prod/${TOKEN}/ivpol/validate`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(review({ object: pod(image) })),
      })
      expect(response.status).toBe(200)
      const { response: answer } = (await response.json()) as { response: { allowed: boolean } }
      return answer
    }

    test('is alive', async () => {
      const response = await fetch(`${served.url}/livez`)
      expect([response.status, await response.text()]).toEqual([200, 'ok\n'])
    })

    test('admits what is signed and denies what is not, or what it cannot tell', async () => {
      expect(await validate(world.images.signed)).toMatchObject({ allowed: true })
      expect(await validate(world.images.unsigned)).toMatchObject({
        allowed: false,
        status: { message: 'Policy signed failed: not signed by the release key' },
      })
      expect(await validate(world.images.signed.replace(/:\d+\//, ':1/'))).toMatchObject({
        allowed: false,
      })
    }, 60_000)

    test.each([
      { cluster: 'local', status: 200 },
      { cluster: 'elsewhere', status: 404 },
    ])('takes nobody’s word for an address: $cluster', async ({ cluster, status }) => {
      const { status: answered } = await fetch(
        `${served.url}/v1/${cluster}/${TOKEN}/ivpol/validate`,
        {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'cf-connecting-ip': '203.0.113.7' },
          body: JSON.stringify(review({ object: pod(world.images.signed) })),
        },
      )
      expect(answered).toBe(status)
    })
  })
})

/** Runs a server until it says where it listens. */
function serve(program: string, args: readonly string[]) {
  const env = { ...ENV, PORT: '0', PATH: process.env.PATH, HOME: process.env.HOME }
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (data: Buffer) => {
    errors += data.toString()
  })
  return new Promise<{ url: string; process: ChildProcess }>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const { event, port } = JSON.parse(line)
      if (event === 'listening') resolve({ url: `http://127.0.0.1:${port}`, process: child })
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${errors}`)))
  })
}
