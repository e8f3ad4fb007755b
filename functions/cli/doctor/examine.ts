import { newToken } from '../token.ts'
import { type Answered, Caller } from './caller.ts'
import { checkDns, checkTls, checkUrl } from './connection.ts'
import { type Door, doorsOf, type Route, routeUrl } from './doors.ts'
import { checkEgress } from './egress.ts'
import { checkImageReview } from './image-review.ts'
import { doctorPod, dryRunReview, imageReviewBody } from './pods.ts'
import { checkBodyLimit, checkLatency, checkMutate, checkValidate, type Visit } from './reviews.ts'
import { type Check, fail, ok, type Patient, skip, warn } from './types.ts'

/** From then on seals and log times go wrong, milliseconds. `Date` counts in seconds, so that less is nothing. */
const SKEW_WARN_MS = 5000
/** From then on signatures of services with clocks, such as AWS, are refused. Milliseconds. */
const SKEW_FAIL_MS = 60_000
/** For calls that are about the door alone. */
const DOCTOR_IMAGE = 'registry.example.com/doctor:1'

/** A door as it was found. */
interface Looked {
  door: Door
  /** What tells its checks from those of other doors; empty where there is one. */
  suffix: string
  /** The check that keeps whatever is behind the door from being asked. */
  closedBy?: string
}

/**
 * Everything a cluster will meet, one after the other. What cannot be looked at because of something before it is left out, with the reason:
 * whoever has no certificate that counts is not shown the token.
 */
export async function examine(patient: Patient, image: string): Promise<Check[]> {
  const doors = doorsOf(patient)
  const checks: Check[] = []
  const looked: Looked[] = []
  for (const door of doors) {
    const suffix = doors.length === 1 ? '' : ` ${door.routes.join('+')}`
    const found = await lookAt(patient, door)
    checks.push(...named(found, suffix))
    const closedBy = found.find(({ status }) => status === 'fail')?.check
    looked.push({ door, suffix, ...(closedBy !== undefined && { closedBy }) })
    if (closedBy === undefined) continue
    const left = OF_DOORS.filter((name) => !found.some(({ check }) => check === name))
    checks.push(...named(skipped(closedBy, suffix, left), suffix))
  }
  const caller = new Caller(patient)
  try {
    await enter(caller, patient, { looked, checks })
    await ask({ caller, patient, doors }, image, { looked, checks })
  } catch (thrown) {
    checks.push(broken(thrown))
  } finally {
    caller.close()
  }
  const hosts = looked.flatMap(({ door, closedBy }) => (closedBy === 'url' ? [] : door))
  return hosts.length === 0 ? checks : [...checks, checkEgress(patient, hosts)]
}

/** The checks of a door, in the order they are made. */
const OF_DOORS = ['dns', 'tls', 'health', 'auth']

/** Those that rest on a route. */
const OF_ROUTES: Readonly<Record<Route, readonly string[]>> = {
  mutate: ['mutate'],
  validate: ['validate', 'policies', 'latency', 'clock', 'body'],
  'image-review': ['image-review', 'policies of image-review'],
}

async function lookAt(patient: Patient, door: Door): Promise<Check[]> {
  const url = checkUrl(patient, door)
  if (url.status === 'fail') return [url]
  const dns = await checkDns(door)
  return dns.status === 'fail' ? [url, dns] : [url, dns, ...(await checkTls(patient, door))]
}

/** Health and authentication of each open door; one that lets in the wrong ones, or not the right ones, is closed. */
async function enter(
  caller: Caller,
  patient: Patient,
  { looked, checks }: { looked: readonly Looked[]; checks: Check[] },
): Promise<void> {
  for (const each of looked) {
    if (each.closedBy !== undefined) continue
    checks.push(...named(await checkHealth(caller, each.door), each.suffix))
    const auth = await checkAuth(caller, patient, each.door)
    checks.push(...named([auth], each.suffix))
    if (auth.status === 'fail') each.closedBy = auth.check
  }
}

/** What the functions behind open doors say. */
async function ask(
  visit: Visit,
  image: string,
  { looked, checks }: { looked: readonly Looked[]; checks: Check[] },
): Promise<void> {
  const closing = (route: Route) => {
    const behind = looked.find(({ door }) => door.routes.includes(route))
    return behind?.closedBy && skipped(behind.closedBy, behind.suffix, OF_ROUTES[route])
  }
  let pod = doctorPod(image)
  const noMutate = closing('mutate')
  if (!noMutate) {
    const mutated = await checkMutate(visit, pod)
    checks.push(...mutated.checks)
    pod = mutated.pod
  } else checks.push(...noMutate)
  const noValidate = closing('validate')
  if (!noValidate) {
    checks.push(...(await checkValidate(visit, pod)))
    const { checks: latency, answers } = await checkLatency(visit, image)
    checks.push(...latency, checkClock(answers, visit.patient.now()))
    checks.push(await checkBodyLimit(visit))
  } else checks.push(...noValidate)
  if (visit.patient.cluster.imageReview === undefined) return
  checks.push(...(closing('image-review') || (await checkImageReview(visit, image))))
}

function named(checks: readonly Check[], suffix: string): Check[] {
  return checks.map((each) => ({ ...each, check: `${each.check}${suffix}` }))
}

/** Checks that are not made, because of one that closed the door. */
function skipped(closedBy: string, suffix: string, names: readonly string[]): Check[] {
  const why = closedBy === 'tls' ? ': the token is shown to nobody unknown' : ''
  return names.map((check) => skip(check, `not looked at, because of ${closedBy}${suffix}${why}`))
}

async function checkHealth(caller: Caller, { url }: Door): Promise<Check[]> {
  const answers = await Promise.all(
    ['/livez', '/readyz'].map(async (path) => ({ path, ...(await caller.get(`${url}${path}`)) })),
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
async function checkAuth(caller: Caller, patient: Patient, door: Door): Promise<Check> {
  const { cluster, bearer, client } = patient
  const route = (['validate', 'mutate'] as const).find((each) => door.routes.includes(each))
  const body =
    route === undefined ? imageReviewBody(DOCTOR_IMAGE) : dryRunReview(doctorPod(DOCTOR_IMAGE)).body
  const post = (token: string) =>
    caller.post(routeUrl({ cluster, token }, door, route ?? 'image-review'), body)
  const wrong = await post(newToken())
  const right = await post(patient.token)
  if (wrong.status !== 404) {
    const found = `a wrong token gets HTTP ${wrong.status} in place of 404`
    const fix =
      'whatever answers there lets in anybody, or is no Countersign: look at the routes of the front door'
    return fail('auth', found, fix)
  }
  if (right.status !== 404) return ok('auth', 'the token is accepted, another gets 404')
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
  return fail('auth', 'the token gets 404, as whoever has none', causes.join('; or '))
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
