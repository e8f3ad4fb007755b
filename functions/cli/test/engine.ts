import { applyPatch } from '#shared/admission/patch.ts'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import type { AppliedPolicy } from '#shared/engine/applied.ts'
import { createImagePolicyEngine, type EngineOptions } from '#shared/engine/image-policy.ts'
import type { EngineCall, EngineDecision, ImagePolicyEngine } from '#shared/engine/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { SEAL_TTL_MS } from '#shared/limits.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'

/** All checks of one object, milliseconds. */
const TIMEOUT_MS = 30_000
const CLUSTER = 'test'

/** What each policy that applies found about one object. */
export type Verdicts = readonly AppliedPolicy[]

/** Evaluates requests as the webhooks of both routes would. */
export class TestEngine {
  readonly #engine: ImagePolicyEngine
  readonly #scopes: readonly EngineCall['scope'][]
  readonly #signal: AbortSignal

  constructor(
    policies: readonly CompiledPolicy[],
    options: Omit<EngineOptions, 'policies' | 'outcomes'>,
    signal: AbortSignal,
  ) {
    this.#engine = createImagePolicyEngine({
      ...options,
      policies,
      outcomes: { onMissing: 'verify', lifetimeMs: SEAL_TTL_MS },
    })
    const isNamespaced = (policy: CompiledPolicy) => policy.namespace !== undefined
    this.#scopes = [
      ...(policies.every(isNamespaced) ? [] : (['ivpol'] as const)),
      ...(policies.some(isNamespaced) ? (['nivpol'] as const) : []),
    ]
    this.#signal = signal
  }

  /** What the validate phase finds; with `pin` after the mutate phase, as in a cluster. */
  async evaluate(request: AdmissionRequest, { pin }: { pin: boolean }): Promise<Verdicts> {
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(TIMEOUT_MS)])
    const calls = this.#scopes.map(
      (scope): EngineCall => ({ cluster: CLUSTER, scope, policies: [], signal }),
    )
    const final = pin ? await this.#pinned(request, calls) : request
    const decisions = await Promise.all(calls.map((call) => this.#engine.validate(final, call)))
    return decisions.flatMap(appliedIn)
  }

  async #pinned(
    request: AdmissionRequest,
    calls: readonly EngineCall[],
  ): Promise<AdmissionRequest> {
    let { object } = request
    for (const call of calls) {
      const { patch } = await this.#engine.mutate({ ...request, object }, call)
      if (object !== null) object = applyPatch(object, patch)
    }
    return { ...request, object }
  }
}

/** Without findings the request itself could not be dealt with, which is no verdict of any policy. */
function appliedIn({ applied, status }: EngineDecision): Verdicts {
  if (applied !== undefined) return applied()
  throw new AdmissionError('INTERNAL', status?.message ?? 'the policies gave no answer')
}
