import { createPrivateKey, createPublicKey } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { run } from '#functions/cli/index.ts'
import { hashOf } from '../../contract/review.ts'
import { countersign, recorder } from './harness.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
})

afterEach(() => rm(folder, { recursive: true }))

const init = (...args: string[]) => countersign(['init', folder, ...args])
const read = (name: string) => readFile(path.join(folder, name), 'utf8')
const names = async () => (await readdir(folder, { recursive: true })).sort()
const tokenIn = (out: string) => /^token of \S+ ([a-z2-7]{32}) /m.exec(out)?.[1] ?? ''

const PLAIN = [
  '.gitignore',
  'README.md',
  'countersign.yaml',
  'policies',
  'policies/signed-images.yaml',
]

describe('init', () => {
  test('writes a config, a policy that audits, and the next steps', async () => {
    const { code, out, err } = await init(
      '--cluster',
      'prod-eu',
      '--endpoint',
      'https://a.example.com/x',
    )
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(await names()).toEqual(PLAIN)
    const config = await read('countersign.yaml')
    expect(config).toContain(hashOf(tokenIn(out)))
    expect(config).toContain('endpoint: https://a.example.com/x\n')
    expect(await read('policies/signed-images.yaml')).toContain('validationActions: [Audit]')
    const guide = await read('README.md')
    expect(guide).toContain('aws kms create-key --region eu-central-1')
    expect(guide).toContain('doctor --config countersign.yaml --cluster prod-eu')
    for (const name of PLAIN.filter((each) => each !== 'policies')) {
      expect(await read(name)).not.toContain(tokenIn(out))
    }
  })

  test('--key makes a pair, the private one for its owner alone and never to be committed', async () => {
    expect((await init('--key')).code).toBe(0)
    expect(await names()).toEqual([...PLAIN, 'image-signing.key', 'image-signing.pub'].sort())
    expect((await stat(path.join(folder, 'image-signing.key'))).mode & 0o777).toBe(0o600)
    const key = createPrivateKey(await read('image-signing.key'))
    const pub = createPublicKey(key).export({ type: 'spki', format: 'pem' })
    expect(await read('image-signing.pub')).toBe(pub)
    expect(await read('.gitignore')).toMatch(/^\*\.key$/m)
    expect((await read('policies/signed-images.yaml')).replaceAll(/^ +/gm, '')).toContain(pub)
    expect(await read('README.md')).not.toContain('aws kms')
  })

  test.each([{ args: [] }, { args: ['--key'] }])(
    'with $args makes what lint and build take as it is',
    async ({ args }) => {
      await init(...args)
      const config = path.join(folder, 'countersign.yaml')
      const linted = await countersign(['lint', '--config', config])
      expect({ code: linted.code, err: linted.err }).toEqual({ code: 0, err: '' })
      const built = await countersign([
        'build',
        '--config',
        config,
        '--out',
        path.join(folder, 'dist'),
      ])
      expect(built).toMatchObject({ code: 0 })
      expect(built.out).toContain('1 policy (signed-images), 1 cluster (my-cluster)')
    },
  )

  test('the commands of the next steps work in their order, once the token is where they say', async () => {
    const { out } = await init('--cluster', 'prod-eu')
    const guide = await read('README.md')
    expect(guide).toMatch(/Put the token[^\n]* into `prod-eu\.token`, which git ignores/)
    await writeFile(path.join(folder, 'prod-eu.token'), `${tokenIn(out)}\n`)
    const commands = [
      ...guide.matchAll(/`countersign ((?:lint|build|webhooks) [^`|]*?)(?: \|[^`]*)?`/g),
    ]
    const own = /^(countersign\.yaml|dist|policies|prod-eu\.token)$/
    const codes: [string | undefined, number][] = []
    for (const [, command = ''] of commands) {
      const args = command.split(' ').map((arg) => (own.test(arg) ? path.join(folder, arg) : arg))
      codes.push([args[0], (await countersign(args)).code])
    }
    expect(codes).toEqual([
      ['lint', 0],
      ['build', 0],
      ['webhooks', 0],
    ])
    // With paths, what config and policies say of each other would not be looked at.
    expect(guide).toContain('`countersign lint --config countersign.yaml`')
  })

  test('makes what dev serves at once, and doctor finds nothing wrong with it', async () => {
    await init('--key')
    const config = path.join(folder, 'countersign.yaml')
    const state = path.join(folder, 'state')
    const stop = new AbortController()
    let output = ''
    let started = () => {}
    const isUp = new Promise<void>((resolve) => {
      started = resolve
    })
    const print = (text: string) => {
      output += text
      if (/Stop with Ctrl-C/.test(output)) started()
    }
    const { io } = recorder({ out: print, err: print, signal: stop.signal })
    const ended = run(['dev', '--config', config, '--port', '0', '--state', state], io)
    await isUp
    const [, endpoint = '', token = ''] =
      /(https:\/\/localhost:\d+)\/v1\/my-cluster\/([a-z2-7]{32})\//.exec(output) ?? []
    const ca = path.join(state, 'ca.pem')
    const ran = await countersign(
      ['doctor', '--config', config, '--cluster', 'my-cluster', '--endpoint', endpoint].concat([
        '--ca-bundle',
        ca,
        '--calls',
        '1',
        '--output',
        'json',
      ]),
      { env: { COUNTERSIGN_TOKEN: token } },
    )
    stop.abort()
    await ended
    const { checks } = JSON.parse(ran.out) as { checks: { check: string; status: string }[] }
    expect(checks.filter(({ status }) => status !== 'ok').map(({ check }) => check)).toEqual([
      'dns',
      'egress',
    ])
    expect(ran.code).toBe(0)
  })

  test('writes over nothing: with one of the files there, none is written', async () => {
    await writeFile(path.join(folder, 'countersign.yaml'), 'mine')
    await symlink('/nowhere', path.join(folder, 'README.md'))
    const { code, err } = await init('--key')
    expect(code).toBe(2)
    expect(err).toBe(
      [
        `countersign init: ${folder} has a project already; nothing is written over, and nothing was written`,
        `  ${path.join(folder, 'countersign.yaml')}  is there`,
        `  ${path.join(folder, 'README.md')}  is there`,
        '',
      ].join('\n'),
    )
    expect(await names()).toEqual(['README.md', 'countersign.yaml'])
    expect(await read('countersign.yaml')).toBe('mine')
  })

  test('leaves a .gitignore as it is and says what belongs into it', async () => {
    await writeFile(path.join(folder, '.gitignore'), 'mine\n')
    const { code, err } = await init()
    expect([code, await read('.gitignore')]).toEqual([0, 'mine\n'])
    expect(err).toMatch(/is left as it is; have in it:\n[\s\S]*^\*\.key$/m)
  })

  test('takes nothing that a config could not hold, and says all of it', async () => {
    for (const endpoint of ['http://x', 'https://x:', 'https://x:99999', 'https://[::1']) {
      const args = ['--cluster', 'Prod', '--endpoint', endpoint, '--region', 'mars']
      const { code, err } = await init(...args)
      expect(code).toBe(2)
      expect(err).toMatch(/--cluster {2}.*\n {2}--endpoint {2}.*\n {2}--region {2}/)
    }
    expect(await names()).toEqual([])
  })

  test('a folder that cannot be made is bad input', async () => {
    await writeFile(path.join(folder, 'file'), '')
    const { code, err } = await countersign(['init', path.join(folder, 'file/below')])
    const where = path.join(folder, 'file/below')
    expect([code, err]).toEqual([
      2,
      `countersign init: cannot write to ${where}: a part of it is a file\n`,
    ])
  })

  test('what cannot be finished leaves no file and no folder', async () => {
    await writeFile(path.join(folder, 'policies'), '')
    expect((await init('--key')).code).toBe(2)
    expect(await names()).toEqual(['policies'])
    await rm(path.join(folder, 'policies'))
    const deep = path.join(folder, 'new', 'x'.repeat(300))
    expect((await countersign(['init', deep])).code).toBe(2)
    expect(await names()).toEqual([])
  })

  test.runIf(process.platform === 'linux').each([
    ['init', '/proc/nowhere'],
    ['build', '--config', 'CONFIG', '--out', '/proc/nowhere'],
    ['dev', '--config', 'CONFIG', '--state', '/proc/nowhere'],
    [
      'webhooks',
      '--config',
      'CONFIG',
      '--cluster',
      'my-cluster',
      '--token-placeholder',
      '--out',
      '/proc/nowhere',
    ],
  ])('%s in a place where no folder can be made ends, and says so', async (...args) => {
    await init()
    const config = path.join(folder, 'countersign.yaml')
    const given = args.map((arg) => (arg === 'CONFIG' ? config : arg))
    const { code, err } = await countersign(given)
    expect([code, err]).toEqual([2, expect.stringMatching(/no such file or folder$/m)])
  })
})
