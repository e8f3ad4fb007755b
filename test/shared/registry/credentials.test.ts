import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import type { RegistryCredential } from '#shared/ports.ts'
import { credentialsFrom, parseDockerConfig } from '#shared/registry/credentials.ts'
import { matchesHost, parseHostPattern } from '#shared/registry/host-pattern.ts'

const signal = new AbortController().signal

function encode(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** The faults a config is refused with. */
function faultsOf(config: unknown): readonly { path: string; message: string }[] {
  try {
    parseDockerConfig(typeof config === 'string' ? config : JSON.stringify(config), 'regcred')
    return []
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: 'CONFIG_INVALID' })
    return (thrown as AdmissionError).faults
  }
}

/** Under which of the keys the login for a host and repository is found. */
async function keyFor(
  keys: readonly string[],
  host: string,
  repository = 'team/app',
): Promise<string | undefined> {
  const auths = Object.fromEntries(keys.map((key) => [key, { username: key, password: 'p' }]))
  const lookUp = credentialsFrom(parseDockerConfig(JSON.stringify({ auths }), 'regcred'))
  const found = await lookUp(host, repository, signal)
  return found?.kind === 'basic' ? found.username : undefined
}

/** Whether the login under a key is taken for a host and repository. */
async function covers(key: string, host: string, repository?: string): Promise<boolean> {
  return (await keyFor([key], host, repository)) !== undefined
}

describe('an entry of a docker config', () => {
  test.each<{ name: string; entry: object; expected: RegistryCredential }>([
    {
      name: 'has its login in auth',
      entry: { auth: encode('user:pass') },
      expected: { kind: 'basic', username: 'user', password: 'pass' },
    },
    {
      name: 'may have colons in the password',
      entry: { auth: encode('user:a:b:') },
      expected: { kind: 'basic', username: 'user', password: 'a:b:' },
    },
    {
      name: 'may have an empty password',
      entry: { auth: encode('user:') },
      expected: { kind: 'basic', username: 'user', password: '' },
    },
    {
      name: 'may have a password beyond ASCII',
      entry: { auth: encode('user:pä✓') },
      expected: { kind: 'basic', username: 'user', password: 'pä✓' },
    },
    {
      name: 'may lack the padding',
      entry: { auth: encode('user:pass1').replace(/=+$/, '') },
      expected: { kind: 'basic', username: 'user', password: 'pass1' },
    },
    {
      name: 'may have NUL padding',
      entry: { auth: encode('user:pass\0\0') },
      expected: { kind: 'basic', username: 'user', password: 'pass' },
    },
    {
      name: 'has its login in two fields',
      entry: { username: 'user', password: 'pass', email: 'x' },
      expected: { kind: 'basic', username: 'user', password: 'pass' },
    },
    {
      name: 'has auth before the two fields',
      entry: { username: 'x', password: 'y', auth: encode('user:pass') },
      expected: { kind: 'basic', username: 'user', password: 'pass' },
    },
    {
      name: 'has its identity token before auth',
      entry: { auth: encode('00000000-0000-0000-0000-000000000000:'), identitytoken: 'id' },
      expected: { kind: 'identity', token: 'id' },
    },
    {
      name: 'has its identity token under the user of credential helpers',
      entry: { auth: encode('<token>:id') },
      expected: { kind: 'identity', token: 'id' },
    },
    {
      name: 'has the key of a Google service account as a password',
      entry: { auth: encode('_json_key:{"type": "service_account"}') },
      expected: { kind: 'basic', username: '_json_key', password: '{"type": "service_account"}' },
    },
    {
      name: 'has its registry token before all',
      entry: { auth: encode('user:pass'), identitytoken: 'id', registrytoken: 'reg' },
      expected: { kind: 'token', token: 'reg' },
    },
  ])('$name', async ({ entry, expected }) => {
    for (const config of [
      { auths: { 'registry.example': entry } },
      { 'registry.example': entry },
    ]) {
      const lookUp = credentialsFrom(parseDockerConfig(JSON.stringify(config), 'regcred'))
      expect(await lookUp('registry.example', 'a', signal)).toEqual(expected)
    }
  })

  test.each([
    {
      name: 'no login at all',
      entry: {},
      message: 'none of auth, username with password, identitytoken, registrytoken',
    },
    {
      name: 'a user without a password',
      entry: { username: 'user' },
      message: 'none of auth, username with password, identitytoken, registrytoken',
    },
    {
      name: 'an inherited login',
      entry: JSON.parse('{"__proto__":{"username":"a","password":"b"}}'),
      message: 'none of auth, username with password, identitytoken, registrytoken',
    },
    {
      name: 'an auth that is a number',
      entry: { auth: 7 },
      message: 'none of auth, username with password, identitytoken, registrytoken',
    },
    {
      name: 'an auth that is not base64',
      entry: { auth: 'user:s3cr3t' },
      message: 'auth is not base64',
    },
    { name: 'an auth of two alphabets', entry: { auth: '_-_-' }, message: 'auth is not base64' },
    {
      name: 'an auth without a colon',
      entry: { auth: encode('s3cr3t') },
      message: 'auth is not the base64 of username:password',
    },
    {
      name: 'an auth without a user',
      entry: { auth: encode(':s3cr3t') },
      message: 'auth is not the base64 of username:password',
    },
    {
      name: 'an auth that is not UTF-8',
      entry: { auth: Buffer.from('u:\xff', 'latin1').toString('base64') },
      message: 'auth is not the base64 of UTF-8 text',
    },
    { name: 'a string', entry: 's3cr3t', message: 'not an object' },
    { name: 'null', entry: null, message: 'not an object' },
    { name: 'a list', entry: [], message: 'not an object' },
  ])('is refused with $name, and the secret not repeated', ({ entry, message }) => {
    const path = 'regcred.auths["registry.example"]'
    expect(faultsOf({ auths: { 'registry.example': entry } })).toEqual([{ path, message }])
  })
})

describe('a docker config', () => {
  const entry = { auth: encode('user:pass') }
  const helper = 'credential helpers are not run here; write the credential into auths'
  test.each([
    { name: 'with entries', config: { auths: { 'registry.example': entry } }, faults: [] },
    { name: 'without entries', config: { auths: {} }, faults: [] },
    { name: 'that is empty', config: {}, faults: [] },
    {
      name: 'with other settings',
      config: { auths: {}, HttpHeaders: { a: 'b' }, detachKeys: 'x' },
      faults: [],
    },
    {
      name: 'with credHelpers',
      config: { auths: { 'registry.example': entry }, credHelpers: { 'x.example': 'ecr-login' } },
      faults: [{ path: 'regcred.credHelpers', message: helper }],
    },
    {
      name: 'with credsStore',
      config: { credsStore: 'desktop' },
      faults: [{ path: 'regcred.credsStore', message: helper }],
    },
    {
      name: 'with auths that are a list',
      config: { auths: [] },
      faults: [{ path: 'regcred.auths', message: 'not an object' }],
    },
    {
      name: 'with auths that are null',
      config: { auths: null },
      faults: [{ path: 'regcred.auths', message: 'not an object' }],
    },
    {
      name: 'that is a list',
      config: [],
      faults: [{ path: 'regcred', message: 'not a JSON object' }],
    },
    {
      name: 'that is not JSON',
      config: '{"auths":{"a.example":{"auth":"s3cr3t"',
      faults: [{ path: 'regcred', message: 'not a JSON object' }],
    },
    {
      name: 'with bad keys, all of them named, a login in one left out',
      config: {
        auths: {
          'user:s3cr3t@a.example': entry,
          'b.example?x': entry,
          '': entry,
          'c.example:x': entry,
        },
      },
      faults: ['a.example', 'b.example?x', '', 'c.example:x'].map((key) => ({
        path: `regcred.auths[${JSON.stringify(key)}]`,
        message: 'not host[:port][/path], with * only inside the labels of the host',
      })),
    },
  ])('$name', ({ config, faults }) => {
    expect(faultsOf(config)).toEqual(faults)
  })
})

describe('the login for a host', () => {
  test.each([
    { key: 'registry.example', host: 'registry.example', expected: true },
    { key: 'Registry.Example', host: 'registry.example', expected: true },
    { key: 'https://registry.example', host: 'registry.example', expected: true },
    { key: 'http://registry.example/', host: 'registry.example', expected: true },
    { key: 'https://registry.example/v1/', host: 'registry.example', expected: true },
    { key: 'https://registry.example/v2/', host: 'registry.example', expected: true },
    { key: 'registry.example:5000', host: 'registry.example:5000', expected: true },
    { key: '[::1]:5000', host: '[::1]:5000', expected: true },
    { key: '127.0.0.1:5000', host: '127.0.0.1:5000', expected: true },
    // never by substring
    { key: 'registry.example', host: 'registry.example.evil.test', expected: false },
    { key: 'registry.example', host: 'evil-registry.example', expected: false },
    { key: 'registry.example', host: 'a.registry.example', expected: false },
    { key: 'registry.example', host: 'example', expected: false },
    { key: 'registry.example', host: 'registry.example:5000', expected: false },
    { key: 'registry.example:5000', host: 'registry.example', expected: false },
    { key: 'registry.example:500', host: 'registry.example:5000', expected: false },
    { key: 'registry.example', host: 'registry-example', expected: false },
    { key: 'registry.example', host: '', expected: false },
    { key: 'registry.example', host: 'registry.example/team', expected: false },
    // one registry, three names
    { key: 'https://index.docker.io/v1/', host: 'registry-1.docker.io', expected: true },
    { key: 'docker.io', host: 'registry-1.docker.io', expected: true },
    { key: 'registry-1.docker.io', host: 'index.docker.io', expected: true },
    { key: 'docker.io', host: 'auth.docker.io', expected: false },
    { key: 'docker.io', host: 'docker.io.evil.test', expected: false },
    { key: 'docker.io:443', host: 'registry-1.docker.io', expected: false },
    // globs stay inside their label
    { key: '*.registry.example', host: 'eu.registry.example', expected: true },
    { key: '*.registry.example', host: 'registry.example', expected: false },
    { key: '*.registry.example', host: 'a.b.registry.example', expected: false },
    { key: '*.registry.example', host: 'eu.registry.example.evil.test', expected: false },
    { key: '*', host: 'registry.example', expected: false },
    { key: '*.*', host: 'registry.example', expected: true },
    { key: 'eu-*.registry.example', host: 'eu-1.registry.example', expected: true },
    { key: 'eu-*.registry.example', host: 'us-1.registry.example', expected: false },
    { key: 'a*b*c.example', host: 'axxbyyc.example', expected: true },
    { key: 'a*b*c.example', host: 'ac.example', expected: false },
    { key: 'ab*ba.example', host: 'aba.example', expected: false },
    { key: '*.registry.example:5000', host: 'eu.registry.example:5000', expected: true },
    { key: '*.registry.example', host: 'eu.registry.example:5000', expected: false },
  ])('under $key at $host: $expected', async ({ key, host, expected }) => {
    expect(await covers(key, host)).toBe(expected)
  })

  test.each([
    { key: 'registry.example/team', repository: 'team', expected: true },
    { key: 'registry.example/team', repository: 'team/app', expected: true },
    { key: 'registry.example/team/', repository: 'team/app', expected: true },
    { key: 'registry.example/team/app', repository: 'team/app', expected: true },
    { key: 'registry.example/v2/team', repository: 'team/app', expected: true },
    { key: 'registry.example/team', repository: 'teams/app', expected: false },
    { key: 'registry.example/team', repository: 'other/team', expected: false },
    { key: 'registry.example/team/app', repository: 'team', expected: false },
    { key: 'registry.example/te*', repository: 'team', expected: false },
  ])('under $key for $repository: $expected', async ({ key, repository, expected }) => {
    expect(await covers(key, 'registry.example', repository)).toBe(expected)
  })

  test.each([
    { keys: ['registry.example', 'registry.example/team'], expected: 'registry.example/team' },
    {
      keys: ['registry.example/team', 'registry.example/team/app', 'registry.example'],
      expected: 'registry.example/team/app',
    },
    { keys: ['*.example', 'registry.example'], expected: 'registry.example' },
    { keys: ['*.*', '*.example'], expected: '*.example' },
    { keys: ['registry.example', '*.example/team'], expected: '*.example/team' },
    {
      keys: ['https://registry.example', 'registry.example'],
      expected: 'https://registry.example',
    },
  ])('of $keys is the most specific one', async ({ keys, expected }) => {
    expect(await keyFor(keys, 'registry.example')).toBe(expected)
  })
})

describe('properties', () => {
  const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?$/)
  const host = fc
    .tuple(
      fc.array(label, { minLength: 1, maxLength: 4 }),
      fc.option(fc.integer({ min: 1, max: 65_535 })),
    )
    .map(([labels, port]) => labels.join('.') + (port === null ? '' : `:${port}`))
  const credential = fc.oneof(
    fc.record({
      kind: fc.constant('basic' as const),
      username: fc.string({ minLength: 1 }).map((text) => `u${text.replaceAll(':', '')}`),
      password: fc.string({ unit: 'grapheme' }).map((text) => `${text.replaceAll('\0', '')}p`),
    }),
    fc.record({ kind: fc.constant('identity' as const), token: fc.string({ minLength: 1 }) }),
    fc.record({ kind: fc.constant('token' as const), token: fc.string({ minLength: 1 }) }),
  )

  function entryOf(it: RegistryCredential): object {
    if (it.kind === 'basic') return { auth: encode(`${it.username}:${it.password}`) }
    return it.kind === 'identity' ? { identitytoken: it.token } : { registrytoken: it.token }
  }

  test('a credential written for a host is found there and at no other host', async () => {
    await fc.assert(
      fc.asyncProperty(host, host, credential, async (written, asked, expected) => {
        const config = JSON.stringify({ auths: { [written]: entryOf(expected) } })
        const lookUp = credentialsFrom(parseDockerConfig(config, 'regcred'))
        expect(await lookUp(written, 'a', signal)).toEqual(expected)
        expect(await lookUp(asked, 'a', signal)).toEqual(asked === written ? expected : undefined)
      }),
    )
  })

  test('parsing never throws but CONFIG_INVALID, without a secret', () => {
    const json = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .dictionary(fc.oneof(fc.string(), host), fc.jsonValue())
        .map((auths) => JSON.stringify({ auths })),
    )
    fc.assert(
      fc.property(json, (text) => {
        try {
          parseDockerConfig(text, 'regcred')
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(AdmissionError)
          expect(thrown).toMatchObject({ code: 'CONFIG_INVALID' })
        }
      }),
    )
  })

  test('a glob matches what a backtracking matcher matches', () => {
    const glob = fc.stringMatching(/^[ab*]{1,8}$/)
    const name = fc.stringMatching(/^[ab]{1,8}$/)
    fc.assert(
      fc.property(glob, name, (pattern, text) => {
        const oracle = new RegExp(`^${pattern.replaceAll('*', '[ab]*')}$`).test(text)
        expect(matchesHost(parseHostPattern(pattern)!, text, 'a')).toBe(oracle)
      }),
      { numRuns: 1000 },
    )
  })
})
