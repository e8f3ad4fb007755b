import type { Phase } from '../admission/response.ts'
import type { AdmissionRequest, AdmissionStatus, Decision } from '../admission/types.ts'
import type { AppliedPolicy } from './applied.ts'

/** What was asked of the functions: one of the phases of a webhook, or to review images. */
export type ReviewPhase = Phase | 'image-review'

/** Who asks and what for: from the authenticated route, never from the body. */
export interface EngineCall {
  cluster: string
  /** `ivpol` sees cluster policies, `nivpol` those of the request's namespace. */
  scope: 'ivpol' | 'nivpol'
  /** Policy names of the path, without namespaces; empty means every policy of this cluster. One that no policy has selects nothing. */
  policies: readonly string[]
  /** Keys (`policyKey`) of the policies of this cluster; absent means all. */
  granted?: ReadonlySet<string>
  /** Exceptions that count in this cluster, `namespace/name`; absent means all. */
  exceptions?: ReadonlySet<string>
  /** Ends when the answer must be on its way. */
  signal: AbortSignal
}

/** A Decision and, for events, what each applied policy found; worked out when it is called, because most requests need none. */
export interface EngineDecision extends Decision {
  applied?: () => readonly AppliedPolicy[]
  /** The denial that a cluster in audit mode let in. */
  audited?: AdmissionStatus
}

/** The two flows over one engine. Neither throws for anything a request or the outside world can cause. */
export interface ImagePolicyEngine {
  mutate(request: AdmissionRequest, call: EngineCall): Promise<EngineDecision>
  validate(request: AdmissionRequest, call: EngineCall): Promise<EngineDecision>
}
