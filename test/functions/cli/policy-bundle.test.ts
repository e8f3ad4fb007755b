import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { hashOf } from '../../contract/review.ts'
import { keyAttestor } from '../../shared/policy/documents.ts'
import { forbids, newKey } from '../policy-bundle/setup.ts'
import { countersign } from './harness.ts'

const KEY = newKey()
const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'example' }

let folder: string
const at = (name: string) => path.join(folder, name)

interface Written {
  bundle?: object | null
  members?: object
  policies?: readonly object[]
}

/** A project whose bundles are signed with the key of a file. */
async function project({
  bundle = {},
  members = {},
  policies = [forbids('latest')],
}: Written = {}) {
  const url = 'https://policies.example.com/prod.json'
  const config = {
    policies: 'policies.json',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: [hashOf('x')] }],
    ...(bundle && { policyBundle: { url, key: { file: 'policies.pub' }, ...bundle } }),
    ...members,
  }
  await writeFile(at('countersign.yaml'), JSON.stringify(config))
  const items = { apiVersion: 'v1', kind: 'List', items: policies }
  await writeFile(at('policies.json'), JSON.stringify(items))
  await writeFile(at('policies.pub'), KEY.pem)
  const pem = KEY.privateKey.export({ type: 'pkcs8', format: 'pem' })
  await writeFile(at('policies.key'), pem)
}

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  await project()
})
afterEach(() => rm(folder, { recursive: true }))

const bundle = (...args: string[]) =>
  countersign(['bundle', '--config', at('countersign.yaml'), ...args], { env: CREDENTIALS })
const make = (...args: string[]) =>
  bundle('--key', at('policies.key'), '--out', at('out/prod.json'), ...args)
const check = (...args: string[]) => bundle('--check', at('out/prod.json'), ...args)

describe('bundle', () => {
  test('writes what --check finds good, and both say what is in it', async () => {
    const made = await make('--sequence', '7', '--expires-in', '30d', '--output', 'json')
    expect([made.code, made.err]).toEqual([0, ''])
    const data = JSON.parse(made.out)
    expect(data).toEqual({
      verdict: 'accepted',
      deployment: expect.stringMatching(/^[0-9a-f]{64}$/),
      policySets: { prod: expect.stringMatching(/^[0-9a-f]{12}$/) },
      file: expect.stringMatching(/prod\.json$/),
      bytes: (await readFile(at('out/prod.json'))).length,
      bundle: expect.stringMatching(/^[0-9a-f]{64}$/),
      sequence: 7,
      issuedAt: expect.any(String),
      ageSeconds: 0,
      expiresAt: expect.any(String),
      endpoints: ['https://admission.example.com'],
      clusters: ['prod'],
      policies: ['tags'],
    })
    expect(Date.parse(data.expiresAt) - Date.parse(data.issuedAt)).toBe(30 * 86_400_000)
    const checked = await check('--output', 'yaml')
    expect(checked.code).toBe(0)
    expect(parse(checked.out)).toEqual({ ...data, ageSeconds: expect.any(Number) })
    const { out } = await check()
    expect(out).toContain('functions take it:')
    expect(out).toContain('policies     tags')
    expect(out).toContain(data.bundle)
  })

  test('has the hash of the deployment and the policy sets that build has', async () => {
    const { out } = await make('--output', 'json')
    const built = await countersign([
      'build',
      '--config',
      at('countersign.yaml'),
      '--out',
      at('dist'),
      '--output',
      'json',
    ])
    const { deployment, policySets } = JSON.parse(built.out)
    expect(JSON.parse(out)).toMatchObject({ deployment, policySets })
  }, 60_000)

  test('signs the same payload for the same policies, whatever the order of their files', async () => {
    await project({ policies: [forbids('a', {}, 'a'), forbids('b', {}, 'b')] })
    const payload = async () => {
      await make('--sequence', '7')
      const { payload: text } = JSON.parse(await readFile(at('out/prod.json'), 'utf8'))
      return Buffer.from(text, 'base64')
        .toString()
        .replace(/"issuedAt":"[^"]*"/, '')
    }
    const first = await payload()
    const places = (text: string) => text.replaceAll(/"source":"[^"]*"/g, '')
    await project({ policies: [forbids('b', {}, 'b'), forbids('a', {}, 'a')] })
    expect(places(await payload())).toBe(places(first))
  })

  test.each<[string, Written, string[], RegExp]>([
    ['without a policyBundle in the config', { bundle: null }, [], /has no policyBundle/],
    ['with a policy that has a fault', { policies: [{ kind: 'Pod' }] }, [], /fault/],
    ['without any policy', { policies: [] }, [], /a deployment without policies would admit/],
    [
      'for a cluster whose policies are not there',
      { members: { clusters: [{ name: 'prod', tokens: [hashOf('x')], policies: ['other'] }] } },
      [],
      /no policy of the folder is named "other"/,
    ],
    ['with a sequence that is none', {}, ['--sequence', '0'], /--sequence: expected/],
    ['with a lifetime that is none', {}, ['--expires-in', 'ever'], /--expires-in: expected/],
    [
      'with a sequence below minSequence',
      { bundle: { minSequence: 9 } },
      ['--sequence', '8'],
      /minSequence is 9/,
    ],
    [
      'with a key that is not the one of the config',
      {},
      ['--key', 'other.key'],
      /its signature is not by the key of policyBundle\.key \(policies\.pub\)/,
    ],
    ['with a key that is none', {}, ['--key', 'policies.pub'], /holds no private key in PEM/],
    ['with a key that is not there', {}, ['--key', 'nowhere.key'], /cannot read/],
  ])('%s is bad input, and nothing is written', async (_, written, args, message) => {
    await project(written)
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
    await writeFile(at('other.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const where = args.map((arg) => (/\.(key|pub)$/.test(arg) ? at(arg) : arg))
    const { code, err, out } = await make(...where)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^countersign bundle: /)
    expect(err).toMatch(message)
    expect(await readdir(folder)).not.toContain('out')
  })

  test('without --key is told which one is meant', async () => {
    const { code, err } = await bundle('--out', at('out/prod.json'))
    expect(code).toBe(2)
    expect(err).toContain('give --key FILE, the PEM private key that belongs to')
  })

  test('a config whose key is not there, or none, has a fault with its place', async () => {
    await writeFile(at('policies.pub'), 'ssh-ed25519 AAAA')
    const { code, err } = await make()
    expect(code).toBe(2)
    expect(err).toMatch(
      /countersign\.yaml:\d+:\d+ {2}policyBundle\.key\.file: public key: found no PEM block/,
    )
  })
})

describe('bundle --check', () => {
  test.each<[string, (text: string) => string, RegExp]>([
    [
      'that was changed',
      (text) => text.replace('"payload":"ey', '"payload":"ez'),
      /signature is not by/,
    ],
    ['that is none', () => '<html>', /JSON is not valid/],
    [
      'that is too large',
      (text) => text + ' '.repeat(4 * 2 ** 20),
      /functions read at most 4194304/,
    ],
  ])('of a file %s says no', async (_, change, reason) => {
    await make()
    await writeFile(at('out/prod.json'), change(await readFile(at('out/prod.json'), 'utf8')))
    const { code, out } = await check('--output', 'json')
    expect(code).toBe(1)
    expect(JSON.parse(out)).toEqual({ verdict: 'refused', reason: expect.stringMatching(reason) })
  })

  test('of a file for others says whom it is for', async () => {
    await make('--sequence', '3')
    await project({ members: { endpoint: 'https://staging.example.com' } })
    const { code, out } = await check('--output', 'json')
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      verdict: 'refused',
      reason: expect.stringContaining('it is for https://admission.example.com'),
      sequence: 3,
      policies: ['tags'],
    })
    expect((await check()).out).toContain('sequence     3')
  })

  test('of what has no end says no as well', async () => {
    const { code, out } = await bundle('--check', '/dev/zero')
    expect(code).toBe(1)
    expect(out).toContain('/dev/zero has more bytes than it says; functions read at most 4194304')
  })

  test('of a folder is bad input', async () => {
    const { code, err } = await bundle('--check', folder)
    expect(code).toBe(2)
    expect(err).toMatch(/cannot read .*: is a folder/)
  })

  test('of a file that is not there is bad input', async () => {
    const { code, err } = await check()
    expect(code).toBe(2)
    expect(err).toMatch(/cannot read .*prod\.json: no such file/)
  })
})

describe('bundle with a key in KMS', () => {
  let kms: KmsEmulator
  beforeAll(async () => {
    kms = await startKms()
    const specs = ['ECC_NIST_P256', 'ECC_NIST_P384', 'RSA_2048', 'ECC_NIST_EDWARDS25519'] as const
    for (const spec of specs) {
      await kms.createKey({ spec, usage: 'SIGN_VERIFY', alias: `alias/${spec}` })
    }
    await kms.createKey({ spec: 'HMAC_256', usage: 'GENERATE_VERIFY_MAC', alias: 'alias/hmac' })
  }, 60_000)
  afterAll(() => kms?.close())

  const reference = (alias: string) => `awskms://${new URL(kms.url).host}/alias/${alias}`
  const withKms = (alias: string, more: Written = {}) =>
    project({
      bundle: { key: { kms: reference(alias) } },
      members: { kms: { region: kms.region, endpoints: [kms.url] } },
      ...more,
    })
  const sign = (...args: string[]) => bundle('--out', at('out/prod.json'), ...args)

  test.each(['ECC_NIST_P256', 'ECC_NIST_P384', 'RSA_2048'])('%s signs there', async (spec) => {
    await withKms(spec)
    const before = kms.calls.Sign ?? 0
    expect(await sign()).toMatchObject({ code: 0, err: '' })
    expect(kms.calls.Sign).toBe(before + 1)
    expect((await check()).code).toBe(0)
  })

  test.each([
    ['hmac', /KMS/],
    ['nobody', /KMS GetPublicKey of alias\/nobody/],
    ['ECC_NIST_EDWARDS25519', /an Ed25519 key, and KMS signs at most 4096 bytes/],
  ])('%s cannot', async (alias, message) => {
    const many = Array.from({ length: 9 }, (_, index) => forbids('latest', {}, `p${index}`))
    await withKms(alias, { policies: many })
    const { code, err } = await sign()
    expect(code).toBe(2)
    expect(err).toMatch(message)
    expect(await readdir(folder)).not.toContain('out')
  })

  test('takes no private key beside it', async () => {
    await withKms('ECC_NIST_P256')
    const { code, err } = await sign('--key', at('policies.key'))
    expect(code).toBe(2)
    expect(err).toContain('which signs in KMS: leave --key out')
  })

  test('carries the keys of its policies with --pin-keys, as build does', async () => {
    const attestors = [keyAttestor('release', { kms: reference('RSA_2048') })]
    await withKms('ECC_NIST_P256', { policies: [forbids('latest', { attestors })] })
    const { code, out } = await sign('--pin-keys', '--output', 'json')
    expect(code).toBe(0)
    // That of the policy, and that of the bundle, which counts only where a function was built with it.
    expect(JSON.parse(out)).toMatchObject({ pinnedKeys: 2 })
  })
})
