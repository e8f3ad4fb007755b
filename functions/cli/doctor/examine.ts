import { newToken } from '../token.ts'
import { type Answered, Caller } from './caller.ts'
import { checkDns, checkTls, checkUrl, webhookUrl } from './connection.ts'
import { doctorPod, dryRunReview } from './pods.ts'
import { checkBodyLimit, checkLatency, checkReviews } from './reviews.ts'
import { type Check, fail, ok, type Patient, skip, warn } from './types.ts'

/** From then on seals and log times go wrong, milliseconds. `Date` counts in seconds, so that less is nothing. */
const SKEW_WARN_MS = 5000
/** From then on signatures of services with clocks, such as AWS, are refused. Milliseconds. */
const SKEW_FAIL_MS = 60_000

/**
 * Everything a cluster will meet, one after the other. What cannot be looked at because of something before it is left out, with the reason:
 * whoever has no certificate that counts is not shown the token.
 */
export async function examine(patient: Patient, image: string): Promise<Check[]> {
  const url = checkUrl(patient)
  if (url.status === 'fail') return [url, ...rest('url')]
  const dns = await checkDns(patient)
  if (dns.status === 'fail') return [url, dns, ...rest('dns')]
  const tls = await checkTls(patient)
  const checks = [url, dns, ...tls]
  if (tls.some(({ status }) => status === 'fail')) return [...checks, ...rest('tls')]
  const caller = new Caller(patient)
  try {
    return [...checks, ...(await examineFunctions(caller, patient, image))]
  } catch (thrown) {
    return [...checks, broken(thrown)]
  } finally {
    caller.close()
  }
}

/** In the order they are made. */
const CHECKS = ['dns', 'tls', 'health', 'auth', 'mutate', 'policies', 'latency', 'clock', 'body']

function rest(after: string): Check[] {
  const why = after === 'tls' ? ': the token is shown to nobody unknown' : ''
  return CHECKS.slice(CHECKS.indexOf(after) + 1).map((check) =>
    skip(check, `not looked at, because of ${after}${why}`),
  )
}

async function examineFunctions(caller: Caller, patient: Patient, image: string): Promise<Check[]> {
  const health = await checkHealth(caller, patient)
  const auth = await checkAuth(caller, patient)
  if (auth.some(({ status }) => status === 'fail')) {
    return [...health, ...auth, ...rest('auth')]
  }
  const reviews = await checkReviews(caller, patient, image)
  const { checks: latency, answers } = await checkLatency(caller, patient, image)
  const clock = checkClock(answers, patient.now())
  const body = await checkBodyLimit(caller, patient)
  return [...health, ...auth, ...reviews, ...latency, clock, body]
}

async function checkHealth(caller: Caller, { endpoint }: Patient): Promise<Check[]> {
  const base = endpoint.replace(/\/+$/, '')
  const answers = await Promise.all(
    ['/livez', '/readyz'].map(async (path) => ({ path, ...(await caller.get(`${base}${path}`)) })),
  )
  const bad = answers.filter(({ status }) => status !== 200)
  const found = answers.map(({ path, status }) => `${path} ${status}`).join(', ')
  return [
    bad.length === 0
      ? ok('health', found)
      : warn('health', found, 'route /livez and /readyz to a function, for whoever watches it'),
  ]
}

/** A token that nobody has must get nothing, and the right one an answer. */
async function checkAuth(caller: Caller, patient: Patient): Promise<Check[]> {
  const { cluster, bearer, client } = patient
  const { body } = dryRunReview(doctorPod('registry.example.com/doctor:1'))
  const wrong = await caller.post(webhookUrl({ ...patient, token: newToken() }, 'validate'), body)
  const right = await caller.post(webhookUrl(patient, 'validate'), body)
  if (wrong.status !== 404) {
    const found = `a wrong token gets HTTP ${wrong.status} in place of 404`
    return [
      fail(
        'auth',
        found,
        'whatever answers there lets in anybody, or is no Countersign: look at the routes of the front door',
      ),
    ]
  }
  if (right.status !== 404) return [ok('auth', 'the token is accepted, another gets 404')]
  const causes = [
    'the token is none of the deployed ones: deploy, or `countersign tokens rotate`',
    ...(cluster.notAfter ? [`the cluster ends at ${cluster.notAfter}`] : []),
    ...(cluster.cidrs
      ? ['this machine is in none of cidrs: ask from where the control plane is']
      : []),
    ...(cluster.bearer && bearer === undefined
      ? ['the cluster wants a bearer: --bearer-file']
      : []),
    ...(cluster.mtls && client === undefined
      ? ['the cluster wants a client certificate: --client-cert and --client-key']
      : []),
    `cluster ${cluster.name} is not in the deployed config: build and deploy`,
  ]
  return [fail('auth', 'the token gets 404, as whoever has none', causes.join('; or '))]
}

function checkClock(answers: readonly Answered[], now: number): Check {
  const dates = answers.flatMap(({ date }) => date ?? [])
  const last = dates.at(-1)
  if (last === undefined) return skip('clock', 'no answer has a Date header')
  // A whole second is lost in the header.
  const off = Math.max(0, Math.abs(now - last) - 1000)
  const seconds = Math.round((last - now) / 1000)
  const found =
    off === 0 ? 'within a second of this machine' : `${seconds} s from the clock of this machine`
  const fix =
    'correct whichever is wrong with NTP; seals count for minutes, and key services refuse calls of wrong clocks'
  if (off > SKEW_FAIL_MS) return fail('clock', found, fix)
  return off > SKEW_WARN_MS ? warn('clock', found, fix) : ok('clock', found)
}

function broken(thrown: unknown): Check {
  const { code, name, message } = thrown as { code?: string; name?: string; message?: string }
  const what = name === 'TimeoutError' ? 'no answer within 35 s' : (code ?? message ?? 'unknown')
  return fail(
    'calls',
    `the connection broke: ${what}`,
    'look at the front door: its log, its timeouts, and what it does with bodies',
  )
}
