import type { Context } from 'hono'
import { Hono } from 'hono/tiny'
import type { Phase } from '#shared/admission/response.ts'
import type { Bytes } from '#shared/bytes.ts'
import type { EngineCall, ImagePolicyEngine } from '#shared/engine/types.ts'
import { AdmissionError, toAdmissionError } from '#shared/errors.ts'
import { DEADLINE_RESERVE_MS } from '#shared/limits.ts'
import type { HashPort, LogPort } from '#shared/ports.ts'
import { type ClientCertificate, createAuthenticator } from './auth.ts'
import { type Body, checkBody, readBody } from './body.ts'
import type { ClusterConfig } from './config.ts'
import { type Deadline, type Schedule, schedule, startDeadline, timeLeftMs } from './deadline.ts'
import { type ClusterPolicies, type Deployment, policiesOf } from './deployment.ts'
import { decisionRecord, traceId } from './log.ts'
import { embeddedMetrics } from './metrics.ts'
import { namedPolicies } from './named-policies.ts'
import { answerReview, type Call, type Flow, type ReviewAnswer, type ReviewCall } from './review.ts'
import type { AfterAnswer, TellEvents } from './tell.ts'
import { UnderWay } from './under-way.ts'

/** What an adapter knows about a request beyond the Request itself: Hono's `env`. */
export interface Transport {
  /** Source address, from the connection or the platform; never from a header that callers can write. */
  address?: string | undefined
  /** Reads the client certificate, if the connection or the platform has checked one; never from a header. Never throws. */
  certificate?: (() => ClientCertificate | undefined) | undefined
  /** Milliseconds the platform still grants this invocation. */
  remainingMs?: (() => number) | undefined
  /** The body where the adapter has it already; otherwise it is read from the Request. */
  body?: string | Bytes | undefined
  /** Milliseconds that the request has waited before it came here. */
  waitedMs?: number | undefined
  /** Takes what goes on after the answer; without it that goes on by itself. */
  afterAnswer?: AfterAnswer | undefined
}

export interface AppOptions {
  deployment: Deployment
  /** The flows this app answers for; a route exists for each of them. */
  engine: Partial<ImagePolicyEngine>
  /** Loads what answers ImageReviews; without it there is no route for them. */
  imageReviews?: (() => Promise<ImageReviews>) | undefined
  maxBodyBytes: number
  /** Epoch milliseconds. */
  now: () => number
  log: LogPort
  hash: HashPort
  /** Told of every answered review. */
  events?: TellEvents | undefined
  /** Reviews under way, where other apps count theirs with them. */
  underWay?: UnderWay
  /** Decisions carry embedded metrics. */
  metrics?: boolean
  /** The platform's timer when absent. */
  schedule?: Schedule
}

export type App = Hono<{ Bindings: Transport }>
type AppContext = Context<{ Bindings: Transport }>
type Scope = EngineCall['scope']
/** What a path is for, and what answers there. */
type Route =
  | { phase: Phase; scope: Scope; flow: Flow }
  | { phase: 'image-review'; load: () => Promise<ImageReviews> }

/** Answers ImageReviews, for every cluster that asks for them. */
export interface ImageReviews {
  policiesOf(cluster: ClusterConfig): Pick<Call, 'granted' | 'exceptions' | 'policySet'>
  /** Never throws. `refused` is why the call is denied whatever it says. */
  answer(call: Call, refused: AdmissionError | undefined): Promise<ReviewAnswer>
}

/** A call as it is logged. */
type AnsweredCall = Call & Partial<Pick<ReviewCall, 'scope' | 'policies'>>

/**
 * The HTTP side of all functions: tenants, limits, deadline, one log line per call. Routes are `/livez`, `/readyz` and, under
 * `/v1/<cluster>/<token>`, `/<ivpol|nivpol>/<phase>/<policy>…` and `/image-review`. Whatever a caller gets wrong about who it is
 * or where it goes is answered by the same empty 404.
 */
export function createApp(options: AppOptions): App {
  const app: App = new Hono()
  const desk = new Desk(options)
  app.get('/livez', (c) => c.text('ok\n'))
  app.get('/readyz', (c) => c.text('ok\n'))
  for (const phase of ['mutate', 'validate'] as const) {
    const flow = options.engine[phase]
    if (flow === undefined) continue
    for (const scope of ['ivpol', 'nivpol'] as const) {
      const answer = (c: AppContext) => desk.answer(c, { phase, scope, flow })
      app.post(`/v1/:cluster/:token/${scope}/${phase}`, answer)
      app.post(`/v1/:cluster/:token/${scope}/${phase}/*`, answer)
    }
  }
  const { imageReviews: load } = options
  if (load !== undefined) {
    app.post('/v1/:cluster/:token/image-review', (c) =>
      desk.answer(c, { phase: 'image-review', load }),
    )
  }
  app.notFound(notFound)
  app.onError(loggedFault(options.log))
  return app
}

/** Answers a fault of our own with 500, and says in the log what it is. */
export function loggedFault(log: LogPort): (thrown: unknown) => Response {
  return (thrown) => {
    const { code, message } = toAdmissionError(thrown, 'answering')
    log({ level: 'error', event: 'fault', error: { code, message } })
    return new Response('internal error\n', {
      status: 500,
      headers: { 'content-type': 'text/plain; charset=UTF-8' },
    })
  }
}

function notFound(): Response {
  return new Response(null, { status: 404 })
}

/** When a call came and was answered, epoch milliseconds, how long it had, and its trace. */
interface Course {
  started: number
  ended: number
  timeoutMs: number
  trace: string | undefined
}

/** Answers calls of one app. Holds nothing about any single call. */
class Desk {
  readonly #options: AppOptions
  readonly #authenticate: ReturnType<typeof createAuthenticator>
  readonly #policies = new Map<ClusterConfig, ClusterPolicies>()
  readonly #underWay: UnderWay

  constructor(options: AppOptions) {
    this.#options = options
    this.#underWay = options.underWay ?? new UnderWay()
    this.#authenticate = createAuthenticator(
      options.deployment.config.clusters,
      options.now,
      options.hash,
    )
  }

  async answer(c: AppContext, route: Route): Promise<Response> {
    const { phase } = route
    const { now } = this.#options
    const waitedMs = c.env?.waitedMs
    const started = now() - (waitedMs ?? 0)
    const access = await this.#authenticate({
      cluster: c.req.param('cluster') ?? '',
      token: c.req.param('token') ?? '',
      authorization: c.req.header('authorization'),
      address: c.env?.address,
      certificate: c.env?.certificate,
    })
    const isOff =
      phase === 'image-review' &&
      access.status === 'granted' &&
      access.cluster.imageReview === undefined
    if (access.status === 'refused' || isOff) {
      this.#options.log({
        level: 'warn',
        event: 'refused',
        refusal: access.status === 'refused' ? access.refusal : phase,
        cluster: access.status === 'refused' ? access.cluster : access.cluster.name,
        phase,
        address: c.env?.address,
      })
      return notFound()
    }
    const { timeouts }: { timeouts: Readonly<Record<string, number | undefined>> } = access.cluster
    const timeoutMs = timeLeftMs({
      timeout: c.req.query('timeout'),
      configuredSeconds: timeouts[`${phase}Seconds`],
      remainingMs: c.env?.remainingMs?.(),
      waitedMs,
    })
    const deadline = startDeadline(timeoutMs, this.#options.schedule ?? schedule)
    const endsAt = now() + timeoutMs + DEADLINE_RESERVE_MS
    const leave = this.#underWay.enter(access.cluster, now(), endsAt)
    try {
      const refused = leave === undefined ? tooMany(access.cluster) : undefined
      const { call, answer } = await this.#answerCall(c, access.cluster, route, deadline, refused)
      const trace = traceId(c.req.header('traceparent'))
      const course: Course = { started, ended: now(), timeoutMs, trace }
      this.#log(call, answer, course)
      this.#tell(c, call, answer, course)
      const isReview = answer.httpStatus === 200
      const type = isReview ? 'application/json' : 'text/plain; charset=utf-8'
      return new Response(answer.text, {
        status: answer.httpStatus,
        headers: { 'content-type': type },
      })
    } finally {
      leave?.()
      deadline.stop()
    }
  }

  #log(
    call: AnsweredCall,
    answer: ReviewAnswer,
    { started, ended, timeoutMs, trace }: Course,
  ): void {
    const { log, hash, deployment, metrics } = this.#options
    log({
      level: answer.error === undefined ? 'info' : 'error',
      event: 'decision',
      ...decisionRecord(call, answer, hash),
      trace,
      deployment: deployment.hash.slice(0, 12),
      policySet: call.policySet,
      timeoutMs,
      ms: ended - started,
      ...(metrics && embeddedMetrics(answer, ended)),
    })
  }

  #tell(
    c: AppContext,
    { cluster, phase, mode }: Call,
    { request, decision }: ReviewAnswer,
    { started, ended, timeoutMs, trace }: Course,
  ): void {
    const { events, deployment } = this.#options
    if (events === undefined || request === undefined || decision === undefined) return
    const ms = ended - started
    const about = { cluster, phase, mode, trace, time: ended, ms }
    const hash = deployment.hash.slice(0, 12)
    events({ ...about, deployment: hash, request, decision }, timeoutMs - ms, c.env?.afterAnswer)
  }

  async #answerCall(
    c: AppContext,
    cluster: ClusterConfig,
    route: Route,
    deadline: Deadline,
    refused: AdmissionError | undefined,
  ): Promise<{ call: AnsweredCall; answer: ReviewAnswer }> {
    const { maxBodyBytes } = this.#options
    const most = Math.min(maxBodyBytes, cluster.limits?.bodyBytes ?? maxBodyBytes)
    const every = {
      cluster: cluster.name,
      ...(cluster.mode && { mode: cluster.mode }),
      body: await this.#body(c, deadline, most),
      deadline,
    }
    if (route.phase === 'image-review') {
      const reviews = await route.load()
      const call: Call = { ...every, phase: route.phase, ...reviews.policiesOf(cluster) }
      return { call, answer: await reviews.answer(call, refused) }
    }
    const { phase, scope, flow } = route
    const { names, ...granted } = this.#policiesOf(cluster)
    const policies = namedPolicies(c.req.path)
    const call: ReviewCall = { ...every, phase, scope, policies, ...granted, known: names[scope] }
    return {
      call,
      answer: await answerReview(refused === undefined ? flow : refusing(refused), call),
    }
  }

  #policiesOf(cluster: ClusterConfig): ClusterPolicies {
    const { deployment, hash } = this.#options
    const known = this.#policies.get(cluster) ?? policiesOf(deployment, cluster, hash)
    this.#policies.set(cluster, known)
    return known
  }

  async #body(c: AppContext, deadline: Deadline, maxBodyBytes: number): Promise<Body> {
    const type = c.req.header('content-type') ?? ''
    if (!/^application\/json *(;|$)/i.test(type)) {
      const message = `Content-Type must be application/json, is ${JSON.stringify(type.slice(0, 100))}`
      const error = new AdmissionError('CONTENT_TYPE_UNSUPPORTED', message)
      return { status: 'refused', error, head: '' }
    }
    const body = c.env?.body
    return body === undefined
      ? readBody(c.req.raw.body, maxBodyBytes, deadline.signal)
      : checkBody(body, maxBodyBytes)
  }
}

/** Why a review that is one too many is denied in the validate phase, and left as it is in the mutate phase. */
function tooMany({ name }: ClusterConfig): AdmissionError {
  return new AdmissionError(
    'TOO_MANY_REVIEWS',
    `cluster ${name} has as many reviews under way as limits.concurrentReviews allows; try again`,
  )
}

function refusing(error: AdmissionError): Flow {
  return async () => {
    throw error
  }
}
