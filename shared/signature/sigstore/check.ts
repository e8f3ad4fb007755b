import type { Cache } from '../../cache.ts'
import { AdmissionError } from '../../errors.ts'
import type { SignedBundle } from '../content.ts'
import type { CosignKeylessAttestor } from '../types.ts'
import { type KeylessTrust, loadKeylessTrust } from './attestor.ts'
import type { BundleVerdict } from './types.ts'
import { verifyBundle } from './verify.ts'

export type { KeylessTrust } from './attestor.ts'

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
