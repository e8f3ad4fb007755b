import type { Host } from '../cel/types.ts'
import { unreachable } from '../errors.ts'
import { MAX_SETTLE_ROUNDS } from '../limits.ts'
import { type EvaluationResult, evaluate, matchConditions } from '../policy/evaluate.ts'
import type { PreparedPolicy } from '../policy/prepare.ts'
import type { Subject } from '../policy/subject.ts'
import { type CallLedger, newPass, type Pass, type Settled, uncovered } from './calls.ts'
import { describe, type Inconclusive } from './inconclusive.ts'
import type { Inquiry } from './inquiry.ts'

/** A check of a signature or an attestation that did not help, and why: for the people who read the denial. */
export interface Reason {
  image: string
  attestor: string
  attestation?: string
  reason: string
}

/** What one applied policy found, `required` not asked yet. */
export interface Finding {
  prepared: PreparedPolicy
  status: 'pass' | 'fail' | 'error'
  message: string
  auditAnnotations: Readonly<Record<string, string>>
  /** The matched images, empty where they could not be found out. */
  images: readonly string[]
  /** Also beside a pass: `required` may still turn it into a failure. */
  reasons: readonly Reason[]
  failedOpen?: true
}

/** The policies of a request that are to be applied, and what those said whose match conditions could not be evaluated. */
export interface Applied {
  policies: readonly PreparedPolicy[]
  findings: readonly Finding[]
}

/** Evaluates match conditions: policies without a match are gone, those that could not tell already have their finding. */
export function applyConditions(policies: readonly PreparedPolicy[], subject: Subject): Applied {
  const applied: PreparedPolicy[] = []
  const findings: Finding[] = []
  for (const prepared of policies) {
    const result = matchConditions(prepared, subject)
    if (result.status === 'matched') applied.push(prepared)
    else if (result.status === 'error') findings.push(finding(prepared, 'error', result.message))
    else if (result.status === 'failed-open') {
      findings.push({ ...finding(prepared, 'pass', result.message), failedOpen: true })
    }
  }
  return { policies: applied, findings }
}

/**
 * Evaluates the policies to their end. Each of at most `MAX_SETTLE_ROUNDS` rounds runs every policy that still waits; between two
 * rounds everything they asked for is found out together. Never throws.
 */
export async function evaluateAll(
  policies: readonly PreparedPolicy[],
  subject: Subject,
  ledger: CallLedger,
  inquiry: Inquiry,
): Promise<Finding[]> {
  const findings = new Map<PreparedPolicy, Finding>()
  for (let round = 1; ; round++) {
    for (const prepared of policies) {
      if (findings.has(prepared)) continue
      const found = evaluateOnce(prepared, subject, ledger)
      if (found !== undefined) findings.set(prepared, found)
    }
    if (findings.size === policies.length || round === MAX_SETTLE_ROUNDS) break
    await inquiry.settle(ledger.takePending(), ledger)
  }
  return policies.map((prepared) => {
    const found = findings.get(prepared)
    const endless = `failed to evaluate policy: image functions depend on each other more than ${MAX_SETTLE_ROUNDS} deep`
    return found ?? finding(prepared, 'error', endless)
  })
}

/**
 * One evaluation, or undefined while it waits. Signatures that could not be checked are left out of a count only for policies that
 * more of them never hurt, so that a pass is a pass. Anything else the policy must also say with them counted as good; otherwise
 * it cannot be told.
 */
function evaluateOnce(
  prepared: PreparedPolicy,
  subject: Subject,
  ledger: CallLedger,
): Finding | undefined {
  const [without, withThem] = [newPass('low'), newPass('high')]
  const low = evaluate(prepared, subject, hostOf(prepared, ledger, without))
  if (low.status === 'pending') return undefined
  if (without.seen.length === 0 || low.status === 'pass') return toFinding(prepared, low, ledger)
  const high = evaluate(prepared, subject, hostOf(prepared, ledger, withThem))
  if (high.status === 'pending') return undefined
  return high.status === low.status
    ? toFinding(prepared, low, ledger)
    : undecided(prepared, low, ledger, [...without.seen, ...withThem.seen])
}

function undecided(
  prepared: PreparedPolicy,
  result: EvaluationResult,
  ledger: CallLedger,
  unknown: readonly Inconclusive[],
): Finding {
  const message = `failed to evaluate policy: could not verify ${describe(unknown)}`
  const images = imagesIn(result)
  const reasons = reasonsOf(prepared, images, ledger)
  return { ...finding(prepared, 'error', message), images, reasons }
}

function hostOf({ policy }: PreparedPolicy, ledger: CallLedger, pass: Pass): Host {
  return (call) => ledger.answer(policy, call, pass)
}

function toFinding(
  prepared: PreparedPolicy,
  result: Exclude<EvaluationResult, { status: 'pending' }>,
  ledger: CallLedger,
): Finding {
  if (result.status === 'error') return finding(prepared, 'error', result.message)
  const { status, message, auditAnnotations, images } = result
  const reasons = reasonsOf(prepared, images, ledger)
  return { prepared, status, message, auditAnnotations, images, reasons }
}

/** Why signatures and attestations of the matched images did not count, where any was looked at. */
function reasonsOf(
  { policy }: PreparedPolicy,
  images: readonly string[],
  ledger: CallLedger,
): Reason[] {
  const reasons: Reason[] = []
  for (const image of images) {
    for (const about of [{}, ...policy.attestations.map(({ name }) => ({ attestation: name }))]) {
      for (const { name } of policy.attestors) {
        const settled = ledger.settled({ policy, image, attestor: name, ...about })
        const reason = settled && reasonOf(settled, image)
        if (reason !== undefined) reasons.push({ image, attestor: name, ...about, reason })
      }
    }
  }
  return reasons
}

function reasonOf(settled: Settled, image: string): string | undefined {
  switch (settled.status) {
    case 'verified':
    case 'sealed':
      return undefined
    case 'rejected':
      return settled.reason
    case 'inconclusive':
      return settled.error.message
    case 'uncovered':
      return uncovered(image)
    default:
      return unreachable(settled)
  }
}

function imagesIn(result: EvaluationResult): readonly string[] {
  return 'images' in result ? result.images : []
}

function finding(prepared: PreparedPolicy, status: Finding['status'], message: string): Finding {
  return { prepared, status, message, auditAnnotations: {}, images: [], reasons: [] }
}
