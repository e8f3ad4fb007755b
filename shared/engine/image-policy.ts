import { applyPatch } from '../admission/patch.ts'
import { admitted, denied, errorDecision } from '../admission/response.ts'
import type { AdmissionRequest, Decision, JsonPatchOperation } from '../admission/types.ts'
import { Cache } from '../cache.ts'
import { type AdmissionError, toAdmissionError } from '../errors.ts'
import { annotationPatch, type OutcomeAnnotations } from '../outcome/annotation.ts'
import type { KeyRing } from '../outcome/types.ts'
import { moreNeverHurts } from '../policy/counts.ts'
import { decide } from '../policy/decide.ts'
import { subjectOf } from '../policy/subject.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import { CallLedger } from './calls.ts'
import { applyConditions, evaluateAll } from './evaluation.ts'
import {
  lastingHandOver,
  NO_HAND_OVER,
  openHandOver,
  strictRefusal,
  unevaluated,
} from './hand-over.ts'
import { Inquiry, type InquiryOptions, type Live } from './inquiry.ts'
import { pinImages } from './pinning.ts'
import { toRecord, toResults, warningsOf } from './reporting.ts'
import { requireEvidence } from './required.ts'
import { sealFindings } from './sealing.ts'
import { policiesFor } from './selection.ts'
import type { EngineCall, ImagePolicyEngine } from './types.ts'

export interface EngineOptions {
  policies: readonly CompiledPolicy[]
  /** Registry and verifier, loaded when something has to be found out live. */
  live: () => Promise<Live>
  /** Keys of the seal. Without them every validate call verifies live. */
  keyRing?: KeyRing
  outcomes: { onMissing: 'verify' | 'deny'; lifetimeMs: number }
  /** Epoch milliseconds. */
  now: () => number
}

/**
 * The two flows of image policies. `mutate` pins digests and writes what it proved, always allowing; `validate` evaluates the policies
 * on the final object with what the seal proves, and decides. Neither throws for anything a request can cause.
 */
export function createImagePolicyEngine(options: EngineOptions): ImagePolicyEngine {
  const select = policiesFor(options.policies)
  const lenient = new Set(options.policies.filter(moreNeverHurts))
  const verified: InquiryOptions['verified'] = new Cache()
  const inquiryFor = ({ cluster, signal }: EngineCall) =>
    new Inquiry({ cluster, signal, live: options.live, verified, now: options.now })

  return {
    async mutate(request, call) {
      try {
        return isMutable(request) ? await mutate(request, call) : admitted()
      } catch (thrown) {
        return unmutated(request, toAdmissionError(thrown, 'mutating'))
      }
    },
    async validate(request, call) {
      try {
        return await validate(request, call)
      } catch (thrown) {
        return errorDecision(toAdmissionError(thrown, 'validating'))
      }
    },
  }

  async function mutate(request: AdmissionRequest, call: EngineCall): Promise<Decision> {
    const inquiry = inquiryFor(call)
    const original = subjectOf(request)
    const applied = applyConditions(await select(request, call), original)
    const pinning = await pinImages(applied.policies, original, inquiry)
    const pinned = withPatches(request, pinning.patches)
    const handOver = lastingHandOver(
      await openHandOver(pinned, call, options),
      options.now(),
      options.outcomes.lifetimeMs,
    )
    const ledger = new CallLedger(handOver.facts, { sealedOnly: false, lenient })
    const evaluated = await evaluateAll(applied.policies, subjectOf(pinned), ledger, inquiry)
    const findings = requireEvidence([...applied.findings, ...evaluated], ledger)
    const sealed = await sealFindings(findings, pinned, call, { ...options, ledger, handOver })
    return admitted({
      patch: [...pinning.patches, ...annotationsOn(pinned, sealed.annotations)],
      warnings: [...pinning.failures.values(), ...decide(toResults(findings)).warnings],
      record: {
        ...toRecord(findings, { inquiry, seal: handOver.use }),
        pinned: pinning.patches.length,
        sealed:
          sealed.fault === undefined ? sealed.annotations.seal !== undefined : sealed.fault.message,
      },
    })
  }

  async function validate(request: AdmissionRequest, call: EngineCall): Promise<Decision> {
    const inquiry = inquiryFor(call)
    const subject = subjectOf(request)
    const { policies, findings: settled } = applyConditions(await select(request, call), subject)
    const isStrict = options.outcomes.onMissing === 'deny' && policies.length > 0
    const refusal = isStrict ? strictRefusal(request) : undefined
    if (refusal !== undefined) return denied(refusal)
    const handOver = policies.length > 0 ? await openHandOver(request, call, options) : NO_HAND_OVER
    const missing = isStrict ? unevaluated(policies, handOver) : []
    const covered = policies.filter(
      (policy) => !missing.some(({ prepared }) => prepared === policy),
    )
    const ledger = new CallLedger(handOver.facts, { sealedOnly: isStrict, lenient })
    const evaluated = await evaluateAll(covered, subject, ledger, inquiry)
    const findings = requireEvidence([...settled, ...missing, ...evaluated], ledger)
    const ruling = decide(toResults(findings))
    return {
      ...ruling,
      patch: [],
      warnings: [...ruling.warnings, ...warningsOf(findings)],
      record: toRecord(findings, { inquiry, seal: handOver.use }),
    }
  }
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

/** The mutate phase never blocks: what it could not do, validate does or refuses. What came in is removed all the same. */
function unmutated(request: AdmissionRequest, error: AdmissionError): Decision {
  return admitted({
    patch: annotationsOn(request, {}),
    warnings: [error.message],
    record: { error: error.code, message: error.message },
  })
}
