import { type Bytes, utf8 } from '#shared/bytes.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import type {
  BundleVerdict,
  Identity,
  SigstoreSigner,
  Thresholds,
} from '#shared/signature/sigstore/types.ts'
import { verifyBundle } from '#shared/signature/sigstore/verify.ts'
import { ARTIFACT, ISSUER, type Json, SIGNED_AT, SUBJECT } from '#test/fakes/sigstore.ts'

/** Milliseconds: when everything is signed. */
export const AT = SIGNED_AT * 1000

/** The identity that everybody signs as. */
export const IDENTITY: Identity = { issuer: ISSUER, subject: SUBJECT }

/** What comes of a bundle over the usual artifact against a trusted root, both documents. */
export async function judgeBundle(
  bundle: Json,
  root: Json,
  options: {
    thresholds?: Partial<Thresholds>
    identities?: readonly Identity[]
    signer?: SigstoreSigner
    now?: number
  } = {},
): Promise<BundleVerdict> {
  const trust = await loadTrustedRoot(utf8(JSON.stringify(root)), options.thresholds)
  const identity = await createIdentityMatcher(options.identities ?? [IDENTITY])
  return verifyBundle(utf8(JSON.stringify(bundle)), {
    artifact: { bytes: ARTIFACT as Bytes },
    trust,
    signer: options.signer ?? { identity },
    now: options.now ?? AT,
  })
}

/** A rejection with this reason. */
export const refused = (reason: string): BundleVerdict => ({ status: 'rejected', reason })
