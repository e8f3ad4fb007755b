import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { run } from '#functions/cli/index.ts'
import { createApiServer } from '#functions/local/apiserver.ts'
import { LocalSigstore } from '#functions/local/sigstore/authority.ts'
import { countersign, recorder } from './harness.ts'

const CONFIG = `policies: policies
endpoint: https://admission.example.com
outcomes: { key: { kms: "awskms:///alias/seal" } }
kms: { region: eu-central-1 }
clusters:
  - name: prod
    tokens: ["${'a'.repeat(64)}"]
`

/** A policy that needs no registry: it denies Pods with this name. */
const policy = (name: string) => `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: { name: names }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, pods/ephemeralcontainers] }
  validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false }
  attestors: []
  validations:
    - expression: object.metadata.name != "${name}"
      message: the name ${name} is taken
`

let folder: string
let output: string
let waiting: { text: RegExp; resolve: () => void }[]
let stop: AbortController
let ended: Promise<number>

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  await mkdir(path.join(folder, 'policies'))
  await writeFile(path.join(folder, 'countersign.yaml'), CONFIG)
  await writeFile(path.join(folder, 'policies/names.yaml'), policy('alpha'))
  output = ''
  waiting = []
  stop = new AbortController()
})

afterEach(async () => {
  stop.abort()
  await ended
  await rm(folder, { recursive: true })
})

/** Resolves when the output has the text. */
function said(text: RegExp): Promise<void> {
  return new Promise((resolve) => {
    if (text.test(output)) resolve()
    else waiting.push({ text, resolve })
  })
}

function print(text: string): void {
  output += text
  for (const { text: wanted, resolve } of waiting) if (wanted.test(output)) resolve()
}

async function start(...args: string[]): Promise<void> {
  const file = path.join(folder, 'countersign.yaml')
  const state = path.join(folder, 'state')
  const { io } = recorder({ out: print, err: print, signal: stop.signal })
  ended = run(['dev', '--config', file, '--port', '0', '--state', state, ...args], io)
  await Promise.race([said(/Stop with Ctrl-C/), ended])
}

const urlOf = (verb: string) =>
  new RegExp(`^  ${verb} +(https://\\S+)$`, 'm').exec(output)?.[1] ?? ''

async function submit(name: string) {
  const ca = await readFile(path.join(folder, 'state/ca.pem'), 'utf8')
  const webhook = (verb: string) => ({
    name: `${verb}.countersign.dev`,
    url: urlOf(verb),
    timeoutSeconds: 5,
    failurePolicy: 'Fail' as const,
  })
  const server = createApiServer({
    ca,
    mutating: webhook('mutate'),
    validating: webhook('validate'),
    now: Date.now,
  })
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop' },
    spec: { containers: [{ name: 'a', image: 'registry.example.com/a:1' }] },
  }
  const admission = await server.admit({ operation: 'CREATE', object })
  server.close()
  return admission.message
}

const denial = (name: string) =>
  `admission webhook "validate.countersign.dev" denied the request: Policy names failed: the name ${name} is taken`

describe('dev', () => {
  test.each([
    { granted: '', is: true },
    { granted: '    policies: [names, shop/names]\n', is: true },
    { granted: '    policies: [names]\n', is: false },
  ])('prints where namespaced policies answer: $is with "$granted"', async ({ granted, is }) => {
    const namespaced = policy('beta')
      .replace('kind: Image', 'kind: NamespacedImage')
      .replace('{ name: names }', '{ name: names, namespace: shop }')
    await writeFile(path.join(folder, 'policies/own.yaml'), namespaced)
    await writeFile(path.join(folder, 'countersign.yaml'), CONFIG + granted)
    await start()
    expect(urlOf('mutate')).toMatch(/\/ivpol\/mutate$/)
    expect(output.match(/\/nivpol\/\w+$/gm)).toEqual(
      is ? ['/nivpol/mutate', '/nivpol/validate'] : null,
    )
  })

  test('serves the policies over TLS under the printed URL, and prints one line per request', async () => {
    await start()
    const ca = await readFile(path.join(folder, 'state/ca.pem'), 'utf8')
    expect(output).toContain(`\n${btoa(ca)}\n`)
    expect(await submit('alpha')).toBe(denial('alpha'))
    expect(await submit('beta')).toBe('')
    await said(/validate allow/)
    expect(output).toMatch(
      /^\d\d:\d\d:\d\d mutate {3}allow CREATE prod\/shop\/v1\/Pod\/alpha {2}\d+ ms/m,
    )
    expect(output).toMatch(
      /^\d\d:\d\d:\d\d validate deny CREATE prod\/shop\/v1\/Pod\/alpha {2}\d+ ms/m,
    )
    expect(output).toMatch(/^ {9}Policy names failed: the name alpha is taken$/m)
  })

  test('answers image reviews under the URL it prints, for clusters that ask for them', async () => {
    await start()
    expect(urlOf('images')).toBe('')
    stop.abort()
    await ended
    const noLatest = policy('')
      .replace('name: names', 'name: latest')
      .replace(/object\.metadata.*/, `images.containers.all(image, !image.endsWith(':latest'))`)
      .replace(/message: .*/, 'message: no latest')
    await writeFile(path.join(folder, 'policies/latest.yaml'), noLatest)
    const reviews = '    imageReview: { policies: [latest] }\n'
    await writeFile(path.join(folder, 'countersign.yaml'), CONFIG + reviews)
    output = ''
    stop = new AbortController()
    await start()
    const ca = await readFile(path.join(folder, 'state/ca.pem'), 'utf8')
    const imagePolicy = { url: urlOf('images') }
    const server = createApiServer({ ca, imagePolicy, now: Date.now })
    const submitImage = async (image: string) => {
      const metadata = { name: 'web', namespace: 'shop' }
      const spec = { containers: [{ name: 'a', image }] }
      const object = { apiVersion: 'v1', kind: 'Pod', metadata, spec }
      return (await server.admit({ operation: 'CREATE', object })).message
    }
    expect(await submitImage('registry.example.com/a:1')).toBe('')
    expect(await submitImage('registry.example.com/a:latest')).toBe(
      'pods "web" is forbidden: image policy webhook backend denied one or more images: Policy latest failed: no latest',
    )
    server.close()
    await said(/^\d\d:\d\d:\d\d image-review deny prod\/shop\/v1\/Pod {2}\d+ ms/m)
  })

  test('takes over a changed policy, and keeps the last good set when one has a fault', async () => {
    await start()
    const file = path.join(folder, 'policies/names.yaml')
    await writeFile(file, policy('beta'))
    await said(/^reloaded: names$/m)
    expect([await submit('alpha'), await submit('beta')]).toEqual(['', denial('beta')])
    await writeFile(file, policy('gamma').replace('!=', '!!'))
    await said(/^not reloaded, the last good policies stay: .*policies: 1 fault$/m)
    expect(output).toMatch(/^ {2}\S+names\.yaml:\d+:\d+ {2}spec\.validations\[0\]\.expression: /m)
    expect([await submit('gamma'), await submit('beta')]).toEqual(['', denial('beta')])
  })

  test('takes over a refreshed trusted root, and goes on while there is none', async () => {
    // Its certificates end in 2984.
    const root = JSON.stringify(new LocalSigstore(32_000_000_000).trustedRoot())
    const file = path.join(folder, 'trust/own.json')
    await mkdir(path.join(folder, 'trust'))
    await writeFile(file, root)
    const entry = 'trust: [{ mirror: "https://tuf.example.com", trustedRoot: trust/own.json }]\n'
    await writeFile(path.join(folder, 'countersign.yaml'), CONFIG + entry)
    await start()
    await writeFile(file, '{}')
    await said(/^not reloaded, the last good policies stay: .*countersign\.yaml: 1 fault$/m)
    expect(output).toMatch(
      /^ {2}\S+countersign\.yaml:8:\d+ {2}trust\[0\]\.trustedRoot: trusted root: /m,
    )
    await writeFile(file, root)
    await said(/^reloaded: names$/m)
  })

  test('takes over a file that an editor replaces, each time', async () => {
    await start()
    const file = path.join(folder, 'policies/names.yaml')
    for (const [index, name] of ['beta', 'gamma', 'delta'].entries()) {
      await writeFile(path.join(folder, 'next.yaml'), policy(name))
      await rename(path.join(folder, 'next.yaml'), file)
      await said(new RegExp(`(?:^reloaded: names$[^]*){${index + 1}}`, 'm'))
      expect(await submit(name)).toBe(denial(name))
    }
  })

  test('takes over policies in a folder that was not there before', async () => {
    await start()
    await mkdir(path.join(folder, 'policies/more'))
    await said(/^reloaded: names$/m)
    await writeFile(
      path.join(folder, 'policies/more/other.yaml'),
      policy('zeta').replace('name: names', 'name: other'),
    )
    await said(/^reloaded: names, other$/m)
  })

  test('takes over a changed config', async () => {
    await start()
    await writeFile(
      path.join(folder, 'countersign.yaml'),
      CONFIG.replace('name: prod', 'name: test'),
    )
    await said(/^reloaded: names$/m)
    expect(await submit('alpha')).toContain('the server could not find the requested resource')
    await said(/refused {2}mutate: wrong cluster/)
  })

  test('keeps certificate and token for the next start, readable by their owner only', async () => {
    await start()
    const [first, ca] = [urlOf('mutate'), await readFile(path.join(folder, 'state/ca.pem'), 'utf8')]
    stop.abort()
    expect(await ended).toBe(0)
    stop = new AbortController()
    output = ''
    await start()
    const tokenOf = (url: string) => url.split('/')[5]
    expect(tokenOf(urlOf('mutate'))).toBe(tokenOf(first))
    expect(await readFile(path.join(folder, 'state/ca.pem'), 'utf8')).toBe(ca)
    expect((await stat(path.join(folder, 'state/dev.json'))).mode & 0o777).toBe(0o600)
  })

  test('another --host makes another certificate', async () => {
    await start()
    const ca = await readFile(path.join(folder, 'state/ca.pem'), 'utf8')
    stop.abort()
    await ended
    stop = new AbortController()
    output = ''
    await start('--host', 'webhook.test')
    expect(await readFile(path.join(folder, 'state/ca.pem'), 'utf8')).not.toBe(ca)
  })

  test.each([
    {
      name: 'a port that is none',
      args: ['--port', 'x'],
      says: '--port x: expected a number from 0 to 65535',
    },
    {
      name: 'a config that is not there',
      args: ['--config', '/nowhere.yaml'],
      says: 'cannot read /nowhere.yaml: no such file or folder',
    },
  ])('$name is bad input', async ({ args, says }) => {
    ended = Promise.resolve(0)
    expect(await countersign(['dev', ...args])).toEqual({
      code: 2,
      out: '',
      err: `countersign dev: ${says}\n`,
    })
  })

  test('a folder that its certificate cannot be kept in is bad input, and nothing is left', async () => {
    ended = Promise.resolve(0)
    const config = path.join(folder, 'countersign.yaml')
    for (const [state, reason] of [
      [path.join(config, 'state'), 'a part of it is a file'],
      [config, 'there is a file of this name'],
      [path.join(folder, 'new', 'x'.repeat(300)), 'the name is too long'],
    ]) {
      const { code, err } = await countersign(['dev', '--config', config, '--state', state ?? ''])
      expect({ code, err }).toEqual({
        code: 2,
        err: `countersign dev: cannot write ${path.join(state ?? '', '.gitignore')}: ${reason}\n`,
      })
    }
    expect(await readdir(folder)).not.toContain('new')
  })

  test('a port that somebody else has is said so', async () => {
    await start()
    const { port } = new URL(urlOf('mutate'))
    const file = path.join(folder, 'countersign.yaml')
    const again = ['dev', '--config', file, '--port', port, '--state', path.join(folder, 'state')]
    expect(await countersign(again)).toEqual({
      code: 2,
      out: '',
      err: `countersign dev: port ${port} is in use; choose another with --port\n`,
    })
  })

  test('does not start without a policy: everything would be admitted', async () => {
    await rename(
      path.join(folder, 'policies/names.yaml'),
      path.join(folder, 'policies/names.yaml.bak'),
    )
    await start()
    expect(await ended).toBe(2)
    expect(output).toContain('a deployment without policies would admit everything')
  })

  test('does not start with a policy that has a fault', async () => {
    await writeFile(path.join(folder, 'policies/names.yaml'), policy('a').replace('spec:', 'spek:'))
    await start()
    expect(await ended).toBe(2)
    expect(output).toMatch(
      /^countersign dev: .*policies: \d faults?\n {2}.*names\.yaml:\d+:\d+ {2}/,
    )
  })
})
