import { type Bytes, equal } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { MAX_CERTIFICATES, MAX_CHAIN_CHECKS } from '../../limits.ts'
import { importVerifyingKey, type SignatureAlgorithm, type VerifyingKey } from '../key.ts'
import { signatureAlgorithmOf } from './algorithm.ts'
import type { Certificate } from './certificate.ts'
import { printName } from './name.ts'

/** Purpose that stands for all purposes. */
const ANY_PURPOSE = '2.5.29.37.0'

/** True when the signature over the message verifies under this key and exactly this algorithm. Throws `KEY_INVALID` for the key. */
export async function verifyUnder(
  spki: Bytes,
  { scheme, hash }: SignatureAlgorithm,
  message: Bytes,
  signature: Bytes,
): Promise<boolean> {
  const key = await keyOf(spki, scheme === 'RSASSA_PSS' ? scheme : 'RSASSA_PKCS1_V1_5')
  const verified = await key.verify(message, signature, hash)
  return verified?.scheme === scheme && verified.hash === hash
}

/** Imported keys for as long as the certificate they stand in is kept: those of trust anchors are asked again and again. */
const imported = {
  RSASSA_PKCS1_V1_5: new WeakMap<Bytes, VerifyingKey>(),
  RSASSA_PSS: new WeakMap<Bytes, VerifyingKey>(),
}

/** The key of a parsed certificate, imported once. Throws `KEY_INVALID` for one outside the algorithm table. */
export async function keyOf(
  spki: Bytes,
  rsa: keyof typeof imported = 'RSASSA_PKCS1_V1_5',
): Promise<VerifyingKey> {
  const known = imported[rsa].get(spki)
  if (known !== undefined) return known
  const key = await importVerifyingKey(spki, rsa)
  imported[rsa].set(spki, key)
  return key
}

/**
 * True when the issuer's key signed the certificate and the issuer's name is in it. False too for signature algorithms that are not
 * verified here, SHA-1 and MD5 among them. Throws `KEY_INVALID` for an issuer's key outside the algorithm table.
 */
export async function isIssuedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  if (!equal(certificate.issuer.der, issuer.subject.der)) return false
  const algorithm = signatureAlgorithmOf(certificate.algorithm, 'signature algorithm')
  if (algorithm === undefined) return false
  return verifyUnder(issuer.spki, algorithm, certificate.tbs, certificate.signature)
}

/** Why the certificate may not issue others at this depth (number of CA certificates below it), or undefined when it may. */
export function whyNotAuthority(certificate: Certificate, depth: number): string | undefined {
  const { basicConstraints, keyUsage, unhandled, subject } = certificate
  const name = printName(subject)
  if (basicConstraints?.ca !== true) return `${name} is not a certificate authority`
  if ((basicConstraints.pathLength ?? depth) < depth) return `${name} allows no path this long`
  if (keyUsage !== undefined && !keyUsage.usages.has('keyCertSign')) {
    return `${name} may not sign certificates`
  }
  return unhandled.length > 0 ? `${name} has extension ${unhandled[0]}, not supported` : undefined
}

/** True for a certificate that is issued by the name it carries: a root. */
export function isSelfIssued({ issuer, subject }: Certificate): boolean {
  return equal(issuer.der, subject.der)
}

/** True when every certificate is valid at this instant; both ends of a validity belong to it. */
export function areValidAt(chain: readonly Certificate[], at: number): boolean {
  return chain.every(({ notBefore, notAfter }) => notBefore <= at && at <= notAfter)
}

/**
 * A chain from the leaf to a trust anchor, leaf and anchor included, or undefined when there is none: names and signatures fit, issuers
 * are authorities for the depth, and an intermediate that limits its purposes allows this one. Validity is the caller's question.
 * At most `MAX_CERTIFICATES` long. Throws `SIGNATURE_MALFORMED` after `MAX_CHAIN_CHECKS` signatures without an answer.
 */
export async function buildChain(
  leaf: Certificate,
  { intermediates, anchors, purpose }: ChainMaterial,
): Promise<readonly Certificate[] | undefined> {
  let checks = 0
  const isIssuer = async (issuer: Certificate, chain: readonly Certificate[]) => {
    const [tip] = chain.slice(-1)
    if (tip === undefined || !equal(tip.issuer.der, issuer.subject.der)) return false
    if (whyNotAuthority(issuer, chain.length - 1) !== undefined) return false
    if (++checks > MAX_CHAIN_CHECKS) throw tooMany()
    return isIssuedBy(tip, issuer)
  }
  const extend = async (
    chain: readonly Certificate[],
  ): Promise<readonly Certificate[] | undefined> => {
    const [tip] = chain.slice(-1)
    if (anchors.some((anchor) => tip && equal(anchor.der, tip.der))) return chain
    if (chain.length >= MAX_CERTIFICATES) return undefined
    for (const anchor of anchors) if (await isIssuer(anchor, chain)) return [...chain, anchor]
    for (const each of intermediates) {
      const usable = !chain.some(({ der }) => equal(der, each.der)) && allows(each, purpose)
      if (!usable || !(await isIssuer(each, chain))) continue
      const found = await extend([...chain, each])
      if (found !== undefined) return found
    }
    return undefined
  }
  return extend([leaf])
}

/** What a chain is built from. */
export interface ChainMaterial {
  /** Certificates that came with the signature: untrusted. */
  intermediates: readonly Certificate[]
  anchors: readonly Certificate[]
  /** Dotted object identifier of the extended key usage the leaf is used for. */
  purpose: string
}

/** True when the certificate's purposes, if it limits them, include this one. */
export function allows({ extendedKeyUsage }: Certificate, purpose: string): boolean {
  const purposes = extendedKeyUsage?.purposes
  return purposes === undefined || purposes.includes(purpose) || purposes.includes(ANY_PURPOSE)
}

function tooMany(): AdmissionError {
  return new AdmissionError(
    'SIGNATURE_MALFORMED',
    `no certificate chain found in ${MAX_CHAIN_CHECKS} signature checks`,
  )
}
