import type { AdmissionRequest } from '../admission/types.ts'
import {
  annotationOf,
  hasAnnotations,
  OUTCOMES_ANNOTATION,
  SEAL_ANNOTATION,
} from '../outcome/annotation.ts'
import { sealContext } from '../outcome/context.ts'
import { FactSet } from '../outcome/facts.ts'
import { openSeal } from '../outcome/seal.ts'
import type { KeyRing, Opened } from '../outcome/types.ts'
import type { PreparedPolicy } from '../policy/prepare.ts'
import { policyKey } from '../policy/types.ts'
import type { Finding } from './evaluation.ts'
import type { EngineCall } from './types.ts'

/** How the seal of a request was used, for its record: `open`, `absent`, `unused`, or why it did not count. */
export type SealUse = 'open' | 'absent' | 'unused' | `refused: ${string}` | `unavailable: ${string}`

/** What the mutate phase handed over. */
export interface HandOver {
  facts: FactSet
  use: SealUse
  /** The annotation it came in, and until when (epoch milliseconds) it counts; only when it opened. */
  seal?: { text: string; expiresAt: number }
}

/** A hand-over that proves nothing, and why. A new one each time: nothing of one request is ever in another's. */
export function emptyHandOver(use: SealUse): HandOver {
  return { facts: new FactSet(), use }
}

/** Opens the seal of a request's object. A seal that does not open proves nothing; that is not an error. */
export async function openHandOver(
  request: AdmissionRequest,
  { cluster, signal }: EngineCall,
  { keyRing, now }: { keyRing?: KeyRing; now: () => number },
): Promise<HandOver> {
  const text = annotationOf(request.object, SEAL_ANNOTATION)
  if (keyRing === undefined || text === undefined) {
    return emptyHandOver(text === undefined ? 'absent' : 'unused')
  }
  const opened = await openSeal(text, sealContext(request, cluster), keyRing, now(), signal)
  return opened.status === 'open'
    ? {
        facts: FactSet.of(opened.outcomes),
        use: 'open',
        seal: { text, expiresAt: opened.expiresAt },
      }
    : emptyHandOver(useOf(opened))
}

/**
 * The hand-over as the mutate phase may use it: a seal near its end would leave the validate phase without one, so then
 * everything is found out again.
 */
export function lastingHandOver(handOver: HandOver, now: number, lifetimeMs: number): HandOver {
  const left = (handOver.seal?.expiresAt ?? now) - now
  return left >= lifetimeMs / 2 ? handOver : emptyHandOver(handOver.use)
}

/**
 * True when the mutate phase can have handed something over: it changes no object on DELETE and CONNECT, and what it writes on a
 * subresource is not stored. Under the strict contract anything else would deny all such requests, whatever is in them; they are verified live.
 */
export function isHandedOver({ operation, subResource }: AdmissionRequest): boolean {
  return (operation === 'CREATE' || operation === 'UPDATE') && (subResource ?? '') === ''
}

/**
 * Why the strict two-phase contract (`onMissing: deny`) refuses a request outright, with Kyverno's words (image-validating-policy.md,
 * appendix A); undefined when the annotations are there.
 */
export function strictRefusal({ object }: AdmissionRequest): string | undefined {
  if (!hasAnnotations(object)) return 'annotations not present on object, image verification failed'
  if (annotationOf(object, OUTCOMES_ANNOTATION) === undefined) {
    return `${OUTCOMES_ANNOTATION} annotation not present`
  }
  return undefined
}

/** Under the strict contract: a failure for every policy that the seal does not say was evaluated. */
export function unevaluated(policies: readonly PreparedPolicy[], { facts }: HandOver): Finding[] {
  return policies
    .filter(({ policy }) => !facts.covers(policyKey(policy), policy.hash))
    .map((prepared) => ({
      prepared,
      status: 'fail',
      message: 'policy not evaluated',
      auditAnnotations: {},
      images: [],
      reasons: [],
    }))
}

function useOf(opened: Exclude<Opened, { status: 'open' }>): SealUse {
  return opened.status === 'absent' ? 'absent' : `${opened.status}: ${opened.reason}`
}
