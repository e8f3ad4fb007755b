import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseConfig } from '#functions/config.ts'
import { CONFIG_SCHEMA } from '#functions/config-schema.ts'
import { endpointOf, endpointsOf } from '#functions/endpoints.ts'
import { AdmissionError } from '#shared/errors.ts'

const hash = (digit: string) => digit.repeat(64)

const minimal = {
  policies: 'policies',
  endpoint: 'https://admission.example.com',
  outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
  clusters: [{ name: 'prod', tokens: [hash('a')] }],
}

/** The minimal config with one place set to another value, or removed with undefined. */
function having(path: string, value: unknown): unknown {
  const copy = structuredClone<Record<string, unknown>>(minimal)
  const keys = path.split('.')
  let at = copy
  for (const key of keys.slice(0, -1)) {
    at[key] ??= {}
    at = at[key] as Record<string, unknown>
  }
  if (value === undefined) delete at[keys.at(-1)!]
  else at[keys.at(-1)!] = value
  return copy
}

function faultsOf(input: unknown) {
  try {
    parseConfig(input)
  } catch (error) {
    if (error instanceof AdmissionError && error.code === 'CONFIG_INVALID') return error.faults
    throw error
  }
  return []
}

describe('parseConfig', () => {
  test('fills in every default', () => {
    expect(parseConfig(minimal)).toEqual({
      policies: 'policies',
      endpoint: 'https://admission.example.com',
      outcomes: {
        key: { kind: 'secrets', secrets: [{ id: 'a', env: 'SEAL' }] },
        lifetimeSeconds: 120,
        onMissing: 'verify',
      },
      kms: { endpoints: [], verifyRemotely: false },
      registries: { plainHttp: [], credentials: [] },
      events: { log: true, batch: 100, sinks: [] },
      clusters: [{ name: 'prod', tokens: [hash('a')], timeouts: {} }],
    })
  })

  test('keeps everything a full config says', () => {
    const config = parseConfig({
      ...minimal,
      outcomes: {
        key: { kms: 'awskms:///alias/seal' },
        lifetimeSeconds: 60,
        onMissing: 'deny',
      },
      kms: { region: 'eu-central-1', endpoints: ['https://kms.example'], verifyRemotely: true },
      registries: {
        allow: ['ghcr.io', '[::1]:5000'],
        plainHttp: ['localhost:5000'],
        credentials: [
          { host: 'ghcr.io', usernameEnv: 'USER_NAME', passwordEnv: 'PASS_WORD' },
          { host: 'r.example', usernameEnv: 'U', passwordEnv: 'P', tokenHost: 'auth.example' },
          { dockerConfigEnv: 'DOCKER_CONFIG_JSON' },
        ],
      },
      clusters: [
        {
          name: 'prod',
          tokens: [hash('a'), hash('b')],
          bearer: [hash('c')],
          cidrs: ['203.0.113.0/24', '2001:db8::/32'],
          policies: ['signed-images'],
          timeouts: { mutateSeconds: 10, validateSeconds: 5 },
          notAfter: '2027-12-31T00:00:00Z',
        },
      ],
    })
    expect(config.outcomes.key).toEqual({
      kind: 'kms',
      key: { keyId: 'alias/seal', region: 'eu-central-1' },
    })
    expect(config.registries.credentials).toEqual([
      { kind: 'basic', host: 'ghcr.io', usernameEnv: 'USER_NAME', passwordEnv: 'PASS_WORD' },
      {
        kind: 'basic',
        host: 'r.example',
        usernameEnv: 'U',
        passwordEnv: 'P',
        tokenHost: 'auth.example',
      },
      { kind: 'docker-config', dockerConfigEnv: 'DOCKER_CONFIG_JSON' },
    ])
    expect(config.clusters[0]).toMatchObject({
      cidrs: ['203.0.113.0/24', '2001:db8::/32'],
      timeouts: { mutateSeconds: 10, validateSeconds: 5 },
      notAfter: '2027-12-31T00:00:00Z',
    })
  })

  test.each([
    ['no document', null, ['(document)']],
    ['a list for a document', [], ['(document)']],
    ['an empty document', {}, ['policies', 'endpoint', 'outcomes', 'clusters']],
    ['plain http', having('endpoint', 'http://a.example'), ['endpoint']],
    ['a query in the endpoint', having('endpoint', 'https://a.example/?x=1'), ['endpoint']],
    ['a user in the endpoint', having('endpoint', 'https://me@a.example/'), ['endpoint']],
    [
      'a host for one function alone, a bad one, and a key that is none',
      having('endpoint', { validate: 'http://b.example', imageReviews: 'https://c.example' }),
      ['endpoint.imageReviews', 'endpoint.mutate', 'endpoint.validate'],
    ],
    ...[
      'https://a\u0000b.example',
      'https://[::1',
      'https://a.example:99999',
      'https://a b.example',
      'https://a.example/%zz',
      'https://a.example/\u0007',
    ].map((url): [string, unknown, string[]] => [
      `an endpoint that API servers cannot read, ${JSON.stringify(url)}`,
      having('endpoint', url),
      ['endpoint'],
    ]),
    [
      'a day that no month has',
      having('clusters', [{ name: 'a', tokens: [hash('a')], notAfter: '2027-02-30T00:00:00Z' }]),
      ['clusters[0].notAfter'],
    ],
    ['an endpoint that is no text', having('endpoint', ['https://a.example']), ['endpoint']],
    ['no sealing key at all', having('outcomes.key', {}), ['outcomes.key']],
    [
      'both kinds of sealing key',
      having('outcomes.key', {
        kms: 'awskms:///arn:aws:kms:eu-central-1:111122223333:alias/x',
        secrets: [{ id: 'a', env: 'A' }],
      }),
      ['outcomes.key'],
    ],
    [
      'a KMS alias without a region',
      having('outcomes.key', { kms: 'awskms:///alias/seal' }),
      ['outcomes.key.kms'],
    ],
    [
      'a sealing key at an endpoint that is not listed',
      {
        ...minimal,
        outcomes: { key: { kms: 'awskms://kms.example/alias/seal' } },
        kms: { region: 'eu-central-1', endpoints: ['https://other.example'] },
      },
      ['outcomes.key.kms'],
    ],
    [
      'a KMS key that is none',
      having('outcomes.key', { kms: 'awskms://seal' }),
      ['outcomes.key.kms'],
    ],
    [
      'a seal that lives too long',
      having('outcomes.lifetimeSeconds', 301),
      ['outcomes.lifetimeSeconds'],
    ],
    [
      'a lifetime in words',
      having('outcomes.lifetimeSeconds', '60s'),
      ['outcomes.lifetimeSeconds'],
    ],
    ['an unknown mode', having('outcomes.onMissing', 'allow'), ['outcomes.onMissing']],
    [
      'a secret where its name belongs',
      having('outcomes.key.secrets', [{ id: 'a', env: 'c2VjcmV0IHNlY3JldA==' }]),
      ['outcomes.key.secrets[0].env'],
    ],
    [
      'two secrets of one id',
      having('outcomes.key.secrets', [
        { id: 'a', env: 'A' },
        { id: 'a', env: 'B' },
      ]),
      ['outcomes.key.secrets[1].id'],
    ],
    [
      'a foreign plain-text KMS endpoint',
      having('kms.endpoints', ['http://kms.example', 'http://127.0.0.1:4000']),
      ['kms.endpoints[0]'],
    ],
    [
      'a login without its password',
      having('registries.credentials', [{ host: 'ghcr.io', usernameEnv: 'U' }]),
      ['registries.credentials[0]'],
    ],
    [
      'a login that is both kinds',
      having('registries.credentials', [{ host: 'ghcr.io', dockerConfigEnv: 'D' }]),
      ['registries.credentials[0]'],
    ],
    [
      'a registry by URL',
      having('registries.allow', ['https://ghcr.io/']),
      ['registries.allow[0]'],
    ],
    ['no clusters', having('clusters', []), ['clusters']],
    [
      'two clusters of one name',
      having('clusters', [...minimal.clusters, ...minimal.clusters]),
      ['clusters[1].name'],
    ],
    [
      'a token instead of its hash, and three of them',
      having('clusters', [{ name: 'a', tokens: ['abc', hash('a'), hash('b')] }]),
      ['clusters[0].tokens', 'clusters[0].tokens[0]'],
    ],
    ['no token', having('clusters', [{ name: 'a', tokens: [] }]), ['clusters[0].tokens']],
    [
      'ranges that are none',
      having('clusters', [
        { name: 'a', tokens: [hash('a')], cidrs: ['10.0.0.1/8', '10.0.0.0', '::/129', '::/0'] },
      ]),
      ['clusters[0].cidrs[0]', 'clusters[0].cidrs[1]', 'clusters[0].cidrs[2]'],
    ],
    [
      'a timeout past what the API server accepts, a date that is none, a cluster name in capitals',
      having('clusters', [
        {
          name: 'Prod',
          tokens: [hash('a')],
          timeouts: { mutateSeconds: 31 },
          notAfter: 'tomorrow',
        },
      ]),
      ['clusters[0].name', 'clusters[0].timeouts.mutateSeconds', 'clusters[0].notAfter'],
    ],
    [
      'a tenant of which everything is wrong',
      having('clusters', [
        {
          name: 'a',
          tokens: [hash('a')],
          mtls: { fingerprints: ['AB:CD'], subjects: ['kube-apiserver'] },
          exceptions: ['let'],
          mode: 'warn',
          limits: { bodyBytes: 10, concurrentReviews: 0 },
          kubernetes: 'v1.31.2',
        },
        { name: 'b', tokens: [hash('a')], mtls: {} },
      ]),
      [
        'clusters[0].mtls.fingerprints[0]',
        'clusters[0].mtls.subjects[0]',
        'clusters[0].exceptions[0]',
        'clusters[0].mode',
        'clusters[0].limits.bodyBytes',
        'clusters[0].limits.concurrentReviews',
        'clusters[0].kubernetes',
        'clusters[1].mtls',
      ],
    ],
    [
      'image reviews that are off by a word, of no policy, and kept for too long or too short',
      having('clusters', [
        { name: 'a', tokens: [hash('a')], imageReview: false },
        { name: 'b', tokens: [hash('a')], imageReview: null },
        { name: 'c', tokens: [hash('a')], imageReview: { policies: [] } },
        {
          name: 'd',
          tokens: [hash('a')],
          imageReview: { policies: ['A', 'b', 'b'], allowTTLSeconds: 1801, denyTTLSeconds: 1 },
        },
      ]),
      [
        'clusters[0].imageReview',
        'clusters[1].imageReview',
        'clusters[2].imageReview.policies',
        'clusters[3].imageReview.policies[2]',
        'clusters[3].imageReview.policies[0]',
        'clusters[3].imageReview.allowTTLSeconds',
        'clusters[3].imageReview.denyTTLSeconds',
      ],
    ],
  ])('names %s', (_, input, paths) => {
    expect(faultsOf(input).map(({ path }) => path)).toEqual(paths)
  })

  test.each([
    ['true', true, {}],
    ['an empty object', {}, {}],
    [
      'policies and times',
      { policies: ['a', 'ns/b'], allowTTLSeconds: 1800, denyTTLSeconds: 2 },
      { policies: ['a', 'ns/b'], allowTTLSeconds: 1800, denyTTLSeconds: 2 },
    ],
    ['answers that nobody keeps', { denyTTLSeconds: 0 }, { denyTTLSeconds: 0 }],
    ['nothing', undefined, undefined],
  ])('switches image reviews of a cluster on with %s', (_, imageReview, expected) => {
    const cluster = { name: 'a', tokens: [hash('a')], ...(imageReview && { imageReview }) }
    expect(parseConfig(having('clusters', [cluster])).clusters[0]).toEqual({
      name: 'a',
      tokens: [hash('a')],
      timeouts: {},
      ...(expected && { imageReview: expected }),
    })
  })

  test('says what a value of none of the types that may stand there should be', () => {
    const clusters = [{ name: 'a', tokens: [hash('a')], imageReview: 'on' }]
    expect(faultsOf(having('clusters', clusters))).toEqual([
      { path: 'clusters[0].imageReview', message: 'expected true or an object, found a string' },
    ])
  })

  test('takes one URL for all functions, or one for each', () => {
    const whole = 'https://a.example/x'
    const each = { mutate: 'https://a.example/', validate: 'https://b.example' }
    expect(parseConfig(having('endpoint', whole)).endpoint).toBe(whole)
    expect(parseConfig(having('endpoint', each)).endpoint).toEqual(each)
    expect(endpointsOf(`${whole}//`)).toEqual({
      mutate: whole,
      validate: whole,
      imageReview: whole,
    })
    expect(endpointsOf(each)).toEqual({
      mutate: 'https://a.example',
      validate: 'https://b.example',
    })
    const all = { ...each, imageReview: 'https://c.example/' }
    expect(endpointsOf(all).imageReview).toBe('https://c.example')
  })

  test('wants the URL for image reviews where a cluster asks for them and functions have one each', () => {
    const each = { mutate: 'https://a.example', validate: 'https://b.example' }
    const clusters = [
      { name: 'a', tokens: [hash('a')] },
      { name: 'b', tokens: [hash('b')], imageReview: true },
    ]
    expect(faultsOf({ ...minimal, endpoint: each, clusters })).toEqual([
      {
        path: 'endpoint',
        message:
          'has no imageReview, which clusters[1].imageReview asks for: add the URL of that function',
      },
    ])
    const whole = { ...each, imageReview: 'https://c.example' }
    for (const endpoint of [whole, 'https://a.example']) {
      expect(faultsOf({ ...minimal, endpoint, clusters })).toEqual([])
    }
  })

  test('a cluster may reach the functions elsewhere, with what its image reviews need', () => {
    const each = { mutate: 'https://a.example', validate: 'https://b.example' }
    const own = (more: object) => ({
      name: 'a',
      tokens: [hash('a')],
      webhooks: { endpoint: each },
      ...more,
    })
    const config = parseConfig({ ...minimal, clusters: [own({})] })
    expect(endpointOf(config, config.clusters[0])).toEqual(each)
    expect(endpointOf(config, undefined)).toBe('https://admission.example.com')
    const faults = faultsOf({
      ...minimal,
      clusters: [
        own({ imageReview: true }),
        own({ name: 'b', webhooks: { endpoint: 'http://a.example' } }),
        { name: 'c', tokens: [hash('a')], imageReview: true },
      ],
    })
    expect(faults.map(({ path }) => path)).toEqual([
      'clusters[1].webhooks.endpoint',
      'clusters[0].webhooks.endpoint',
    ])
    // Whatever the others have.
    const mtls = own({ imageReview: true, webhooks: { endpoint: 'https://mtls.example' } })
    expect(faultsOf({ ...minimal, endpoint: each, clusters: [mtls] })).toEqual([])
  })

  test('names every bad key at once, unknown ones with what was probably meant', () => {
    const faults = faultsOf({
      ...minimal,
      endpoint: 7,
      regestries: {},
      constructor: {},
      clusters: [{ name: 'prod', token: [hash('a')], 'odd key': 1 }],
    })
    expect(faults).toEqual([
      { path: 'regestries', message: 'unknown key; did you mean "registries"?' },
      {
        path: 'constructor',
        message:
          'unknown key; known keys: policies, ignoreOtherKinds, exceptions, endpoint, outcomes, kms, registries, trust, revocation, events, metrics, http, policyBundle, clusters',
      },
      { path: 'endpoint', message: 'expected a string or an object, found 7' },
      { path: 'clusters[0].token', message: 'unknown key; did you mean "tokens"?' },
      {
        path: 'clusters[0]["odd key"]',
        message:
          'unknown key; known keys: name, tokens, bearer, mtls, cidrs, policies, exceptions, mode, limits, kubernetes, timeouts, webhooks, imageReview, api, notAfter',
      },
      { path: 'clusters[0].tokens', message: 'is required' },
    ])
  })

  test('repeats no value that could be a secret', () => {
    const secret = 'correct horse battery staple'
    const config = having('clusters', [{ name: secret, tokens: [secret], [secret]: 1 }])
    const values = faultsOf(config).map(({ message }) => message)
    expect(values.join('\n')).not.toContain(secret)
  })

  test('throws nothing but CONFIG_INVALID', () => {
    const keys = fc.constantFrom(
      'policies',
      'outcomes',
      'key',
      'kms',
      'clusters',
      'tokens',
      '__proto__',
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        fc.anything({ maxDepth: 1 }),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(keys, tie('tree'), { maxKeys: 4 }),
      ),
    }))
    fc.assert(
      fc.property(tree, (input) => {
        expect(faultsOf(input).length).toBeGreaterThan(0)
      }),
      { numRuns: 300 },
    )
  })
})

describe('infra/', () => {
  const file = (name: string) => readFile(new URL(`../../infra/${name}`, import.meta.url), 'utf8')

  // `npm run schema` writes it.
  test('the published JSON Schema is the one the code checks with', async () => {
    expect(JSON.parse(await file('countersign.schema.json'))).toEqual({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'countersign.yaml',
      ...CONFIG_SCHEMA,
    })
  })

  test('the example config is valid', async () => {
    const config = parseConfig(parse(await file('countersign.yaml')))
    expect(config.clusters.map(({ name }) => name)).toEqual(['example'])
  })
})

test('what YAML takes for something else is told with its fix, and never shown where a secret may stand', () => {
  const fault = (path: string, message: string) => ({ path, message })
  const cluster = {
    name: true,
    tokens: [12345678],
    kubernetes: 1.31,
    limits: { bodyBytes: '100000', concurrentReviews: '5x' },
  }
  expect(() => parseConfig(having('clusters', [cluster]))).toThrow(
    expect.objectContaining({
      faults: [
        fault('clusters[0].name', 'expected a string, found true or false: put it in quotes'),
        fault('clusters[0].tokens[0]', 'expected a string, found a number: put it in quotes'),
        fault(
          'clusters[0].limits.bodyBytes',
          'expected a whole number from 65536 to 7340032, found a string: leave the quotes out',
        ),
        fault(
          'clusters[0].limits.concurrentReviews',
          'expected a whole number from 1 to 1000, found a string',
        ),
        fault('clusters[0].kubernetes', 'expected a string, found a number: put it in quotes'),
      ],
    }),
  )
})
