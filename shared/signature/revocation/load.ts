import type { CallContext } from '../../registry/fetch.ts'
import type { RevocationOptions } from './lookup.ts'
import type { RevocationSource } from './types.ts'

/** Gives a review its source. */
export type RevocationLoader = (review: CallContext) => Promise<RevocationSource>

/** The sources of one isolate; what reads OCSP and CRLs is loaded when the first is asked for. */
export function revocationLoader(options: RevocationOptions): RevocationLoader {
  let sourceFor: ((review: CallContext) => RevocationSource) | undefined
  return async (review) => {
    const { createRevocation } = await import('./lookup.ts')
    // Reviews that got here together share the one that was first, and with it the answers.
    sourceFor ??= createRevocation(options)
    return sourceFor(review)
  }
}
