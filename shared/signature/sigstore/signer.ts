import type { Bytes } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import type { VerifyingKey } from '../key.ts'
import type { HashAlgorithm } from '../types.ts'
import type { Certificate } from '../x509/certificate.ts'
import { allows, areValidAt, buildChain, isSelfIssued, keyOf } from '../x509/chain.ts'
import { CODE_SIGNING } from '../x509/leaf.ts'
import { printName } from '../x509/name.ts'
import { chainOf } from './authority.ts'
import type { Evidence } from './bundle.ts'
import { identityOf } from './fulcio.ts'
import { Refusal } from './refusal.ts'
import { certificateLogFault } from './sct.ts'
import type { Trust } from './trust.ts'
import type { SigstoreSigner } from './types.ts'

/** What a signature has to verify under. */
export interface Party {
  key: VerifyingKey
  /** SubjectPublicKeyInfo. */
  spki: Bytes
  hashAlgorithm?: HashAlgorithm
  /** DER of what a log entry may name: the certificate, else the public key. */
  verifiers: readonly Bytes[]
  /** The certificate that has to be somebody's and valid; undefined where the key is all that counts. */
  certificate: Certificate | undefined
}

/** With a key configured a certificate in the evidence means nothing; without one nothing but a certificate does. Throws `Refusal`. */
export async function partyOf(signer: SigstoreSigner, evidence: Evidence): Promise<Party> {
  if ('key' in signer) return { ...signer, verifiers: [signer.spki], certificate: undefined }
  const pinned = 'certificate' in signer ? signer.certificate.leaf : undefined
  const certificate = pinned ?? evidence.certificate
  if (certificate === undefined) {
    throw new Refusal('signature comes without a certificate, expected one of the signer')
  }
  const { der, spki } = certificate
  const key = await keyOf(spki).catch(refuseUnfitKey)
  // Whoever signed with the pinned certificate's key may have logged the one or the other.
  const verifiers = pinned === undefined ? [der] : [der, spki]
  const isKeyAlone = 'certificate' in signer && signer.certificate.anchors.length === 0
  return { key, spki, verifiers, certificate: isKeyAlone ? undefined : certificate }
}

/** A key outside the table is a fault of the configuration in a policy, but in a certificate it is the signer's. */
function refuseUnfitKey(thrown: unknown): never {
  if (!(thrown instanceof AdmissionError) || thrown.code !== 'KEY_INVALID') throw thrown
  throw new Refusal(`certificate: ${thrown.message}`)
}

/** What a certificate is judged by. */
interface Judgement {
  signer: SigstoreSigner
  /** Milliseconds, at least one: it has to be valid at all of them. */
  times: readonly number[]
  trust: Trust
  /** Intermediates of the evidence. */
  brought: readonly Certificate[]
}

/**
 * Who signed, for people: the name and issuer of the certificate, once its profile, validity, chain, certificate logs and identity are
 * all right, or the fingerprint of the key where that is all that counts. Throws `Refusal`.
 */
export async function judge({ key, certificate }: Party, judgement: Judgement): Promise<string> {
  if (certificate === undefined) return `${key.name} key ${key.fingerprint}`
  const { signer, times, trust } = judgement
  const fault = profileFault(certificate, 'identity' in signer)
  if (fault !== undefined) throw new Refusal(`certificate ${fault}`)
  if (!times.every((at) => areValidAt([certificate], at))) {
    throw new Refusal('certificate was not valid when the signature was made')
  }
  const chain = await trustedChain(certificate, judgement).catch(refuseUnfitKey)
  if (typeof chain === 'string') throw new Refusal(`certificate is not trusted: ${chain}`)
  const [, issuer = certificate] = chain
  const { certificateLogs, thresholds } = trust
  const wanted = thresholds.certificateLogs
  const unseen = await certificateLogFault(certificate, issuer, certificateLogs, wanted)
  if (unseen !== undefined) throw new Refusal(`certificate is not trusted: ${unseen}`)
  return nameOf(certificate, signer)
}

function profileFault(certificate: Certificate, isIdentity: boolean): string | undefined {
  const { basicConstraints, keyUsage, extendedKeyUsage, unhandled } = certificate
  if (isSelfIssued(certificate)) return 'is a root, expected one of a signer'
  if (basicConstraints?.ca === true) return 'is one of an authority, expected one of a signer'
  if (keyUsage?.usages.has('digitalSignature') === false) return 'is not for digital signatures'
  // Fulcio always says so; one's own authority may leave all purposes open.
  const isForCode = isIdentity
    ? extendedKeyUsage?.purposes.includes(CODE_SIGNING) === true
    : allows(certificate, CODE_SIGNING)
  if (!isForCode) return 'is not for code signing'
  return unhandled.length > 0 ? `has extension ${unhandled[0]}, not supported` : undefined
}

async function trustedChain(
  certificate: Certificate,
  { signer, times, trust, brought }: Judgement,
): Promise<readonly Certificate[] | string> {
  if (!('certificate' in signer)) {
    return chainOf(certificate, trust.issuers, { times, brought })
  }
  const { anchors, chain: known } = signer.certificate
  const intermediates = [...signer.certificate.intermediates, ...brought]
  const material = { anchors, intermediates, purpose: CODE_SIGNING }
  const chain = known ?? (await buildChain(certificate, material))
  if (chain === undefined) return 'it does not chain to a certificate of the policy'
  return times.every((at) => areValidAt(chain, at))
    ? chain
    : 'its authority was not valid when the signature was made'
}

function nameOf(certificate: Certificate, signer: SigstoreSigner): string {
  const identity = identityOf(certificate)
  const { issuer, names } = identity
  if (!('identity' in signer)) {
    return `${[printName(certificate.subject), ...names].filter(Boolean).join(', ')} (${printName(certificate.issuer)})`
  }
  if (issuer === undefined) throw new Refusal('certificate names no issuer')
  if (!signer.identity(identity)) {
    throw new Refusal(
      `signed by ${JSON.stringify(names)} of ${JSON.stringify(issuer)}, expected another identity`,
    )
  }
  return `${names.join(', ')} (${issuer})`
}
