import { type CosignOptions, withHash } from '../attestor.ts'
import type {
  CosignAttestor,
  CosignCertificateAttestor,
  CosignKeylessAttestor,
  SigstoreTrust,
} from '../types.ts'
import { createIdentityMatcher } from './identity.ts'
import { createCertificateSigner, createTrust, type Trust } from './trust.ts'
import type { Identity, SigstoreSigner } from './types.ts'

/** What signatures of one attestor are verified with. */
export interface SigstoreMaterial {
  trust: Trust
  /** Undefined for a key, which may be in a key service. */
  signer?: SigstoreSigner
}

/**
 * The attestor a policy's keyless fields describe, with its hash. Everything is checked here, when the policy loads: throws
 * `CONFIG_INVALID` for the trust and `POLICY_INVALID` for the identities.
 */
export async function createKeylessAttestor(
  fields: Omit<CosignOptions, 'trust'> & {
    identities: readonly Identity[]
    trust: SigstoreTrust
  },
): Promise<CosignKeylessAttestor> {
  const attestor = await withHash({ ...fields, kind: 'cosign-keyless' as const })
  await loadMaterial(attestor)
  return attestor
}

/**
 * The attestor a policy's certificates describe, with its hash: PEM. Everything is checked here, when the policy loads: throws
 * `CONFIG_INVALID` for the certificates and the trust.
 */
export async function createCertificateAttestor(
  fields: CosignOptions & { certificate?: string; chain?: string },
): Promise<CosignCertificateAttestor> {
  const attestor = await withHash({ ...fields, kind: 'cosign-certificate' as const })
  await loadMaterial(attestor)
  return attestor
}

/**
 * The material of an attestor, ready to verify, with its trust if that was loaded before; it takes milliseconds, so it is worth keeping.
 * Throws `CONFIG_INVALID`, `POLICY_INVALID`.
 */
export async function loadMaterial(
  attestor: CosignAttestor,
  loaded?: Trust,
): Promise<SigstoreMaterial> {
  const signer = await signerOf(attestor)
  // Without trust nobody has to have witnessed the signature.
  const nobody = { ignoreTlog: true, ignoreSct: true }
  const trust = loaded ?? (await createTrust(attestor.trust ?? nobody))
  return { trust, ...(signer === undefined ? {} : { signer }) }
}

async function signerOf(attestor: CosignAttestor): Promise<SigstoreSigner | undefined> {
  switch (attestor.kind) {
    case 'cosign-key':
      return undefined
    case 'cosign-keyless':
      return { identity: await createIdentityMatcher(attestor.identities) }
    case 'cosign-certificate':
      return { certificate: await createCertificateSigner(attestor) }
  }
}
