import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'
import { hashOf } from '../../contract/review.ts'
import { type CertificateOptions, extension, mint, mintRoot, pemOf } from '../../fakes/pki.ts'
import { appOf, countersign } from './harness.ts'

const TOKEN = 'tokentokentokentokentokentoken22'

const CONFIG = `policies: policies
endpoint: https://admission.example.com
outcomes: { key: { secrets: [{ id: a, env: SEAL }] } }
clusters:
  - name: prod
    tokens: ["${hashOf(TOKEN)}"]
    timeouts: { mutateSeconds: 10, validateSeconds: 1 }
`

const POLICY = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: { name: names }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, pods/ephemeralcontainers] }
  validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false }
  attestors: []
  validations:
    - expression: object.metadata.name != "taken"
      message: taken
`

const days = (count: number) => new Date(Date.now() + count * 86_400_000)

let folder: string
let own: DevCertificates
const servers: { close(): unknown }[] = []

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  await mkdir(path.join(folder, 'policies'))
  await writeFile(path.join(folder, 'countersign.yaml'), CONFIG)
  await writeFile(path.join(folder, 'policies/names.yaml'), POLICY)
  await writeFile(path.join(folder, 'token'), `${TOKEN}\n`)
  own = await createDevCertificates({ hosts: ['localhost'] })
  await writeFile(path.join(folder, 'ca.pem'), own.ca)
})

afterEach(async () => {
  for (const server of servers.splice(0)) server.close()
  await rm(folder, { recursive: true })
})

/** What stands between a caller and the functions. */
interface Faults {
  certificates?: DevCertificates
  delayMs?: number
  /** The Date header, milliseconds from now. */
  skewMs?: number
  maxBodyBytes?: number
  /** Ends the connection in place of an answer. */
  hangUp?: (path: string) => boolean
  /** Answers in place of the functions: a status, or a body. */
  answer?: (path: string) => number | string | undefined
}

/** The functions of the files as they are now, behind a door with these faults. Gives its URL. */
async function deploy(faults: Faults = {}): Promise<string> {
  const app = await appOf(path.join(folder, 'countersign.yaml'), 7_000_000)
  const { key, cert } = faults.certificates ?? own
  const server: Server = createServer({ key, cert }, async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (faults.hangUp?.(request.url ?? '')) {
      request.socket.destroy()
      return
    }
    const body = Buffer.concat(chunks)
    const url = `https://door.example${request.url}`
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    const init = { method: request.method ?? 'GET', headers }
    const own = faults.answer?.(request.url ?? '')
    const isTooLarge = body.length > (faults.maxBodyBytes ?? Number.POSITIVE_INFINITY)
    const answer =
      own !== undefined || isTooLarge
        ? typeof own === 'string'
          ? new Response(own)
          : new Response('', { status: own ?? 413 })
        : await app.fetch(
            new Request(url, body.length > 0 ? { ...init, body: new Uint8Array(body) } : init),
            {},
          )
    const text = await answer.text()
    if (faults.skewMs !== undefined) {
      response.setHeader('date', new Date(Date.now() + faults.skewMs).toUTCString())
    }
    const send = () => response.writeHead(answer.status).end(text)
    if (faults.delayMs === undefined) send()
    else setTimeout(send, faults.delayMs)
  })
  return listening(server)
}

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, resolve))
  return `https://localhost:${(server.address() as AddressInfo).port}`
}

/** The checks of `countersign doctor`, by name; at the endpoint of the config when none is given. */
async function doctor(endpoint: string | undefined, ...args: string[]) {
  const ran = await countersign([
    'doctor',
    '--cluster',
    'prod',
    '--config',
    path.join(folder, 'countersign.yaml'),
    '--token-file',
    path.join(folder, 'token'),
    '--ca-bundle',
    path.join(folder, 'ca.pem'),
    ...(endpoint === undefined ? [] : ['--endpoint', endpoint]),
    '--calls',
    '2',
    '--output',
    'json',
    ...args,
  ])
  type Checks = { check: string; status: string; found: string; fix?: string }[]
  const checks: Checks = ran.out.startsWith('{') ? JSON.parse(ran.out).checks : []
  expect(ran.out + ran.err).not.toContain(TOKEN)
  return { ...ran, checks, of: (name: string) => checks.find(({ check }) => check === name) }
}

describe('doctor', () => {
  test('finds nothing wrong with functions as they should be', async () => {
    const { code, checks, err } = await doctor(await deploy())
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(checks.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'url ok',
      // It is on this machine.
      'dns warn',
      'tls ok',
      'http ok',
      'health ok',
      'auth ok',
      'mutate ok',
      'validate ok',
      'policies ok',
      'latency ok',
      'clock ok',
      'body ok',
      // Nobody sees that from here.
      'egress skip',
    ])
  })

  test('reads well as text', async () => {
    const endpoint = await deploy({ skewMs: 20_000 })
    const { out, code } = await doctor(endpoint, '--output', 'text')
    expect(code).toBe(0)
    expect(out).toMatch(/^ok {4}tls {7}TLSv1\.3, trusted, ends 20\d\d-\S+ \(\d+ days\)$/m)
    expect(out).toMatch(/^warn {2}clock {5}\d+ s from the clock of this machine\n {16}→ correct /m)
    expect(out).toMatch(/^prod: nothing will hurt, 2 to look at$/m)
  })

  test.each<{
    name: string
    faults: () => Promise<Faults>
    check: string
    status: string
    found: RegExp
  }>([
    {
      name: 'a function that is slow',
      faults: async () => ({ delayMs: 600 }),
      check: 'latency',
      status: 'warn',
      found: /slowest \d+ ms of 2; validate may take 1 s, mutate 10 s$/,
    },
    {
      name: 'a function slower than its timeout',
      faults: async () => ({ delayMs: 1100 }),
      check: 'latency',
      status: 'fail',
      found: /slowest 1\d\d\d ms/,
    },
    {
      name: 'a clock that is a little off',
      faults: async () => ({ skewMs: -15_000 }),
      check: 'clock',
      status: 'warn',
      found: /^-1[456] s from the clock of this machine$/,
    },
    {
      name: 'a clock that is off by hours',
      faults: async () => ({ skewMs: 7_200_000 }),
      check: 'clock',
      status: 'fail',
      found: /^7(199|200) s from/,
    },
    {
      name: 'a door that takes small bodies only',
      faults: async () => ({ maxBodyBytes: 1_000_000 }),
      check: 'body',
      status: 'fail',
      found: /^a review of 3 MiB gets HTTP 413$/,
    },
    {
      name: 'a door that lets in anybody',
      faults: async () => ({ answer: (where) => (where.includes('/v1/') ? 200 : undefined) }),
      check: 'auth',
      status: 'fail',
      found: /^a wrong token gets HTTP 200 in place of 404$/,
    },
    {
      name: 'a door without health routes',
      faults: async () => ({ answer: (where) => (where.endsWith('z') ? 403 : undefined) }),
      check: 'health',
      status: 'warn',
      found: /^\/livez 403, \/readyz 403$/,
    },
    {
      name: 'a function of one phase',
      faults: async () => ({ answer: (where) => (where.includes('/mutate') ? 404 : undefined) }),
      check: 'mutate',
      status: 'fail',
      found: /^HTTP 404$/,
    },
  ])('sees $name', async ({ faults, check, status, found }) => {
    const { code, of } = await doctor(await deploy(await faults()))
    expect(of(check)).toMatchObject({ status, found: expect.stringMatching(found) })
    expect(of(check)?.fix).toMatch(/\S/)
    expect(code).toBe(status === 'fail' ? 1 : 0)
  })

  test.each<{ name: string; options: CertificateOptions; host: string; ca?: true; found: RegExp }>([
    {
      name: 'has ended',
      options: { validity: [days(-90), days(-1)] },
      host: 'localhost',
      found: /^the certificate ended on /,
    },
    {
      name: 'has not begun',
      options: { validity: [days(1), days(90)] },
      host: 'localhost',
      found: /^the certificate begins on /,
    },
    {
      name: 'is for another host',
      options: { validity: [days(-1), days(90)] },
      host: 'other.example.com',
      found: /^the certificate is not for localhost but for DNS:other\.example\.com$/,
    },
    {
      name: 'is of another authority',
      options: { validity: [days(-1), days(90)] },
      host: 'localhost',
      ca: true,
      found: /^the chain is not trusted \(\w+\)$/,
    },
  ])('shows the token to nobody whose certificate $name', async ({ options, host, ca, found }) => {
    const issuer = mintRoot({ validity: [days(-100), days(100)] })
    const name = der.sequence(der.contextPrimitive(2, Buffer.from(host)))
    const server = mint({
      issuer,
      keyName: 'server',
      subject: [['2.5.4.3', host]],
      purposes: ['1.3.6.1.5.5.7.3.1'],
      extra: [extension('2.5.29.17', name)],
      ...options,
    })
    if (!ca) await writeFile(path.join(folder, 'ca.pem'), pemOf(issuer))
    const key = server.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    let isAsked = false
    const answer = () => {
      isAsked = true
      return undefined
    }
    const certificates = { ca: '', key, cert: pemOf(server) }
    const { code, of } = await doctor(await deploy({ certificates, answer }))
    expect([code, of('tls')?.status, of('auth')?.status]).toEqual([1, 'fail', 'skip'])
    expect(of('tls')?.found).toMatch(found)
    expect(isAsked).toBe(false)
  })

  test('sees that a certificate ends soon', async () => {
    const issuer = mintRoot({ validity: [days(-100), days(100)] })
    const name = der.sequence(der.contextPrimitive(2, Buffer.from('localhost')))
    const server = mint({
      issuer,
      keyName: 'server',
      purposes: ['1.3.6.1.5.5.7.3.1'],
      extra: [extension('2.5.29.17', name)],
      validity: [days(-80), days(5)],
    })
    await writeFile(path.join(folder, 'ca.pem'), pemOf(issuer))
    const key = server.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    const certificates = { ca: '', key, cert: pemOf(server) }
    const { code, of } = await doctor(await deploy({ certificates }))
    expect([code, of('tls')?.status]).toEqual([0, 'warn'])
    expect(of('tls')?.found).toMatch(/\([45] days\)$/)
  })

  test('sees that other policies are deployed than are here', async () => {
    const endpoint = await deploy()
    await writeFile(path.join(folder, 'policies/names.yaml'), POLICY.replace('"taken"', '"free"'))
    const { code, of } = await doctor(endpoint)
    expect(code).toBe(1)
    expect(of('policies')).toMatchObject({
      status: 'fail',
      found: expect.stringMatching(
        /^policy set [0-9a-f]{12} is deployed, these files are [0-9a-f]{12}$/,
      ),
    })
  })

  test('sees a token that is not deployed, and says what else it may be', async () => {
    const endpoint = await deploy()
    await writeFile(path.join(folder, 'token'), 'x'.repeat(32))
    await writeFile(
      path.join(folder, 'countersign.yaml'),
      CONFIG.replace('    timeouts', '    cidrs: [203.0.113.0/24]\n    timeouts'),
    )
    const { code, of } = await doctor(endpoint)
    expect(code).toBe(1)
    expect(of('auth')).toMatchObject({
      status: 'fail',
      found: 'the token gets 404, as whoever has none',
      fix: expect.stringMatching(/tokens rotate.*in none of cidrs.*not in the deployed config/),
    })
    expect(of('mutate')?.status).toBe('skip')
  })

  test.each([
    { name: 'nobody listens', how: 'nothing', found: /^no connection \(ECONNREFUSED\)$/ },
    { name: 'whoever listens speaks no TLS', how: 'plain', found: /^no connection \(/ },
  ])('sees that $name', async ({ how, found }) => {
    const server = createTcpServer((socket) => socket.end('HTTP/1.1 400 no\r\n\r\n'))
    const endpoint = await listening(server)
    if (how === 'nothing') await new Promise((resolve) => server.close(resolve))
    const { code, of } = await doctor(endpoint)
    expect(code).toBe(1)
    expect(of('tls')).toMatchObject({ status: 'fail', found: expect.stringMatching(found) })
  })

  test('sees that the endpoint is no name', async () => {
    const { code, of } = await doctor('https://nowhere.invalid')
    expect([code, of('dns')?.status, of('tls')?.status]).toEqual([1, 'fail', 'skip'])
  })

  test.each(['http://localhost', 'https://user@localhost', 'https://localhost/?a=b', 'nothing'])(
    'sees that API servers take no %s',
    async (endpoint) => {
      const { code, of } = await doctor(endpoint)
      expect([code, of('url')?.status, of('dns')?.status]).toEqual([1, 'fail', 'skip'])
    },
  )

  test('says that a cluster is in audit mode', async () => {
    await writeFile(
      path.join(folder, 'countersign.yaml'),
      CONFIG.replace('    timeouts', '    mode: audit\n    timeouts'),
    )
    const { code, of } = await doctor(await deploy())
    expect([code, of('mode')?.status]).toEqual([0, 'warn'])
  })

  describe('an endpoint with a host for each function', () => {
    /** A config whose functions are behind these doors, and what it finds. */
    async function doctorAt(doors: { mutate: Faults; validate: Faults }) {
      const [mutate, validate] = [await deploy(doors.mutate), await deploy(doors.validate)]
      const each = `endpoint: { mutate: '${mutate}/', validate: '${validate}' }`
      await writeFile(path.join(folder, 'countersign.yaml'), CONFIG.replace(/endpoint: .*/, each))
      return { ...(await doctor(undefined)), mutate, validate }
    }
    const only = (phase: string): Faults => ({
      answer: (where) => (where.endsWith('z') || where.includes(`/${phase}`) ? undefined : 404),
    })

    test('is looked at host by host', async () => {
      const ran = await doctorAt({ mutate: only('mutate'), validate: only('validate') })
      expect(ran.checks.map(({ check, status }) => `${check} ${status}`)).toEqual([
        'url mutate ok',
        'dns mutate warn',
        'tls mutate ok',
        'http mutate ok',
        'url validate ok',
        'dns validate warn',
        'tls validate ok',
        'http validate ok',
        'health mutate ok',
        'auth mutate ok',
        'health validate ok',
        'auth validate ok',
        'mutate ok',
        'validate ok',
        'policies ok',
        'latency ok',
        'clock ok',
        'body ok',
        'egress skip',
      ])
      expect(ran.code).toBe(0)
      expect(ran.of('url mutate')?.found).toBe(`${ran.mutate}/v1/prod/<token>/ivpol/…`)
      const hosts = [ran.mutate, ran.validate].map((url) => new URL(url).host).join(' and ')
      expect(ran.of('egress')?.found).toBe(
        `not seen from here: whether the control plane may call ${hosts}`,
      )
    })

    test('one host that nobody knows keeps the token, and the other is asked', async () => {
      const stranger = await createDevCertificates({ hosts: ['localhost'] })
      let isAsked = false
      const answer = () => {
        isAsked = true
        return undefined
      }
      const ran = await doctorAt({
        mutate: { certificates: stranger, answer },
        validate: only('validate'),
      })
      expect(ran.code).toBe(1)
      expect(isAsked).toBe(false)
      expect(ran.of('tls mutate')?.status).toBe('fail')
      for (const check of ['health mutate', 'auth mutate', 'mutate']) {
        expect(ran.of(check)).toEqual({
          check,
          status: 'skip',
          found: 'not looked at, because of tls mutate: the token is shown to nobody unknown',
        })
      }
      for (const check of ['auth validate', 'validate', 'policies', 'latency', 'body']) {
        expect([check, ran.of(check)?.status]).toEqual([check, 'ok'])
      }
    })

    test('functions with policies of their own time are seen', async () => {
      const mutate = await deploy(only('mutate'))
      await writeFile(path.join(folder, 'policies/names.yaml'), POLICY.replace('"taken"', '"free"'))
      const validate = await deploy(only('validate'))
      const each = `endpoint: { mutate: '${mutate}', validate: '${validate}' }`
      await writeFile(path.join(folder, 'countersign.yaml'), CONFIG.replace(/endpoint: .*/, each))
      const { code, of } = await doctor(undefined)
      expect([code, of('policies')?.status]).toEqual([1, 'ok'])
      expect(of('policies of mutate')).toMatchObject({
        status: 'fail',
        found: expect.stringMatching(/^policy set \w{12} is deployed, these files are \w{12}$/),
      })
    })

    test('a door that lets in anybody closes what is behind it', async () => {
      const ran = await doctorAt({
        mutate: only('mutate'),
        validate: { answer: (where) => (where.includes('/v1/') ? 200 : undefined) },
      })
      expect(ran.code).toBe(1)
      expect([ran.of('auth validate')?.status, ran.of('mutate')?.status]).toEqual(['fail', 'ok'])
      for (const check of ['validate', 'policies', 'latency', 'clock', 'body']) {
        expect(ran.of(check)?.found).toBe('not looked at, because of auth validate')
      }
    })
  })

  describe('ImageReviews', () => {
    beforeEach(async () => {
      // A review carries no name.
      await writeFile(
        path.join(folder, 'policies/names.yaml'),
        POLICY.replace(
          /expression: .*/,
          'expression: images.containers.all(i, i != "bad.example/x:1")',
        ),
      )
      await writeFile(
        path.join(folder, 'countersign.yaml'),
        CONFIG.replace('    timeouts', '    imageReview: true\n    timeouts'),
      )
    })

    test.each([
      { image: 'good.example/x:1', found: /^allowed$/ },
      { image: 'bad.example/x:1', found: /^denied: .*taken/ },
    ])('are asked for: $image', async ({ image, found }) => {
      const { code, of, checks } = await doctor(await deploy(), '--image', image)
      expect(of('image-review')).toEqual({
        check: 'image-review',
        status: 'ok',
        found: expect.stringMatching(found),
      })
      expect(code).toBe(0)
      expect(checks.at(-1)?.fix).toMatch(/None of the three starts its API server/)
    })

    test.each<{ name: string; answer: (isRight: boolean) => number | string; found: RegExp }>([
      { name: 'no route', answer: () => 404, found: /^HTTP 404$/ },
      {
        name: 'a door that answers anybody',
        answer: () => 200,
        found: /^a wrong token gets HTTP 200 in place of 404$/,
      },
      {
        name: 'a function that fails',
        answer: (isRight) => (isRight ? 500 : 404),
        found: /^HTTP 500$/,
      },
      {
        name: 'an answer that is none',
        answer: (isRight) => (isRight ? 'no' : 404),
        found: /^the answer is no JSON: /,
      },
      {
        name: 'an answer of another kind',
        answer: (isRight) => (isRight ? '{"kind":"AdmissionReview"}' : 404),
        found: /^the answer is no ImageReview of imagepolicy\.k8s\.io\/v1alpha1$/,
      },
      {
        name: 'an answer without a verdict',
        answer: (isRight) =>
          isRight ? '{"kind":"ImageReview","apiVersion":"imagepolicy.k8s.io/v1alpha1"}' : 404,
        found: /^the answer has no status\.allowed/,
      },
    ])('$name is seen', async ({ answer, found }) => {
      const endpoint = await deploy({
        answer: (where) =>
          where.endsWith('/image-review?timeout=30s') ? answer(where.includes(TOKEN)) : undefined,
      })
      const { code, of } = await doctor(endpoint)
      expect(of('image-review')).toMatchObject({
        status: 'fail',
        found: expect.stringMatching(found),
        fix: expect.stringMatching(/\S/),
      })
      expect([code, of('validate')?.status]).toEqual([1, 'ok'])
    })

    test('have a host of their own where the config says so, and are not asked where nobody is to know the token', async () => {
      const [door, reviews] = [await deploy(), await deploy()]
      const each = `endpoint: { mutate: '${door}', validate: '${door}', imageReview: '${reviews}' }`
      const config = path.join(folder, 'countersign.yaml')
      const text = CONFIG.replace('    timeouts', '    imageReview: true\n    timeouts')
      await writeFile(config, text.replace(/endpoint: .*/, each))
      const { code, of } = await doctor(undefined)
      expect(code).toBe(0)
      expect(of('url image-review')?.found).toBe(`${reviews}/v1/prod/<token>/image-review`)
      expect(of('auth mutate+validate')?.status).toBe('ok')
      expect(of('image-review')?.status).toBe('ok')
      await writeFile(
        config,
        text.replace(/endpoint: .*/, each.replace(reviews, 'https://nowhere.invalid')),
      )
      const closed = await doctor(undefined)
      expect([closed.code, closed.of('dns image-review')?.status]).toEqual([1, 'fail'])
      expect(closed.of('image-review')).toMatchObject({
        status: 'skip',
        found: 'not looked at, because of dns image-review',
      })
      expect(closed.of('validate')?.status).toBe('ok')
    })

    test('rest on the policies of the list for reviews, as deployed', async () => {
      await writeFile(
        path.join(folder, 'policies/more.yaml'),
        POLICY.replace('name: names', 'name: more'),
      )
      const config = path.join(folder, 'countersign.yaml')
      const having = (policies: string) =>
        CONFIG.replace('    timeouts', `    imageReview: { policies: [${policies}] }\n    timeouts`)
      await writeFile(config, having('names'))
      const endpoint = await deploy()
      const { code, of } = await doctor(endpoint)
      const check = 'policies of image-review'
      expect([code, of(check)?.status]).toEqual([0, 'ok'])
      expect(of(check)?.found).not.toBe(of('policies')?.found)
      await writeFile(
        path.join(folder, 'policies/names.yaml'),
        POLICY.replace(/expression: .*/, 'expression: images.containers.size() < 9'),
      )
      const other = await doctor(endpoint)
      expect([other.code, other.of(check)?.status]).toEqual([1, 'fail'])
      expect(other.of(check)?.found).toMatch(
        /^policy set \w{12} is deployed, these files are \w{12}$/,
      )
    })

    test('are left alone where the cluster has none', async () => {
      await writeFile(path.join(folder, 'countersign.yaml'), CONFIG)
      const { of } = await doctor(await deploy())
      expect(of('image-review')).toBeUndefined()
    })
  })

  test('keeps what it found where the connection breaks', async () => {
    const endpoint = await deploy({ hangUp: (where) => where.includes('/ivpol/mutate') })
    const { code, checks, of } = await doctor(endpoint)
    expect(code).toBe(1)
    expect(checks.map(({ check }) => check)).toEqual([
      ...['url', 'dns', 'tls', 'http', 'health', 'auth', 'calls', 'egress'],
    ])
    expect(of('calls')).toMatchObject({
      status: 'fail',
      found: 'the connection broke: ECONNRESET',
      fix: expect.stringMatching(/^look at the front door/),
    })
  })

  test('says what it cannot see: whether the control plane may call out, and what that means for managed ones', async () => {
    await writeFile(
      path.join(folder, 'countersign.yaml'),
      CONFIG.replace(
        '    timeouts',
        '    cidrs: [203.0.113.0/24, 127.0.0.0/8, "::1/128"]\n    timeouts',
      ),
    )
    const { of } = await doctor('https://nowhere.invalid')
    expect(of('dns')?.fix).toMatch(/see egress, too$/)
    expect(of('egress')).toEqual({
      check: 'egress',
      status: 'skip',
      found:
        'not seen from here: whether the control plane may call nowhere.invalid, and from an address that cidrs lists',
      fix: expect.stringMatching(
        /GKE: .*NONE drops every call.*EKS: AWS_MANAGED.*CUSTOMER_ROUTED.*CUSTOMER_ISOLATED.*AKS/,
      ),
    })
    expect(of('egress')?.fix).not.toMatch(/AdmissionConfiguration/)
    const none = await doctor('http://localhost')
    expect(none.of('egress')).toBeUndefined()
  })

  test.each([
    {
      name: 'an unknown cluster',
      args: ['--cluster', 'none'],
      says: /has no cluster none; it has prod/,
    },
    { name: 'no number of calls', args: ['--calls', 'x'], says: /--calls: expected a number/ },
    { name: 'half of a client certificate', args: ['--client-cert', 'x'], says: /go together/ },
    {
      name: 'a caBundle that is none',
      args: ['--ca-bundle', 'TOKEN'],
      says: /cannot be a caBundle/,
    },
    {
      name: 'a client certificate that is none',
      args: ['--client-cert', 'TOKEN', '--client-key', 'TOKEN'],
      says: /^countersign doctor: --client-cert and --client-key are no PEM certificate and its key$/m,
    },
    {
      name: 'a bearer token of two lines',
      args: ['--bearer-file', 'package.json'],
      says: /^countersign doctor: package\.json: a bearer token has no blanks, line breaks or letters beyond ASCII$/m,
    },
  ])('$name is bad input', async ({ args, says }) => {
    const given = args.map((arg) => (arg === 'TOKEN' ? path.join(folder, 'token') : arg))
    const { code, err } = await doctor('https://localhost:1', ...given)
    expect(code).toBe(2)
    expect(err).toMatch(says)
  })

  test('a port that there cannot be is told as a URL that nobody can call', async () => {
    const { code, of } = await doctor('https://localhost:99999')
    expect(code).toBe(1)
    expect(of('url')).toMatchObject({ status: 'fail', fix: expect.stringMatching(/^set endpoint/) })
    expect(of('dns')).toMatchObject({ status: 'skip' })
  })
})
