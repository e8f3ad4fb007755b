import { type Bytes, equal } from '../../bytes.ts'
import { MAX_CERTIFICATE_BYTES } from '../../limits.ts'
import { TAG } from '../der.ts'
import { type Extensions, parseExtensions } from './extensions.ts'
import { type Name, parseName } from './name.ts'
import { DerReader, malformed, smallInteger, timeOf } from './reader.ts'

/** A parsed certificate. Nothing about it is verified. */
export interface Certificate extends Extensions {
  /** All of it, as received: what trust stores compare. */
  der: Bytes
  /** The signed part, as received. */
  tbs: Bytes
  /** Content of the INTEGER. */
  serial: Bytes
  issuer: Name
  subject: Name
  /** First and last valid instant, milliseconds since the epoch; both ends belong to it. */
  notBefore: number
  notAfter: number
  /** SubjectPublicKeyInfo. */
  spki: Bytes
  /** Content of the AlgorithmIdentifier the certificate was signed with. */
  algorithm: Bytes
  signature: Bytes
}

/**
 * The certificate in strict DER (RFC 5280 section 4.1). Throws `SIGNATURE_MALFORMED` for anything else: trailing bytes, an extension
 * that occurs twice, an inner algorithm unlike the outer one, more than `MAX_CERTIFICATE_BYTES`.
 */
export function parseCertificate(bytes: Bytes): Certificate {
  if (bytes.length > MAX_CERTIFICATE_BYTES) {
    throw malformed(`a certificate has more than ${MAX_CERTIFICATE_BYTES} bytes`)
  }
  const der = bytes.slice()
  const outer = DerReader.only(der, 'certificate')
  const tbs = outer.next(TAG.sequence)
  const algorithm = outer.next(TAG.sequence)
  const [unused, ...signature] = outer.next(TAG.bitString).content
  outer.end()
  if (unused !== 0) throw malformed('the signature of a certificate is not whole bytes')
  const { inner, ...fields } = parseTbs(new DerReader(tbs.content, 'certificate'))
  if (!equal(inner, algorithm.whole)) {
    throw malformed('a certificate names two signature algorithms')
  }
  return {
    ...fields,
    der,
    tbs: tbs.whole,
    algorithm: algorithm.content,
    signature: Uint8Array.from(signature),
  }
}

function parseTbs(reader: DerReader) {
  const version = parseVersion(reader)
  const serial = reader.next(TAG.integer).content
  if (serial.length === 0 || serial.length > 21) throw malformed('a serial number is too long')
  const inner = reader.next(TAG.sequence).whole
  const issuer = parseName(reader.next(TAG.sequence), 'issuer')
  const [from, to, ...more] = reader.enter().rest()
  if (from === undefined || to === undefined || more.length > 0)
    throw malformed('validity is broken')
  const subject = parseName(reader.next(TAG.sequence), 'subject')
  const spki = reader.next(TAG.sequence).whole
  // Unique identifiers, which nobody writes any more.
  reader.optional(0x81)
  reader.optional(0x82)
  const field = reader.optional(0xa3)
  reader.end()
  if (field !== undefined && version !== 3)
    throw malformed('extensions need a version 3 certificate')
  return {
    inner,
    serial,
    issuer,
    subject,
    spki,
    notBefore: timeOf(from, 'notBefore'),
    notAfter: timeOf(to, 'notAfter'),
    ...(field
      ? parseExtensions(DerReader.only(field.content, 'extensions'))
      : { unhandled: [], values: new Map() }),
  }
}

function parseVersion(reader: DerReader): number {
  const field = reader.optional(0xa0)
  if (field === undefined) return 1
  const inner = new DerReader(field.content, 'version')
  const version = smallInteger(inner.next(TAG.integer).content, 'version')
  inner.end()
  if (version !== 1 && version !== 2) throw malformed('a certificate has an unknown version')
  return version + 1
}
