import * as der from '#functions/local/der.ts'
import { concat, utf8 } from '#shared/bytes.ts'
import { digestOf, type Pair, signWith, spkiOf, uint } from './keys.ts'

/** Certificates of a local Sigstore: the authorities' own, and those of signers as Fulcio issues them. */

const USAGES = {
  codeSigning: '1.3.6.1.5.5.7.3.3',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  timeStamping: '1.3.6.1.5.5.7.3.8',
}

export const ECDSA_SHA256 = der.sequence(der.oid('1.2.840.10045.4.3.2'))
export const SHA256 = der.sequence(der.oid('2.16.840.1.101.3.4.2.1'))

/** A distinguished name with this common name; empty without one. */
export const nameOf = (text: string) =>
  der.sequence(
    ...(text === '' ? [] : [der.set(der.sequence(der.oid('2.5.4.3'), der.utf8String(text)))]),
  )

const extension = (oid: string, value: Uint8Array, critical = false) =>
  der.sequence(der.oid(oid), ...(critical ? [der.boolean(true)] : []), der.octets(value))

/** The value of an extended key usage. */
export const usageOf = (...names: readonly (keyof typeof USAGES)[]) =>
  der.sequence(...names.map((name) => der.oid(USAGES[name])))

const BASIC_CA = extension('2.5.29.19', der.sequence(der.boolean(true)), true)
const CA_EXTENSIONS = [BASIC_CA, extension('2.5.29.15', der.bits(Uint8Array.of(0x06), 1), true)]

/** What a certificate says about whom and when; times are seconds. */
export interface CertificateFields {
  serial: number
  issuer: string
  subject: string
  key: Pair
  from: number
  until: number
}

function toBeSigned(fields: CertificateFields, extensions: readonly Uint8Array[]): Uint8Array {
  const { serial, issuer, subject, key, from, until } = fields
  return der.sequence(
    der.context(0, der.integer(Uint8Array.of(2))),
    der.integer(Uint8Array.of(serial)),
    ECDSA_SHA256,
    nameOf(issuer),
    der.sequence(der.time(new Date(from * 1000)), der.time(new Date(until * 1000))),
    nameOf(subject),
    spkiOf(key),
    der.context(3, der.sequence(...extensions)),
  )
}

const signed = (body: Uint8Array, issuer: Pair) =>
  der.sequence(body, ECDSA_SHA256, der.bits(signWith(body, issuer)))

/** A self-signed certificate of an authority. */
export function authorityCertificate(fields: Omit<CertificateFields, 'issuer'>): Uint8Array {
  return signed(toBeSigned({ ...fields, issuer: fields.subject }, CA_EXTENSIONS), fields.key)
}

/** The certificate of a timestamp authority (RFC 3161 section 2.3). */
export function stampCertificate(
  fields: CertificateFields,
  issuer: Pair,
  usage: Uint8Array,
  critical: boolean,
): Uint8Array {
  const extensions = [
    extension('2.5.29.15', der.bits(Uint8Array.of(0x80), 7), true),
    extension('2.5.29.37', usage, critical),
  ]
  return signed(toBeSigned(fields, extensions), issuer)
}

/** Names of a signer; `other` is Fulcio's own kind. */
export interface Names {
  uri?: string[]
  email?: string[]
  other?: string[]
}

function generalNames({ uri = [], email = [], other = [] }: Names): Uint8Array {
  return der.sequence(
    ...email.map((each) => der.contextPrimitive(1, utf8(each))),
    ...uri.map((each) => der.contextPrimitive(6, utf8(each))),
    ...other.map((each) =>
      der.context(0, der.oid('1.3.6.1.4.1.57264.1.7'), der.context(0, der.utf8String(each))),
    ),
  )
}

/** What may differ between the certificates of signers. */
export interface LeafOptions {
  names?: Names
  /** Fulcio's second issuer extension; null leaves it out. */
  issuer?: string | null
  /** Fulcio's first one. */
  issuerV1?: string
  usages?: (keyof typeof USAGES)[]
  keyUsage?: number
  isCa?: boolean
  selfIssued?: boolean
  /** Seconds. */
  from?: number
  until?: number
  extra?: Uint8Array[]
  sct?: 'none' | 'forged'
}

/** The extensions of a signer's certificate but for the certificate log's. */
function leafExtensions(options: LeafOptions): Uint8Array[] {
  const { names = {}, issuer, issuerV1, usages = ['codeSigning'], keyUsage = 0x80 } = options
  return [
    extension('2.5.29.15', der.bits(Uint8Array.of(keyUsage), 7), true),
    ...(usages.length === 0 ? [] : [extension('2.5.29.37', usageOf(...usages))]),
    extension('2.5.29.17', generalNames(names), true),
    ...(issuerV1 === undefined ? [] : [extension('1.3.6.1.4.1.57264.1.1', utf8(issuerV1))]),
    ...(issuer === undefined || issuer === null
      ? []
      : [extension('1.3.6.1.4.1.57264.1.8', der.utf8String(issuer))]),
    ...(options.isCa ? [BASIC_CA] : []),
    ...(options.extra ?? []),
  ]
}

/** Who issues a signer's certificate, and the log that has seen it. */
export interface LeafIssuer {
  name: string
  ca: Pair
  /** Signs the certificate timestamp; undefined leaves it out. */
  ctLog: Pair | undefined
  /** Named by the certificate timestamp, whoever signed it. */
  ctLogKey: Pair
  /** Seconds: when the log has seen it. */
  at: number
}

/** A signer's certificate as Fulcio issues it, with its signed certificate timestamp. */
export function leafCertificate(
  key: Pair,
  options: LeafOptions & { from: number; until: number },
  issuer: LeafIssuer,
): Uint8Array {
  const fields = {
    serial: 9,
    issuer: options.selfIssued ? 'me' : issuer.name,
    subject: options.selfIssued ? 'me' : '',
    key,
    from: options.from,
    until: options.until,
  }
  const extensions = leafExtensions(options)
  const { ctLog } = issuer
  const seen =
    ctLog === undefined ? [] : [timestampOf(toBeSigned(fields, extensions), ctLog, issuer)]
  return signed(toBeSigned(fields, [...extensions, ...seen]), issuer.ca)
}

/** The extension that says the certificate log has seen the certificate without it (RFC 6962 section 3.3). */
function timestampOf(
  precertificate: Uint8Array,
  ctLog: Pair,
  { ca, ctLogKey, at }: LeafIssuer,
): Uint8Array {
  const time = uint(at * 1000, 8)
  const bytes = concat(
    Uint8Array.of(0, 0),
    time,
    uint(1, 2),
    digestOf(spkiOf(ca)),
    uint(precertificate.length, 3),
    precertificate,
    uint(0, 2),
  )
  const signature = signWith(bytes, ctLog)
  const sct = concat(
    Uint8Array.of(0),
    digestOf(spkiOf(ctLogKey)),
    time,
    uint(0, 2),
    Uint8Array.of(4, 3),
    uint(signature.length, 2),
    signature,
  )
  const list = concat(uint(sct.length + 2, 2), uint(sct.length, 2), sct)
  return extension('1.3.6.1.4.1.11129.2.4.2', der.octets(list))
}
