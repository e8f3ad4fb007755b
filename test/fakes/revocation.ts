import { createHash } from 'node:crypto'
import * as der from '#functions/local/der.ts'
import { type Bytes, utf8 } from '#shared/bytes.ts'
import {
  algorithm,
  extension,
  HASH_OID,
  type Hash,
  type Minted,
  mint,
  NOTARY_NAME,
  NULL,
  signDer,
} from '#test/fakes/pki.ts'

/** OCSP responses and CRLs made in the process, with every part open to be made wrong. */

export const OCSP_SIGNING = '1.3.6.1.5.5.7.3.9'
export const NO_CHECK = extension('1.3.6.1.5.5.7.48.1.5', NULL)

const REASON_CODE = '2.5.29.21'
const INVALIDITY_DATE = '2.5.29.24'

export const enumerated = (value: number) => der.element(0x0a, Uint8Array.of(value))
export const generalizedTime = (at: Date) =>
  der.element(0x18, utf8(`${at.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`))
export const invalidityDate = (at: Date) => extension(INVALIDITY_DATE, generalizedTime(at))

/** When answers count by default. */
export const CURRENT: readonly [Date, Date] = [
  new Date('2026-05-31T00:00:00Z'),
  new Date('2026-06-08T00:00:00Z'),
]
export const REVOKED_AT = new Date('2026-05-01T00:00:00Z')

export interface Revoked {
  /** Number of a CRLReason. */
  reason?: number
  invalidFrom?: Date
}

/** A responder's certificate, which the issuer gave it. */
export function mintResponder(issuer: Minted, options: Parameters<typeof mint>[0] = {}): Minted {
  return mint({
    issuer,
    subject: NOTARY_NAME('responder'),
    keyName: 'responder',
    purposes: [OCSP_SIGNING],
    extra: [NO_CHECK],
    ...options,
  })
}

export interface OcspOptions {
  certificate: Minted
  issuer: Minted
  status?: 'good' | 'unknown' | Revoked
  /** Who signs; the issuer by default. */
  signer?: Minted
  /** Certificates inside; the signer's unless that is the issuer. */
  certificates?: readonly Minted[]
  hash?: Hash
  update?: readonly [Date, Date?]
  byKey?: boolean
  /** Whom the response names as its responder; the signer by default. */
  named?: Minted
  /** OCSPResponseStatus; a response without anything else when not 0. */
  responseStatus?: number
  responseType?: string
  /** Extensions of the one response, and of all of it. */
  single?: readonly Uint8Array[]
  extensions?: readonly Uint8Array[]
  /** Responses before this one. */
  others?: readonly Uint8Array[]
  touchSignature?: boolean
  signHash?: Hash
  /** The members of ResponseData in their order, to be made wrong. */
  change?: (members: Uint8Array[]) => Uint8Array[]
}

/** An OCSPResponse. */
export function mintOcsp(options: OcspOptions): Bytes {
  const { issuer, signer = issuer, responseStatus = 0, named = signer, extensions = [] } = options
  if (responseStatus !== 0) return new Uint8Array(der.sequence(enumerated(responseStatus)))
  const responder = options.byKey
    ? der.context(2, der.octets(digest('sha1', publicBits(named))))
    : der.context(1, named.subject)
  const members = [
    responder,
    generalizedTime(CURRENT[0]),
    der.sequence(...(options.others ?? []), singleResponse(options)),
    ...(extensions.length > 0 ? [der.context(1, der.sequence(...extensions))] : []),
  ]
  const data = der.sequence(...(options.change?.(members) ?? members))
  const signed = signDer(signer.keys.privateKey, data, { hash: options.signHash ?? 'sha256' })
  const certificates = options.certificates ?? (signer === issuer ? [] : [signer])
  const basic = der.sequence(
    data,
    signed.algorithm,
    der.bits(touched(signed.signature, options.touchSignature)),
    ...(certificates.length > 0
      ? [der.context(0, der.sequence(...certificates.map((each) => each.der)))]
      : []),
  )
  const type = der.oid(options.responseType ?? '1.3.6.1.5.5.7.48.1.1')
  const bytes = der.context(0, der.sequence(type, der.octets(basic)))
  return new Uint8Array(der.sequence(enumerated(0), bytes))
}

/** A SingleResponse. */
export function singleResponse(options: OcspOptions): Uint8Array {
  const {
    certificate,
    issuer,
    status = 'good',
    hash = 'sha1',
    update = CURRENT,
    single = [],
  } = options
  const [thisUpdate, nextUpdate] = update
  const id = der.sequence(
    algorithm(HASH_OID[hash], NULL),
    der.octets(digest(hash, issuer.subject)),
    der.octets(digest(hash, publicBits(issuer))),
    serialOf(certificate),
  )
  const dates =
    typeof status === 'object' && status.invalidFrom ? [invalidityDate(status.invalidFrom)] : []
  const extensions = [...dates, ...single]
  return der.sequence(
    id,
    certStatus(status),
    generalizedTime(thisUpdate),
    ...(nextUpdate ? [der.context(0, generalizedTime(nextUpdate))] : []),
    ...(extensions.length > 0 ? [der.context(1, der.sequence(...extensions))] : []),
  )
}

function certStatus(status: 'good' | 'unknown' | Revoked): Uint8Array {
  if (status === 'good') return der.contextPrimitive(0, new Uint8Array())
  if (status === 'unknown') return der.contextPrimitive(2, new Uint8Array())
  const { reason } = status
  const reasons = reason === undefined ? [] : [der.context(0, enumerated(reason))]
  return der.context(1, generalizedTime(REVOKED_AT), ...reasons)
}

export interface CrlOptions {
  issuer: Minted
  /** Who is on it. */
  revoked?: readonly (Revoked & { certificate: Minted; extra?: readonly Uint8Array[] })[]
  update?: readonly [Date, Date?]
  /** CRL number, 1 by default; null: none. */
  number?: number | null
  /** Extensions, CRL number apart. */
  extensions?: readonly Uint8Array[]
  /** Who signs; the issuer by default. */
  signer?: Minted
  signHash?: Hash
  touchSignature?: boolean
  /** Entries in place of `revoked`, as they are. */
  entries?: Uint8Array
  /** The members of TBSCertList in their order, to be made wrong. */
  change?: (members: Uint8Array[]) => Uint8Array[]
}

/** A CertificateList. */
export function mintCrl(options: CrlOptions): Bytes {
  const { issuer, signer = issuer, revoked = [], number = 1, extensions = [] } = options
  const [thisUpdate, nextUpdate] = options.update ?? CURRENT
  const signing = { hash: options.signHash ?? 'sha256' } as const
  const { algorithm: id } = signDer(signer.keys.privateKey, new Uint8Array(), signing)
  const list =
    options.entries ?? (revoked.length > 0 ? der.sequence(...revoked.map(crlEntry)) : undefined)
  const members = [
    der.integer(Uint8Array.of(1)),
    id,
    issuer.subject,
    der.time(thisUpdate),
    ...(nextUpdate ? [der.time(nextUpdate)] : []),
    ...(list ? [list] : []),
    der.context(
      0,
      der.sequence(
        ...(number === null ? [] : [extension('2.5.29.20', der.integer(Uint8Array.of(number)))]),
        ...extensions,
      ),
    ),
  ]
  const tbs = der.sequence(...(options.change?.(members) ?? members))
  const { signature } = signDer(signer.keys.privateKey, tbs, signing)
  return new Uint8Array(der.sequence(tbs, id, der.bits(touched(signature, options.touchSignature))))
}

/** An entry of a CRL. */
export function crlEntry({
  certificate,
  reason,
  invalidFrom,
  extra = [],
}: Revoked & { certificate: Minted; extra?: readonly Uint8Array[] }): Uint8Array {
  const extensions = [
    ...(reason === undefined ? [] : [extension(REASON_CODE, enumerated(reason))]),
    ...(invalidFrom ? [invalidityDate(invalidFrom)] : []),
    ...extra,
  ]
  return der.sequence(
    serialOf(certificate),
    der.time(REVOKED_AT),
    ...(extensions.length > 0 ? [der.sequence(...extensions)] : []),
  )
}

function touched(signature: Uint8Array, touch = false): Uint8Array {
  const out = signature.slice()
  if (touch) out[out.length - 1]! ^= 1
  return out
}

function digest(hash: Hash, bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash(hash).update(bytes).digest())
}

/** The public key without its algorithm: what is inside the BIT STRING of the SubjectPublicKeyInfo. */
function publicBits({ keys }: Minted): Uint8Array {
  const spki = new Uint8Array(keys.publicKey.export({ type: 'spki', format: 'der' }))
  const [, bits] = childrenOf(spki)
  // An unused-bits octet leads the bits.
  return contentOf(bits!).subarray(1)
}

/** The INTEGER as it stands in the certificate: the member after the version. */
function serialOf({ der: bytes }: Minted): Uint8Array {
  return childrenOf(childrenOf(bytes)[0]!)[1]!
}

function contentOf(element: Uint8Array): Uint8Array {
  const first = element[1]!
  return element.subarray(first < 0x80 ? 2 : 2 + (first & 0x7f))
}

/** Elements inside an element. */
function childrenOf(element: Uint8Array): Uint8Array[] {
  const out: Uint8Array[] = []
  for (let rest = contentOf(element); rest.length > 0; ) {
    const first = rest[1]!
    const octets = first < 0x80 ? 0 : first & 0x7f
    let length = octets === 0 ? first : 0
    for (let i = 0; i < octets; i++) length = length * 256 + rest[2 + i]!
    out.push(rest.subarray(0, 2 + octets + length))
    rest = rest.subarray(2 + octets + length)
  }
  return out
}
