import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { HttpEvent, HttpResult } from '#functions/lambda.ts'

/** What AWS puts in front of a function. They differ in how they report a function that failed. */
export type FrontDoor = 'http-api' | 'function-url'

export interface LambdaOptions {
  /** The bundle's `index.mjs`. */
  entry: string
  frontDoor: FrontDoor
  /** The Node to run it on; this one when absent. */
  node?: string
  env?: Record<string, string>
  /** Timeout of the function, milliseconds. */
  timeoutMs?: number
  /** `rawPath` starts with it when it is not `$default` (HTTP APIs only). */
  stage?: string
}

/** A function behind its front door, in an execution environment of its own. */
export interface Lambda {
  /** `http://127.0.0.1:<port>`. */
  url: string
  /** Lines the function has logged. */
  lines: string[]
  /** Invokes it with any event, as the Invoke API would. */
  invoke(event: unknown): Promise<Outcome>
  /** True while the environment is stopped between two invocations. */
  isFrozen(): boolean
  close(): Promise<void>
}

/** What came of an invocation. */
export type Outcome =
  | { status: 'result'; result: HttpResult }
  | { status: 'error'; reason: 'handler' | 'timeout' | 'exit' | 'too-large' }

/** Largest event and largest response of a synchronous invocation, bytes. */
const MAX_PAYLOAD_BYTES = 6 * 1024 * 1024
const RUNTIME = fileURLToPath(new URL('./lambda-runtime.mjs', import.meta.url))
const PREFIX = '/2018-06-01/runtime'

/**
 * A small AWS Lambda: a front door that makes events of HTTP requests, and the Runtime API that hands them to a process
 * running the built bundle. One environment, one event at a time; it is stopped (SIGSTOP) from the moment it asks for the
 * next event until there is one, killed when it takes too long, and replaced when it died.
 */
export async function startLambda(options: LambdaOptions): Promise<Lambda> {
  const environment = new Environment(options)
  const api = await listen((request, response) => environment.serve(request, response))
  environment.api = `127.0.0.1:${portOf(api)}`
  const door = await listen((request, response) => {
    // A caller that hangs up gets no answer.
    answer(request, response, options, environment).catch(() => response.destroy())
  })
  return {
    url: `http://127.0.0.1:${portOf(door)}`,
    lines: environment.lines,
    invoke: (event) => environment.invoke(event),
    isFrozen: () => environment.frozen,
    close: async () => {
      environment.kill()
      for (const server of [door, api]) {
        server.closeAllConnections()
        server.close()
        await once(server, 'close')
      }
    },
  }
}

interface Invocation {
  id: string
  body: string
  settle: (outcome: Outcome) => void
}

/** An execution environment and the events that wait for it. */
class Environment {
  api = ''
  readonly lines: string[] = []
  frozen = false
  readonly #options: LambdaOptions
  readonly #queue: Invocation[] = []
  #current: Invocation | undefined
  #timer: NodeJS.Timeout | undefined
  #process: ChildProcess | undefined
  /** The open request for the next event. */
  #asking: ServerResponse | undefined

  constructor(options: LambdaOptions) {
    this.#options = options
  }

  invoke(event: unknown): Promise<Outcome> {
    const body = JSON.stringify(event)
    if (Buffer.byteLength(body) > MAX_PAYLOAD_BYTES) {
      return Promise.resolve({ status: 'error', reason: 'too-large' })
    }
    return new Promise((resolve) => {
      this.#queue.push({ id: randomUUID(), body, settle: resolve })
      this.#dispatch()
    })
  }

  /** The Runtime API. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url?.slice(PREFIX.length) ?? ''
    if (path === '/invocation/next') {
      this.#asking = response
      this.#freeze()
      this.#dispatch()
      return
    }
    const ignore = () => undefined
    // A process that dies while it reports has its exit noticed.
    void bodyOf(request).then((body) => {
      response.writeHead(202).end()
      const [, , id, kind] = path.split('/')
      if (path === '/init/error') this.lines.push(`init error: ${body}`)
      else if (id === this.#current?.id) this.#settle(toOutcome(kind, body.toString('utf8')))
    }, ignore)
  }

  kill(): void {
    clearTimeout(this.#timer)
    this.#process?.removeAllListeners('exit')
    // Works on a stopped process, too.
    this.#process?.kill('SIGKILL')
    this.#process = undefined
    this.#asking = undefined
    this.frozen = false
  }

  #dispatch(): void {
    if (this.#current !== undefined || this.#queue.length === 0) return
    if (this.#process === undefined) this.#start()
    if (this.#process === undefined || this.#asking === undefined) return
    const invocation = this.#queue.shift()
    if (invocation === undefined) return
    const { timeoutMs = 30_000 } = this.#options
    this.#current = invocation
    this.#timer = setTimeout(() => this.#fail('timeout'), timeoutMs)
    this.#asking.writeHead(200, {
      'content-type': 'application/json',
      'lambda-runtime-aws-request-id': invocation.id,
      'lambda-runtime-deadline-ms': String(Date.now() + timeoutMs),
    })
    this.#asking.end(invocation.body)
    this.#asking = undefined
    this.#process.kill('SIGCONT')
    this.frozen = false
  }

  #start(): void {
    const { node = process.execPath, entry, env = {} } = this.#options
    const child = spawn(node, [RUNTIME], {
      env: { ...env, AWS_LAMBDA_RUNTIME_API: this.api, ENTRY: pathToFileURL(entry).href },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#process = child
    for (const stream of [child.stdout, child.stderr]) {
      let rest = ''
      stream.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        this.lines.push(...lines)
      })
    }
    child.on('exit', () => this.#fail('exit'))
  }

  #freeze(): void {
    if (this.#queue.length > 0 || this.#current !== undefined) return
    this.#process?.kill('SIGSTOP')
    this.frozen = true
  }

  #fail(reason: 'timeout' | 'exit'): void {
    this.kill()
    // A process that died before its first event would die again: it takes the event along.
    this.#current ??= this.#queue.shift()
    this.#settle({ status: 'error', reason })
  }

  #settle(outcome: Outcome): void {
    clearTimeout(this.#timer)
    const { settle } = this.#current ?? {}
    this.#current = undefined
    settle?.(outcome)
    this.#dispatch()
  }
}

function toOutcome(kind: string | undefined, body: string): Outcome {
  if (kind !== 'response' || Buffer.byteLength(body) > MAX_PAYLOAD_BYTES) {
    return { status: 'error', reason: 'handler' }
  }
  return { status: 'result', result: JSON.parse(body) as HttpResult }
}

/** The front door: event in, response out, and the errors the two of them give. */
async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: LambdaOptions,
  environment: Environment,
): Promise<void> {
  const outcome = await environment.invoke(toEvent(request, await bodyOf(request), options))
  if (outcome.status === 'result') {
    const { statusCode, headers, body } = outcome.result
    response.writeHead(statusCode, headers).end(body)
    return
  }
  const [status, message] = refusalOf(outcome.reason, options.frontDoor)
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ message }))
}

function refusalOf(
  reason: (Outcome & { status: 'error' })['reason'],
  frontDoor: FrontDoor,
): [number, string] {
  if (reason === 'too-large') return [413, 'Request Too Long']
  if (frontDoor === 'function-url') return [502, 'Internal Server Error']
  return reason === 'timeout' ? [503, 'Service Unavailable'] : [500, 'Internal Server Error']
}

/** Payload 2.0 of HTTP APIs and Function URLs. */
function toEvent(request: IncomingMessage, body: Buffer, options: LambdaOptions): HttpEvent {
  const { pathname, search } = new URL(request.url ?? '/', 'http://lambda')
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, [value].flat().join(',')]),
  )
  const text = body.toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(body)
  const stage = options.frontDoor === 'http-api' ? (options.stage ?? '$default') : '$default'
  return {
    version: '2.0',
    rawPath: stage === '$default' ? pathname : `/${stage}${pathname}`,
    rawQueryString: search.slice(1),
    headers,
    requestContext: {
      stage,
      http: {
        method: request.method ?? 'GET',
        sourceIp: request.socket.remoteAddress ?? '',
      },
    },
    ...(body.length > 0 && { body: isText ? text : body.toString('base64') }),
    isBase64Encoded: !isText,
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function listen(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Server> {
  const server = createServer(listener)
  // The runtime waits for its next event as long as it takes.
  server.requestTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
