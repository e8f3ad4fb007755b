import { type Bytes, equal, toHex } from '../../bytes.ts'
import { locateElement, TAG } from '../der.ts'
import type { Certificate } from '../x509/certificate.ts'
import { distributionUrls, placeUrls, readExtensions } from '../x509/extensions.ts'
import { booleanValue, DerReader, dottedOid, malformed, timeOf } from '../x509/reader.ts'
import {
  asUnknown,
  INVALIDITY_DATE,
  invalidityOf,
  isHeld,
  isSignedBy,
  REASON_CODE,
  reasonOf,
  signatureOf,
  unknown,
  unsupported,
  whyNotCurrent,
} from './statement.ts'
import type { Finding } from './types.ts'

const CRL_NUMBER = '2.5.29.20'
const DELTA_INDICATOR = '2.5.29.27'
const ISSUING_DISTRIBUTION_POINT = '2.5.29.28'
const FRESHEST_CRL = '2.5.29.46'

/** Entry extensions that are acted on; another critical one forbids to use the whole list (RFC 5280 section 5.3). */
const ENTRY_EXTENSIONS = [REASON_CODE, INVALIDITY_DATE]

/** What a CRL is asked. */
export interface CrlQuestion {
  certificate: Certificate
  issuer: Certificate
  /** Epoch milliseconds. */
  now: number
  /** The delta CRL at the first of these that has one. Rejects with AdmissionError. */
  fetchDelta(urls: readonly string[]): Promise<Bytes>
}

/**
 * What a CRL (RFC 5280 section 5) says about a certificate. `unknown` unless it is the issuer's, complete for the certificate and current;
 * one that has expired still revokes what is in it, but for what was only on hold, as the Notary Project specifies. Where it has a delta
 * CRL, that has the last word. Throws `SIGNATURE_MALFORMED` for bytes that are no CRL and `KEY_INVALID` for an issuer's key outside the
 * algorithm table.
 */
export async function readCrl(bytes: Bytes, question: CrlQuestion): Promise<Finding> {
  const base = await openList(bytes, question, [ISSUING_DISTRIBUTION_POINT])
  if (typeof base === 'string') return unknown(`the CRL ${base}`)
  const found = findIn(base, question)
  if (found === 'removed') throw malformed('a complete CRL has an entry of a delta CRL')
  const freshest = base.extension(FRESHEST_CRL)
  const isOpen = found.status === 'good' || isHeld(found)
  if (freshest === undefined || !isOpen) return found
  const delta = await readDelta(base, distributionUrls(freshest), question).catch(asUnknown)
  // Without the delta CRL nobody knows; but what was on hold is refused until somebody says otherwise.
  if ('status' in delta) return isHeld(found) ? found : delta
  const until = Math.min(base.nextUpdate, delta.nextUpdate)
  const last = delta.number < base.number ? found : findIn(delta, question)
  if (last === 'removed') return { status: 'good', until }
  // A delta CRL says nothing of what has not changed.
  const said = last.status === 'good' ? found : last
  return 'until' in said ? { ...said, until } : said
}

/** What a list says by itself; `removed` for an entry that takes another one back. */
function findIn(
  { entries, thisUpdate, nextUpdate }: List,
  { certificate, now }: CrlQuestion,
): Finding | 'removed' {
  const stale = whyNotCurrent(thisUpdate, nextUpdate, now)
  const entry = findEntry(entries, certificate.serial)
  const found = entry && parseEntry(entry, nextUpdate)
  const isRemoved = found?.reason === 'removeFromCRL'
  const outlasts = found && now > nextUpdate && !isRemoved && !isHeld(found)
  if (stale !== undefined && !outlasts) return unknown(`the CRL ${stale}`)
  return isRemoved ? 'removed' : (found ?? { status: 'good', until: nextUpdate })
}

/** A delta CRL that goes on from this one (RFC 5280 section 5.2.4), or why there is none. */
async function readDelta(
  base: List,
  urls: readonly string[],
  question: CrlQuestion,
): Promise<List | Finding> {
  const bytes = await question.fetchDelta(urls)
  const understood = [ISSUING_DISTRIBUTION_POINT, DELTA_INDICATOR]
  const delta = await openList(bytes, question, understood)
  if (typeof delta === 'string') return unknown(`the delta CRL ${delta}`)
  const [from, scope] = [delta.extension(DELTA_INDICATOR), ISSUING_DISTRIBUTION_POINT]
  if (from === undefined) return unknown('the delta CRL is none')
  const none = new Uint8Array()
  const sameScope = equal(base.extension(scope) ?? none, delta.extension(scope) ?? none)
  return sameScope && numberOf(from) <= base.number && delta.number >= 0n
    ? delta
    : unknown('the delta CRL does not go on from the CRL')
}

type List = Exclude<Awaited<ReturnType<typeof openList>>, string>

/** A list the issuer signed whose scope has the certificate, or why it is none. Nothing is gone through before the signature is right. */
async function openList(
  bytes: Bytes,
  { certificate, issuer }: CrlQuestion,
  understood: readonly string[],
) {
  const outer = DerReader.only(bytes, 'CRL')
  const tbs = outer.next(TAG.sequence)
  const signed = signatureOf(outer)
  outer.end()
  if (issuer.keyUsage?.usages.has('cRLSign') === false) return 'is by an issuer that may sign none'
  if (!(await isSignedBy(issuer.spki, tbs.whole, signed))) return 'is not signed by the issuer'
  const { extensions, ...list } = parseList(tbs.content)
  if (!equal(list.algorithm, signed.algorithm)) throw malformed('a CRL names two algorithms')
  if (!equal(list.issuer, issuer.subject.der)) return 'is of another issuer'
  const critical = unsupported(extensions, understood)
  if (critical !== undefined) return `has extension ${critical}, not supported`
  const extension = (name: string) => extensions.find(({ oid }) => oid === name)?.value
  const scope = extension(ISSUING_DISTRIBUTION_POINT)
  const foreign = scope && whyNotInScope(scope, certificate)
  if (foreign !== undefined) return foreign
  const number = extension(CRL_NUMBER)
  return { ...list, extension, number: number ? numberOf(number) : -1n }
}

/** A CRL number, of up to twenty bytes. */
function numberOf(value: Bytes): bigint {
  const reader = new DerReader(value, 'CRL number')
  const { content } = reader.next(TAG.integer)
  reader.end()
  if (content.length === 0 || content.length > 21) throw malformed('a CRL number is broken')
  return BigInt(`0x${toHex(content)}`)
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
  const shared = placeUrls(point.content).some((url) => crlUrls.includes(url))
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
