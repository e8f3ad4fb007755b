import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT, run, suite, tool, withoutTools } from './tools.ts'

const CONFIG = 'infra/cloudflare'

test('the Worker runs with what the tests run it with, behind its own domain only, and logs no addresses', async () => {
  const [config, runner] = await Promise.all(
    [`${CONFIG}/wrangler.jsonc`, 'test/workerd.ts'].map((file) => readFile(ROOT + file, 'utf8')),
  )
  const { compatibilityDate } = /compatibilityDate: '(?<compatibilityDate>[^']+)'/.exec(runner!)!
    .groups!
  // Comments are whole lines.
  const settings = JSON.parse(config!.replace(/^\s*\/\/.*$/gm, ''))
  expect(settings).toMatchObject({
    compatibility_date: compatibilityDate,
    compatibility_flags: [],
    no_bundle: true,
    workers_dev: false,
    preview_urls: false,
    observability: { logs: { invocation_logs: false } },
  })
})

describe.skipIf(withoutTools)(suite('wrangler.jsonc'), () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'countersign-worker-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('deploys the bundle as it is', async () => {
    const out = path.join(folder, 'out')
    const args = ['deploy', '--dry-run', '--outdir', out]
    const ended = await run(tool('wrangler'), args, { cwd: CONFIG })
    expect(ended, ended.text).toMatchObject({ code: 0 })
    expect(ended.text).not.toContain('Unexpected fields')
    const [built, uploaded] = await Promise.all(
      [`${ROOT}dist/worker`, out].map((each) => readFile(path.join(each, 'index.mjs'), 'utf8')),
    )
    expect(uploaded).toBe(built)
  }, 120_000)

  test('binds a bucket of policies where that line counts', async () => {
    const text = await readFile(`${ROOT}${CONFIG}/wrangler.jsonc`, 'utf8')
    const variant = text
      .replace('// "r2_buckets"', '"r2_buckets"')
      .replaceAll('../../dist/worker', `${ROOT}dist/worker`)
    const file = path.join(folder, 'wrangler.jsonc')
    await writeFile(file, variant)
    const args = ['deploy', '--dry-run', '--config', file, '--outdir', path.join(folder, 'r2')]
    const ended = await run(tool('wrangler'), args, { cwd: CONFIG })
    expect(ended, ended.text).toMatchObject({ code: 0 })
    expect(ended.text).toMatch(/env\.POLICIES \(countersign-policies\)\s+R2 Bucket/)
    expect(ended.text).not.toContain('Unexpected fields')
  }, 120_000)

  test('is a Worker that starts', async () => {
    const profile = path.join(folder, 'startup.cpuprofile')
    const args = ['check', 'startup', '--outfile', profile]
    const ended = await run(tool('wrangler'), args, { cwd: CONFIG })
    expect(ended, ended.text).toMatchObject({ code: 0 })
    expect((await stat(profile)).size).toBeGreaterThan(0)
  }, 120_000)
})
