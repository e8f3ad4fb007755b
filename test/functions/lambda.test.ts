import { describe, expect, test } from 'vitest'
import type { App, Transport } from '#functions/app.ts'
import { type HttpEvent, toLambdaHandler } from '#functions/lambda.ts'

/** An app that answers with what reached it. */
const echo = {
  fetch: async (request: Request, { body, address, remainingMs }: Transport) =>
    Response.json({
      method: request.method,
      url: request.url,
      type: request.headers.get('content-type'),
      body: typeof body === 'string' ? body : Buffer.from(body ?? []).toString('hex'),
      address,
      remainingMs: remainingMs?.(),
    }),
} as unknown as App

const event: HttpEvent = {
  version: '2.0',
  rawPath: '/v1/prod/token/ivpol/validate',
  rawQueryString: 'timeout=5s',
  headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.7' },
  requestContext: { stage: '$default', http: { method: 'POST', sourceIp: '198.51.100.1' } },
  body: '{"a":1}',
  isBase64Encoded: false,
}
const context = { getRemainingTimeInMillis: () => 4321 }

async function reached(change: HttpEvent) {
  const { statusCode, body } = await toLambdaHandler(echo)({ ...event, ...change }, context)
  expect(statusCode).toBe(200)
  return JSON.parse(body)
}

describe('toLambdaHandler', () => {
  test('hands the body over as text, with the address and the time of the platform', async () => {
    expect(await reached({})).toEqual({
      method: 'POST',
      url: 'https://lambda/v1/prod/token/ivpol/validate?timeout=5s',
      type: 'application/json',
      body: '{"a":1}',
      address: '198.51.100.1',
      remainingMs: 4321,
    })
  })

  test.each<[string, HttpEvent, object]>([
    ['no body is an empty one', { body: null }, { body: '' }],
    [
      'base64 is decoded',
      { body: 'eyJhIjoxfQ==', isBase64Encoded: true },
      { body: '7b2261223a317d' },
    ],
    [
      'base64 that is none is no UTF-8 either',
      { body: '%%%', isBase64Encoded: true },
      { body: 'ff' },
    ],
    [
      'the stage is not part of the path',
      { rawPath: '/blue/livez', requestContext: { stage: 'blue', http: { method: 'GET' } } },
      { url: 'https://lambda/livez?timeout=5s' },
    ],
    [
      'a path that only begins like the stage is kept',
      { rawPath: '/bluer/livez', requestContext: { stage: 'blue', http: { method: 'GET' } } },
      { url: 'https://lambda/bluer/livez?timeout=5s' },
    ],
    [
      'no query is none',
      { rawQueryString: '' },
      { url: 'https://lambda/v1/prod/token/ivpol/validate' },
    ],
    [
      'a path of two slashes stays on this host',
      { rawPath: '//evil.example/x' },
      { url: 'https://lambda//evil.example/x?timeout=5s' },
    ],
  ])('%s', async (_, change, expected) => {
    expect(await reached(change)).toMatchObject(expected)
  })

  test.each<[string, unknown]>([
    ['nothing', null],
    ['an empty object', {}],
    ['payload 1.0', { version: '1.0', httpMethod: 'GET', path: '/' }],
    ['a queue message', { Records: [] }],
    ['a header that cannot be', { ...event, headers: { 'bad name': 'x' } }],
    ['a method that cannot be', { ...event, requestContext: { http: { method: 'A B' } } }],
  ])('answers %s with 400', async (_, odd) => {
    const result = await toLambdaHandler(echo)(odd as HttpEvent, context)
    expect(result).toEqual({
      statusCode: 400,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body: 'not an HTTP API or Function URL event\n',
      isBase64Encoded: false,
    })
  })

  test('answers with 500 what the app itself throws', async () => {
    const broken = { fetch: () => Promise.reject(new Error('secret')) } as unknown as App
    const result = await toLambdaHandler(broken)(event, context)
    expect([result.statusCode, result.body]).toEqual([500, 'internal error\n'])
  })

  test('without a clock of the platform nothing is cut short', async () => {
    const result = await toLambdaHandler(echo)(event, {})
    expect(JSON.parse(result.body).remainingMs).toBeNull()
  })
})
