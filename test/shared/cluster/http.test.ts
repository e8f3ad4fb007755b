import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { trustingFetch } from '#functions/cluster/https.ts'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'
import { Budget } from '#shared/cluster/budget.ts'
import { createHttpClient, type HttpOptions } from '#shared/cluster/http.ts'
import type { HttpCall } from '#shared/cluster/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { JsonDouble } from '#shared/json.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void
let certificates: DevCertificates
let servers: Server[]
let plain: string
let other: string
let secure: string
let answer: Answer
const requests: string[] = []

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  certificates = await createDevCertificates({ hosts: ['127.0.0.1'] })
  const handle: Answer = (request, response) => {
    let body = ''
    request.on('data', (part) => {
      body += String(part)
    })
    request.on('end', () => {
      requests.push([request.method, request.url, body].filter(Boolean).join(' '))
      answer(request, response)
    })
  }
  servers = [createServer(handle), createServer(handle), createTlsServer(certificates, handle)]
  const [first, second, third] = servers
  ;[plain, other, secure] = await Promise.all([listen(first!), listen(second!), listen(third!)])
})
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})
beforeEach(() => {
  requests.length = 0
  answer = json({ allowed: true })
})

function json(body: unknown, status = 200): Answer {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

function send(call: Partial<HttpCall>, options: Partial<HttpOptions> = {}) {
  const client = createHttpClient({
    fetch: (url, init) => fetch(url, init),
    trusting: trustingFetch,
    now: () => 0,
    random: () => 0,
    allow: [secure],
    plainHttp: [plain],
    inNamespaces: false,
    ...options,
  })
  const budget = new Budget(new AbortController().signal, {
    calls: 20,
    bytes: 1e7,
    code: 'HTTP_REFUSED',
    what: 'requests',
  })
  const whole = { method: 'GET' as const, url: `http://${plain}/a?secret=x`, headers: {}, ca: '' }
  return client.send({ ...whole, ...call }, budget.context)
}

async function fault(call: Promise<unknown>): Promise<string> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(thrown instanceof AdmissionError)) return `no AdmissionError but ${String(thrown)}`
  const hosts: [string, string][] = [
    [plain, 'plain'],
    [other, 'other'],
    [secure, 'secure'],
  ]
  return hosts.reduce(
    (text, [host, name]) => text.replaceAll(host, name),
    `${thrown.code} ${thrown.message}`,
  )
}

describe('answers, in the shape of Kyverno', () => {
  test.each<[string, string, number, unknown]>([
    [
      'the members of an object',
      '{"allowed":true,"n":1}',
      200,
      { allowed: true, n: new JsonDouble(1), statusCode: 200 },
    ],
    ['an object that has a statusCode of its own', '{"statusCode":1}', 200, { statusCode: 200 }],
    ['a list', '[true]', 200, { body: [true], statusCode: 200 }],
    ['a text that is no JSON', 'hello', 200, { body: 'hello', statusCode: 200 }],
    ['nothing', '', 204, { body: '', statusCode: 204 }],
    ['a refusal', '{"error":"no"}', 403, { error: 'no', statusCode: 403 }],
    [
      'a member called __proto__',
      '{"__proto__":{"allowed":true}}',
      200,
      JSON.parse('{"__proto__":{"allowed":true},"statusCode":200}'),
    ],
  ])('%s', async (_, body, status, expected) => {
    answer = json(body, status)
    expect(await send({})).toEqual(expected)
  })

  test('a POST sends JSON', async () => {
    let type: string | undefined
    answer = (request, response) => {
      type = request.headers['content-type']
      response.end('{}')
    }
    await send({ method: 'POST', body: { b: 1, a: [true] } })
    expect(requests).toEqual(['POST /a?secret=x {"a":[true],"b":1}'])
    expect(type).toBe('application/json')
  })

  test('headers go with it', async () => {
    let got: unknown
    answer = (request, response) => {
      got = [request.headers['x-key'], request.headers.authorization, request.headers['user-agent']]
      response.end('{}')
    }
    const headers = { 'X-Key': 'v', Authorization: 'Bearer t', 'User-Agent': 'other' }
    await send({ headers })
    expect(got).toEqual(['v', 'Bearer t', 'countersign'])
  })

  test('with an authority that the policy brings', async () => {
    const url = `https://${secure}/a`
    expect(await send({ url, ca: certificates.ca })).toEqual({ allowed: true, statusCode: 200 })
    expect(await fault(send({ url }))).toMatch(
      /^HTTP_UNAVAILABLE GET secure\/a: connection failed \(/,
    )
  })

  test('a redirect to the same host is followed', async () => {
    answer = (request, response) => {
      if (request.url === '/b') response.end('{"there":true}')
      else response.writeHead(302, { location: '/b' }).end()
    }
    expect(await send({})).toEqual({ there: true, statusCode: 200 })
  })
})

describe('what is refused', () => {
  test.each<[string, () => Partial<HttpCall>, string]>([
    [
      'a host that nobody allowed',
      () => ({ url: `http://${other}/a` }),
      '"http://other" is not among the hosts of http.allow (https) and http.plainHttp',
    ],
    [
      'plain HTTP to a host that is allowed over HTTPS',
      () => ({ url: `http://${secure}/a` }),
      '"http://secure" is not among the hosts of http.allow (https) and http.plainHttp',
    ],
    [
      'the metadata service',
      () => ({ url: 'http://169.254.169.254/latest' }),
      '"http://169.254.169.254" is not among the hosts of http.allow (https) and http.plainHttp',
    ],
    [
      'the same host on another port',
      () => ({ url: 'http://127.0.0.1/a' }),
      '"http://127.0.0.1" is not among the hosts of http.allow (https) and http.plainHttp',
    ],
    [
      'another spelling of an address',
      () => ({ url: 'http://2130706433:1/' }),
      '"http://127.0.0.1:1" is not among the hosts of http.allow (https) and http.plainHttp',
    ],
    ['a login in the URL', () => ({ url: `http://a:b@${plain}/` }), 'plain has a login in its URL'],
    [
      'another scheme',
      () => ({ url: 'file:///etc/passwd' }),
      '"file://" is not among the hosts of http.allow (https) and http.plainHttp',
    ],
    ['no URL', () => ({ url: 'nothing' }), 'not a URL'],
    [
      'a header that is not the policy’s',
      () => ({ headers: { Host: 'x' } }),
      'header "Host" is not one',
    ],
    [
      'a header with a line break',
      () => ({ headers: { a: 'x\r\nb: y' } }),
      'header "a" is not one',
    ],
    ['a header that is no text', () => ({ headers: { a: 1 } }), 'header "a" is not one'],
  ])('%s', async (_, call, reason) => {
    expect(await fault(send(call()))).toBe(`HTTP_REFUSED ${reason}`)
    expect(requests).toEqual([])
  })

  test.each<[string, () => string, Partial<HttpCall>, string]>([
    [
      'to another host',
      () => `http://${other}/b`,
      {},
      'HTTP_REFUSED plain redirects to another host',
    ],
    [
      'to another scheme',
      () => `https://${plain}/b`,
      {},
      'HTTP_REFUSED plain redirects to another host',
    ],
    [
      'of a POST',
      () => '/b',
      { method: 'POST', body: {} },
      'HTTP_REFUSED POST plain/a: answers with a redirect (302), which is not followed',
    ],
  ])('a redirect %s', async (_, location, call, expected) => {
    answer = (_request, response) => {
      response.writeHead(302, { location: location() }).end()
    }
    expect(await fault(send(call))).toBe(expected)
    expect(requests).toHaveLength(1)
  })

  test('an authority where the platform can trust none', async () => {
    const refused = send({ url: `https://${secure}/`, ca: 'PEM' }, { trusting: undefined } as never)
    expect(await fault(refused)).toBe(
      'HTTP_REFUSED this platform can trust no other authorities than its own',
    )
  })
})

describe('what could not be told', () => {
  test.each<[string, Partial<HttpCall>, number, number, string]>([
    ['503 after a second try', {}, 503, 2, 'HTTP_UNAVAILABLE GET plain/a: answered 503'],
    ['429 after a second try', {}, 429, 2, 'HTTP_UNAVAILABLE GET plain/a: answered 429'],
    [
      '503 to a POST, which is sent once',
      { method: 'POST', body: 1 },
      503,
      1,
      'HTTP_UNAVAILABLE POST plain/a: answered 503',
    ],
  ])('%s', async (_, call, status, tries, expected) => {
    answer = json({}, status)
    expect(await fault(send(call))).toBe(expected)
    expect(requests).toHaveLength(tries)
  })

  test('too large an answer', async () => {
    answer = (_, response) => response.end('x'.repeat(1024 * 1024 + 1))
    expect(await fault(send({}))).toBe('HTTP_REFUSED GET plain/a: more than 1048576 bytes')
  })

  test('no answer in time', async () => {
    answer = () => undefined
    expect(await fault(send({}, { callTimeoutMs: 30 }))).toBe(
      'HTTP_UNAVAILABLE GET plain/a: no answer in 30 ms',
    )
  })
})
