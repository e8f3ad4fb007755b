import { denied } from '../admission/response.ts'
import type { AdmissionRequest } from '../admission/types.ts'
import { toAdmissionError } from '../errors.ts'
import { subjectOf } from '../policy/subject.ts'
import { applyPolicies } from './application.ts'
import { CallLedger } from './calls.ts'
import { evaluateAll } from './evaluation.ts'
import {
  emptyHandOver,
  isHandedOver,
  openHandOver,
  strictRefusal,
  unevaluated,
} from './hand-over.ts'
import type { Isolate } from './isolate.ts'
import { requireEvidence } from './required.ts'
import type { EngineCall, EngineDecision, ImagePolicyEngine } from './types.ts'
import { unvalidated, verdictOn } from './verdict.ts'

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
  isolate: Isolate,
): Promise<EngineDecision> {
  const { options } = isolate
  const inquiry = isolate.inquiryFor(call)
  const subject = subjectOf(request)
  const applied = await applyPolicies(subject, call, isolate, inquiry)
  const { policies, exemptions, findings: settled } = applied
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
  return verdictOn(findings, inquiry, handOver.use)
}
