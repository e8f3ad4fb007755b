import { type Bytes, concat, equal } from '../bytes.ts'
import { MAX_CERTIFICATE_PARTS, MAX_CERTIFICATES, MAX_TIMESTAMP_BYTES } from '../limits.ts'
import { type DerElement, TAG } from './der.ts'
import { digestOf } from './key.ts'
import type { HashAlgorithm } from './types.ts'
import { hashOf, signatureAlgorithmOf } from './x509/algorithm.ts'
import { type Certificate, parseCertificate } from './x509/certificate.ts'
import { verifyUnder } from './x509/chain.ts'
import { type Name, parseName } from './x509/name.ts'
import { DerReader, dottedOid, malformed } from './x509/reader.ts'

const SIGNED_DATA = '1.2.840.113549.1.7.2'
const CONTENT_TYPE = '1.2.840.113549.1.9.3'
const MESSAGE_DIGEST = '1.2.840.113549.1.9.4'
const SIGNING_CERTIFICATE_V2 = '1.2.840.113549.1.9.16.2.47'

/** A CMS SignedData with its content inside and one signer. Nothing about it is verified. */
export interface SignedData {
  /** Dotted object identifier of what the content is. */
  contentType: string
  content: Bytes
  certificates: readonly Certificate[]
  signer: SignerInfo
}

interface SignerInfo {
  id: { issuer: Name; serial: Bytes } | { keyId: Bytes }
  /** Undefined for hashes that are not used here, SHA-1 among them. */
  hash: HashAlgorithm | undefined
  /** The signed attributes as a SET, which is what the signature is over. */
  signedAttributes: Bytes
  attributes: ReadonlyMap<string, DerElement>
  /** Content of the AlgorithmIdentifier. */
  algorithm: Bytes
  signature: Bytes
}

/**
 * The CMS SignedData (RFC 5652) of a DER ContentInfo. Throws `SIGNATURE_MALFORMED` unless it has its content inside, exactly one signer
 * with signed attributes, each attribute once with one value, and at most `MAX_CERTIFICATES` certificates, all of them readable.
 */
export function parseSignedData(bytes: Bytes): SignedData {
  if (bytes.length > MAX_TIMESTAMP_BYTES) throw malformed('CMS is too long')
  const info = DerReader.only(bytes, 'CMS')
  if (dottedOid(info.next(TAG.oid).content) !== SIGNED_DATA)
    throw malformed('CMS is not SignedData')
  const data = DerReader.only(info.next(0xa0).content, 'SignedData')
  info.end()
  data.next(TAG.integer)
  data.next(TAG.set)
  const encapsulated = data.enter()
  const contentType = dottedOid(encapsulated.next(TAG.oid).content)
  const inner = new DerReader(encapsulated.next(0xa0).content, 'CMS content')
  const content = inner.next(TAG.octetString).content
  inner.end()
  encapsulated.end()
  const certificates = data.optional(0xa0)
  data.optional(0xa1)
  const [signer, ...others] = data.enter(TAG.set).rest()
  data.end()
  if (signer?.tag !== TAG.sequence || others.length > 0) throw malformed('CMS has not one signer')
  return {
    contentType,
    content,
    certificates: certificates === undefined ? [] : parseCertificates(certificates.content),
    signer: parseSigner(signer.content),
  }
}

/** What a SignedData is signed by, once everything the signature covers was checked; or why it is not. */
export type SignedDataCheck =
  | { valid: true; signer: Certificate }
  | { valid: false; reason: string }

/**
 * Whether the signer's certificate, which must be in the SignedData unless it is pinned, signed the content: the message digest is the
 * content's, the content type is the signed one, and the signing certificate is the one the signed attributes name (ESS
 * signing-certificate-v2, RFC 5035), without which only a pinned one is certain. That the certificate is trusted is the caller's question.
 */
export async function checkSignedData(
  data: SignedData,
  pinned?: Certificate,
): Promise<SignedDataCheck> {
  const no = (reason: string): SignedDataCheck => ({ valid: false, reason })
  const { signer } = data
  const { hash, attributes } = signer
  if (hash === undefined) return no('its hash is not SHA-256, SHA-384 or SHA-512')
  const known = pinned === undefined ? data.certificates : [pinned]
  const certificate = known.find((each) => isNamedBy(each, signer.id))
  if (certificate === undefined) {
    return no(pinned ? 'its signer is another' : 'the certificate of its signer is not in it')
  }
  const type = attributes.get(CONTENT_TYPE)
  if (type?.tag !== TAG.oid || dottedOid(type.content) !== data.contentType) {
    return no('its signed content type is another one')
  }
  const digest = attributes.get(MESSAGE_DIGEST)
  if (
    digest?.tag !== TAG.octetString ||
    !equal(digest.content, await digestOf(hash, data.content))
  ) {
    return no('its message digest is not that of its content')
  }
  const named = attributes.get(SIGNING_CERTIFICATE_V2)
  const isCertain = pinned !== undefined && named === undefined
  if (!isCertain && !(await namesCertificate(named, certificate))) {
    return no('its signed attributes do not name the certificate of its signer')
  }
  const algorithm = signatureAlgorithmOf(signer.algorithm, 'CMS signature algorithm', hash)
  if (algorithm === undefined || (algorithm.hash !== undefined && algorithm.hash !== hash)) {
    return no('its signature algorithm is not supported')
  }
  const { signedAttributes, signature } = signer
  return (await verifyUnder(certificate.spki, algorithm, signedAttributes, signature))
    ? { valid: true, signer: certificate }
    : no('its signature is not by the certificate of its signer')
}

function parseCertificates(content: Bytes): readonly Certificate[] {
  const elements = new DerReader(content, 'CMS certificates').rest()
  if (elements.length > MAX_CERTIFICATES) throw malformed('CMS has too many certificates')
  return elements.map(({ tag, whole }) => {
    if (tag !== TAG.sequence) throw malformed('CMS has a certificate that is not X.509')
    return parseCertificate(whole)
  })
}

function parseSigner(content: Bytes): SignerInfo {
  const reader = new DerReader(content, 'SignerInfo')
  reader.next(TAG.integer)
  const id = parseSignerId(reader)
  const hash = hashOf(reader.next(TAG.sequence).content, 'digest algorithm')
  const signed = reader.next(0xa0)
  const algorithm = reader.next(TAG.sequence).content
  const signature = reader.next(TAG.octetString).content
  reader.optional(0xa1)
  reader.end()
  return {
    id,
    hash,
    // Signed as the SET it is, sent under the tag of its field: only the tag differs.
    signedAttributes: concat(Uint8Array.of(TAG.set), signed.whole.subarray(1)),
    attributes: parseAttributes(signed.content),
    algorithm,
    signature,
  }
}

function parseSignerId(reader: DerReader): SignerInfo['id'] {
  const keyId = reader.optional(0x80)
  if (keyId !== undefined) return { keyId: keyId.content }
  const id = reader.enter()
  const issuer = parseName(id.next(TAG.sequence), 'signer')
  const serial = id.next(TAG.integer).content
  id.end()
  return { issuer, serial }
}

function parseAttributes(content: Bytes): ReadonlyMap<string, DerElement> {
  const elements = new DerReader(content, 'signed attributes').rest()
  if (elements.length > MAX_CERTIFICATE_PARTS) throw malformed('CMS has too many attributes')
  const attributes = new Map<string, DerElement>()
  for (const { tag, content: inner } of elements) {
    if (tag !== TAG.sequence) throw malformed('a signed attribute is no sequence')
    const reader = new DerReader(inner, 'signed attribute')
    const type = dottedOid(reader.next(TAG.oid).content)
    const [value, ...more] = reader.enter(TAG.set).rest()
    reader.end()
    if (value === undefined || more.length > 0 || attributes.has(type)) {
      throw malformed('a signed attribute has not one value')
    }
    attributes.set(type, value)
  }
  return attributes
}

function isNamedBy(certificate: Certificate, id: SignerInfo['id']): boolean {
  if ('keyId' in id) {
    const { subjectKeyId } = certificate
    return subjectKeyId !== undefined && equal(subjectKeyId, id.keyId)
  }
  return equal(certificate.issuer.der, id.issuer.der) && equal(certificate.serial, id.serial)
}

/** True when the first ESSCertIDv2 is this certificate: its hash, and its issuer and serial number where they are given. */
async function namesCertificate(
  attribute: DerElement | undefined,
  certificate: Certificate,
): Promise<boolean> {
  if (attribute?.tag !== TAG.sequence) return false
  const id = new DerReader(attribute.content, 'signing certificate').enter().enter()
  const algorithm = id.optional(TAG.sequence)
  const certHash = id.next(TAG.octetString).content
  const issuerSerial = id.optional(TAG.sequence)
  id.end()
  const hash = algorithm === undefined ? 'sha256' : hashOf(algorithm.content, 'certificate hash')
  if (hash === undefined || !equal(certHash, await digestOf(hash, certificate.der))) return false
  if (issuerSerial === undefined) return true
  const reader = new DerReader(issuerSerial.content, 'issuerSerial')
  const names = reader.enter()
  const directory = new DerReader(names.next(0xa4).content, 'issuer').next(TAG.sequence)
  return (
    equal(directory.whole, certificate.issuer.der) &&
    equal(reader.next(TAG.integer).content, certificate.serial)
  )
}
