import { createHash } from 'node:crypto'
import * as der from '#functions/local/der.ts'
import { type Bytes, concat, utf8 } from '#shared/bytes.ts'
import {
  algorithm,
  HASH_OID,
  type Hash,
  type Minted,
  mint,
  mintRoot,
  NOTARY_NAME,
  NULL,
  signDer,
  TIME_STAMPING,
} from '#test/fakes/pki.ts'

/** RFC 3161 timestamp tokens made in the process, with every part open to be made wrong. */
export interface TokenOptions {
  message: Uint8Array
  /** Signer first. */
  chain: readonly Minted[]
  /** GeneralizedTime as text. */
  genTime?: string
  /** Members of Accuracy. */
  accuracy?: readonly Uint8Array[]
  /** Of the authority. */
  policy?: string
  imprintHash?: Hash
  digestHash?: Hash
  pss?: boolean
  /** `rsaEncryption` in place of an algorithm that names its hash. */
  plainRsa?: boolean
  /** The certificate the signed attributes name; the signer by default. */
  named?: Minted
  /** What follows the fields of TSTInfo that every token has. */
  infoTail?: readonly Uint8Array[]
  infoType?: string
  signedType?: string
  digestOf?: Uint8Array
  /** The signed attributes, to be made wrong. */
  attributes?: (attributes: Uint8Array[]) => Uint8Array[]
  /** Certificates inside; the chain without its root by default. */
  certificates?: readonly Minted[]
  signers?: number
  bySubjectKeyId?: Uint8Array
  touchSignature?: boolean
  writeAlgorithm?: Uint8Array
}

const TST_INFO = '1.2.840.113549.1.9.16.1.4'
const hashBytes = (hash: Hash, bytes: Uint8Array) =>
  new Uint8Array(createHash(hash).update(bytes).digest())
const attribute = (oid: string, value: Uint8Array) => der.sequence(der.oid(oid), der.set(value))

/** A timestamp authority's root and signer. */
export function mintTsa(
  options: Parameters<typeof mint>[0] = {},
  rootOptions: Parameters<typeof mint>[0] = {},
) {
  const root = mintRoot({ subject: NOTARY_NAME('tsa root'), keyName: 'tsa root', ...rootOptions })
  const signer = mint({
    subject: NOTARY_NAME('tsa'),
    keyName: 'tsa',
    issuer: root,
    purposes: [TIME_STAMPING],
    purposesCritical: true,
    ...options,
  })
  return { root, signer, chain: [signer, root] }
}

/** A TimeStampToken over the message. */
export function mintToken(options: TokenOptions): Bytes {
  const { chain, imprintHash = 'sha256', digestHash = 'sha256' } = options
  const [signer] = chain
  const info = der.sequence(
    der.integer(Uint8Array.of(1)),
    der.oid(options.policy ?? '1.2.3.4'),
    der.sequence(
      algorithm(HASH_OID[imprintHash], NULL),
      der.octets(hashBytes(imprintHash, options.message)),
    ),
    der.integer(Uint8Array.of(7)),
    der.element(0x18, utf8(options.genTime ?? '20260101000000Z')),
    ...(options.accuracy ? [der.sequence(...options.accuracy)] : []),
    ...(options.infoTail ?? []),
  )
  const signerInfo = signerInfoOf(options, signer!, info, digestHash)
  const certificates = options.certificates ?? chain.slice(0, Math.max(1, chain.length - 1))
  const signedData = der.sequence(
    der.integer(Uint8Array.of(3)),
    der.set(algorithm(HASH_OID[digestHash], NULL)),
    der.sequence(der.oid(options.infoType ?? TST_INFO), der.context(0, der.octets(info))),
    der.context(0, ...certificates.map((each) => each.der)),
    der.set(...Array.from({ length: options.signers ?? 1 }, () => signerInfo)),
  )
  return concat(der.sequence(der.oid('1.2.840.113549.1.7.2'), der.context(0, signedData)))
}

function signerInfoOf(options: TokenOptions, signer: Minted, info: Uint8Array, hash: Hash) {
  const named = options.named ?? signer
  const essCertId = der.sequence(der.octets(hashBytes('sha256', named.der)))
  const standard = [
    attribute('1.2.840.113549.1.9.3', der.oid(options.signedType ?? TST_INFO)),
    attribute('1.2.840.113549.1.9.4', der.octets(hashBytes(hash, options.digestOf ?? info))),
    attribute('1.2.840.113549.1.9.16.2.47', der.sequence(der.sequence(essCertId))),
  ]
  const attributes = concat(...(options.attributes?.(standard) ?? standard))
  const signed = signDer(signer.keys.privateKey, der.set(attributes), {
    hash,
    pss: options.pss ?? false,
  })
  const signature = signed.signature.slice()
  if (options.touchSignature) signature[signature.length - 1]! ^= 1
  const plain = options.plainRsa ? algorithm('1.2.840.113549.1.1.1', NULL) : signed.algorithm
  return der.sequence(
    der.integer(Uint8Array.of(options.bySubjectKeyId ? 3 : 1)),
    options.bySubjectKeyId
      ? der.contextPrimitive(0, options.bySubjectKeyId)
      : issuerAndSerial(signer),
    algorithm(HASH_OID[hash], NULL),
    der.context(0, attributes),
    options.writeAlgorithm ?? plain,
    der.octets(signature),
  )
}

/** Issuer and serial number as they stand in the certificate: the third and second member after the version. */
function issuerAndSerial({ der: bytes }: Minted): Uint8Array {
  const members = children(children(bytes)[0]!)
  return der.sequence(members[3]!, members[1]!)
}

/** Elements inside the first element. */
function children(bytes: Uint8Array): Uint8Array[] {
  const size = (at: number): [head: number, length: number] => {
    const first = bytes[at + 1]!
    if (first < 0x80) return [2, first]
    let length = 0
    for (let i = 0; i < (first & 0x7f); i++) length = length * 256 + bytes[at + 2 + i]!
    return [2 + (first & 0x7f), length]
  }
  const out: Uint8Array[] = []
  const [start, total] = size(0)
  let at = start
  const end = start + total
  while (at < end) {
    const [head, length] = size(at)
    out.push(bytes.subarray(at, at + head + length))
    at += head + length
  }
  return out
}
