import { type Bytes, equal } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import type { Certificate } from '../x509/certificate.ts'
import {
  allows,
  areValidAt,
  buildChain,
  isIssuedBy,
  keyOf,
  whyNotAuthority,
} from '../x509/chain.ts'
import { CODE_SIGNING } from '../x509/leaf.ts'

/** When something counts, milliseconds; both ends belong to it. */
export interface Window {
  from: number
  until: number
}

/** A window without ends. */
export const ALWAYS: Window = { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY }

/** True when the instant belongs to the window. */
export function isWithin({ from, until }: Window, at: number): boolean {
  return from <= at && at <= until
}

/** A certificate that may issue those of signers, with everything above it, all of it verified but for the time. */
export interface Issuer extends Window {
  /** From the issuer to the trust anchor. */
  chain: readonly Certificate[]
}

/**
 * The issuers among the certificates of an authority, which stand in order with the anchor last: each but the anchor has to be signed by
 * the next one. What may not issue certificates for code signing, or is signed by a key outside the algorithm table, is none.
 */
export async function issuersOf(
  certificates: readonly Certificate[],
  window: Window,
): Promise<readonly Issuer[]> {
  let issuers: Issuer[] = []
  for (const [index, certificate] of certificates.entries()) {
    const below = certificates[index - 1]
    // A break parts those below it from the anchor.
    if (below !== undefined && !(await isSignedBy(below, certificate))) issuers = []
    if (await hasUsableKey(certificate)) {
      issuers.push({ chain: certificates.slice(index), ...window })
    }
  }
  return issuers.filter(({ chain }) => isAuthority(chain))
}

function isAuthority(chain: readonly Certificate[]): boolean {
  return chain.every(
    (each, depth) => whyNotAuthority(each, depth) === undefined && allows(each, CODE_SIGNING),
  )
}

/** False too for a key nobody here can verify with: what it signed is then nobody's. */
async function isSignedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  return (await unlessUnfitKey(isIssuedBy(certificate, issuer))) === true
}

/** The key is imported here, once for all. */
async function hasUsableKey({ spki }: Certificate): Promise<boolean> {
  return (await unlessUnfitKey(keyOf(spki))) !== undefined
}

/** The settled value, or undefined where a key is outside the algorithm table. */
export async function unlessUnfitKey<T>(settling: Promise<T>): Promise<T | undefined> {
  try {
    return await settling
  } catch (thrown) {
    if (thrown instanceof AdmissionError && thrown.code === 'KEY_INVALID') return undefined
    throw thrown
  }
}

/**
 * The chain from a signer's certificate to the anchor of an authority that issued it and counted at all of these times, or why there is
 * none. Intermediates that came with the signature are looked at only where the authorities' own are not enough. Throws
 * `SIGNATURE_MALFORMED` for certificates that would take too long, and `KEY_INVALID` for keys among them.
 */
export async function chainOf(
  leaf: Certificate,
  issuers: readonly Issuer[],
  { times, brought }: { times: readonly number[]; brought: readonly Certificate[] },
): Promise<readonly Certificate[] | string> {
  const isTimely = (issuer: Issuer) =>
    times.every((at) => isWithin(issuer, at) && areValidAt(issuer.chain, at))
  const timely = issuers.filter(isTimely)
  for (const { chain } of timely) {
    const [issuer] = chain
    if (issuer !== undefined && (await isIssuedBy(leaf, issuer))) return [leaf, ...chain]
  }
  if (brought.length > 0) {
    const anchors = timely.flatMap(({ chain }) => chain.slice(-1))
    const intermediates = [...timely.flatMap(({ chain }) => chain.slice(0, -1)), ...brought]
    const chain = await buildChain(leaf, { intermediates, anchors, purpose: CODE_SIGNING })
    if (chain !== undefined && times.every((at) => areValidAt(chain, at))) return chain
  }
  const named = (issuer: Issuer) => issuer.chain.some(({ subject }) => isName(leaf, subject.der))
  return issuers.some((issuer) => named(issuer) && !isTimely(issuer))
    ? 'its authority was not valid when the signature was made'
    : 'no trusted authority issued it'
}

const isName = (leaf: Certificate, name: Bytes) => equal(leaf.issuer.der, name)
