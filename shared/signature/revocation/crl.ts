import { type Bytes, equal } from '../../bytes.ts'
import { locateElement, TAG } from '../der.ts'
import type { Certificate } from '../x509/certificate.ts'
import { readExtensions, urlsIn } from '../x509/extensions.ts'
import { booleanValue, DerReader, dottedOid, malformed, timeOf } from '../x509/reader.ts'
import {
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

const ISSUING_DISTRIBUTION_POINT = '2.5.29.28'
const FRESHEST_CRL = '2.5.29.46'

/** Entry extensions that are acted on; another critical one forbids to use the whole list (RFC 5280 section 5.3). */
const ENTRY_EXTENSIONS = [REASON_CODE, INVALIDITY_DATE]

/**
 * What a CRL (RFC 5280 section 5) says about a certificate. `unknown` unless it is the issuer's, complete for the certificate and current;
 * one that has expired still revokes what is in it, but for what was only on hold, as the Notary Project specifies. Throws
 * `SIGNATURE_MALFORMED` for bytes that are no CRL and `KEY_INVALID` for an issuer's key outside the algorithm table.
 */
export async function readCrl(
  bytes: Bytes,
  certificate: Certificate,
  issuer: Certificate,
  now: number,
): Promise<Finding> {
  const outer = DerReader.only(bytes, 'CRL')
  const tbs = outer.next(TAG.sequence)
  const signed = signatureOf(outer)
  outer.end()
  if (issuer.keyUsage !== undefined && !issuer.keyUsage.usages.has('cRLSign')) {
    return unknown('the issuer may not sign CRLs')
  }
  if (!(await isSignedBy(issuer.spki, tbs.whole, signed))) {
    return unknown('the CRL is not signed by the issuer')
  }
  const list = parseList(tbs.content)
  if (!equal(list.algorithm, signed.algorithm)) throw malformed('a CRL names two algorithms')
  if (!equal(list.issuer, issuer.subject.der)) return unknown('the CRL is of another issuer')
  const { extensions, thisUpdate, nextUpdate } = list
  const critical = unsupported(extensions, [ISSUING_DISTRIBUTION_POINT])
  if (critical !== undefined) return unknown(`the CRL has extension ${critical}, not supported`)
  const scope = extensions.find(({ oid }) => oid === ISSUING_DISTRIBUTION_POINT)
  const foreign = scope && whyNotInScope(scope.value, certificate)
  if (foreign !== undefined) return unknown(`the CRL ${foreign}`)
  const stale = whyNotCurrent(thisUpdate, nextUpdate, now)
  const entry = findEntry(list.entries, certificate.serial)
  if (entry !== undefined) {
    const found = parseEntry(entry, nextUpdate)
    const lasts = stale === undefined || (now > nextUpdate && found.reason !== 'certificateHold')
    return lasts ? found : unknown(`the CRL ${stale}`)
  }
  if (stale !== undefined) return unknown(`the CRL ${stale}`)
  return extensions.some(({ oid }) => oid === FRESHEST_CRL)
    ? unknown('the CRL has a delta CRL, which is not read')
    : { status: 'good', until: nextUpdate }
}

/** TBSCertList. Its entries stay bytes. */
function parseList(content: Bytes) {
  const reader = new DerReader(content, 'CRL')
  const version = reader.optional(TAG.integer)
  if (version !== undefined && !equal(version.content, Uint8Array.of(1))) {
    throw malformed('a CRL has an unknown version')
  }
  const algorithm = reader.next(TAG.sequence).content
  const issuer = reader.next(TAG.sequence).whole
  const [thisUpdate, nextUpdate] = [nextTime(reader), nextTime(reader)]
  const entries = reader.optional(TAG.sequence)?.content ?? new Uint8Array()
  const field = reader.optional(0xa0)
  reader.end()
  if (field !== undefined && version === undefined)
    throw malformed('a version 1 CRL has extensions')
  const extensions = field ? readExtensions(DerReader.only(field.content, 'CRL'), 'a CRL') : []
  return { algorithm, issuer, thisUpdate, nextUpdate, entries, extensions }
}

/** Without its end a list could be replayed for ever, so that one is needed although ASN.1 calls it optional. */
function nextTime(reader: DerReader): number {
  return timeOf(reader.optional(TAG.utcTime) ?? reader.next(TAG.generalizedTime), 'a time of a CRL')
}

/** Why a list with this IssuingDistributionPoint (RFC 5280 section 5.2.5) leaves this certificate out, or undefined. */
function whyNotInScope(
  value: Bytes,
  { basicConstraints, crlUrls = [] }: Certificate,
): string | undefined {
  const reader = DerReader.only(value, 'issuingDistributionPoint')
  const flag = (tag: number) => {
    const element = reader.optional(tag)
    return element !== undefined && booleanValue(element.content, 'issuingDistributionPoint')
  }
  const point = reader.optional(0xa0)
  const [usersOnly, authoritiesOnly] = [flag(0x81), flag(0x82)]
  const someReasons = reader.optional(0x83) !== undefined
  const [indirect, attributesOnly] = [flag(0x84), flag(0x85)]
  reader.end()
  const isAuthority = basicConstraints?.ca === true
  if (someReasons) return 'is for some reasons only'
  if (indirect) return 'is an indirect one'
  if (attributesOnly || (isAuthority ? usersOnly : authoritiesOnly)) {
    return 'is for another kind of certificates'
  }
  if (point === undefined) return undefined
  const name = new DerReader(point.content, 'distributionPoint').optional(0xa0)
  const urls = name ? urlsIn(new DerReader(name.content, 'distributionPoint')) : []
  const shared = urls.some((url) => crlUrls.includes(url))
  return shared ? undefined : 'is for another distribution point'
}

/**
 * The content of the entry with this serial number, or undefined. All entries are gone through, one at a time: a list may have a hundred
 * thousand. Throws `SIGNATURE_MALFORMED` for broken ones and for critical extensions nobody acts on, wherever they are.
 */
function findEntry(entries: Bytes, serial: Bytes): Bytes | undefined {
  const wanted = withoutZeros(serial)
  let found: Bytes | undefined
  for (let at = 0; at < entries.length; ) {
    const entry = locate(entries, at, TAG.sequence)
    const number = locate(entries, entry.start, TAG.integer)
    const time = locateElement(entries, number.end)
    if (time === undefined || time.end > entry.end) throw broken()
    if (time.end < entry.end) demandKnown(entries, time.end, entry.end)
    if (equal(withoutZeros(entries.subarray(number.start, number.end)), wanted)) {
      found ??= entries.subarray(entry.start, entry.end)
    }
    at = entry.end
  }
  return found
}

function demandKnown(entries: Bytes, from: number, end: number): void {
  const list = locate(entries, from, TAG.sequence)
  if (list.end !== end) throw broken()
  for (let at = list.start; at < list.end; ) {
    const extension = locate(entries, at, TAG.sequence)
    const oid = locate(entries, extension.start, TAG.oid)
    if (extension.end > list.end || oid.end > extension.end) throw broken()
    if (oid.end < extension.end && entries[oid.end] === TAG.boolean) {
      const name = dottedOid(entries.subarray(oid.start, oid.end))
      if (!ENTRY_EXTENSIONS.includes(name)) {
        throw malformed(`an entry of the CRL has extension ${name}, not supported`)
      }
    }
    at = extension.end
  }
}

function locate(bytes: Bytes, at: number, tag: number): { start: number; end: number } {
  const found = locateElement(bytes, at)
  if (found?.tag !== tag) throw broken()
  return found
}

function parseEntry(content: Bytes, until: number) {
  const reader = new DerReader(content, 'CRL entry')
  reader.next(TAG.integer)
  nextTime(reader)
  const field = reader.optional(TAG.sequence)
  reader.end()
  const extensions = field ? readExtensions(new DerReader(field.content, 'CRL entry')) : []
  const code = extensions.find(({ oid }) => oid === REASON_CODE)
  const reason = code ? reasonOf(new DerReader(code.value, 'CRL entry')) : 'unspecified'
  // Only a delta CRL takes an entry back.
  if (reason === 'removeFromCRL') throw malformed('a complete CRL has an entry of a delta CRL')
  return { status: 'revoked' as const, reason, ...invalidityOf(extensions), until }
}

function withoutZeros(number: Bytes): Bytes {
  let start = 0
  while (start < number.length - 1 && number[start] === 0) start++
  return number.subarray(start)
}

function broken() {
  return malformed('CRL entries are not strict DER')
}
