import type { Cache } from '../../cache.ts'
import { AdmissionError } from '../../errors.ts'
import type { SignedBundle, SignedContent } from '../content.ts'
import type { CosignKeylessAttestor } from '../types.ts'
import { type KeylessTrust, loadKeylessTrust } from './attestor.ts'
import type { TrustedRoot } from './trusted-root.ts'
import type { BundleVerdict, SigstoreSigner } from './types.ts'
import { verifyBundle } from './verify.ts'

export type { KeylessTrust } from './attestor.ts'

/** What signatures are verified against: whom it names, and how many of each have to have seen a signature. */
export type Trust = TrustedRoot

/**
 * Whether the signer made the signature and whom the trust names have witnessed it, by the bundle or the layer it is from. `now` is
 * milliseconds and counts only where nobody else has to say when. Asks nobody. Never throws: what cannot be told is `inconclusive`.
 */
export async function checkSigstore(
  content: SignedContent,
  signer: SigstoreSigner,
  trust: Trust,
  now: number,
): Promise<BundleVerdict> {
  if (content.bundle !== undefined && !('certificate' in signer)) {
    const { json, artifact } = content.bundle
    const wanted = 'identity' in signer ? signer : { publicKey: signer.spki }
    return verifyBundle(json, { artifact, root: trust, signer: wanted, now })
  }
  const message = 'signatures of this form cannot be verified yet'
  return { status: 'inconclusive', error: new AdmissionError('POLICY_UNSUPPORTED', message) }
}

/** Whether one of the attestor's identities signed the image with this bundle. Throws when its trusted root cannot be read. */
export async function checkKeyless(
  { json, artifact }: SignedBundle,
  attestor: CosignKeylessAttestor,
  { trusts, now }: { trusts: Cache<KeylessTrust>; now: () => number },
): Promise<BundleVerdict> {
  const known = trusts.get(attestor.hash, 0)
  const trust = known ?? (await loadKeylessTrust(attestor).catch(couldNotLoad))
  if (known === undefined) trusts.set(attestor.hash, trust, Number.POSITIVE_INFINITY)
  const { root, identity } = trust
  return verifyBundle(json, { artifact, root, signer: { identity }, now: now() })
}

/** Both were right when the policy was loaded, so what is wrong now is where this runs. */
function couldNotLoad(cause: unknown): never {
  const reason = cause instanceof Error ? cause.message : String(cause)
  throw new AdmissionError('INTERNAL', `keyless signatures cannot be verified here: ${reason}`, {
    cause,
  })
}
