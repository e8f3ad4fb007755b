import type { AdmissionRequest, Decision } from '../admission/types.ts'

/** Who asks and what for: from the authenticated route, never from the body. */
export interface EngineCall {
  cluster: string
  /** `ivpol` sees cluster policies, `nivpol` those of the request's namespace. */
  scope: 'ivpol' | 'nivpol'
  /** Policy names of the path; empty means every policy of this cluster. */
  policies: readonly string[]
  /** Ends when the answer must be on its way. */
  signal: AbortSignal
}

/** The two flows over one engine. Neither throws for anything a request or the outside world can cause. */
export interface ImagePolicyEngine {
  mutate(request: AdmissionRequest, call: EngineCall): Promise<Decision>
  validate(request: AdmissionRequest, call: EngineCall): Promise<Decision>
}
