import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nodeHash } from '#functions/hash-node.ts'
import { type ObjectStore, startObjects } from '#functions/local/objects.ts'
import type { BundleSource } from '#functions/policy-bundle/config.ts'
import { fetchBundle } from '#functions/policy-bundle/fetch.ts'
import { s3Request } from '#functions/policy-bundle/s3.ts'
import type { Platform } from '#functions/ports.ts'
import { fromUtf8 } from '#shared/bytes.ts'
import { configWith, NOW, newKey } from './setup.ts'

type S3Source = Extract<BundleSource, { kind: 's3' }>
const READER = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', sessionToken: 'token' }
const ENV = {
  AWS_ACCESS_KEY_ID: READER.accessKeyId,
  AWS_SECRET_ACCESS_KEY: READER.secretAccessKey,
  AWS_SESSION_TOKEN: READER.sessionToken,
  AWS_REGION: 'eu-west-1',
}
const config = configWith({ url: 'https://x.example/' }, newKey())
const platformWith = (env: Platform['env']): Platform => ({
  env,
  log: () => undefined,
  hash: nodeHash,
  maxBodyBytes: 1,
  now: () => NOW,
})
const contextWith = (env: Platform['env'] = ENV) => ({
  config,
  platform: platformWith(env),
  signal: new AbortController().signal,
})
const source = (members: Partial<S3Source> = {}): S3Source => ({
  kind: 's3',
  bucket: 'policies',
  key: 'bundles/prod.json',
  ...members,
})

describe('an object in S3', () => {
  test.each<[string, Partial<S3Source>, string]>([
    [
      'has its bucket for a host',
      {},
      'https://policies.s3.eu-west-1.amazonaws.com/bundles/prod.json',
    ],
    [
      'whose bucket has dots has it in the path, where certificates fit',
      { bucket: 'policies.example.com' },
      'https://s3.eu-west-1.amazonaws.com/policies.example.com/bundles/prod.json',
    ],
    [
      'in China has its own domain',
      { region: 'cn-north-1' },
      'https://policies.s3.cn-north-1.amazonaws.com.cn/bundles/prod.json',
    ],
    [
      'of another store is below its address',
      { endpoint: 'https://store.internal:9000' },
      'https://store.internal:9000/policies/bundles/prod.json',
    ],
    [
      'with another alphabet is escaped as it is signed',
      { key: "a!b*c(d)'~/e" },
      'https://policies.s3.eu-west-1.amazonaws.com/a%21b%2Ac%28d%29%27~/e',
    ],
  ])('%s', async (_, members, url) => {
    expect((await s3Request(source(members), contextWith())).url).toBe(url)
  })

  test.each<[string, Platform['env'], string]>([
    [
      'credentials',
      { AWS_REGION: 'eu-west-1' },
      's3://policies/bundles/prod.json: no AWS credentials',
    ],
    [
      'a region',
      { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' },
      's3://policies/bundles/prod.json: no region: set policyBundle.region',
    ],
  ])('cannot be read without %s', async (_, env, message) => {
    await expect(fetchBundle({ source: source() }, undefined, contextWith(env))).rejects.toThrow(
      expect.objectContaining({ code: 'POLICY_BUNDLE_UNAVAILABLE', message }),
    )
  })
})

describe('a store that checks signatures', () => {
  let store: ObjectStore
  beforeEach(async () => {
    store = await startObjects({ reader: { ...READER, region: 'eu-west-1' }, now: () => NOW })
  })
  afterEach(() => store.close())
  const at = (members: Partial<S3Source> = {}) => ({
    source: source({ endpoint: store.url, ...members }),
  })

  test('gives the object, and 304 to who knows it', async () => {
    const etag = store.put('/policies/bundles/prod.json', 'content')
    const found = await fetchBundle(at(), undefined, contextWith())
    expect(found).toMatchObject({ status: 'found', etag })
    expect(found.status === 'found' && fromUtf8(found.file)).toBe('content')
    expect(await fetchBundle(at(), etag, contextWith())).toEqual({ status: 'unchanged' })
    store.put('/policies/bundles/prod.json', 'other')
    expect(await fetchBundle(at(), etag, contextWith())).toMatchObject({ status: 'found' })
  })

  test.each<[string, Platform['env'], Partial<S3Source>]>([
    ['with another secret', { ...ENV, AWS_SECRET_ACCESS_KEY: 'other' }, {}],
    ['by somebody else', { ...ENV, AWS_ACCESS_KEY_ID: 'OTHER' }, {}],
    ['of another session', { ...ENV, AWS_SESSION_TOKEN: 'other' }, {}],
    ['for another region', ENV, { region: 'eu-central-1' }],
    ['for what is not there', ENV, { key: 'bundles/staging.json' }],
  ])('refuses a request %s, and nothing of it is told', async (_, env, members) => {
    store.put('/policies/bundles/prod.json', 'content')
    const fetching = fetchBundle(at(members), undefined, contextWith(env))
    await expect(fetching).rejects.toMatchObject({ code: 'POLICY_BUNDLE_UNAVAILABLE' })
    const { message } = await fetching.catch((thrown) => thrown)
    expect(message).toMatch(/^s3:\/\/policies\/bundles\/(prod|staging)\.json: answered 40[03]/)
    expect(message).not.toMatch(/AKID|secret|token|Signature/)
  })
})
