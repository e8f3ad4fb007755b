import net from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApp } from '#functions/app.ts'
import { parseConfig } from '#functions/config.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { type HttpEvent, toLambdaHandler } from '#functions/lambda.ts'
import { type NodeServer, startNodeServer } from '#functions/node.ts'
import { admitted } from '#shared/admission/response.ts'
import { hashOf, review } from '../contract/review.ts'

const A = 'a'.repeat(32)
const B = 'b'.repeat(32)
const BEARER = 'bearer-of-b'
const BODY = JSON.stringify(review())

const config = parseConfig({
  policies: 'policies',
  endpoint: 'https://admission.example.com',
  outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
  clusters: [
    { name: 'a', tokens: [hashOf(A)] },
    { name: 'b', tokens: [hashOf(B)], bearer: [hashOf(BEARER)] },
    { name: 'far', tokens: [hashOf(A)], cidrs: ['203.0.113.0/24'] },
    { name: 'constructor', tokens: [hashOf(B)] },
  ],
})

/** The clusters that reviews were answered for. */
let asked: string[] = []
const app = createApp({
  deployment: { config, policies: [], hash: 'f'.repeat(64) },
  engine: {
    validate: async (_, { cluster }) => {
      asked.push(cluster)
      return admitted()
    },
  },
  hash: nodeHash,
  maxBodyBytes: 100_000,
  now: () => 0,
  log: () => undefined,
})

let server: NodeServer
beforeAll(async () => {
  server = await startNodeServer({ app, host: '127.0.0.1' })
})
afterAll(() => server.close())

/** The status of a POST as it stands on the wire: no client puts anything right. */
function onTheWire(target: string, headers: readonly string[]): Promise<number> {
  const lines = [
    `POST ${target} HTTP/1.1`,
    'Host: door.example',
    'Content-Type: application/json',
    `Content-Length: ${BODY.length}`,
    'Connection: close',
    ...headers,
  ]
  return new Promise((resolve, reject) => {
    const socket = net.connect(server.port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(Number(text.split(' ')[1])))
    socket.end(`${lines.join('\r\n')}\r\n\r\n${BODY}`)
  })
}

async function onLambda(rawPath: string, headers: Record<string, string>): Promise<number> {
  const event: HttpEvent = {
    version: '2.0',
    rawPath,
    headers: { 'content-type': 'application/json', ...headers },
    requestContext: { http: { method: 'POST', sourceIp: '192.0.2.1' } },
    body: BODY,
  }
  return (await toLambdaHandler(app)(event, {})).statusCode
}

const FORGED = [
  'X-Forwarded-For: 203.0.113.7',
  'X-Real-IP: 203.0.113.7',
  'CF-Connecting-IP: 203.0.113.7',
  'True-Client-IP: 203.0.113.7',
  'Forwarded: for=203.0.113.7',
]

describe('a caller gets no further than its token goes', () => {
  test.each<{ name: string; target: string; headers?: string[] }>([
    { name: 'with the token of another cluster', target: `/v1/b/${A}/ivpol/validate` },
    { name: 'by a name in another case', target: `/v1/A/${A}/ivpol/validate` },
    { name: 'by a route in another case', target: `/v1/a/${A}/IVPOL/validate` },
    { name: 'by a name with a NUL behind it', target: `/v1/a%00/${A}/ivpol/validate` },
    { name: 'by a name with an encoded slash', target: `/v1/a%2Fb/${A}/ivpol/validate` },
    { name: 'with a token with a NUL behind it', target: `/v1/a/${A}%00/ivpol/validate` },
    { name: 'with a token with a blank behind it', target: `/v1/a/${A}%20/ivpol/validate` },
    { name: 'with a token with parameters', target: `/v1/a/${A};x=y/ivpol/validate` },
    { name: 'with an empty token', target: '/v1/a//ivpol/validate' },
    { name: 'with a token of other letters', target: '/v1/a/%C3%A4%F0%9F%98%80/ivpol/validate' },
    { name: 'with a token that is no UTF-8', target: '/v1/a/%E0%A4/ivpol/validate' },
    { name: 'with a very long token', target: `/v1/a/${'x'.repeat(15_000)}/ivpol/validate` },
    { name: 'by an encoded route', target: `/v1/a/${A}/ivpol%2Fvalidate` },
    { name: 'with a slash too many', target: `//v1/a/${A}/ivpol/validate` },
    { name: 'with a slash too many inside', target: `/v1//a/${A}/ivpol/validate` },
    { name: 'up from another cluster', target: `/v1/b%2F..%2Fa/${A}/ivpol/validate` },
    { name: 'by a name every object has', target: `/v1/constructor/${A}/ivpol/validate` },
    { name: 'by the name of a prototype', target: `/v1/__proto__/${A}/ivpol/validate` },
    {
      name: 'with the token of the URL as bearer',
      target: `/v1/b/${B}/ivpol/validate`,
      headers: [`Authorization: Bearer ${B}`],
    },
    {
      name: 'with an empty bearer',
      target: `/v1/b/${B}/ivpol/validate`,
      headers: ['Authorization: Bearer '],
    },
    {
      name: 'with the bearer behind another one',
      target: `/v1/b/${B}/ivpol/validate`,
      headers: ['Authorization: Bearer x', `Authorization: Bearer ${BEARER}`],
    },
    {
      name: 'with the bearer before another one',
      target: `/v1/b/${B}/ivpol/validate`,
      headers: [`Authorization: Bearer ${BEARER}`, 'Authorization: Bearer x'],
    },
    {
      name: 'with an address that it wrote itself',
      target: `/v1/far/${A}/ivpol/validate`,
      headers: FORGED,
    },
  ])('$name', async ({ target, headers = [] }) => {
    asked = []
    // As API Gateway joins headers that come more than once.
    const joined: Record<string, string> = {}
    for (const header of headers) {
      const [name = '', value = ''] = header.split(/: ?/)
      const key = name.toLowerCase()
      joined[key] = key in joined ? `${joined[key]},${value}` : value
    }
    expect([await onTheWire(target, headers), await onLambda(target, joined)]).toEqual([404, 404])
    expect(asked).toEqual([])
  })

  test.each([
    { name: 'its own', target: `/v1/a/${A}/ivpol/validate`, cluster: 'a' },
    { name: 'its own, encoded', target: `/v1/%61/${A}/ivpol/validate`, cluster: 'a' },
    {
      name: 'one named as a member of every object',
      target: `/v1/constructor/${B}/ivpol/validate`,
      cluster: 'constructor',
    },
    {
      name: 'its own by way of another’s path',
      target: `/v1/b/../a/${A}/ivpol/validate`,
      cluster: 'a',
    },
  ])('$name is the cluster that is answered for', async ({ target, cluster }) => {
    asked = []
    expect([await onTheWire(target, []), await onLambda(target, {})]).toEqual([200, 200])
    expect(asked).toEqual([cluster, cluster])
  })
})
