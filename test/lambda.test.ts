import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FrontDoor, type Lambda, startLambda } from './lambda.ts'

/** A function that does what the path says, so that the emulator itself can be watched. */
const FUNCTION = `
let calls = 0
export async function handler(event, context) {
  calls++
  const answer = (body) => ({ statusCode: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  switch (event.rawPath.split('/').at(-1)) {
    case 'throw': throw new Error('handler failed')
    case 'exit': process.exit(3)
    case 'hang': return new Promise(() => { setInterval(() => {}, 1000) })
    case 'large': return { statusCode: 200, headers: {}, body: 'x'.repeat(7e6) }
    default: return answer({ calls, pid: process.pid, event, remaining: context.getRemainingTimeInMillis() })
  }
}
`

describe('the Lambda emulator', () => {
  let folder: string
  let lambda: Lambda | undefined
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'countersign-lambda-'))
    await writeFile(path.join(folder, 'index.mjs'), FUNCTION)
    await writeFile(path.join(folder, 'broken.mjs'), 'throw new Error("cannot load")')
  })
  afterEach(async () => {
    await lambda?.close()
    lambda = undefined
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function start(
    frontDoor: FrontDoor,
    more: { file?: string; timeoutMs?: number; stage?: string } = {},
  ) {
    const { file = 'index.mjs', ...options } = more
    lambda = await startLambda({ entry: path.join(folder, file), frontDoor, ...options })
    const { url } = lambda
    return {
      lambda,
      call: async (where = '/', init: RequestInit = {}) => {
        const response = await fetch(`${url}${where}`, init)
        const text = await response.text()
        return { status: response.status, body: JSON.parse(text) }
      },
    }
  }

  test('makes a payload 2.0 event of a request, text as text', async () => {
    const { call } = await start('http-api', { stage: 'v2' })
    const { body } = await call('/a/b?timeout=5s', {
      method: 'POST',
      body: '{"a":"ü"}',
      headers: { 'x-y': 'z' },
    })
    expect(body.event).toMatchObject({
      version: '2.0',
      rawPath: '/v2/a/b',
      rawQueryString: 'timeout=5s',
      headers: { 'x-y': 'z' },
      requestContext: { stage: 'v2', http: { method: 'POST', sourceIp: '127.0.0.1' } },
      body: '{"a":"ü"}',
      isBase64Encoded: false,
    })
    expect(body.remaining).toBeGreaterThan(0)
  })

  test('hands over what is no text as base64', async () => {
    const { call } = await start('function-url')
    const { body } = await call('/', { method: 'POST', body: new Uint8Array([0xff, 0x00]) })
    expect(body.event).toMatchObject({ rawPath: '/', body: '/wA=', isBase64Encoded: true })
  })

  test('keeps its environment between calls, and stops it meanwhile', async () => {
    const { call, lambda } = await start('function-url')
    const [first, second] = [await call(), await call()]
    expect(second.body).toMatchObject({ calls: 2, pid: first.body.pid })
    while (!lambda.isFrozen()) await new Promise(setImmediate)
    const { stdout } = await promisify(execFile)('ps', [
      '-o',
      'state=',
      '-p',
      String(first.body.pid),
    ])
    expect(stdout.trim()).toMatch(/^T/)
  })

  test.each([
    ['function-url', 'throw', 502],
    ['function-url', 'exit', 502],
    ['function-url', 'hang', 502],
    ['function-url', 'large', 502],
    ['http-api', 'throw', 500],
    ['http-api', 'exit', 500],
    ['http-api', 'hang', 503],
  ] as const)(
    'a %s whose function does %s answers %i, and the next call works',
    async (frontDoor, what, status) => {
      const { call } = await start(frontDoor, what === 'hang' ? { timeoutMs: 500 } : {})
      expect((await call(`/${what}`)).status).toBe(status)
      expect((await call()).status).toBe(200)
    },
  )

  test('refuses an event of more than six megabytes', async () => {
    const { call } = await start('http-api')
    const answer = await call('/', { method: 'POST', body: '"'.repeat(3_200_000) })
    expect(answer).toEqual({ status: 413, body: { message: 'Request Too Long' } })
  })

  test('says what a bundle that cannot be loaded died of', async () => {
    const { call, lambda } = await start('function-url', { file: 'broken.mjs' })
    expect((await call()).status).toBe(502)
    expect(lambda.lines.join('\n')).toContain('cannot load')
  })
})
