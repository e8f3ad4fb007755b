import { expect, test } from 'vitest'
import { nodeHash } from '#functions/hash-node.ts'
import { decisionRecord } from '#functions/log.ts'
import { admitted, denied } from '#shared/admission/response.ts'
import type { EngineDecision } from '#shared/engine/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { admitInAuditMode, decide, type PolicyResult } from '#shared/policy/decide.ts'

const CALL = { cluster: 'prod', phase: 'validate', scope: 'ivpol', policies: [] } as const

function result(status: PolicyResult['status'], policy: string): PolicyResult {
  return { policy, validationActions: ['Deny'], status, message: 'it is so' }
}

function ruled(results: readonly PolicyResult[]): EngineDecision {
  return { patch: [], record: {}, ...decide(results) }
}

test.each<{ name: string; decision?: EngineDecision; error?: AdmissionError; cause?: string }>([
  { name: 'what is admitted has none', decision: admitted() },
  { name: 'a policy that says no', decision: ruled([result('fail', 'a')]), cause: 'rejected' },
  {
    name: 'a policy that cannot tell, beside one that says no',
    decision: ruled([result('fail', 'a'), result('error', 'b')]),
    cause: 'inconclusive',
  },
  {
    name: 'a fault outside of any policy',
    decision: denied('no verdict in time', { code: 500, reason: 'InternalError' }),
    error: new AdmissionError('DEADLINE_EXCEEDED', 'no verdict in time'),
    cause: 'inconclusive',
  },
  {
    name: 'what audit mode lets in although nobody could tell',
    decision: admitInAuditMode(ruled([result('error', 'b')])),
    cause: 'inconclusive',
  },
  { name: 'a review that nobody could read has none', error: new AdmissionError('INTERNAL', 'x') },
])('the cause of a denial: $name', ({ decision, error, cause }) => {
  const answer = { httpStatus: 200 as const, text: '', ...(decision && { decision }) }
  const record = decisionRecord(CALL, { ...answer, ...(error && { error }) }, nodeHash)
  expect(record.cause).toBe(cause)
})
