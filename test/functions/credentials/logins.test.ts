import { describe, expect, test } from 'vitest'
import { LOGIN_REFUSAL_TTL_MS, LOGIN_SLACK_MS, MAX_REGISTRY_TOKEN_TTL_MS } from '#shared/limits.ts'
import {
  ALL,
  AMAZON,
  AWS,
  AZURE,
  AZURE_ENTRY,
  ENV,
  GITHUB,
  GITHUB_TOKEN,
  GOOGLE_ENTRY,
  googleKey,
  type Internet,
  pull,
  START,
  startInternet,
} from './setup.ts'

const ECR = '111122223333.dkr.ecr.eu-central-1.amazonaws.com'

/** What the registry of each provider takes, given what the providers hand out. */
const REGISTRIES = [
  {
    name: 'ECR',
    host: ECR,
    entry: AMAZON,
    asks: ['api.ecr.eu-central-1.amazonaws.com/'],
    auth: ({ ecr }: Internet['clouds']['logins']) =>
      ({ kind: 'basic', username: 'AWS', password: ecr }) as const,
  },
  {
    name: 'ECR in China',
    host: '111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn',
    entry: AMAZON,
    asks: ['api.ecr.cn-north-1.amazonaws.com.cn/'],
    auth: ({ ecr }: Internet['clouds']['logins']) =>
      ({ kind: 'basic', username: 'AWS', password: ecr }) as const,
  },
  {
    name: 'ECR by FIPS 140',
    host: '111122223333.dkr.ecr-fips.us-gov-west-1.amazonaws.com',
    entry: AMAZON,
    asks: ['ecr-fips.us-gov-west-1.amazonaws.com/'],
    auth: ({ ecr }: Internet['clouds']['logins']) =>
      ({ kind: 'basic', username: 'AWS', password: ecr }) as const,
  },
  {
    name: 'ECR Public',
    host: 'public.ecr.aws',
    entry: AMAZON,
    asks: ['api.ecr-public.us-east-1.amazonaws.com/'],
    auth: ({ ecr }: Internet['clouds']['logins']) =>
      ({ kind: 'bearer', username: 'AWS', password: ecr }) as const,
  },
  ...['europe-docker.pkg.dev', 'europe-west1-docker.pkg.dev', 'gcr.io', 'eu.gcr.io'].map(
    (host) => ({
      name: host,
      host,
      entry: GOOGLE_ENTRY,
      asks: ['oauth2.googleapis.com/token'],
      auth: ({ google }: Internet['clouds']['logins']) =>
        ({ kind: 'bearer', username: 'oauth2accesstoken', password: google }) as const,
    }),
  ),
  {
    name: 'Azure Container Registry',
    host: 'shop.azurecr.io',
    entry: AZURE_ENTRY,
    asks: [
      `login.microsoftonline.com/${AZURE.tenant}/oauth2/v2.0/token`,
      'shop.azurecr.io/oauth2/exchange',
    ],
    auth: ({ acr }: Internet['clouds']['logins']) =>
      ({ kind: 'bearer', username: 'x', password: 'x', identityToken: acr }) as const,
  },
  {
    name: 'GitHub',
    host: 'ghcr.io',
    entry: GITHUB,
    asks: [],
    auth: () => ({ kind: 'bearer', username: 'countersign', password: GITHUB_TOKEN }) as const,
  },
]

describe('a provider', () => {
  test.each(REGISTRIES)('logs in to $name', async ({ host, entry, asks, auth }) => {
    const internet = await startInternet()
    await internet.registry(host, auth(internet.clouds.logins))
    expect(await pull(internet.client({ credentials: [entry] }), host)).toBe('ok')
    expect(internet.clouds.requests.map(({ url }) => url)).toEqual(asks)
  })

  test.each(REGISTRIES)(
    'is what $name needs: without it nobody gets in',
    async ({ host, auth }) => {
      const internet = await startInternet()
      await internet.registry(host, auth(internet.clouds.logins))
      expect(await pull(internet.client({}), host)).toMatch(/^REGISTRY_UNAUTHORIZED: /)
      expect(internet.clouds.requests).toEqual([])
    },
  )

  test('may hold an AWS key without a session', async () => {
    const internet = await startInternet()
    const { AWS_SESSION_TOKEN: _, ...env } = ENV
    await internet.registry(ECR, { kind: 'basic', username: 'AWS', password: 'x' })
    const told = await pull(internet.client({ credentials: [AMAZON] }, { env }), ECR)
    // The emulator's account has a session: what is tested is that none was sent.
    expect(told).toMatch(/answered 400 UnrecognizedClientException$/)
    expect(internet.clouds.requests[0]?.headers).not.toHaveProperty('x-amz-security-token')
  })

  test('takes the AWS credentials of the platform where the environment has none', async () => {
    const internet = await startInternet()
    const { AWS_ACCESS_KEY_ID: _, ...env } = ENV
    await internet.registry(ECR, {
      kind: 'basic',
      username: 'AWS',
      password: internet.clouds.logins.ecr,
    })
    const platform = { awsCredentials: async () => AWS }
    const credentials = [AMAZON]
    expect(await pull(internet.client({ credentials }, { env, platform }), ECR)).toBe('ok')
    expect(await pull(internet.client({ credentials }, { env }), ECR)).toBe(
      'CONFIG_INVALID: no AWS credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set',
    )
  })

  test('asks once for all accounts of a region, and for each region', async () => {
    const internet = await startInternet()
    const hosts = [ECR, ECR.replace('1111', '4444'), ECR.replace('eu-central-1', 'us-east-1')]
    for (const host of hosts) {
      const password = internet.clouds.logins.ecr
      await internet.registry(host, { kind: 'basic', username: 'AWS', password })
    }
    const client = internet.client({ credentials: [AMAZON] })
    for (const host of hosts) expect(await pull(client, host)).toBe('ok')
    expect(internet.clouds.requests).toHaveLength(2)
  })

  test('asks the directory once for all registries of Azure', async () => {
    const internet = await startInternet()
    const client = internet.client({ credentials: [AZURE_ENTRY] })
    const signal = new AbortController().signal
    await Promise.all(
      ['one.azurecr.io', 'two.azurecr.io'].map(async (host) => {
        await internet.registry(host, {
          kind: 'bearer',
          username: 'x',
          password: 'x',
          identityToken: internet.clouds.logins.acr,
        })
        expect(await pull(client, host, { signal })).toBe('ok')
      }),
    )
    expect(internet.clouds.requests.map(({ url }) => url.split('/')[0]).toSorted()).toEqual([
      'login.microsoftonline.com',
      'one.azurecr.io',
      'two.azurecr.io',
    ])
  })
})

describe('a login of a provider', () => {
  /** An Azure-free world with one registry of Google's. */
  async function google(internet: Internet) {
    const { logins } = internet.clouds
    const login = { username: 'oauth2accesstoken', password: logins.google }
    await internet.registry('gcr.io', { kind: 'bearer', ...login, expiresIn: 1 })
    return internet.client({ credentials: [GOOGLE_ENTRY] })
  }

  test('is got once for all that one request asks at the same time', async () => {
    const internet = await startInternet()
    const client = await google(internet)
    const session = client.session(new AbortController().signal)
    await Promise.all(
      ['app', 'b/c', 'd/e'].map((repository) =>
        session.manifest({ host: 'gcr.io', repository }, 'v1').catch(() => undefined),
      ),
    )
    expect(internet.clouds.requests).toHaveLength(1)
  })

  test('is kept until shortly before its end', async () => {
    const internet = await startInternet()
    const client = await google(internet)
    for (const [now, calls] of [
      [START, 1],
      [START + 3_599_000 - LOGIN_SLACK_MS - 1, 1],
      [START + 3_599_000 - LOGIN_SLACK_MS, 2],
    ] as const) {
      internet.clock.now = now
      expect(await pull(client, 'gcr.io')).toBe('ok')
      expect(internet.clouds.requests).toHaveLength(calls)
    }
  })

  test('is never kept for longer than an hour', async () => {
    const internet = await startInternet()
    const password = internet.clouds.logins.ecr
    await internet.registry(ECR, { kind: 'basic', username: 'AWS', password })
    const client = internet.client({ credentials: [AMAZON] })
    for (const [now, calls] of [
      [START, 1],
      [START + MAX_REGISTRY_TOKEN_TTL_MS - 1, 1],
      [START + MAX_REGISTRY_TOKEN_TTL_MS, 2],
    ] as const) {
      internet.clock.now = now
      expect(await pull(client, ECR)).toBe('ok')
      expect(internet.clouds.requests).toHaveLength(calls)
    }
  })

  test('that was refused is not asked for again at once, and then it is', async () => {
    const internet = await startInternet()
    const client = await google(internet)
    const stop = internet.clouds.faults.add({ kind: 'status', status: 403 })
    expect(await pull(client, 'gcr.io')).toMatch(/^REGISTRY_UNAUTHORIZED/)
    stop()
    internet.clock.now += LOGIN_REFUSAL_TTL_MS - 1
    expect(await pull(client, 'gcr.io')).toMatch(/^REGISTRY_UNAUTHORIZED/)
    internet.clock.now += 1
    expect(await pull(client, 'gcr.io')).toBe('ok')
    expect(internet.clouds.requests).toHaveLength(2)
  })

  test('that could not be asked for is asked for again', async () => {
    const internet = await startInternet()
    const client = await google(internet)
    const stop = internet.clouds.faults.add({ kind: 'down' })
    expect(await pull(client, 'gcr.io')).toMatch(/^REGISTRY_UNREACHABLE/)
    stop()
    expect(await pull(client, 'gcr.io')).toBe('ok')
  })

  test('ends with its request, and that of another goes on', async () => {
    const internet = await startInternet()
    const client = await google(internet)
    const stop = internet.clouds.faults.add({ kind: 'stall' })
    const first = new AbortController()
    const waiting = pull(client, 'gcr.io', { signal: first.signal })
    first.abort()
    expect(await waiting).toMatch(/^DEADLINE_EXCEEDED/)
    stop()
    expect(await pull(client, 'gcr.io')).toBe('ok')
  })
})

describe('a provider that gives no login', () => {
  test.each<{ name: string; fault: object; code: string; tries?: number }>([
    { name: 'says no', fault: { status: 401 }, code: 'REGISTRY_UNAUTHORIZED' },
    { name: 'forbids', fault: { status: 403 }, code: 'REGISTRY_UNAUTHORIZED' },
    { name: 'is not there', fault: { status: 404 }, code: 'REGISTRY_UNAUTHORIZED' },
    {
      name: 'denies access as AWS does',
      fault: { status: 400, body: '{"__type":"AccessDeniedException"}' },
      code: 'REGISTRY_UNAUTHORIZED',
    },
    { name: 'throttles', fault: { status: 429 }, code: 'REGISTRY_THROTTLED', tries: 2 },
    {
      name: 'throttles as AWS does',
      fault: { status: 400, body: '{"__type":"com.amazon.coral#ThrottlingException"}' },
      code: 'REGISTRY_THROTTLED',
    },
    {
      name: 'asks to come back as OAuth does',
      fault: { status: 400, body: '{"error":"temporarily_unavailable"}' },
      code: 'REGISTRY_THROTTLED',
    },
    { name: 'fails', fault: { status: 500 }, code: 'REGISTRY_UNREACHABLE', tries: 2 },
    { name: 'answers HTML', fault: { status: 200, body: '<p>' }, code: 'REGISTRY_UNREACHABLE' },
    { name: 'answers a list', fault: { status: 200, body: '[]' }, code: 'REGISTRY_UNREACHABLE' },
    { name: 'answers nothing', fault: { status: 200, body: '{}' }, code: 'REGISTRY_UNREACHABLE' },
    {
      name: 'answers null',
      fault: { status: 200, body: '{"access_token":null,"authorizationData":null}' },
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'gives what cannot stand in a header',
      fault: {
        status: 200,
        body: '{"access_token":"a\\r\\nb: c","authorizationData":[{"authorizationToken":"_","expiresAt":1}]}',
      },
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'redirects',
      fault: { kind: 'redirect', to: 'https://evil.example/' },
      code: 'REGISTRY_UNREACHABLE',
    },
    {
      name: 'cuts the connection',
      fault: { kind: 'down' },
      code: 'REGISTRY_UNREACHABLE',
      tries: 2,
    },
    { name: 'never ends', fault: { kind: 'endless' }, code: 'REGISTRY_UNAUTHORIZED' },
  ])('because it $name: the registry is not asked without one', async ({ fault, code, tries }) => {
    for (const { host, entry, auth } of REGISTRIES) {
      if (![ECR, 'public.ecr.aws', 'gcr.io', 'shop.azurecr.io'].includes(host)) continue
      const internet = await startInternet()
      const registry = await internet.registry(host, auth(internet.clouds.logins))
      internet.clouds.faults.add({ kind: 'status', ...fault } as never)
      const told = await pull(internet.client({ credentials: [entry] }), host)
      expect(`${host} ${told}`).toContain(` ${code}: `)
      expect(registry.requests).toEqual([])
      expect(internet.clouds.requests).toHaveLength(tries ?? 1)
      for (const secret of secretsOf(internet)) expect(told).not.toContain(secret)
    }
  })

  test.each([
    { name: 'an AWS key of somebody else', entry: AMAZON, env: { AWS_SECRET_ACCESS_KEY: 'x' } },
    { name: 'another AWS session', entry: AMAZON, env: { AWS_SESSION_TOKEN: 'x' } },
    {
      name: 'a Google account of somebody else',
      entry: GOOGLE_ENTRY,
      env: { GOOGLE_KEY: googleKey({ client_email: 'x@y.iam.gserviceaccount.com' }) },
    },
    { name: 'another Azure secret', entry: AZURE_ENTRY, env: { AZURE_SECRET: 'x' } },
    { name: 'another Azure tenant', entry: AZURE_ENTRY, env: { AZURE_TENANT: 'x' } },
  ])('because of $name', async ({ entry, env }) => {
    const host = REGISTRIES.find((each) => each.entry === entry)?.host ?? ''
    const internet = await startInternet()
    await internet.registry(host)
    const client = internet.client({ credentials: [entry] }, { env: { ...ENV, ...env } })
    expect(await pull(client, host)).toMatch(
      /^REGISTRY_UNAUTHORIZED: .*answered 40[01] [A-Za-z_]+$/,
    )
  })

  test('because the clock of the function is wrong', async () => {
    const internet = await startInternet()
    await internet.registry(ECR)
    const platform = { now: () => START - 600_000 }
    const client = internet.client({ credentials: [AMAZON] }, { platform })
    expect(await pull(client, ECR)).toMatch(/answered 400 InvalidSignatureException$/)
  })

  test.each([
    { name: 'a key that is no JSON', key: '{"private_key": "s3cr3t' },
    { name: 'a key that is a list', key: '[]' },
    { name: 'a key without a private key', key: googleKey({ private_key: undefined }) },
    { name: 'a key with a damaged private key', key: googleKey({ private_key: 's3cr3t' }) },
    {
      name: 'a key of another algorithm',
      key: googleKey({
        private_key: '-----BEGIN PRIVATE KEY-----\nczNjcjN0\n-----END PRIVATE KEY-----\n',
      }),
    },
    { name: 'a key of another universe', key: googleKey({ universe_domain: 'evil.example' }) },
    {
      name: 'workload identity federation',
      key: JSON.stringify({ type: 'external_account', credential_source: { url: 's3cr3t' } }),
      says: 'workload identity federation, which asks a metadata server or reads a file; neither is there in a function',
    },
    {
      name: 'the login of a person',
      key: JSON.stringify({ type: 'authorized_user', refresh_token: 's3cr3t' }),
      says: "a person's own login; use a service account",
    },
  ])('because of $name, which it does not repeat', async ({ key, says = '' }) => {
    const internet = await startInternet()
    await internet.registry('gcr.io')
    const env = { ...ENV, GOOGLE_KEY: key }
    const told = await pull(internet.client({ credentials: [GOOGLE_ENTRY] }, { env }), 'gcr.io')
    expect(told).toMatch(/^CONFIG_INVALID: variable GOOGLE_KEY /)
    expect(told).toContain(says)
    expect(told).not.toContain('s3cr3t')
    expect(internet.sent).toEqual([])
  })

  test.each([
    { entry: GOOGLE_ENTRY, host: 'gcr.io', variable: 'GOOGLE_KEY' },
    { entry: AZURE_ENTRY, host: 'shop.azurecr.io', variable: 'AZURE_SECRET' },
    { entry: GITHUB, host: 'ghcr.io', variable: 'GITHUB_TOKEN' },
  ])('because $variable is not set; other registries are not touched by that', async (row) => {
    const internet = await startInternet()
    await internet.registry(row.host)
    await internet.registry('registry.example')
    const env = { ...ENV, [row.variable]: '' }
    const client = internet.client({ credentials: [row.entry] }, { env })
    expect(await pull(client, row.host)).toBe(
      `CONFIG_INVALID: variable ${row.variable} is not set, but the config names it`,
    )
    expect(await pull(client, 'registry.example')).toBe('ok')
  })

  test.each(['../common', 'a/b', 'a?b', 'a@b', '', 'a b'])(
    'because the Azure tenant %j is none',
    async (tenant) => {
      const internet = await startInternet()
      await internet.registry('shop.azurecr.io')
      const env = { ...ENV, AZURE_TENANT: tenant }
      const client = internet.client({ credentials: [AZURE_ENTRY] }, { env })
      expect(await pull(client, 'shop.azurecr.io')).toMatch(/^CONFIG_INVALID: /)
      expect(internet.sent).toEqual([])
    },
  )
})

describe('which login a registry gets', () => {
  const fixed = { host: 'gcr.io', usernameEnv: 'NAME', passwordEnv: 'PASSWORD' }
  const env = {
    ...ENV,
    NAME: 'me',
    PASSWORD: 'mine',
    DOCKER: JSON.stringify({ auths: { 'gcr.io/app': { username: 'docker', password: 'd' } } }),
    TEAM: JSON.stringify({
      auths: {
        'gcr.io': { username: 'team', password: 't' },
        'ghcr.io': { username: 'team', password: 't' },
      },
    }),
    OTHER: JSON.stringify({ 'gcr.io/app': { username: 'other', password: 'o' } }),
    BROKEN: '{"auths": s3cr3t',
  }
  const secrets = [
    { name: 'team', dockerConfigEnv: 'TEAM' },
    { name: 'kyverno/other', dockerConfigEnv: 'OTHER' },
    { name: 'broken', dockerConfigEnv: 'BROKEN' },
  ]
  const registries = {
    credentials: [GOOGLE_ENTRY, fixed, { dockerConfigEnv: 'DOCKER' }, GITHUB],
    secrets,
  }

  /** User and password that a registry was sent, or what else came of it. */
  async function loginFor(
    host: string,
    names?: { secrets?: string[]; providers?: ('default' | 'google' | 'github' | 'amazon')[] },
    config: object = registries,
  ): Promise<string> {
    const internet = await startInternet()
    const registry = await internet.registry(host, { kind: 'basic', username: 'x', password: 'x' })
    const client = internet.client(config, { env })
    const set = { secrets: names?.secrets ?? [], providers: names?.providers ?? [] }
    const told = await pull(client, host, names === undefined ? {} : { names: set })
    if (registry.requests.length === 0) return told.replace(/ .*/, '')
    const [, login] = registry.requests.at(-1)?.headers.authorization?.split(' ') ?? []
    const text = login === undefined ? 'none' : Buffer.from(login, 'base64').toString()
    return text.replace(internet.clouds.logins.google, 'GOOGLE').replace(GITHUB_TOKEN, 'GITHUB')
  }

  test.each([
    { name: 'the docker config with the longest path', names: undefined, expected: 'docker:d' },
    {
      name: 'the config without providers, by default',
      names: { providers: ['default' as const] },
      expected: 'docker:d',
    },
    {
      name: 'the provider alone when a policy names it',
      names: { providers: ['google' as const] },
      expected: 'oauth2accesstoken:GOOGLE',
    },
    { name: 'the Secret alone', names: { secrets: ['team'] }, expected: 'team:t' },
    {
      name: 'the better match of two Secrets',
      names: { secrets: ['team', 'kyverno/other'] },
      expected: 'other:o',
    },
    {
      name: 'the Secret before the provider',
      names: { secrets: ['team'], providers: ['google' as const] },
      expected: 'team:t',
    },
    {
      name: 'the first provider that has one',
      names: { providers: ['github' as const, 'google' as const] },
      expected: 'oauth2accesstoken:GOOGLE',
    },
    {
      name: 'none, when no name has one for it',
      names: { providers: ['github' as const] },
      expected: 'none',
    },
    {
      name: 'none, when the names are none: never that of the registries',
      names: {},
      expected: 'none',
    },
  ])('$name', async ({ names, expected }) => {
    expect(await loginFor('gcr.io', names)).toBe(expected)
  })

  test('the provider where nothing else is for it', async () => {
    expect(await loginFor('eu.gcr.io')).toBe('oauth2accesstoken:GOOGLE')
    expect(await loginFor('ghcr.io')).toBe('countersign:GITHUB')
    expect(await loginFor('quay.example')).toBe('none')
  })

  test.each([
    { name: 'a Secret the config does not have', names: { secrets: ['team', 'nobody'] } },
    { name: 'a Secret of another namespace', names: { secrets: ['other'] } },
    { name: 'a Secret that cannot be read', names: { secrets: ['team', 'broken'] } },
    {
      name: 'a provider the config does not have',
      names: { secrets: ['team'], providers: ['amazon' as const] },
    },
  ])('nobody can tell with $name, also when another name would do', async ({ names }) => {
    expect(await loginFor('gcr.io', names)).toBe('CONFIG_INVALID:')
  })

  test('of two entries of one provider that which names the registry', async () => {
    const credentials = [
      GOOGLE_ENTRY,
      { ...GOOGLE_ENTRY, serviceAccountKeyEnv: 'NAME', hosts: ['gcr.io'] },
    ]
    expect(await loginFor('gcr.io', undefined, { credentials })).toBe('CONFIG_INVALID:')
    expect(await loginFor('eu.gcr.io', undefined, { credentials })).toBe('oauth2accesstoken:GOOGLE')
  })

  test('none of a provider that names other registries', async () => {
    const credentials = [{ ...GOOGLE_ENTRY, hosts: ['eu.gcr.io'] }]
    expect(await loginFor('gcr.io', undefined, { credentials })).toBe('none')
  })
})

describe('a secret', () => {
  /** Where each may go; a registry's own refresh token goes to its token service. */
  function allowed(secret: string, { clouds: { logins } }: Internet): RegExp {
    switch (secret) {
      case AWS.sessionToken:
        return /^(api\.ecr|ecr-fips|api\.ecr-public)\.[a-z0-9-]+\.amazonaws\.com(\.cn)?\/$/
      case AZURE.clientSecret:
        return /^login\.microsoftonline\.com\//
      case logins.azure:
        return /^[a-z]+\.azurecr\.io\/oauth2\/exchange$/
      case logins.acr:
        return /^[a-z]+\.azurecr\.io\/token$/
      case base64(`AWS:${logins.ecr}`):
        return /^(public\.ecr\.aws\/token$|\d{12}\.dkr\.ecr)/
      case base64(`oauth2accesstoken:${logins.google}`):
        return /^([a-z0-9-]+-docker\.pkg\.dev|([a-z]+\.)?gcr\.io)\/token$/
      case base64(`countersign:${GITHUB_TOKEN}`):
        return /^ghcr\.io\/token$/
      default:
        return /^$/
    }
  }

  test('goes where it belongs and nowhere else, with every provider in use', async () => {
    const internet = await startInternet()
    const client = internet.client({ credentials: ALL })
    for (const { host, auth } of REGISTRIES) {
      await internet.registry(host, auth(internet.clouds.logins))
      expect(await pull(client, host)).toBe('ok')
    }
    const secrets = secretsOf(internet)
    for (const secret of secrets) {
      const where = internet.sent.filter(({ carried }) => carried.includes(secret))
      const wrong = where.filter(({ to }) => !allowed(secret, internet).test(to))
      expect({ secret, wrong: wrong.map(({ to }) => to) }).toEqual({ secret, wrong: [] })
    }
    // Those that are sent at all; keys that only sign are not.
    expect(secrets.filter((s) => internet.sent.some(({ carried }) => carried.includes(s)))).toEqual(
      secrets.filter((s) => allowed(s, internet).source !== '^$'),
    )
  })

  test.each([
    '111122223333.dkr.ecr.eu-central-1.amazonaws.com.evil.example',
    '111122223333.dkr.ecr.eu-central-1.amazonaws.example',
    '111122223333.dkr.ecr.eu-central-1.evil.amazonaws.com',
    '111122223333.dkr.ecr.evil.amazonaws.com',
    '111122223333.dkr.ecr.eu-central-1.amazonaws.com.cn',
    '111122223333.dkr.ecr.cn-north-1.amazonaws.com',
    '11112222333.dkr.ecr.eu-central-1.amazonaws.com',
    '1111222233334.dkr.ecr.eu-central-1.amazonaws.com',
    'x.111122223333.dkr.ecr.eu-central-1.amazonaws.com',
    '111122223333.dkr-ecr.eu-central-1.amazonaws.com',
    '111122223333-dkr.ecr.eu-central-1.amazonaws.com',
    `${ECR}:444`,
    'public.ecr.aws.evil.example',
    'xpublic.ecr.aws',
    'gcr.io.evil.example',
    'evilgcr.io',
    'a.b.gcr.io',
    'gcr.io:5000',
    'docker.pkg.dev',
    'evil-docker.pkg.dev.example',
    'x.europe-docker.pkg.dev',
    'europe-npm.pkg.dev',
    'shop.azurecr.io.evil.example',
    'evilazurecr.io',
    'a.shop.azurecr.io',
    'shop.azurecr.cn',
    'shop.azurecr.us',
    'azurecr.io',
    'ghcr.io.evil.example',
    'x.ghcr.io',
    'evilghcr.io',
    'ghcr.io:8443',
  ])('stays here for %s', async (host) => {
    const internet = await startInternet()
    await internet.registry(host, { kind: 'basic', username: 'x', password: 'x' })
    const told = await pull(internet.client({ credentials: ALL }), host)
    expect(told).toMatch(/^REGISTRY_UNAUTHORIZED: .*there is no credential for it$/)
    expect(internet.sent.map(({ to }) => to)).toEqual([`${host}/v2/app/manifests/v1`])
  })

  test.each(['gcr.io.', 'user@gcr.io', 'user:pass@ghcr.io', 'gcr.io/evil', 'gcr.io#', 'gcr.io?'])(
    'stays here for %j, which is no host',
    async (host) => {
      const internet = await startInternet()
      const told = await pull(internet.client({ credentials: ALL }), host)
      expect(told).toMatch(/^REGISTRY_FORBIDDEN_ADDRESS: /)
      expect(internet.sent).toEqual([])
    },
  )

  test('is found for a host in capitals, and sent to the same place', async () => {
    const internet = await startInternet()
    const login = { username: 'countersign', password: GITHUB_TOKEN }
    await internet.registry('ghcr.io', { kind: 'bearer', ...login })
    expect(await pull(internet.client({ credentials: ALL }), 'GHCR.IO')).toBe('ok')
    expect(new Set(internet.sent.map(({ to }) => to.split('/')[0]))).toEqual(new Set(['ghcr.io']))
  })

  const hosts = REGISTRIES.map(({ host }) => host)

  test.each(hosts)('of %s is not sent to a token service elsewhere', async (host) => {
    const internet = await startInternet()
    const evil = await internet.registry('evil.example')
    const registry = await internet.registry(host)
    for (const realm of [
      'https://evil.example/token',
      `https://${host}.evil.example/token`,
      `https://${host}@evil.example/token`,
      `https://${host}:8443/token`,
      `http://${host}/token`,
      `https://evil.example/?${host}`,
      'https://169.254.169.254/token',
    ]) {
      registry.faults.clear()
      const headers = { 'www-authenticate': `Bearer realm="${realm}",service="s"` }
      registry.faults.add({ kind: 'status', status: 401, headers }, { on: /\/v2\// })
      const told = await pull(internet.client({ credentials: ALL }), host)
      expect(`${realm} ${told}`).toMatch(/ REGISTRY_(UNAUTHORIZED|FORBIDDEN_ADDRESS): /)
    }
    expect(evil.requests).toEqual([])
  })

  test.each(hosts)('of %s does not go along with a redirect', async (host) => {
    const internet = await startInternet()
    const evil = await internet.registry('evil.example')
    const registry = await internet.registry(
      host,
      REGISTRIES.find((each) => each.host === host)?.auth(internet.clouds.logins),
    )
    const to = 'https://evil.example/v2/app/manifests/v1'
    const client = internet.client({ credentials: ALL })
    expect(await pull(client, host)).toBe('ok')
    registry.faults.add({ kind: 'redirect', to }, { on: /\/v2\// })
    expect(await pull(client, host)).toBe('ok')
    registry.faults.clear()
    registry.revokeTokens()
    registry.faults.add({ kind: 'redirect', to }, { on: /\/token/ })
    await pull(client, host)
    const secrets = [...secretsOf(internet), 'Bearer', 'Basic']
    for (const { headers, url, body } of evil.requests) {
      const text = JSON.stringify([headers, url, body])
      expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
    }
    expect(evil.requests.length).toBeGreaterThan(0)
  })

  test('is not sent in the clear where a registry asks for another kind of login', async () => {
    const internet = await startInternet()
    const registry = await internet.registry('shop.azurecr.io')
    for (const challenge of ['Basic realm="x"', 'Digest realm="x"', 'Negotiate', '']) {
      registry.faults.clear()
      registry.requests.length = 0
      const headers = { 'www-authenticate': challenge }
      registry.faults.add({ kind: 'status', status: 401, headers }, { on: /\/v2\// })
      const told = await pull(internet.client({ credentials: ALL }), 'shop.azurecr.io')
      expect(told).toMatch(/^REGISTRY_UNAUTHORIZED: /)
      expect(registry.requests.map(({ headers: sent }) => sent.authorization)).toEqual([undefined])
    }
  })

  test('is not sent by Basic where the registry has a token service elsewhere as well', async () => {
    const internet = await startInternet()
    const registry = await internet.registry('gcr.io')
    const challenge = 'Basic realm="x", Bearer realm="https://evil.example/token"'
    const headers = { 'www-authenticate': challenge }
    registry.faults.add({ kind: 'status', status: 401, headers }, { on: /\/v2\// })
    const told = await pull(internet.client({ credentials: ALL }), 'gcr.io')
    expect(told).toMatch(
      /its token service is at evil.example, where its credential does not belong$/,
    )
    expect(registry.requests.map(({ headers: sent }) => sent.authorization)).toEqual([undefined])
  })
})

/** Everything that must not be seen where it does not belong. */
function secretsOf({ clouds: { logins } }: Internet): string[] {
  return [
    AWS.secretAccessKey,
    AWS.sessionToken,
    AZURE.clientSecret,
    logins.azure,
    logins.acr,
    base64(`AWS:${logins.ecr}`),
    base64(`oauth2accesstoken:${logins.google}`),
    base64(`countersign:${GITHUB_TOKEN}`),
    'PRIVATE KEY',
  ]
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
