import { AdmissionError } from '../../errors.ts'
import type { SignedContent } from '../content.ts'
import type { CheckStep } from '../types.ts'
import type { Trust } from './trust.ts'
import type { BundleVerdict, SigstoreSigner } from './types.ts'
import { verifyBundle, verifyLayer } from './verify.ts'

export type { Trust } from './trust.ts'
export { createCertificateSigner, createTrust } from './trust.ts'

/**
 * Whether the signer made the signature and whom the trust names have witnessed it, by the bundle or the layer it is from. `now` is
 * milliseconds and counts only where nobody else has to say when; `note` is told every check. Asks nobody. Never throws: what cannot be
 * told is `inconclusive`.
 */
export async function checkSigstore(
  content: SignedContent,
  signer: SigstoreSigner,
  trust: Trust,
  now: number,
  note?: (step: CheckStep) => void,
): Promise<BundleVerdict> {
  const { bundle, layer } = content
  const wanted = { trust, signer, now, note }
  if (bundle !== undefined) {
    return verifyBundle(bundle, { artifact: bundle.artifact, ...wanted })
  }
  if (layer !== undefined) return verifyLayer(content, layer, wanted)
  const error = new AdmissionError('INTERNAL', 'a signature without anything beside it')
  return { status: 'inconclusive', error }
}
