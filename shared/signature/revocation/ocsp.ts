import { type Bytes, equal } from '../../bytes.ts'
import { MAX_CERTIFICATES } from '../../limits.ts'
import { encodeDer, TAG } from '../der.ts'
import { HASHES } from '../key.ts'
import { hashOf, parseAlgorithm } from '../x509/algorithm.ts'
import { type Certificate, parseCertificate } from '../x509/certificate.ts'
import { areValidAt, isIssuedBy } from '../x509/chain.ts'
import { readExtensions } from '../x509/extensions.ts'
import { DerReader, dottedOid, malformed, smallInteger, timeOf } from '../x509/reader.ts'
import {
  ENUMERATED,
  INVALIDITY_DATE,
  invalidityOf,
  isSignedBy,
  REASON_CODE,
  reasonOf,
  signatureOf,
  unknown,
  unsupported,
  whyNotCurrent,
} from './statement.ts'
import type { Finding } from './types.ts'

const BASIC_RESPONSE = '1.3.6.1.5.5.7.48.1.1'
const OCSP_SIGNING = '1.3.6.1.5.5.7.3.9'
const SHA1 = '1.3.14.3.2.26'

/** OCSPResponseStatus (RFC 6960 section 4.2.1), by its number. */
const REFUSALS: Readonly<Record<number, string>> = {
  1: 'malformedRequest',
  2: 'internalError',
  3: 'tryLater',
  5: 'sigRequired',
  6: 'unauthorized',
}

/** Who a response is asked from, and when. */
export interface OcspQuestion {
  certificate: Certificate
  issuer: Certificate
  /** Epoch milliseconds. */
  now: number
  /** Whether a responder of the issuer is not revoked, asked for one whose certificate does not say that nobody has to. */
  isGood: (responder: Certificate) => Promise<boolean>
}

/**
 * The OCSPRequest about a certificate (RFC 6960 section 4.1), DER, at most 91 bytes. Issuers are named by SHA-1, the only hash that all
 * responders know; nothing rests on it, since what is hashed is known to both sides. Without a nonce, so that responses can be cached.
 */
export async function encodeRequest(certificate: Certificate, issuer: Certificate): Promise<Bytes> {
  const [name, key] = await Promise.all([
    digest('SHA-1', issuer.subject.der),
    digest('SHA-1', keyOf(issuer)),
  ])
  const algorithm = encodeDer(TAG.sequence, encodeDer(TAG.oid, SHA1_OID), encodeDer(TAG.null))
  const id = encodeDer(
    TAG.sequence,
    algorithm,
    encodeDer(TAG.octetString, name),
    encodeDer(TAG.octetString, key),
    encodeDer(TAG.integer, certificate.serial),
  )
  // Request, requestList, tbsRequest, OCSPRequest.
  return [1, 2, 3, 4].reduce((inner) => encodeDer(TAG.sequence, inner), id)
}

const SHA1_OID = Uint8Array.of(0x2b, 0x0e, 0x03, 0x02, 0x1a)

/**
 * What an OCSP response (RFC 6960 section 4.2) says about a certificate. `unknown` unless it is a current one about this certificate, signed
 * by its issuer or by a responder to whom the issuer gave a certificate for that. Throws `SIGNATURE_MALFORMED` for bytes that are no
 * response and `KEY_INVALID` for a key outside the algorithm table.
 */
export async function readOcsp(bytes: Bytes, question: OcspQuestion): Promise<Finding> {
  const outer = DerReader.only(bytes, 'OCSP response')
  const code = smallInteger(outer.next(ENUMERATED).content, 'OCSP response status')
  if (code !== 0) return unknown(`the responder answers ${REFUSALS[code] ?? code}`)
  const inner = DerReader.only(outer.next(0xa0).content, 'OCSP response')
  outer.end()
  if (dottedOid(inner.next(TAG.oid).content) !== BASIC_RESPONSE) {
    return unknown('the OCSP response is not a basic one')
  }
  const response = DerReader.only(inner.next(TAG.octetString).content, 'OCSP response')
  inner.end()
  const data = response.next(TAG.sequence)
  const signed = signatureOf(response)
  const certificates = response.optional(0xa0)
  response.end()
  const parsed = parseData(data.content)
  const fault = await whyNotAuthorised(
    parsed.responder,
    { message: data.whole, ...signed },
    certificates ? parseCertificates(certificates.content) : [],
    question,
  )
  return fault === undefined ? findingOf(parsed, question) : unknown(fault)
}

/** How a response names who signed it: a Name, or the SHA-1 of a public key. */
type ResponderId = { name: Bytes } | { keyHash: Bytes }

/** ResponseData. */
function parseData(content: Bytes) {
  const reader = new DerReader(content, 'OCSP response')
  // DER leaves the default version out; no other exists.
  const byName = reader.optional(0xa1)
  const id = new DerReader((byName ?? reader.next(0xa2)).content, 'OCSP responder')
  const responder: ResponderId = byName
    ? { name: id.next(TAG.sequence).whole }
    : { keyHash: id.next(TAG.octetString).content }
  id.end()
  timeOf(reader.next(TAG.generalizedTime), 'producedAt')
  const responses = reader.enter().rest()
  const field = reader.optional(0xa1)
  reader.end()
  return { responder, responses, extensions: extensionsIn(field?.content) }
}

function extensionsIn(field: Bytes | undefined) {
  if (field === undefined) return []
  return readExtensions(DerReader.only(field, 'OCSP extensions'), 'an OCSP response')
}

function parseCertificates(content: Bytes): readonly Certificate[] {
  const elements = DerReader.only(content, 'OCSP certificates').rest()
  if (elements.length > MAX_CERTIFICATES) throw malformed('OCSP has too many certificates')
  return elements.map(({ whole }) => parseCertificate(whole))
}

/** Why the response is signed by nobody who may, or undefined (RFC 6960 section 4.2.2.2). */
async function whyNotAuthorised(
  id: ResponderId,
  signed: { message: Bytes; algorithm: Bytes; signature: Bytes },
  certificates: readonly Certificate[],
  question: OcspQuestion,
): Promise<string | undefined> {
  let fault = 'the OCSP response is signed by another responder'
  for (const candidate of [question.issuer, ...certificates]) {
    if (!(await isNamed(candidate, id))) continue
    if (!(await isSignedBy(candidate.spki, signed.message, signed))) {
      fault = 'the OCSP response is not signed by who it says'
      continue
    }
    const why =
      candidate === question.issuer ? undefined : await whyNotResponder(candidate, question)
    if (why === undefined) return undefined
    fault = `the responder ${why}`
  }
  return fault
}

async function isNamed(candidate: Certificate, id: ResponderId): Promise<boolean> {
  if ('name' in id) return equal(candidate.subject.der, id.name)
  return equal(await digest('SHA-1', keyOf(candidate)), id.keyHash)
}

async function whyNotResponder(
  responder: Certificate,
  { issuer, now, isGood }: OcspQuestion,
): Promise<string | undefined> {
  const { extendedKeyUsage, keyUsage, unhandled, ocspNoCheck } = responder
  if (!extendedKeyUsage?.purposes.includes(OCSP_SIGNING)) return 'is not for OCSP'
  if (keyUsage?.usages.has('digitalSignature') === false) return 'is not for signatures'
  if (unhandled.length > 0) return `has extension ${unhandled[0]}, not supported`
  if (!areValidAt([responder], now)) return 'has a certificate that is not valid now'
  if (!(await isIssuedBy(responder, issuer))) return 'is not of the issuer'
  if (ocspNoCheck || (await isGood(responder))) return undefined
  return 'may be revoked itself'
}

/** What the response about the certificate says. */
async function findingOf(
  { responses, extensions }: ReturnType<typeof parseData>,
  { certificate, issuer, now }: OcspQuestion,
): Promise<Finding> {
  for (const { tag, content } of responses) {
    if (tag !== TAG.sequence) throw malformed('an OCSP response is no sequence')
    const reader = new DerReader(content, 'OCSP response')
    if (!(await isAbout(reader.enter(), certificate, issuer))) continue
    const single = parseSingle(reader)
    const critical = unsupported(
      [...single.extensions, ...extensions],
      [INVALIDITY_DATE, REASON_CODE],
    )
    if (critical !== undefined) return unknown(`OCSP has extension ${critical}, not supported`)
    const { until, reason } = single
    // Without its end a response could be replayed for ever.
    if (until === undefined) return unknown('the OCSP response does not say until when it counts')
    const stale = whyNotCurrent(single.from, until, now)
    if (stale !== undefined) return unknown(`the OCSP response ${stale}`)
    if (single.status === 'good') return { status: 'good', until }
    if (reason === undefined) return unknown('the responder does not know the certificate')
    return { status: 'revoked', reason, ...invalidityOf(single.extensions), until }
  }
  return unknown('the OCSP response is about other certificates')
}

/** What follows the CertID of a SingleResponse. */
function parseSingle(reader: DerReader) {
  const good = reader.optional(0x80)
  const revoked = good ? undefined : reader.optional(0xa1)
  const empty = good ?? (revoked ? undefined : reader.next(0x82))
  if (empty !== undefined && empty.content.length > 0) throw malformed('an OCSP status is broken')
  const from = timeOf(reader.next(TAG.generalizedTime), 'thisUpdate')
  const end = reader.optional(0xa0)
  const field = reader.optional(0xa1)
  reader.end()
  return {
    status: good && 'good',
    reason: revoked && revocationReason(revoked.content),
    from,
    until: end && readTime(new DerReader(end.content, 'nextUpdate')),
    extensions: extensionsIn(field?.content),
  }
}

/** RevokedInfo. */
function revocationReason(content: Bytes): string {
  const reader = new DerReader(content, 'OCSP status')
  timeOf(reader.next(TAG.generalizedTime), 'revocationTime')
  const field = reader.optional(0xa0)
  reader.end()
  return field ? reasonOf(new DerReader(field.content, 'OCSP status')) : 'unspecified'
}

function readTime(reader: DerReader): number {
  const time = timeOf(reader.next(TAG.generalizedTime), 'nextUpdate')
  reader.end()
  return time
}

/** True when the CertID is that of the certificate. Throws `SIGNATURE_MALFORMED` for one that cannot be read. */
async function isAbout(
  id: DerReader,
  { serial }: Certificate,
  issuer: Certificate,
): Promise<boolean> {
  const hash = hashNameOf(id.next(TAG.sequence).content)
  const [name, key] = [id.next(TAG.octetString).content, id.next(TAG.octetString).content]
  const number = id.next(TAG.integer).content
  id.end()
  if (hash === undefined || !equal(number, serial)) return false
  return (
    equal(name, await digest(hash, issuer.subject.der)) &&
    equal(key, await digest(hash, keyOf(issuer)))
  )
}

/** WebCrypto's name of the hash, or undefined for others. SHA-1 names here, and vouches for nothing. */
function hashNameOf(algorithm: Bytes): string | undefined {
  if (parseAlgorithm(algorithm, 'CertID').oid === SHA1) return 'SHA-1'
  const hash = hashOf(algorithm, 'CertID')
  return hash && HASHES[hash].name
}

/** The bits of the public key, without its algorithm. */
function keyOf({ spki }: Certificate): Bytes {
  const reader = DerReader.only(spki, 'public key')
  reader.next(TAG.sequence)
  return reader.next(TAG.bitString).content.subarray(1)
}

async function digest(hash: string, bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(hash, bytes))
}
