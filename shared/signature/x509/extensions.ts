import type { Bytes } from '../../bytes.ts'
import { MAX_CERTIFICATE_PARTS } from '../../limits.ts'
import { TAG } from '../der.ts'
import { parseName, printName } from './name.ts'
import { ascii, booleanValue, DerReader, dottedOid, malformed, smallInteger } from './reader.ts'

/** Key usage bits by their position (RFC 5280 section 4.2.1.3). */
const KEY_USAGES = [
  'digitalSignature',
  'contentCommitment',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'keyCertSign',
  'cRLSign',
  'encipherOnly',
  'decipherOnly',
] as const

export type KeyUsage = (typeof KEY_USAGES)[number]

/** Alternative names a policy can ask about; every other kind is `other`. */
export interface GeneralName {
  kind: 'email' | 'dns' | 'uri' | 'directory' | 'other'
  value: string
  /** Content of an otherName: its type and value. */
  other?: Bytes
}

/** What a certificate's extensions say. A field is undefined when the extension is not there. */
export interface Extensions {
  basicConstraints?: { critical: boolean; ca: boolean; pathLength?: number }
  keyUsage?: { critical: boolean; usages: ReadonlySet<KeyUsage> }
  /** Purposes as dotted object identifiers. */
  extendedKeyUsage?: { critical: boolean; purposes: readonly string[] }
  subjectAltNames?: readonly GeneralName[]
  authorityKeyId?: Bytes
  subjectKeyId?: Bytes
  /** URLs of CRLs that cover the certificate. */
  crlUrls?: readonly string[]
  ocspUrls?: readonly string[]
  /** URLs of the issuer's certificate. */
  issuerUrls?: readonly string[]
  /** Nobody has to ask whether this certificate, an OCSP responder's, is revoked (RFC 6960 section 4.2.2.2.1). */
  ocspNoCheck?: true
  /** Extensions this reader does not act on although a verifier must: critical ones, and name constraints in any case. */
  unhandled: readonly string[]
  /** The value of every extension by its dotted object identifier, for readers of those that are not general. */
  values: ReadonlyMap<string, Bytes>
}

type Mutable = { -readonly [K in keyof Extensions]: Extensions[K] }

/** Critical extensions that restrict nothing a signature check relies on: policies are for people to read. */
const HARMLESS = new Set(['2.5.29.32'])
const NAME_CONSTRAINTS = '2.5.29.30'

const PARSERS: Readonly<Record<string, (value: Bytes, critical: boolean, out: Mutable) => void>> = {
  '2.5.29.19': (value, critical, out) => {
    const reader = DerReader.only(value, 'basicConstraints')
    const flag = reader.optional(TAG.boolean)
    const length = reader.optional(TAG.integer)
    reader.end()
    const ca = flag !== undefined && booleanValue(flag.content, 'basicConstraints.cA')
    if (length !== undefined && !ca) throw malformed('a path length without cA')
    out.basicConstraints = {
      critical,
      ca,
      ...(length && { pathLength: smallInteger(length.content, 'pathLenConstraint') }),
    }
  },
  '2.5.29.15': (value, critical, out) => {
    const reader = new DerReader(value, 'keyUsage')
    const [unused = 8, ...bytes] = reader.next(TAG.bitString).content
    reader.end()
    if (unused > 7 || bytes.length === 0 || bytes.length > 2) throw malformed('keyUsage is broken')
    const usages = KEY_USAGES.filter((_, i) => ((bytes[i >> 3] ?? 0) >> (7 - (i & 7))) & 1)
    if (usages.length === 0) throw malformed('keyUsage names no usage')
    out.keyUsage = { critical, usages: new Set(usages) }
  },
  '2.5.29.37': (value, critical, out) => {
    const elements = DerReader.only(value, 'extKeyUsage').rest()
    if (elements.length === 0 || elements.some(({ tag }) => tag !== TAG.oid)) {
      throw malformed('extKeyUsage is broken')
    }
    out.extendedKeyUsage = { critical, purposes: elements.map((each) => dottedOid(each.content)) }
  },
  '2.5.29.17': (value, _critical, out) => {
    out.subjectAltNames = generalNames(DerReader.only(value, 'subjectAltName'))
  },
  '2.5.29.14': (value, _critical, out) => {
    const reader = new DerReader(value, 'subjectKeyIdentifier')
    out.subjectKeyId = reader.next(TAG.octetString).content
    reader.end()
  },
  '2.5.29.35': (value, _critical, out) => {
    const id = DerReader.only(value, 'authorityKeyIdentifier').optional(0x80)
    if (id !== undefined) out.authorityKeyId = id.content
  },
  '2.5.29.31': (value, _critical, out) => {
    out.crlUrls = distributionUrls(value)
  },
  '1.3.6.1.5.5.7.1.1': (value, _critical, out) => {
    const descriptions = DerReader.only(value, 'authorityInfoAccess').rest()
    const places = descriptions.map(({ tag, content }) => {
      if (tag !== TAG.sequence) throw malformed('authorityInfoAccess is broken')
      const reader = new DerReader(content, 'authorityInfoAccess')
      return { method: dottedOid(reader.next(TAG.oid).content), urls: urlsIn(reader) }
    })
    const urlsBy = (wanted: string) =>
      places.flatMap(({ method, urls }) => (method === wanted ? urls : []))
    out.ocspUrls = urlsBy('1.3.6.1.5.5.7.48.1')
    out.issuerUrls = urlsBy('1.3.6.1.5.5.7.48.2')
  },
  '1.3.6.1.5.5.7.48.1.5': (value, _critical, out) => {
    const reader = new DerReader(value, 'ocspNoCheck')
    reader.next(TAG.null)
    reader.end()
    out.ocspNoCheck = true
  },
}

/** One extension of a certificate, of a CRL, of an entry of it, or of an OCSP response. */
export interface Extension {
  /** Dotted object identifier. */
  oid: string
  critical: boolean
  /** What the OCTET STRING holds. */
  value: Bytes
}

/** The items of a SEQUENCE OF Extension. Throws `SIGNATURE_MALFORMED` for a broken one and for one that occurs twice. */
export function readExtensions(reader: DerReader, what = 'a certificate'): readonly Extension[] {
  const items = reader.rest()
  if (items.length > MAX_CERTIFICATE_PARTS) throw malformed(`${what} has too many extensions`)
  const seen = new Set<string>()
  return items.map(({ tag, content }) => {
    if (tag !== TAG.sequence) throw malformed('an extension is no sequence')
    const found = parseExtension(content)
    if (seen.has(found.oid)) throw malformed(`extension ${found.oid} occurs twice`)
    seen.add(found.oid)
    return found
  })
}

/** What the extensions of a certificate say. Throws `SIGNATURE_MALFORMED` like `readExtensions`, and for values that are broken. */
export function parseExtensions(reader: DerReader): Extensions {
  const unhandled: string[] = []
  const values = new Map<string, Bytes>()
  const out: Mutable = { unhandled, values }
  for (const { oid, critical, value } of readExtensions(reader)) {
    values.set(oid, value)
    const parse = Object.hasOwn(PARSERS, oid) ? PARSERS[oid] : undefined
    if (parse !== undefined) parse(value, critical, out)
    else if ((critical && !HARMLESS.has(oid)) || oid === NAME_CONSTRAINTS) unhandled.push(oid)
  }
  return out
}

function parseExtension(content: Bytes): Extension {
  const reader = new DerReader(content, 'extension')
  const oid = dottedOid(reader.next(TAG.oid).content)
  const flag = reader.optional(TAG.boolean)
  const value = reader.next(TAG.octetString).content
  reader.end()
  return {
    oid,
    critical: flag !== undefined && booleanValue(flag.content, 'extension.critical'),
    value,
  }
}

const NAME_KINDS: Readonly<Record<number, 'email' | 'dns' | 'uri'>> = {
  129: 'email',
  130: 'dns',
  134: 'uri',
}

function generalNames(reader: DerReader): GeneralName[] {
  return reader.rest().map(({ tag, content }) => {
    const kind = NAME_KINDS[tag]
    if (kind !== undefined) {
      if (content.some((byte) => byte >= 0x80)) throw malformed('a name is not ASCII')
      return { kind, value: ascii(content) }
    }
    if (tag === 0xa0) return { kind: 'other', value: '', other: content }
    if (tag !== 0xa4) return { kind: 'other', value: '' }
    const name = new DerReader(content, 'directoryName').next(TAG.sequence)
    return { kind: 'directory', value: printName(parseName(name, 'directoryName')) }
  })
}

/** The URLs of CRLDistributionPoints, which is also the form of FreshestCRL. */
export function distributionUrls(value: Bytes): string[] {
  const points = DerReader.only(value, 'cRLDistributionPoints').rest()
  return points.flatMap(({ tag, content }) => {
    if (tag !== TAG.sequence) throw malformed('cRLDistributionPoints is broken')
    const point = new DerReader(content, 'cRLDistributionPoints').optional(0xa0)
    return point ? placeUrls(point.content) : []
  })
}

/** The URLs of a DistributionPointName. */
export function placeUrls(content: Bytes): string[] {
  const name = new DerReader(content, 'distributionPoint').optional(0xa0)
  return name ? urlsIn(new DerReader(name.content, 'distributionPoint')) : []
}

/** The URLs among general names, in their order. */
function urlsIn(reader: DerReader): string[] {
  return generalNames(reader).flatMap(({ kind, value }) => (kind === 'uri' ? [value] : []))
}
