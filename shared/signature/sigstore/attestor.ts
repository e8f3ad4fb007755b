import { sha256, toHex, utf8 } from '../../bytes.ts'
import type { CosignKeylessAttestor } from '../types.ts'
import { createIdentityMatcher, type IdentityMatcher } from './identity.ts'
import { loadTrustedRoot, type TrustedRoot } from './trusted-root.ts'
import type { Identity } from './types.ts'

/** What keyless signatures of one attestor are verified with. */
export interface KeylessTrust {
  root: TrustedRoot
  identity: IdentityMatcher
}

/**
 * The attestor a policy's keyless fields describe, with its hash. Both are checked here, when the policy loads: throws `CONFIG_INVALID`
 * for the trusted root and `POLICY_INVALID` for the identities.
 */
export async function createKeylessAttestor(fields: {
  name: string
  identities: readonly Identity[]
  /** The trusted root's JSON. */
  trustedRoot: string
}): Promise<CosignKeylessAttestor> {
  const { name, trustedRoot } = fields
  // Members in a fixed order, so that one attestor has one hash.
  const identities = fields.identities.map(({ issuer, issuerRegExp, subject, subjectRegExp }) => ({
    ...(issuer ? { issuer } : {}),
    ...(issuerRegExp ? { issuerRegExp } : {}),
    ...(subject ? { subject } : {}),
    ...(subjectRegExp ? { subjectRegExp } : {}),
  }))
  const content = { kind: 'cosign-keyless' as const, identities, trustedRoot }
  await loadKeylessTrust(content)
  return { ...content, name, hash: toHex(await sha256(utf8(JSON.stringify(content)))) }
}

/** The trust of an attestor, ready to verify; it takes milliseconds, so it is worth keeping. Throws as `createKeylessAttestor` does. */
export async function loadKeylessTrust({
  identities,
  trustedRoot,
}: Pick<CosignKeylessAttestor, 'identities' | 'trustedRoot'>): Promise<KeylessTrust> {
  const identity = await createIdentityMatcher(identities)
  return { identity, root: await loadTrustedRoot(utf8(trustedRoot)) }
}
