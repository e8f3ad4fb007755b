import { denied, errorDecision } from '../admission/response.ts'
import type { AdmissionRequest, Decision } from '../admission/types.ts'
import { type AdmissionError, toAdmissionError } from '../errors.ts'
import { decide } from '../policy/decide.ts'
import { subjectOf } from '../policy/subject.ts'
import { appliedPolicies } from './applied.ts'
import { CallLedger } from './calls.ts'
import { applyConditions, evaluateAll } from './evaluation.ts'
import {
  emptyHandOver,
  isHandedOver,
  openHandOver,
  strictRefusal,
  unevaluated,
} from './hand-over.ts'
import type { Isolate } from './isolate.ts'
import { learnNamespace } from './namespace.ts'
import { publicFault, toRecord, toResults, warningsOf } from './reporting.ts'
import { requireEvidence } from './required.ts'
import type { EngineCall, EngineDecision, ImagePolicyEngine } from './types.ts'

/**
 * The validate flow: evaluates the policies on the final object with what the seal proves, live for the rest, and decides. It never
 * throws for anything a request can cause; what goes wrong denies.
 */
export function createValidate(isolate: Isolate): ImagePolicyEngine['validate'] {
  return async (request, call) => {
    try {
      return await validate(request, call, isolate)
    } catch (thrown) {
      return unvalidated(toAdmissionError(thrown, 'validating'))
    }
  }
}

async function validate(
  request: AdmissionRequest,
  call: EngineCall,
  { options, select, inquiryFor }: Isolate,
): Promise<EngineDecision> {
  const inquiry = inquiryFor(call)
  const subject = subjectOf(request)
  const selected = await select(request, call)
  await learnNamespace(selected, subject, inquiry, 'match')
  const {
    policies,
    exemptions,
    findings: settled,
  } = applyConditions(selected, subject, options.now, call.exceptions)
  await learnNamespace(policies, subject, inquiry, 'evaluation')
  const isStrict =
    options.outcomes.onMissing === 'deny' && policies.length > 0 && isHandedOver(request)
  const refusal = isStrict ? strictRefusal(request) : undefined
  if (refusal !== undefined) return denied(refusal)
  const handOver =
    policies.length > 0 ? await openHandOver(request, call, options) : emptyHandOver('unused')
  const missing = isStrict ? unevaluated(policies, handOver) : []
  const covered = policies.filter((policy) => !missing.some(({ prepared }) => prepared === policy))
  const ledger = new CallLedger(handOver.facts, { sealedOnly: isStrict })
  const evaluated = await evaluateAll(covered, subject, { ledger, inquiry, exemptions })
  const findings = requireEvidence([...settled, ...missing, ...evaluated], subject, ledger)
  const ruling = decide(toResults(findings))
  return {
    ...ruling,
    patch: [],
    warnings: [...ruling.warnings, ...warningsOf(findings)],
    record: toRecord(findings, { inquiry, seal: handOver.use }),
    applied: () => appliedPolicies(findings, inquiry),
  }
}

/** What went wrong inside is for the log: the text of an unexpected fault may hold anything. */
function unvalidated(error: AdmissionError): Decision {
  const { code, message } = error
  return { ...errorDecision(publicFault(error)), record: { error: code, message } }
}
