import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { type AppOptions, createApp, type Transport } from '#functions/app.ts'
import type { ClientCertificate } from '#functions/auth.ts'
import { readCertificate } from '#functions/certificate-node.ts'
import { verifiedCertificate } from '#functions/certificate-worker.ts'
import { compose } from '#functions/compose.ts'
import { type Config, parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { policiesOf } from '#functions/deployment.ts'
import { readConfig } from '#functions/files.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { toLambdaHandler } from '#functions/lambda.ts'
import { createDevCertificates } from '#functions/local/tls.ts'
import { METRICS_NAMESPACE } from '#functions/metrics.ts'
import { startNodeServer } from '#functions/node.ts'
import { admitted, denied } from '#shared/admission/response.ts'
import type { Decision } from '#shared/admission/types.ts'
import type { EngineCall } from '#shared/engine/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import type { Reviewed } from '#shared/report/event.ts'
import { hashOf, review } from '../contract/review.ts'
import { mint, mintRoot, pemOf } from '../fakes/pki.ts'

const TOKEN = 'tokentokentokentokentokentoken22'
const NOW = Date.parse('2026-06-01T00:00:00Z')
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'
const authority = mintRoot({ subject: [['2.5.4.3', 'clients']] })
const client = mint({
  issuer: authority,
  keyName: 'client',
  subject: [
    ['2.5.4.10', 'Prod, Inc.'],
    ['2.5.4.3', 'kube-apiserver'],
  ],
  purposes: [CLIENT_AUTH],
})
const shown = readCertificate(client.der) as ClientCertificate

const BASE = { tokens: [hashOf(TOKEN)] }

function document(...clusters: object[]) {
  return {
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters,
  }
}

const configOf = (...clusters: object[]): Config => parseConfig(document(...clusters))

/** An app whose validate flow decides as told, what it was asked, what it logged and what it told. */
function door(
  clusters: object[],
  decide: () => Decision | Promise<Decision> = admitted,
  options: Partial<AppOptions> = {},
) {
  const calls: EngineCall[] = []
  const lines: Record<string, unknown>[] = []
  const told: Reviewed[] = []
  const flow = async (_: unknown, call: EngineCall) => {
    calls.push(call)
    return decide()
  }
  const app = createApp({
    deployment: { config: configOf(...clusters), policies: [], hash: 'f'.repeat(64) },
    engine: { mutate: flow, validate: flow },
    hash: nodeHash,
    maxBodyBytes: 1_000_000,
    now: () => NOW,
    log: (record) => lines.push(record),
    events: (reviewed) => told.push(reviewed),
    ...options,
  })
  const post = async (cluster: string, transport: Transport = {}, body: unknown = review()) => {
    const response = await app.fetch(
      new Request(`https://door.example/v1/${cluster}/${TOKEN}/ivpol/validate`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          traceparent: `00-${TRACE}-00f067aa0ba902b7-01`,
        },
        body: JSON.stringify(body),
      }),
      transport,
    )
    const text = await response.text()
    return { status: response.status, answer: text === '' ? undefined : JSON.parse(text).response }
  }
  return { app, post, calls, lines, told }
}

describe('client certificates', () => {
  const subject = 'CN=kube-apiserver,O=Prod\\, Inc.'

  test('are known by fingerprint and by subject, as RFC 2253 writes it', () => {
    expect(shown).toEqual({
      fingerprint: createHash('sha256').update(client.der).digest('hex'),
      subject,
    })
    expect(readCertificate(pemOf(client))).toEqual(shown)
    expect([readCertificate(''), readCertificate('none')]).toEqual([undefined, undefined])
  })

  test.each<{ name: string; mtls: object; certificate?: Transport['certificate']; status: number }>(
    [
      {
        name: 'of a listed fingerprint lets in',
        mtls: { fingerprints: ['0'.repeat(64), shown.fingerprint] },
        certificate: () => shown,
        status: 200,
      },
      {
        name: 'of a listed subject lets in',
        mtls: { subjects: [subject] },
        certificate: () => shown,
        status: 200,
      },
      {
        name: 'in both lists lets in',
        mtls: { fingerprints: [shown.fingerprint], subjects: [subject] },
        certificate: () => shown,
        status: 200,
      },
      {
        name: 'in one of two lists does not',
        mtls: { fingerprints: ['0'.repeat(64)], subjects: [subject] },
        certificate: () => shown,
        status: 404,
      },
      {
        name: 'of another fingerprint does not',
        mtls: { fingerprints: ['0'.repeat(64)] },
        certificate: () => shown,
        status: 404,
      },
      {
        name: 'of a subject that only begins like it does not',
        mtls: { subjects: ['CN=kube-apiserver'] },
        certificate: () => shown,
        status: 404,
      },
      {
        name: 'that nobody has checked does not',
        mtls: { subjects: [subject] },
        certificate: () => undefined,
        status: 404,
      },
      { name: 'behind a door that has none does not', mtls: { subjects: [subject] }, status: 404 },
    ],
  )('$name', async ({ mtls, certificate, status }) => {
    const { post, lines } = door([{ ...BASE, name: 'prod', mtls }])
    expect((await post('prod', { certificate })).status).toBe(status)
    if (status === 404) {
      expect(lines).toMatchObject([{ event: 'refused', refusal: 'certificate', cluster: 'prod' }])
    }
  })

  test('are not read for whoever has no token: the time would tell which clusters there are', async () => {
    let reads = 0
    const { app } = door([{ ...BASE, name: 'prod', mtls: { subjects: [subject] } }])
    const certificate = () => {
      reads++
      return shown
    }
    const url = 'https://door.example/v1/prod/wrong/ivpol/validate'
    await app.fetch(new Request(url, { method: 'POST' }), { certificate })
    expect(reads).toBe(0)
  })

  test.each([
    { name: 'verified and not revoked', changes: {}, counts: true },
    { name: 'revoked', changes: { certRevoked: '1' }, counts: false },
    { name: 'of unknown revocation', changes: { certRevoked: '' }, counts: false },
    {
      name: 'of another authority',
      changes: { certVerified: 'FAILED:self signed' },
      counts: false,
    },
    { name: 'not there', changes: { certPresented: '0', certVerified: 'NONE' }, counts: false },
  ])('on Workers one that is $name counts: $counts', ({ changes, counts }) => {
    const auth = {
      certPresented: '1',
      certVerified: 'SUCCESS',
      certRevoked: '0',
      certFingerprintSHA256: shown.fingerprint.toUpperCase(),
      certSubjectDNRFC2253: subject,
      ...changes,
    }
    expect(verifiedCertificate(auth)).toEqual(counts ? shown : undefined)
    expect(verifiedCertificate(undefined)).toBeUndefined()
  })

  test.each([
    { name: 'that API Gateway has checked', clientCertPem: pemOf(client), status: 200 },
    { name: 'that is none', clientCertPem: 'x', status: 404 },
    { name: 'of nobody', clientCertPem: undefined, status: 404 },
  ])('on Lambda one $name gets $status', async ({ clientCertPem, status }) => {
    const { app } = door([{ ...BASE, name: 'prod', mtls: { fingerprints: [shown.fingerprint] } }])
    const authentication = clientCertPem === undefined ? null : { clientCert: { clientCertPem } }
    const event = {
      version: '2.0',
      rawPath: `/v1/prod/${TOKEN}/ivpol/validate`,
      // Whoever calls writes headers.
      headers: {
        'content-type': 'application/json',
        'x-client-cert': encodeURIComponent(pemOf(client)),
      },
      requestContext: { http: { method: 'POST', sourceIp: '203.0.113.7' }, authentication },
      body: JSON.stringify(review()),
    }
    expect((await toLambdaHandler(app)(event, {})).statusCode).toBe(status)
  })

  test.each([
    { name: 'of the authority', certificate: client, status: 200 },
    {
      name: 'of the same name that signed itself',
      certificate: mint({ keyName: 'other', subject: [['2.5.4.3', 'kube-apiserver']] }),
      status: 404,
    },
    { name: 'of nobody', certificate: undefined, status: 404 },
  ])('at a Node server one $name gets $status', async ({ certificate, status }) => {
    const own = await createDevCertificates({ hosts: ['localhost'] })
    const mtls = { subjects: [subject, 'CN=kube-apiserver'] }
    const { app } = door([
      { ...BASE, name: 'prod', mtls },
      { ...BASE, name: 'plain' },
    ])
    const tls = { key: own.key, cert: own.cert, clientCa: pemOf(authority) }
    const server = await startNodeServer({ app, tls, host: '127.0.0.1' })
    const shows = certificate && {
      cert: pemOf(certificate),
      key: certificate.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    }
    const call = (cluster: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const request = https.request(
          {
            host: '127.0.0.1',
            servername: 'localhost',
            port: server.port,
            path: `/v1/${cluster}/${TOKEN}/ivpol/validate`,
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            ca: own.ca,
            ...shows,
          },
          (response) => {
            response.resume()
            resolve(response.statusCode)
          },
        )
        request.on('error', reject).end(JSON.stringify(review()))
      })
    expect([await call('prod'), await call('plain')]).toEqual([status, 200])
    await server.close()
  })
})

describe('audit mode', () => {
  const clusters = [
    { ...BASE, name: 'prod', mode: 'enforce' },
    { ...BASE, name: 'staging', mode: 'audit' },
  ]
  const told = 'would be denied, but this cluster is in audit mode: Policy a failed: no'

  test('lets in what another cluster is denied, and says so in the answer, the log and the events', async () => {
    const { post, lines, told: events } = door(clusters, () => denied('Policy a failed: no'))
    expect((await post('prod')).answer).toMatchObject({ allowed: false })
    const { answer } = await post('staging')
    expect(answer).toEqual({
      uid: answer.uid,
      allowed: true,
      warnings: [told],
      auditAnnotations: {
        'image-policy-audit-mode': told,
        'image-policy-set': answer.auditAnnotations['image-policy-set'],
      },
    })
    expect(lines).toMatchObject([
      { cluster: 'prod', verdict: 'deny', mode: undefined },
      { cluster: 'staging', verdict: 'allow', mode: 'audit', wouldDeny: 'Policy a failed: no' },
    ])
    expect(events).toMatchObject([
      { cluster: 'prod', mode: 'enforce', trace: TRACE },
      { cluster: 'staging', mode: 'audit', trace: TRACE },
    ])
    expect(events[1]?.decision.audited?.message).toBe('Policy a failed: no')
  })

  test('is said where the config is loaded, with its place, and when functions start', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
    const file = path.join(folder, 'countersign.yaml')
    await writeFile(file, JSON.stringify(document(...clusters), null, 1))
    const { trust } = await readConfig(file)
    expect(trust.notes()).toContainEqual({
      path: expect.stringMatching(/countersign\.yaml:\d+:\d+$/),
      message:
        'clusters[1].mode: cluster staging is in audit mode: nothing is denied there; what would be is a warning and an audit annotation',
    })
    await rm(folder, { recursive: true })
    const lines: Record<string, unknown>[] = []
    const log = (record: Readonly<Record<string, unknown>>) => lines.push(record)
    const deployment = { config: configOf(...clusters), policies: [], hash: '0' }
    const env = { SEAL: 'A'.repeat(44) }
    compose(deployment, { env, log, hash: nodeHash, maxBodyBytes: 1 }, {})
    expect(lines).toEqual([{ level: 'warn', event: 'audit-mode', clusters: ['staging'] }])
  })

  test('changes nothing about what is let in anyway', async () => {
    const { answer } = await door(clusters, () => admitted({ warnings: ['w'] })).post('staging')
    expect(answer).toMatchObject({ allowed: true, warnings: ['w'] })
    expect(answer.auditAnnotations).not.toHaveProperty('image-policy-audit-mode')
  })

  test.each([
    { name: 'a fault', body: undefined },
    { name: 'an object that cannot be read', body: { ...review(), request: { uid: 'u-1' } } },
  ])('lets in at $name, too, and says which', async ({ body }) => {
    const fail = () => Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'KMS is away'))
    const { answer } = await door(clusters, fail).post('staging', {}, body)
    expect(answer.allowed).toBe(true)
    expect(answer.warnings[0]).toMatch(/^would be denied, but this cluster is in audit mode: \S/)
  })
})

describe('limits', () => {
  test('of a body are those of the cluster where they are smaller than the platform\u2019s', async () => {
    const { post } = door([
      { ...BASE, name: 'small', limits: { bodyBytes: 65_536 } },
      { ...BASE, name: 'large', limits: { bodyBytes: 7_000_000 } },
    ])
    const body = review({ object: { padding: 'x'.repeat(100_000) } })
    expect((await post('small', {}, body)).answer).toMatchObject({
      allowed: false,
      status: { code: 413 },
    })
    expect((await post('large', {}, body)).answer).toMatchObject({ allowed: true })
    const larger = review({ object: { padding: 'x'.repeat(1_000_000) } })
    expect((await post('large', {}, larger)).answer).toMatchObject({ status: { code: 413 } })
  })

  test('of reviews at once deny what is more, for this cluster alone, until one has ended', async () => {
    let [open, begin] = [() => {}, () => {}]
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    const { post } = door(
      [
        { ...BASE, name: 'few', limits: { concurrentReviews: 1 } },
        { ...BASE, name: 'free' },
      ],
      async () => {
        begin()
        await gate
        return admitted()
      },
    )
    const first = post('few')
    await begun
    expect((await post('few')).answer).toMatchObject({
      allowed: false,
      status: {
        code: 429,
        reason: 'TooManyRequests',
        message:
          'cluster few has as many reviews under way as limits.concurrentReviews allows; try again',
      },
    })
    const other = post('free')
    open()
    expect([(await first).answer.allowed, (await other).answer.allowed]).toEqual([true, true])
    expect((await post('few')).answer.allowed).toBe(true)
  })
})

describe('reviews under way', () => {
  const few = [{ ...BASE, name: 'few', limits: { concurrentReviews: 1 } }]

  test.each([
    { name: 'whose flow throws', decide: () => Promise.reject(new TypeError('a bug')) },
    {
      name: 'whose policies cannot be told',
      decide: () => Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'KMS is away')),
    },
  ])('one $name is over with its answer', async ({ decide }) => {
    const { post } = door(few, decide)
    for (let call = 0; call < 3; call++) {
      expect((await post('few')).answer.status.code).not.toBe(429)
    }
  })

  test('one whose answer or log fails is over, too', async () => {
    const { post } = door(few, admitted, {
      log: (record) => {
        if (record.event === 'decision') throw new Error('the log is full')
      },
    })
    for (let call = 0; call < 3; call++) {
      await expect(post('few')).rejects.toThrow(/"internal error/)
    }
  })

  test('one that a platform gave up when its caller hung up counts until its time is over, and not for ever', async () => {
    let [now, begin] = [NOW, () => {}]
    const options = {
      now: () => now,
      // Neither timers nor promises of such a request ever come to anything.
      schedule: () => () => undefined,
    }
    const stuck = () => {
      begin()
      return new Promise<never>(() => {})
    }
    const { post } = door(few, stuck, options)
    const begun = () =>
      new Promise<'begun'>((resolve) => {
        begin = () => resolve('begun')
      })
    for (const later of [0, 31_000]) {
      now += later
      const [start, answered] = [begun(), post('few')]
      expect(await Promise.race([start, answered])).toBe('begun')
      expect((await post('few')).answer.status.code).toBe(429)
    }
  })
})

describe('policy sets', () => {
  const policy = (name: string, hash: string, exceptions: string[] = []) =>
    ({
      name,
      hash,
      exceptions: exceptions.map((each) => ({ name: each })),
    }) as unknown as CompiledPolicy
  const policies = [policy('a', '1', ['shop/let']), policy('b', '2')]
  const setOf = (cluster: object, all = policies) =>
    policiesOf({ policies: all }, cluster, nodeHash).policySet

  test('are the same for the same policies in any order, and others for anything that is different', () => {
    expect(setOf({})).toMatch(/^[0-9a-f]{12}$/)
    expect(setOf({}, policies.toReversed())).toBe(setOf({}))
    expect(setOf({ policies: ['a', 'b'] })).toBe(setOf({}))
    const sets = [
      setOf({}),
      setOf({ policies: ['a'] }),
      setOf({ exceptions: [] }),
      setOf({ exceptions: ['shop/let'] }),
      setOf({}, [policy('a', '3'), policy('b', '2')]),
    ]
    expect(new Set(sets).size).toBe(sets.length)
  })

  test('an exception that no policy knows is a fault of the config', async () => {
    const outside = policies.map((each) => ({
      ...each,
      matchConditions: [],
      validations: [],
      variables: [],
      matchConstraints: { resourceRules: [] },
    }))
    const config = configOf({ ...BASE, name: 'prod', exceptions: ['shop/let', 'shop/lett'] })
    await expect(
      createDeployment(config, outside as unknown as CompiledPolicy[]),
    ).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      faults: [
        {
          path: 'clusters[0].exceptions[1]',
          message: 'no exception "shop/lett" refers to a policy of the folder; there are shop/let',
        },
      ],
    })
  })

  test('the exceptions of a cluster reach the engine, and those of another do not', async () => {
    const { post, calls } = door([
      { ...BASE, name: 'one', exceptions: ['shop/let'] },
      { ...BASE, name: 'all' },
    ])
    await post('one')
    await post('all')
    expect(calls.map(({ exceptions }) => exceptions && [...exceptions])).toEqual([
      ['shop/let'],
      undefined,
    ])
  })
})

describe('metrics', () => {
  const clusters = [{ ...BASE, name: 'prod' }]
  const decision = () =>
    admitted({ record: { seal: 'open', calls: { registry: 3, kms: 1, cacheHits: 0 } } })

  test('are in the line of the decision, each at its top, where the platform reads them', async () => {
    const { post, lines } = door(clusters, decision, { metrics: true })
    await post('prod')
    const [line = {}] = lines
    expect(line).toMatchObject({
      cluster: 'prod',
      phase: 'validate',
      verdict: 'allow',
      reviews: 1,
      ms: 0,
      registryCalls: 3,
      kmsCalls: 1,
      sealUsed: 1,
      faults: 0,
    })
    const { Timestamp, CloudWatchMetrics } = line._aws as {
      Timestamp: number
      CloudWatchMetrics: {
        Namespace: string
        Dimensions: string[][]
        Metrics: { Name: string }[]
      }[]
    }
    expect(Timestamp).toBe(NOW)
    expect(CloudWatchMetrics).toMatchObject([
      { Namespace: METRICS_NAMESPACE, Dimensions: [['cluster', 'phase', 'verdict']] },
    ])
    const [{ Metrics, Dimensions } = { Metrics: [], Dimensions: [] }] = CloudWatchMetrics
    for (const { Name } of Metrics) expect(line[Name]).toBeTypeOf('number')
    for (const name of Dimensions.flat()) expect(line[name]).toBeTypeOf('string')
  })

  test('count faults, and a decision that no engine made', async () => {
    const fail = () => Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'KMS is away'))
    const { post, lines } = door(clusters, fail, { metrics: true })
    await post('prod')
    expect(lines).toMatchObject([{ verdict: 'deny', faults: 1, registryCalls: 0, sealUsed: 0 }])
  })

  test('are not there anywhere else', async () => {
    const { post, lines } = door(clusters, decision)
    await post('prod')
    expect(lines[0]).not.toHaveProperty('_aws')
  })
})
