import type { ClusterConfig } from '#functions/config.ts'
import type { Endpoints } from '#functions/endpoints.ts'

/** `skip`: could not be looked at, because of something that is named in `found`. */
export type CheckStatus = 'ok' | 'warn' | 'fail' | 'skip'

/** What was looked at, what was found, and how to mend it. No token is in any of it. */
export interface Check {
  check: string
  status: CheckStatus
  found: string
  fix?: string
}

/** A client certificate for a door with mutual TLS, PEM. */
export interface ClientIdentity {
  cert: string
  key: string
}

/** Whom to ask, and as whom. */
export interface Patient {
  cluster: ClusterConfig
  /** Where each function is, without what follows. */
  endpoints: Endpoints
  token: string
  bearer?: string
  client?: ClientIdentity
  /** PEM certificates to trust in place of public authorities. */
  ca?: string
  /** What the audit annotation `image-policy-set` has to be. */
  policySet: string
  /** The same for answers to ImageReviews, which may rest on fewer policies. */
  reviewedPolicySet: string
  /** How many reviews the latency is taken from. */
  calls: number
  /** Epoch milliseconds. */
  now: () => number
  signal: AbortSignal
}

/** A check that is fine. */
export function ok(check: string, found: string): Check {
  return { check, status: 'ok', found }
}

/** A check that will hurt, and how to mend it. */
export function fail(check: string, found: string, fix: string): Check {
  return { check, status: 'fail', found, fix }
}

/** A check that may hurt. */
export function warn(check: string, found: string, fix: string): Check {
  return { check, status: 'warn', found, fix }
}

/** A check that had to be left out, and who can tell instead. */
export function skip(check: string, found: string, fix?: string): Check {
  return { check, status: 'skip', found, ...(fix !== undefined && { fix }) }
}
