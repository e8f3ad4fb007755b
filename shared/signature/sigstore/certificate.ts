import { type Bytes, fromUtf8, toHex } from '../../bytes.ts'
import { MAX_CERTIFICATE_BYTES } from '../../limits.ts'
import { malformed } from '../content.ts'
import { type DerElement, readDer, readOnly, TAG } from '../der.ts'

/** Object identifiers by the hex of their content. */
export const CODE_SIGNING = '2b06010505070303'
export const TIME_STAMPING = '2b06010505070308'
const SUBJECT_ALT_NAME = '551d11'
const KEY_USAGE = '551d0f'
const BASIC_CONSTRAINTS = '551d13'
const EXTENDED_KEY_USAGE = '551d25'
const FULCIO_ISSUER_V1 = '2b0601040183bf300101'
const FULCIO_ISSUER_V2 = '2b0601040183bf300108'
/** The name of somebody whose provider knows neither e-mail addresses nor URIs. */
const FULCIO_OTHER_NAME = '2b0601040183bf300107'
/** Critical extensions that are judged here or by the chain. */
const UNDERSTOOD = new Set([SUBJECT_ALT_NAME, KEY_USAGE, BASIC_CONSTRAINTS, EXTENDED_KEY_USAGE])

const EXTENSIONS = 0xa3
const VERSION = 0xa0
const BOOLEAN = 0x01
const OCTET_STRING = 0x04
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18

/** What an X.509 certificate says. Nothing about it is verified. */
export interface Certificate {
  der: Bytes
  /** The SubjectPublicKeyInfo. */
  publicKey: Bytes
  /** Issued by the name it carries itself: a root. */
  isSelfIssued: boolean
  /** Milliseconds; both ends belong to the validity. */
  notBefore: number
  notAfter: number
  /** Every subject alternative name: e-mail addresses, URIs, DNS names and Fulcio's other names. */
  names: readonly string[]
  /** Extended key usages by the hex of their object identifiers. */
  usages: readonly string[]
  isUsageCritical: boolean
  /** False when there is a key usage that leaves out digital signatures. */
  maySign: boolean
  isAuthority: boolean
  /** Issuer of the identity token by Fulcio's extensions. */
  oidcIssuer: string | undefined
}

interface Extension {
  critical: boolean
  value: Bytes
}

/**
 * The certificate in the DER. Throws `SIGNATURE_MALFORMED` unless it is strict, with each extension once, without critical ones that
 * are unknown, and without Fulcio extensions that contradict each other.
 */
export function readCertificate(der: Bytes): Certificate {
  if (der.length > MAX_CERTIFICATE_BYTES) throw bad(`larger than ${MAX_CERTIFICATE_BYTES} bytes`)
  const [tbs] = children(der, TAG.sequence)
  if (tbs?.tag !== TAG.sequence) throw bad('not X.509')
  const fields = elements(tbs.content)
  // version [0], serial, algorithm, issuer, validity, subject, SubjectPublicKeyInfo, …
  const [version, , , issuer, validity, subject, key, ...rest] = fields
  if (version?.tag !== VERSION || key?.tag !== TAG.sequence) throw bad('not X.509 version 3')
  if (issuer?.tag !== TAG.sequence || subject?.tag !== TAG.sequence) throw bad('not X.509')
  const [notBefore, notAfter] = elements(validity?.content ?? new Uint8Array()).map(readTime)
  if (notBefore === undefined || notAfter === undefined) throw bad('without a validity')
  const extensions = readExtensions(rest)
  const usage = extensions.get(EXTENDED_KEY_USAGE)
  return {
    der,
    publicKey: key.whole,
    isSelfIssued: toHex(issuer.content) === toHex(subject.content),
    notBefore,
    notAfter,
    names: namesOf(extensions.get(SUBJECT_ALT_NAME)),
    usages: usage === undefined ? [] : children(usage.value, TAG.sequence).map(hexOfOid),
    isUsageCritical: usage?.critical === true,
    maySign: maySign(extensions.get(KEY_USAGE)),
    isAuthority: isAuthority(extensions.get(BASIC_CONSTRAINTS)),
    oidcIssuer: oidcIssuerOf(extensions),
  }
}

function readExtensions(fields: readonly DerElement[]): Map<string, Extension> {
  const out = new Map<string, Extension>()
  const list = fields.find(({ tag }) => tag === EXTENSIONS)
  if (list === undefined) return out
  for (const { tag, content } of children(list.content, TAG.sequence)) {
    const [oid, second, third] = tag === TAG.sequence ? elements(content) : []
    const value = third ?? second
    if (oid?.tag !== TAG.oid || value?.tag !== OCTET_STRING) throw bad('with a broken extension')
    const id = toHex(oid.content)
    const critical = third !== undefined && second?.tag === BOOLEAN && second.content[0] === 0xff
    if (third !== undefined && !critical) throw bad('with a broken extension')
    if (out.has(id)) throw bad(`with the extension ${id} twice`)
    if (critical && !UNDERSTOOD.has(id)) throw bad(`with an unknown critical extension ${id}`)
    out.set(id, { critical, value: value.content })
  }
  return out
}

/** GeneralNames: otherName [0], rfc822Name [1], dNSName [2], uniformResourceIdentifier [6]. */
function namesOf(extension: Extension | undefined): string[] {
  if (extension === undefined) return []
  return children(extension.value, TAG.sequence).flatMap(({ tag, content }) => {
    if (tag === 0x81 || tag === 0x82 || tag === 0x86) return [text(content)]
    const [id, value] = tag === 0xa0 ? elements(content) : []
    if (id === undefined || toHex(id.content) !== FULCIO_OTHER_NAME) return []
    return [text(only(value?.content ?? new Uint8Array(), UTF8_STRING))]
  })
}

/** Version 2 (a DER string) before version 1 (raw text); two that differ are nobody's. */
function oidcIssuerOf(extensions: ReadonlyMap<string, Extension>): string | undefined {
  const v1 = extensions.get(FULCIO_ISSUER_V1)
  const v2 = extensions.get(FULCIO_ISSUER_V2)
  const older = v1 === undefined ? undefined : text(v1.value)
  if (v2 === undefined) return older
  const issuer = text(only(v2.value, UTF8_STRING))
  if (older !== undefined && older !== issuer) throw bad('with two issuers that differ')
  return issuer
}

function maySign(extension: Extension | undefined): boolean {
  if (extension === undefined) return true
  const [, first = 0] = only(extension.value, TAG.bitString)
  return (first & 0x80) !== 0
}

function isAuthority(extension: Extension | undefined): boolean {
  if (extension === undefined) return false
  const [flag] = children(extension.value, TAG.sequence)
  return flag?.tag === BOOLEAN && flag.content[0] !== 0
}

/** Milliseconds of a UTCTime or GeneralizedTime in the only form RFC 5280 allows. */
function readTime({ tag, content }: DerElement): number {
  const digits = text(content)
  const isShort = tag === UTC_TIME
  if (!isShort && tag !== GENERALIZED_TIME) throw bad('with a broken validity')
  if (!(isShort ? /^\d{12}Z$/ : /^\d{14}Z$/).test(digits)) throw bad('with a broken validity')
  const century = Number(digits.slice(0, 2)) >= 50 ? '19' : '20'
  const full = isShort ? century + digits : digits
  const at = Date.parse(
    full.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  )
  if (Number.isNaN(at)) throw bad('with a broken validity')
  return at
}

function hexOfOid({ tag, content }: DerElement): string {
  if (tag !== TAG.oid) throw bad('with a broken extended key usage')
  return toHex(content)
}

interface Element extends DerElement {
  /** With its tag and length. */
  whole: Bytes
}

function elements(bytes: Bytes): Element[] {
  const read = readDer(bytes)
  if (read === undefined) throw bad('not DER')
  let from = 0
  return read.map((element) => {
    const to = element.content.byteOffset - bytes.byteOffset + element.content.length
    const whole = bytes.subarray(from, to)
    from = to
    return { ...element, whole }
  })
}

function children(bytes: Bytes, tag: number): Element[] {
  return elements(only(bytes, tag))
}

function only(bytes: Bytes, tag: number): Bytes {
  const content = readOnly(bytes, tag)
  if (content === undefined) throw bad('not DER')
  return content
}

function text(bytes: Bytes): string {
  try {
    return fromUtf8(bytes)
  } catch {
    throw bad('with a text that is not UTF-8')
  }
}

function bad(what: string): Error {
  return malformed(`certificate is ${what}`)
}
