import { applyPatch } from '../admission/patch.ts'
import { admitted } from '../admission/response.ts'
import type { AdmissionRequest, Decision, JsonPatchOperation } from '../admission/types.ts'
import { type AdmissionError, toAdmissionError } from '../errors.ts'
import { annotationPatch, type OutcomeAnnotations } from '../outcome/annotation.ts'
import { decide } from '../policy/decide.ts'
import { subjectOf } from '../policy/subject.ts'
import { applyPolicies } from './application.ts'
import { appliedPolicies } from './applied.ts'
import { CallLedger } from './calls.ts'
import { evaluateAll } from './evaluation.ts'
import { lastingHandOver, openHandOver } from './hand-over.ts'
import type { Isolate } from './isolate.ts'
import { pinImages } from './pinning.ts'
import { publicFault, toRecord, toResults, unpinnedWarnings } from './reporting.ts'
import { requireEvidence } from './required.ts'
import { sealFindings } from './sealing.ts'
import type { EngineCall, EngineDecision, ImagePolicyEngine } from './types.ts'

/**
 * The mutate flow: pins digests, evaluates the policies on the pinned object, writes what that proved. It always allows and never
 * throws for anything a request can cause; what it could not do, validate does or refuses. Upstream denies here already when a digest
 * cannot be resolved; here that is a warning with upstream's words, and validate denies for the missing digest.
 */
export function createMutate(isolate: Isolate): ImagePolicyEngine['mutate'] {
  return async (request, call) => {
    try {
      return isMutable(request) ? await mutate(request, call, isolate) : admitted()
    } catch (thrown) {
      return unmutated(request, toAdmissionError(thrown, 'mutating'))
    }
  }
}

async function mutate(
  request: AdmissionRequest,
  call: EngineCall,
  isolate: Isolate,
): Promise<EngineDecision> {
  const { options } = isolate
  const inquiry = isolate.inquiryFor(call)
  const original = subjectOf(request)
  const applied = await applyPolicies(original, call, isolate, inquiry)
  const pinning = await pinImages(applied.policies, original, inquiry)
  const pinned = withPatches(request, pinning.patches)
  const handOver = lastingHandOver(
    await openHandOver(pinned, call, options),
    options.now(),
    options.outcomes.lifetimeMs,
  )
  const ledger = new CallLedger(handOver.facts, { sealedOnly: false })
  // With nothing to pin it is the same object, and its images are known already.
  const subject = pinned === request ? original : subjectOf(pinned, original)
  const { exemptions } = applied
  const evaluated = await evaluateAll(applied.policies, subject, { ledger, inquiry, exemptions })
  const findings = requireEvidence([...applied.findings, ...evaluated], subject, ledger)
  const sealed = await sealFindings(findings, pinned, call, { ...options, ledger, handOver })
  const decision = admitted({
    patch: [...pinning.patches, ...annotationsOn(pinned, sealed.annotations)],
    warnings: [...unpinnedWarnings(pinning.failures), ...decide(toResults(findings)).warnings],
    record: {
      ...toRecord(findings, { inquiry, seal: handOver.use }),
      pinned: pinning.patches.length,
      sealed:
        sealed.fault === undefined ? sealed.annotations.seal !== undefined : sealed.fault.message,
    },
  })
  return { ...decision, applied: () => appliedPolicies(findings, inquiry) }
}

/** DELETE has no object to change and CONNECT's is not stored. */
function isMutable({ operation, object }: AdmissionRequest): boolean {
  return object !== null && (operation === 'CREATE' || operation === 'UPDATE')
}

function withPatches(
  request: AdmissionRequest,
  patches: readonly JsonPatchOperation[],
): AdmissionRequest {
  if (request.object === null || patches.length === 0) return request
  return { ...request, object: applyPatch(request.object, patches) }
}

/** A subresource stores only its own part of the object, so that annotations on it would be lost or refused. */
function annotationsOn(
  request: AdmissionRequest,
  values: OutcomeAnnotations,
): JsonPatchOperation[] {
  return (request.subResource ?? '') === '' ? annotationPatch(request.object, values) : []
}

/** Nothing was proved, so what came in is removed. */
function unmutated(request: AdmissionRequest, error: AdmissionError): Decision {
  return admitted({
    patch: annotationsOn(request, {}),
    warnings: [`images were not pinned: ${publicFault(error).message}`],
    record: { error: error.code, message: error.message },
  })
}
