import type { Certificate } from '../x509/certificate.ts'
import { isIssuedBy, whyNotAuthority } from '../x509/chain.ts'
import { whyNotLeaf } from '../x509/leaf.ts'
import { printName } from '../x509/name.ts'

/** Purposes that no signing certificate may have: any, server, client, e-mail, timestamps, OCSP. */
const FORBIDDEN_PURPOSES: ReadonlySet<string> = new Set([
  '2.5.29.37.0',
  '1.3.6.1.5.5.7.3.1',
  '1.3.6.1.5.5.7.3.2',
  '1.3.6.1.5.5.7.3.4',
  '1.3.6.1.5.5.7.3.8',
  '1.3.6.1.5.5.7.3.9',
])

/**
 * Why this is not a signing chain of the Notary Project, or undefined when it is: leaf first and self-signed root last, every one signed
 * by the next with a hash that is not broken, authorities marked as such, the leaf for signatures only (specs/signatures.md 1.5). One
 * self-signed certificate is a chain. Throws `KEY_INVALID` for an authority's key outside the algorithm table.
 */
export async function whyNotSigningChain(
  chain: readonly Certificate[],
): Promise<string | undefined> {
  const [leaf] = chain
  if (leaf === undefined) return 'there is no certificate'
  const fault = whyNotLeaf(leaf) ?? whyNotSigningPurpose(leaf)
  if (fault !== undefined) return fault
  for (const [depth, authority] of chain.slice(1).entries()) {
    const why = whyNotAuthority(authority, depth) ?? whyNotMarked(authority)
    if (why !== undefined) return why
  }
  return whyNotIssued(chain)
}

/** From the root down: whoever adds certificates of their own to somebody's root is found out by the first signature. */
async function whyNotIssued(chain: readonly Certificate[]): Promise<string | undefined> {
  for (const [index, certificate] of [...chain.entries()].reverse()) {
    const issuer = chain[index + 1] ?? certificate
    const name = printName(certificate.subject)
    if (issuer !== certificate && (await isIssuedBy(certificate, certificate))) {
      return `${name} is self-signed but not the end of the chain`
    }
    if (await isIssuedBy(certificate, issuer)) continue
    return issuer === certificate
      ? `the chain ends with ${name}, which is not self-signed`
      : `${name} is not issued by ${printName(issuer.subject)}`
  }
  return undefined
}

function whyNotSigningPurpose({ keyUsage, extendedKeyUsage, subject }: Certificate) {
  const name = printName(subject)
  if (keyUsage?.critical !== true) return `the key usage of ${name} is not critical`
  const purpose = extendedKeyUsage?.purposes.find((each) => FORBIDDEN_PURPOSES.has(each))
  return purpose === undefined ? undefined : `${name} has extended key usage ${purpose}`
}

function whyNotMarked({ basicConstraints, keyUsage, subject }: Certificate): string | undefined {
  const name = printName(subject)
  if (basicConstraints?.critical !== true)
    return `the basic constraints of ${name} are not critical`
  return keyUsage?.critical === true ? undefined : `the key usage of ${name} is not critical`
}
