import type { AdmissionRequest } from '../admission/types.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { pinnedDigest } from '../image/pin.ts'
import type { OutcomeAnnotations } from '../outcome/annotation.ts'
import { sealContext } from '../outcome/context.ts'
import { FactSet } from '../outcome/facts.ts'
import { formatOutcomes } from '../outcome/record.ts'
import { sealOutcomes } from '../outcome/seal.ts'
import type { Fact, KeyRing, OutcomeRecord, Outcomes, SealContext } from '../outcome/types.ts'
import { TAG_CALL } from '../policy/images.ts'
import { type CompiledPolicy, policyKey } from '../policy/types.ts'
import type { Asked, CallLedger, Settled } from './calls.ts'
import type { Finding } from './evaluation.ts'
import type { HandOver } from './hand-over.ts'
import { ruleOf } from './reporting.ts'
import type { EngineCall } from './types.ts'

/** What a seal is made from, and with. */
export interface SealingOptions {
  ledger: CallLedger
  /** What came in, and may be kept as it is. */
  handOver: HandOver
  keyRing?: KeyRing
  outcomes: { lifetimeMs: number }
  now: () => number
}

/** What the mutate phase writes, and why there is no seal where there should be one. */
export interface Sealed {
  annotations: OutcomeAnnotations
  fault?: AdmissionError
}

/**
 * The two annotations for what the policies found. A seal that came in and proves the same is kept to the letter, so that a reinvoked
 * mutate changes nothing; a new one that rests on facts of the old never outlives it. What that seal says of policies that this call is
 * not about stays: they are another webhook's, which came before. The readable record is this call's alone, since anybody can write one.
 */
export async function sealFindings(
  findings: readonly Finding[],
  request: AdmissionRequest,
  call: EngineCall,
  options: SealingOptions,
): Promise<Sealed> {
  const { keyRing, handOver, ledger } = options
  const others = ofOthers(handOver, findings)
  // On a failed-open policy nothing was found out.
  const told = findings.filter((finding) => !finding.failedOpen)
  if (told.length === 0 && isEmpty(others)) return { annotations: {} }
  const outcomes = formatOutcomes(new Map(told.map((f) => [f.prepared.policy.name, record(f)])))
  const evaluated = told.filter((finding) => !finding.exempt)
  if ((evaluated.length === 0 && isEmpty(others)) || keyRing === undefined) {
    return { annotations: { outcomes } }
  }
  const context = sealContext(request, call.cluster)
  try {
    const proven = provenBy(evaluated, ledger, others)
    const key = () => keyRing.current(options.now(), call.signal)
    const seal = await sealed(proven, context, key, options).catch((thrown) => {
      const isTooLarge = thrown instanceof AdmissionError && thrown.code === 'SEAL_TOO_LARGE'
      if (!isTooLarge || isEmpty(others)) throw thrown
      return sealed(provenBy(evaluated, ledger, NO_OUTCOMES), context, key, options)
    })
    return { annotations: seal === undefined ? { outcomes } : { outcomes, seal } }
  } catch (thrown) {
    return { annotations: { outcomes }, fault: toAdmissionError(thrown, 'sealing outcomes') }
  }
}

/** The text of the seal, or undefined when what it would rest on has ended. Throws as `sealOutcomes` and the key ring do. */
async function sealed(
  { facts, isBorrowed }: Proven,
  context: SealContext,
  currentKey: () => ReturnType<KeyRing['current']>,
  { handOver, outcomes, now }: SealingOptions,
): Promise<string | undefined> {
  if (handOver.seal !== undefined && isSame(facts, handOver.facts)) return handOver.seal.text
  const at = now()
  const lifetime = isBorrowed
    ? Math.min(outcomes.lifetimeMs, (handOver.seal?.expiresAt ?? at) - at)
    : outcomes.lifetimeMs
  if (lifetime <= 0) return undefined
  return sealOutcomes(facts.outcomes(), context, await currentKey(), at, lifetime)
}

const NO_OUTCOMES: Outcomes = { policies: [], facts: [] }

/** What the seal that came in says of policies that this call found nothing of. Empty unless it opened. */
function ofOthers({ seal, facts }: HandOver, findings: readonly Finding[]): Outcomes {
  if (seal === undefined) return NO_OUTCOMES
  const own = new Set(findings.map(({ prepared }) => policyKey(prepared.policy)))
  const all = facts.outcomes()
  return {
    policies: all.policies.filter(({ policy }) => !own.has(policy)),
    facts: all.facts.filter(({ policy }) => !own.has(policy)),
  }
}

function isEmpty({ policies, facts }: Outcomes): boolean {
  return policies.length + facts.length === 0
}

interface Proven {
  facts: FactSet
  /** Any of it was itself read from a seal. */
  isBorrowed: boolean
}

/**
 * Facts and policies for the seal, beside those of others. An error is not an evaluation to the end, and an image that is not pinned has no
 * lasting facts.
 */
function provenBy(findings: readonly Finding[], ledger: CallLedger, others: Outcomes): Proven {
  const facts = FactSet.of(others)
  let isBorrowed = !isEmpty(others)
  for (const { prepared, status, images, exempted = NONE } of findings) {
    const { policy } = prepared
    if (status !== 'error') facts.addPolicy(policyKey(policy), policy.hash)
    for (const image of exempted.keys()) {
      const digest = pinnedDigest(image)
      const known = ledger.rare?.tag({ policy, image })
      if (digest === undefined || known === undefined) continue
      isBorrowed ||= known === 'sealed'
      facts.add({ ...factAbout(policy, image, digest), attestor: '', function: TAG_CALL })
    }
    for (const image of images) {
      const digest = pinnedDigest(image)
      if (digest === undefined) continue
      for (const { asked, settled } of ledger.learned(policy, image)) {
        const fact = factOf(asked, digest, settled)
        if (fact === undefined) continue
        isBorrowed ||= settled.status === 'sealed'
        facts.add(fact)
      }
    }
  }
  return { facts, isBorrowed }
}

const NONE: ReadonlyMap<string, string> = new Map()

function factAbout(policy: CompiledPolicy, image: string, digest: string) {
  return { policy: policyKey(policy), policyHash: policy.hash, image, digest }
}

/** Undefined for what was not proved, and for an attestation whose payload is not surely the one that counts. */
function factOf(
  { policy, image, attestor, attestation, material }: Asked,
  digest: string,
  settled: Settled,
): Fact | undefined {
  if (settled.status !== 'verified' && settled.status !== 'sealed') return undefined
  const whose = { attestor, ...(material && { material: material.hash }) }
  const about = { ...factAbout(policy, image, digest), ...whose }
  if (attestation === undefined) return { ...about, function: 'verifyImageSignatures' }
  if ('unread' in settled) return undefined
  const blob = 'payload' in settled ? settled.payload.blob : undefined
  const payload = settled.status === 'sealed' && 'blob' in settled ? settled.blob : blob
  return payload && { ...about, function: 'verifyAttestationSignatures', attestation, payload }
}

function isSame(a: FactSet, b: FactSet): boolean {
  const [left, right] = [a.outcomes(), b.outcomes()]
  return (
    left.facts.length === right.facts.length &&
    left.policies.length === right.policies.length &&
    left.facts.every((fact) => {
      const other = b.find(fact)
      return other !== undefined && other.payload?.digest === fact.payload?.digest
    }) &&
    left.policies.every(({ policy, policyHash }) => b.covers(policy, policyHash))
  )
}

/** The readable record of one policy, in Kyverno's fields: its name is that of the rule (image-validating-policy.md 3.6). */
function record(finding: Finding): OutcomeRecord {
  const { prepared, status, message, auditAnnotations } = finding
  const isBad = status === 'fail' || status === 'error'
  const warns = isBad && prepared.policy.validationActions.includes('Warn')
  return {
    name: ruleOf(finding),
    ruleType: finding.exempt ? 'Validation' : 'ImageVerify',
    message,
    status,
    ...(warns ? { emitWarning: true } : {}),
    properties: { ...auditAnnotations },
  }
}
