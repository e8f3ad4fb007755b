import http from 'node:http'
import https from 'node:https'
import { afterAll, beforeAll } from 'vitest'
import { compose } from '#functions/compose.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { createDevCertificates } from '#functions/local/tls.ts'
import { STAGE_VARIABLE } from '#functions/metrics.ts'
import { startNodeServer } from '#functions/node.ts'
import type { ReviewPhase } from '#shared/engine/types.ts'
import { LAMBDA_MAX_BODY_BYTES, MAX_BODY_BYTES } from '#shared/limits.ts'
import { type FrontDoor, startLambda } from '../lambda.ts'
import { node24 } from '../node24.ts'
import { startWorker } from '../workerd.ts'
import { ENV, type Served, TOKEN } from './deploy.ts'
import { review } from './review.ts'

/** An answer as it came over the wire. */
export interface Answer {
  status: number
  /** Name and value of every header in order, without the date. */
  headers: [string, string][]
  text: string
}

/** The functions as one runtime serves them. */
export interface Target {
  send(phase: ReviewPhase, path: string, request?: Partial<Sent>): Promise<Answer>
  maxBodyBytes: number
  /** What the functions have logged, where it can be read. */
  lines?: () => readonly string[]
  close(): Promise<void>
}

export interface Sent {
  method: string
  headers: Record<string, string>
  body: string | Uint8Array
}

/** Every place the functions run in, by name. */
export const TARGETS: Readonly<Record<string, (world: Served) => Promise<Target>>> = {
  'Lambda on this Node, Function URL': (world) => lambda(world, 'function-url'),
  'Lambda on Node 24, HTTP API': async (world) => lambda(world, 'http-api', await node24()),
  'Worker in workerd': worker,
  'Node server over TLS': server,
}

/** The stage that Lambda functions are deployed as. */
export const STAGE = 'staging'

/** The target that is open while the tests of the suite that asks for it run. */
export function opened(open: () => Promise<Target>): () => Target {
  let target: Target
  beforeAll(async () => {
    target = await open()
  })
  afterAll(() => target?.close())
  return () => target
}

export const validateUrl = (policy: string) => `/v1/prod/${TOKEN}/ivpol/validate/${policy}`

/** What the validate phase says of an object for one policy: `admitted`, or why it is not. */
export async function validate(target: Target, policy: string, object: object): Promise<string> {
  const body = JSON.stringify(review({ object }))
  const { text } = await target.send('validate', validateUrl(policy), { body })
  return saidIn(text)
}

/** What the text of an answer says. */
export function saidIn(text: string): string {
  const { allowed, status } = JSON.parse(text).response
  return allowed ? 'admitted' : status.message
}

async function lambda(world: Served, frontDoor: FrontDoor, node?: string): Promise<Target> {
  const start = (phase: ReviewPhase) =>
    startLambda({
      entry: world.bundles[`lambda/${phase}`],
      frontDoor,
      env: { ...ENV, [STAGE_VARIABLE]: STAGE },
      ...(node !== undefined && { node, stage: 'v2' }),
    })
  const functions = new Map([
    ['mutate', await start('mutate')],
    ['validate', await start('validate')],
  ])
  return {
    send: async (phase, path, sent) => {
      // Most deployments have no function for image reviews.
      const running = functions.get(phase) ?? (await start(phase))
      functions.set(phase, running)
      return send(`${running.url}${path}`, sent)
    },
    maxBodyBytes: LAMBDA_MAX_BODY_BYTES,
    lines: () => [...functions.values()].flatMap(({ lines }) => lines),
    close: async () => {
      await Promise.all([...functions.values()].map(({ close }) => close()))
    },
  }
}

async function worker(world: Served): Promise<Target> {
  const { url, close } = await startWorker(world.bundles.worker, ENV)
  return {
    send: (_, path, sent) => send(`${url}${path}`, sent),
    maxBodyBytes: MAX_BODY_BYTES,
    close,
  }
}

async function server(world: Served): Promise<Target> {
  const lines: string[] = []
  const log = (record: object) => lines.push(JSON.stringify(record))
  const platform = { env: ENV, log, hash: nodeHash, maxBodyBytes: MAX_BODY_BYTES }
  const app = compose(world.deployment, platform, ALL_FLOWS)
  const tls = await createDevCertificates({ hosts: ['127.0.0.1'] })
  const { port, close } = await startNodeServer({ app, tls, host: '127.0.0.1' })
  return {
    send: (_, path, sent) => send(`https://127.0.0.1:${port}${path}`, sent, tls.ca),
    maxBodyBytes: MAX_BODY_BYTES,
    lines: () => lines,
    close,
  }
}

/** Sends the path exactly as it is given, without the URL parser's corrections. */
function send(url: string, sent: Partial<Sent> = {}, ca?: string): Promise<Answer> {
  const { method = 'POST', headers = { 'content-type': 'application/json' }, body = '' } = sent
  const { protocol, hostname, port } = new URL(url)
  const path = url.slice(url.indexOf('/', protocol.length + 2))
  return new Promise((resolve, reject) => {
    const { request } = protocol === 'https:' ? https : http
    const call = request(
      { hostname, port, path, method, headers, ca, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          resolve({
            status: response.statusCode ?? 0,
            headers: Object.entries(response.headers)
              .filter(([name]) => name !== 'date')
              .map(([name, value]) => [name, String(value)]),
            text: Buffer.concat(chunks).toString('utf8'),
          })
        })
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}
