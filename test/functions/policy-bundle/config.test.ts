import { describe, expect, test } from 'vitest'
import { parseConfig } from '#functions/config.ts'
import { AdmissionError } from '#shared/errors.ts'
import { hashOf } from '../../contract/review.ts'

const parsed = (policyBundle: object, members: object = {}) =>
  parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: [hashOf('x')] }],
    policyBundle,
    ...members,
  }).policyBundle

const URL_SOURCE = { url: 'https://policies.example.com/prod.json' }
const KEY = { key: { file: 'policies.pub' } }
const ARN = 'arn:aws:kms:eu-west-1:111122223333:alias/policies'
const DEFAULTS = { refreshSeconds: 60, maxAgeSeconds: 3600, onUnavailable: 'embedded' }

describe('policyBundle', () => {
  test.each<[string, object, object]>([
    ['HTTPS', URL_SOURCE, { kind: 'url', ...URL_SOURCE }],
    [
      'S3',
      { s3: 's3://policies/bundles/prod.json' },
      { kind: 's3', bucket: 'policies', key: 'bundles/prod.json' },
    ],
    [
      'a store that speaks S3',
      {
        s3: 's3://policies/prod.json',
        region: 'eu-west-1',
        endpoint: 'https://store.internal:9000',
      },
      {
        kind: 's3',
        bucket: 'policies',
        key: 'prod.json',
        region: 'eu-west-1',
        endpoint: 'https://store.internal:9000',
      },
    ],
    [
      'R2',
      { r2: { binding: 'POLICIES', key: 'prod.json' } },
      { kind: 'r2', binding: 'POLICIES', key: 'prod.json' },
    ],
  ])('names a place: %s', (_, place, source) => {
    expect(parsed({ ...place, ...KEY })).toEqual({ source, ...KEY, ...DEFAULTS })
  })

  test.each<[string, object, string[]]>([
    ['no place', KEY, ['policyBundle']],
    ['two places', { ...URL_SOURCE, s3: 's3://policies/prod.json', ...KEY }, ['policyBundle']],
    ['no key', URL_SOURCE, ['policyBundle.key']],
    [
      'two keys',
      { ...URL_SOURCE, key: { file: 'a', kms: `awskms:///${ARN}` } },
      ['policyBundle.key'],
    ],
    ['plain HTTP', { url: 'http://policies.example.com/prod.json', ...KEY }, ['policyBundle.url']],
    ['a URL with a query', { url: 'https://x.example/p?sig=secret', ...KEY }, ['policyBundle.url']],
    ['a URL with a login', { url: 'https://me:secret@x.example/p', ...KEY }, ['policyBundle.url']],
    ['an object above its bucket', { s3: 's3://policies/../other/p', ...KEY }, ['policyBundle.s3']],
    ['a bucket without an object', { s3: 's3://policies/', ...KEY }, ['policyBundle.s3']],
    [
      'a region without S3',
      { ...URL_SOURCE, region: 'eu-west-1', ...KEY },
      ['policyBundle.region'],
    ],
    [
      'an alarm before the next look',
      { ...URL_SOURCE, ...KEY, refreshSeconds: 600, maxAgeSeconds: 900 },
      ['policyBundle.maxAgeSeconds'],
    ],
    [
      'a look every second',
      { ...URL_SOURCE, ...KEY, refreshSeconds: 1 },
      ['policyBundle.refreshSeconds'],
    ],
    [
      'a key without a region',
      { ...URL_SOURCE, key: { kms: 'awskms:///alias/policies' } },
      ['policyBundle.key.kms'],
    ],
    [
      'a key in Vault, which nobody signs bundles with',
      { ...URL_SOURCE, key: { kms: 'hashivault://policies' } },
      ['policyBundle.key.kms'],
    ],
    [
      'something for later',
      { ...URL_SOURCE, ...KEY, onUnavailable: 'admit' },
      ['policyBundle.onUnavailable'],
    ],
    ['an unknown key', { ...URL_SOURCE, ...KEY, keys: [] }, ['policyBundle.keys']],
  ])('with %s is a fault at its place', (_, policyBundle, paths) => {
    try {
      parsed(policyBundle)
      expect.unreachable()
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(AdmissionError)
      const { code, faults, message } = thrown as AdmissionError
      expect([code, faults.map(({ path }) => path)]).toEqual(['CONFIG_INVALID', paths])
      expect(message).not.toContain('secret')
    }
  })
})
