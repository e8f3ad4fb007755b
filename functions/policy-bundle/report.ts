import { METRICS_NAMESPACE } from '#functions/metrics.ts'
import type { AdmissionError } from '#shared/errors.ts'
import type { Accepted } from './accept.ts'

/** What came of looking for a bundle. */
export type Outcome =
  | { kind: 'swapped' | 'current'; accepted: Accepted | undefined }
  | { kind: 'refused' | 'failed'; error: AdmissionError; accepted: Accepted | undefined }

/** The outcome that an error is. */
export function outcomeOf(error: AdmissionError, accepted: Accepted | undefined): Outcome {
  const kind = error.code === 'POLICY_BUNDLE_REFUSED' ? 'refused' : 'failed'
  return { kind, error, accepted }
}

/** The same for every line but for its time: names of members of the line, which have to stand at its top. */
const DEFINITION = [
  {
    Namespace: METRICS_NAMESPACE,
    Dimensions: [['phase']],
    Metrics: [
      { Name: 'policyBundleAge', Unit: 'Seconds' },
      { Name: 'policyBundleFaults', Unit: 'Count' },
    ],
  },
]

/**
 * The log record of a look for a bundle: which one is in use now, since when nobody has confirmed that, and what is wrong. With `metrics`
 * it carries both as embedded metrics.
 */
export function bundleRecord(
  outcome: Outcome,
  { phase, ageMs, now, metrics }: { phase: string; ageMs: number; now: number; metrics: boolean },
): Record<string, unknown> {
  const { kind, accepted } = outcome
  const error = 'error' in outcome ? outcome.error : undefined
  return {
    level: error === undefined ? 'info' : 'error',
    event: 'policy-bundle',
    outcome: kind,
    phase,
    ...inUse(accepted),
    policyBundleAge: Math.max(0, Math.round(ageMs / 1000)),
    policyBundleFaults: error === undefined ? 0 : 1,
    ...(error && { error: { code: error.code, message: error.message } }),
    ...(metrics && { _aws: { Timestamp: now, CloudWatchMetrics: DEFINITION } }),
  }
}

function inUse(accepted: Accepted | undefined): Record<string, unknown> {
  if (accepted === undefined) return {}
  const { deployment, hash, payload } = accepted
  const { sequence, issuedAt, expiresAt } = payload
  return {
    sequence,
    bundle: hash.slice(0, 12),
    deployment: deployment.hash.slice(0, 12),
    issued: new Date(issuedAt).toISOString(),
    ...(expiresAt !== undefined && { expires: new Date(expiresAt).toISOString() }),
  }
}
