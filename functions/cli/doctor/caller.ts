import { Agent, request } from 'node:https'
import { performance } from 'node:perf_hooks'
import type { Patient } from './types.ts'

/** An answer, and how long it took. */
export interface Answered {
  status: number
  text: string
  httpVersion: string
  /** The `Date` header, epoch milliseconds. */
  date: number | undefined
  ms: number
}

/** Longest answer that is read, characters: a review's is a fraction of it. */
const MAX_ANSWER_CHARS = 4_000_000
/** Longer than an API server ever waits, milliseconds. */
const TIMEOUT_MS = 35_000

/** Calls as an API server makes them: over connections that are kept, to a host whose certificate is checked. */
export class Caller {
  readonly #patient: Patient
  readonly #agent: Agent

  constructor(patient: Patient) {
    const { ca, client } = patient
    this.#patient = patient
    this.#agent = new Agent({
      keepAlive: true,
      ALPNProtocols: ['http/1.1'],
      ...(ca !== undefined && { ca }),
      ...client,
    })
  }

  get(url: string): Promise<Answered> {
    return this.#send(url, 'GET')
  }

  post(url: string, body: string): Promise<Answered> {
    return this.#send(url, 'POST', body)
  }

  close(): void {
    this.#agent.destroy()
  }

  #send(url: string, method: 'GET' | 'POST', body?: string): Promise<Answered> {
    const { bearer, signal } = this.#patient
    const started = performance.now()
    const headers = {
      accept: 'application/json, */*',
      'user-agent': 'countersign-doctor',
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
      }),
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    }
    return new Promise((resolve, reject) => {
      const sent = request(
        url,
        {
          method,
          headers,
          agent: this.#agent,
          signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
        },
        (received) => {
          const { statusCode = 0, httpVersion } = received
          const date = Date.parse(received.headers.date ?? '')
          let text = ''
          received.setEncoding('utf8')
          received.on('data', (chunk: string) => {
            if (text.length < MAX_ANSWER_CHARS) text += chunk
          })
          received.once('error', reject)
          received.once('end', () =>
            resolve({
              status: statusCode,
              text,
              httpVersion,
              date: Number.isNaN(date) ? undefined : date,
              ms: performance.now() - started,
            }),
          )
        },
      )
      sent.once('error', reject)
      sent.end(body)
    })
  }
}
