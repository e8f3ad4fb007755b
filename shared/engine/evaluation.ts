import type { Host } from '../cel/types.ts'
import { unreachable } from '../errors.ts'
import { MAX_SETTLE_ROUNDS } from '../limits.ts'
import { type EvaluationResult, evaluate, matchConditions } from '../policy/evaluate.ts'
import type { Exemption, PartialExemption } from '../policy/exemption.ts'
import type { PreparedPolicy } from '../policy/prepare.ts'
import type { Subject } from '../policy/subject.ts'
import { uncovered } from './call-parts.ts'
import { type CallLedger, type Learned, newPass, type Pass, type Settled } from './calls.ts'
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
  /** `skip`, or `pass` with `exempt`, where an exception is about the whole policy. */
  status: 'pass' | 'fail' | 'error' | 'skip'
  message: string
  auditAnnotations: Readonly<Record<string, string>>
  /** The matched images without the exempt ones, empty where they could not be found out. */
  images: readonly string[]
  /** The one that failed the policy, where it is one. */
  image?: string
  /** Names of the exceptions that let something in, or allow values; at least one. */
  exceptions?: readonly string[]
  /** The exceptions are about the whole policy: it was not evaluated. */
  exempt?: true
  /** Images that are exempt, by exception. */
  exempted?: ReadonlyMap<string, string>
  /** What was learned about the images. */
  learned?: readonly Learned[]
  /** Also beside a pass: `required` may still turn it into a failure. */
  reasons: readonly Reason[]
  failedOpen?: true
}

/** What exceptions say about single images, by policy. */
export type Exemptions = ReadonlyMap<PreparedPolicy, PartialExemption>

/** The policies of a request that are to be evaluated, and what is settled about the others without an evaluation. */
export interface Applied {
  policies: readonly PreparedPolicy[]
  exemptions: Exemptions
  findings: readonly Finding[]
}

/**
 * Evaluates match conditions and exceptions: policies without a match are gone; those that could not tell, and those that an exception
 * is about as a whole, already have their finding. `now` is the time of the review, epoch milliseconds;
 * `counting` names the exceptions that count, all of them when absent.
 */
export function applyConditions(
  policies: readonly PreparedPolicy[],
  subject: Subject,
  now: () => number,
  counting?: ReadonlySet<string>,
): Applied {
  const applied: PreparedPolicy[] = []
  const exemptions = new Map<PreparedPolicy, PartialExemption>()
  const findings: Finding[] = []
  for (const prepared of policies) {
    const result = matchConditions(prepared, subject)
    if (result.status === 'matched') {
      const exemption = prepared.exceptions?.about(subject, now(), counting)
      const found = exemption && exemptFinding(prepared, exemption)
      if (found !== undefined) findings.push(found)
      else applied.push(prepared)
      if (exemption?.status === 'partial') exemptions.set(prepared, exemption)
    } else if (result.status === 'error') findings.push(finding(prepared, 'error', result.message))
    else if (result.status === 'failed-open') {
      findings.push({ ...finding(prepared, 'pass', result.message), failedOpen: true })
    }
  }
  return { policies: applied, exemptions, findings }
}

function exemptFinding(prepared: PreparedPolicy, exemption: Exemption): Finding | undefined {
  if (exemption.status === 'error') return finding(prepared, 'error', exemption.message)
  if (exemption.status !== 'skipped') return undefined
  const { result, message, exceptions } = exemption
  return { ...finding(prepared, result, message), exceptions, exempt: true }
}

/**
 * Evaluates the policies to their end. Each of at most `MAX_SETTLE_ROUNDS` rounds runs every policy that still waits; between two
 * rounds everything they asked for is found out together. Never throws.
 */
export async function evaluateAll(
  policies: readonly PreparedPolicy[],
  subject: Subject,
  { ledger, inquiry, exemptions }: { ledger: CallLedger; inquiry: Inquiry; exemptions: Exemptions },
): Promise<Finding[]> {
  const findings = new Map<PreparedPolicy, Finding>()
  for (let round = 1; ; round++) {
    for (const prepared of policies) {
      if (findings.has(prepared)) continue
      const found = evaluateOnce(prepared, subject, ledger, exemptions.get(prepared))
      if (found !== undefined) findings.set(prepared, found)
    }
    if (findings.size === policies.length || round === MAX_SETTLE_ROUNDS) break
    // What a call waits for may be its own code: that is no round.
    if (await ledger.loadRare()) round--
    else await inquiry.settle(ledger.takePending(), ledger)
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
  exemption: PartialExemption | undefined,
): Finding | undefined {
  const [without, withThem] = [newPass('low'), newPass('high')]
  const low = evaluate(prepared, subject, hostOf(prepared, ledger, without), exemption)
  if (low.status === 'pending') return undefined
  const told = () => withExceptions(toFinding(prepared, low, ledger), exemption)
  if (without.seen.length === 0 || low.status === 'pass') return told()
  const high = evaluate(prepared, subject, hostOf(prepared, ledger, withThem), exemption)
  if (high.status === 'pending') return undefined
  return high.status === low.status
    ? told()
    : undecided(prepared, low, ledger, [...without.seen, ...withThem.seen])
}

/** An exception that applies and exempts none of the images is not why anything is let in. */
function withExceptions(found: Finding, exemption: PartialExemption | undefined): Finding {
  if (exemption === undefined) return found
  const exceptions = new Set([...exemption.withValues, ...(found.exempted?.values() ?? [])])
  return exceptions.size === 0 ? found : { ...found, exceptions: [...exceptions].sort() }
}

function undecided(
  prepared: PreparedPolicy,
  result: EvaluationResult,
  ledger: CallLedger,
  unknown: readonly Inconclusive[],
): Finding {
  const message = `failed to evaluate policy: could not verify ${describe(unknown)}`
  const images = imagesIn(result)
  const learned = learnedOf(prepared, images, ledger)
  return { ...finding(prepared, 'error', message), images, learned, reasons: reasonsOf(learned) }
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
  const learned = learnedOf(prepared, result.images, ledger)
  return { prepared, ...result, learned, reasons: reasonsOf(learned) }
}

function learnedOf(
  { policy }: PreparedPolicy,
  images: readonly string[],
  ledger: CallLedger,
): Learned[] {
  return images.flatMap((image) => ledger.learned(policy, image))
}

/** Why signatures and attestations did not count, where any was looked at. */
function reasonsOf(learned: readonly Learned[]): Reason[] {
  const reasons: Reason[] = []
  for (const { asked, settled } of learned) {
    const { image, attestor, attestation } = asked
    const reason = reasonOf(settled, image)
    if (reason === undefined) continue
    reasons.push({ image, attestor, ...(attestation && { attestation }), reason })
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
    case 'unusable':
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
