import { errorDecision } from '../admission/response.ts'
import type { Decision } from '../admission/types.ts'
import type { AdmissionError } from '../errors.ts'
import { decide } from '../policy/decide.ts'
import { appliedPolicies } from './applied.ts'
import type { Finding } from './evaluation.ts'
import type { SealUse } from './hand-over.ts'
import type { Inquiry } from './inquiry.ts'
import { publicFault, toRecord, toResults, warningsOf } from './reporting.ts'
import type { EngineDecision } from './types.ts'

/** The decision that follows from everything policies found about a request. `seal` says how its seal was used. */
export function verdictOn(
  findings: readonly Finding[],
  inquiry: Inquiry,
  seal: SealUse,
): EngineDecision {
  const ruling = decide(toResults(findings))
  return {
    ...ruling,
    patch: [],
    warnings: [...ruling.warnings, ...warningsOf(findings)],
    record: toRecord(findings, { inquiry, seal }),
    applied: () => appliedPolicies(findings, inquiry),
  }
}

/** The denial of what could not be decided. What went wrong inside is for the log: the text of an unexpected fault may hold anything. */
export function unvalidated(error: AdmissionError): Decision {
  const { code, message } = error
  return { ...errorDecision(publicFault(error)), record: { error: code, message } }
}
