import type { AdmissionRequest } from '../admission/types.ts'
import { Cache } from '../cache.ts'
import type { ContextPorts } from '../cluster/types.ts'
import { MAX_RESOLVED_ATTESTORS } from '../limits.ts'
import type { KeyRing } from '../outcome/types.ts'
import type { PreparedPolicy } from '../policy/prepare.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { Attestor } from '../signature/types.ts'
import { Inquiry, type Live } from './inquiry.ts'
import { policiesFor } from './selection.ts'
import type { EngineCall } from './types.ts'

/** What an engine is made of. */
export interface EngineOptions {
  policies: readonly CompiledPolicy[]
  /** Registry and verifier, loaded when something has to be found out live. */
  live: () => Promise<Live>
  /** What answers policies that ask for more than images, loaded when one does; without it only what needs nobody is answered. */
  context?: () => Promise<ContextPorts>
  /** Keys of the seal. Without them every validate call verifies live. */
  keyRing?: KeyRing
  outcomes: { onMissing: 'verify' | 'deny'; lifetimeMs: number }
  /** Epoch milliseconds. */
  now: () => number
}

/** What the requests of one isolate share: settled values only, never anything of a request under way. */
export interface Isolate {
  options: EngineOptions
  /** The policies that are about a request, prepared. */
  select(request: AdmissionRequest, call: EngineCall): Promise<PreparedPolicy[]>
  /** A new inquiry for one request. */
  inquiryFor(call: Pick<EngineCall, 'cluster' | 'signal'>): Inquiry
}

const NOBODY = async (): Promise<ContextPorts> => ({})

/** The shared part of an engine's flows. */
export function createIsolate(options: EngineOptions): Isolate {
  const { live, now, context = NOBODY } = options
  const resolved = new Cache<Attestor>(MAX_RESOLVED_ATTESTORS)
  return {
    options,
    select: policiesFor(options.policies),
    inquiryFor: ({ cluster, signal }) =>
      new Inquiry({ cluster, signal, live, resolved, context, now }),
  }
}
