import type { ClusterConfig } from '#functions/config.ts'
import { AUDIT_POLICY_SET } from '#functions/review.ts'
import { applyPatch } from '#shared/admission/patch.ts'
import { type Phase, type VerifiedResponse, verifyResponse } from '#shared/admission/response.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { toAdmissionError } from '#shared/errors.ts'
import { parseJson } from '#shared/json.ts'
import { DEFAULT_TIMEOUT_SECONDS } from '#shared/limits.ts'
import { AUDIT_MODE } from '#shared/policy/decide.ts'
import type { Answered, Caller } from './caller.ts'
import { type Door, doorFor, routeUrl } from './doors.ts'
import { doctorPod, dryRunReview } from './pods.ts'
import { type Check, fail, ok, type Patient, skip, warn } from './types.ts'

/** Body of the largest object that an API server stores, which is what it may ask about. Characters. */
const LARGE_OBJECT_CHARS = 3 * 1024 * 1024
const MAX_QUOTED_CHARS = 300

/** Who asks whom, and where: doors that nothing is wrong with. */
export interface Visit {
  caller: Caller
  patient: Patient
  doors: readonly Door[]
}

/** One review, after the checks of the API server. */
type Reviewed =
  | { status: 'answered'; response: VerifiedResponse; answered: Answered }
  | { status: 'unusable'; reason: string; answered: Answered }

/** Sends a dry run of an object. Rejects where no connection can be had. */
export async function review(
  { caller, patient, doors }: Visit,
  phase: Phase,
  object: Record<string, unknown>,
): Promise<Reviewed> {
  const { uid, body } = dryRunReview(object)
  const url = `${routeUrl(patient, doorFor(doors, phase), phase)}?timeout=${timeoutOf(patient.cluster, phase)}s`
  const answered = await caller.post(url, body)
  if (answered.status !== 200) {
    return { status: 'unusable', reason: `HTTP ${answered.status}`, answered }
  }
  try {
    return {
      status: 'answered',
      response: verifyResponse(parseJson(answered.text), uid, phase),
      answered,
    }
  } catch (thrown) {
    return { status: 'unusable', reason: toAdmissionError(thrown, 'reading').message, answered }
  }
}

/** A Pod through the mutate phase, as a dry run: what comes back, and what it makes of the Pod. */
export async function checkMutate(
  visit: Visit,
  pod: Record<string, unknown>,
): Promise<{ checks: Check[]; pod: Record<string, unknown> }> {
  const mutated = await review(visit, 'mutate', pod)
  // Both are JSON; what a patch makes of a Pod is a Pod.
  const final =
    mutated.status === 'answered'
      ? (applyPatch(pod as JsonObject, mutated.response.patch) as JsonObject)
      : pod
  // Told of where it is another than that of the validate phase alone.
  const policies = policiesCheck('policies of mutate', mutated, visit.patient)
  const isOther = policies.status === 'fail'
  return { checks: [phaseCheck('mutate', mutated), ...(isOther ? [policies] : [])], pod: final }
}

/** A Pod through the validate phase, as a dry run: what comes back, and which policies it rests on. */
export async function checkValidate(visit: Visit, pod: Record<string, unknown>): Promise<Check[]> {
  const { patient } = visit
  const validated = await review(visit, 'validate', pod)
  const checks = [phaseCheck('validate', validated), policiesCheck('policies', validated, patient)]
  const mode = modeCheck(validated, patient)
  return mode === undefined ? checks : [...checks, mode]
}

function phaseCheck(phase: Phase, reviewed: Reviewed): Check {
  if (reviewed.status === 'unusable') {
    const fix = 'an API server counts this as a failed call: look into the log of the function'
    return fail(phase, reviewed.reason, fix)
  }
  const { allowed, status, warnings, patch, auditAnnotations } = reviewed.response
  const code = Number(status?.code ?? 0)
  const message = quoted(String(status?.message ?? ''))
  const changes = phase === 'mutate' ? `, ${patch.length} changes` : ''
  const found = allowed ? `allowed${changes}` : `denied (${code}): ${message}`
  const fault = auditAnnotations['mutate-error']
  if (fault !== undefined || code >= 429) {
    const what = fault === undefined ? found : `${found}; did not finish: ${fault}`
    return fail(phase, what, 'the function could not do its work: its log has the reason')
  }
  const told = warnings.length === 0 ? '' : `; warns: ${quoted(warnings.join('; '))}`
  return ok(phase, `${found}${told}`)
}

/** Whether an answer rests on the policies of these files, by the audit annotation that names them. */
export function policySetCheck(
  check: string,
  deployed: unknown,
  { expected, cluster }: { expected: string; cluster: string },
): Check {
  if (deployed === expected) return ok(check, `policy set ${deployed}, as in these files`)
  return typeof deployed !== 'string'
    ? fail(check, 'the answer names no policy set', 'deploy the functions of this version')
    : fail(
        check,
        `policy set ${quoted(deployed)} is deployed, these files are ${expected}`,
        `\`countersign build\` and deploy, or look at the files that are deployed: policies, exceptions, or what ${cluster} may use have changed`,
      )
}

function policiesCheck(check: string, reviewed: Reviewed, { policySet, cluster }: Patient): Check {
  return reviewed.status === 'unusable'
    ? skip(check, 'no answer to read it from')
    : policySetCheck(check, reviewed.response.auditAnnotations[AUDIT_POLICY_SET], {
        expected: policySet,
        cluster: cluster.name,
      })
}

function modeCheck(reviewed: Reviewed, { cluster }: Patient): Check | undefined {
  const isAudited =
    reviewed.status === 'answered' && reviewed.response.auditAnnotations[AUDIT_MODE] !== undefined
  if (cluster.mode !== 'audit' && !isAudited) return undefined
  const found = `${cluster.name} is in audit mode: nothing is denied`
  return warn(
    'mode',
    found,
    'set mode: enforce in the config and deploy when what would be denied is right',
  )
}

/** Whether the largest objects arrive: a door that takes less fails every call about them. */
export async function checkBodyLimit(visit: Visit): Promise<Check> {
  const check = 'body'
  const large = {
    ...doctorPod('registry.example.com/doctor:1'),
    padding: 'x'.repeat(LARGE_OBJECT_CHARS),
  }
  const reviewed = await review(visit, 'validate', large)
  const own = visit.patient.cluster.limits?.bodyBytes
  if (reviewed.status === 'unusable') {
    const fix =
      'raise the limit of the front door to 7 MB, or keep such objects away with a matchCondition'
    return fail(check, `a review of 3 MiB gets ${reviewed.reason}`, fix)
  }
  if (Number(reviewed.response.status?.code) !== 413) return ok(check, 'a review of 3 MiB is read')
  return own !== undefined && own <= LARGE_OBJECT_CHARS
    ? ok(check, `a review of 3 MiB is denied, as limits.bodyBytes ${own} says`)
    : warn(check, 'a review of 3 MiB is denied for its size', 'raise limits.bodyBytes and deploy')
}

/** How long reviews take, beside the timeouts of the config. */
export async function checkLatency(
  visit: Visit,
  image: string,
): Promise<{ checks: Check[]; answers: Answered[] }> {
  const { patient } = visit
  const answers: Answered[] = []
  for (let call = 0; call < patient.calls; call++) {
    answers.push((await review(visit, 'validate', doctorPod(image))).answered)
  }
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b)
  const [median = 0, slowest = 0] = [times[times.length >> 1], times.at(-1)]
  const seconds = timeoutOf(patient.cluster, 'validate')
  const found = `median ${median.toFixed(0)} ms, slowest ${slowest.toFixed(0)} ms of ${answers.length}; validate may take ${seconds} s, mutate ${timeoutOf(patient.cluster, 'mutate')} s`
  const fix =
    'raise timeouts in the config and the webhooks, bring the function nearer to the cluster, or give it more memory or provisioned concurrency'
  if (slowest >= seconds * 1000) return { checks: [fail('latency', found, fix)], answers }
  const check = slowest > seconds * 500 ? warn('latency', found, fix) : ok('latency', found)
  return { checks: [check], answers }
}

function timeoutOf({ timeouts }: ClusterConfig, phase: Phase): number {
  return timeouts[`${phase}Seconds`] ?? DEFAULT_TIMEOUT_SECONDS
}

/** The beginning of a text, where it is long. */
export function quoted(text: string): string {
  return text.length <= MAX_QUOTED_CHARS ? text : `${text.slice(0, MAX_QUOTED_CHARS - 1)}…`
}
