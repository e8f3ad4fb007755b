import { AdmissionError } from '#shared/errors.ts'
import { MAX_POLICY_BUNDLE_BYTES } from '#shared/limits.ts'
import { networkCodeOf } from '#shared/registry/fetch.ts'

/** Why a bundle does not count. */
export function refused(reason: string): AdmissionError {
  return new AdmissionError('POLICY_BUNDLE_REFUSED', `policy bundle refused: ${reason}`)
}

/** Why there is no answer that counts. */
export function unavailable(reason: string, cause?: unknown): AdmissionError {
  return new AdmissionError('POLICY_BUNDLE_UNAVAILABLE', reason, { cause })
}

/** What was thrown while a bundle was looked for: `POLICY_BUNDLE_REFUSED`, or else `POLICY_BUNDLE_UNAVAILABLE`, which names the place once. */
export function asBundleFault(thrown: unknown, where: string): AdmissionError {
  if (!(thrown instanceof AdmissionError)) {
    // The platform's own words may hold an address with its query.
    return unavailable(`${where}: connection failed${networkCodeOf(thrown)}`, thrown)
  }
  const { code, message } = thrown
  if (code === 'POLICY_BUNDLE_REFUSED') return thrown
  if (code === 'REGISTRY_TOO_LARGE') {
    return refused(`${where} has more than ${MAX_POLICY_BUNDLE_BYTES} bytes`)
  }
  return unavailable(message.startsWith(`${where}: `) ? message : `${where}: ${message}`, thrown)
}
