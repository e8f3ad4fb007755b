import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import * as der from '#functions/local/der.ts'
import type { Bytes } from '#shared/bytes.ts'

/** Certificates made in the process, with every part open to be made wrong. */

const GENERATORS = {
  'P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'P-521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  'RSA 1024': () => generateKeyPairSync('rsa', { modulusLength: 1024 }),
  'RSA 2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'RSA 3072': () => generateKeyPairSync('rsa', { modulusLength: 3072 }),
  'RSA 4096': () => generateKeyPairSync('rsa', { modulusLength: 4096 }),
  Ed25519: () => generateKeyPairSync('ed25519'),
}

export type KeySpec = keyof typeof GENERATORS

interface KeyPair {
  publicKey: KeyObject
  privateKey: KeyObject
}

const made = new Map<string, KeyPair>()

/** The same pair for the same kind and name. */
export function keysOf(spec: KeySpec, name = ''): KeyPair {
  const keys = made.get(`${spec} ${name}`) ?? GENERATORS[spec]()
  made.set(`${spec} ${name}`, keys)
  return keys
}

export type Hash = 'sha1' | 'sha256' | 'sha384' | 'sha512'

export const HASH_OID: Readonly<Record<Hash, string>> = {
  sha1: '1.3.14.3.2.26',
  sha256: '2.16.840.1.101.3.4.2.1',
  sha384: '2.16.840.1.101.3.4.2.2',
  sha512: '2.16.840.1.101.3.4.2.3',
}

const RSA_OID: Readonly<Record<Hash, string>> = {
  sha1: '1.2.840.113549.1.1.5',
  sha256: '1.2.840.113549.1.1.11',
  sha384: '1.2.840.113549.1.1.12',
  sha512: '1.2.840.113549.1.1.13',
}

const ECDSA_OID: Readonly<Record<Hash, string>> = {
  sha1: '1.2.840.10045.4.1',
  sha256: '1.2.840.10045.4.3.2',
  sha384: '1.2.840.10045.4.3.3',
  sha512: '1.2.840.10045.4.3.4',
}

export const NULL = der.element(0x05)
export const algorithm = (oid: string, ...parameters: Uint8Array[]) =>
  der.sequence(der.oid(oid), ...parameters)

/** A signature as X.509 and CMS write it, with its AlgorithmIdentifier. */
export function signDer(
  privateKey: KeyObject,
  message: Uint8Array,
  { hash = 'sha256', pss = false }: { hash?: Hash; pss?: boolean } = {},
): { algorithm: Uint8Array; signature: Uint8Array } {
  switch (privateKey.asymmetricKeyType) {
    case 'ed25519':
      return { algorithm: algorithm('1.3.101.112'), signature: sign(null, message, privateKey) }
    case 'ec':
      return { algorithm: algorithm(ECDSA_OID[hash]), signature: sign(hash, message, privateKey) }
    default:
      return pss
        ? { algorithm: pssAlgorithm(hash), signature: signPss(privateKey, message, hash) }
        : { algorithm: algorithm(RSA_OID[hash], NULL), signature: sign(hash, message, privateKey) }
  }
}

/** RSASSA-PSS with a salt as long as the hash. */
export function signPss(key: KeyObject, message: Uint8Array, hash: Hash): Uint8Array {
  // RSA_PKCS1_PSS_PADDING and RSA_PSS_SALTLEN_DIGEST.
  return sign(hash, message, { key, padding: 6, saltLength: -1 })
}

export function pssAlgorithm(
  hash: Hash,
  maskHash = hash,
  salt = { sha1: 20, sha256: 32, sha384: 48, sha512: 64 }[hash],
) {
  const id = (name: Hash) => algorithm(HASH_OID[name], NULL)
  return algorithm(
    '1.2.840.113549.1.1.10',
    der.sequence(
      der.context(0, id(hash)),
      der.context(1, algorithm('1.2.840.113549.1.1.8', id(maskHash))),
      der.context(2, der.integer(Uint8Array.of(salt))),
    ),
  )
}

export interface Minted {
  der: Bytes
  subject: Uint8Array
  keys: KeyPair
  spec: KeySpec
}

export type Attributes = readonly (readonly [oid: string, value: string])[]

export interface CertificateOptions {
  subject?: Attributes
  spec?: KeySpec
  /** Tells two keys of one kind apart. */
  keyName?: string
  /** Undefined: self-signed. */
  issuer?: Minted
  /** Made from the kind and name of the key unless given. */
  serial?: Uint8Array
  validity?: readonly [Date, Date]
  /** Bit positions of the key usage; null: no such extension. */
  usages?: readonly number[] | null
  usageCritical?: boolean
  purposes?: readonly string[] | null
  purposesCritical?: boolean
  /** Basic constraints; null: no such extension. */
  ca?: { pathLength?: number; critical?: boolean } | null
  extra?: readonly Uint8Array[]
  hash?: Hash
  pss?: boolean
  /** The algorithm written in place of the right one. */
  writeAlgorithm?: Uint8Array
  /** The members of TBSCertificate in their order, to be made wrong. */
  change?: (members: Uint8Array[]) => Uint8Array[]
}

export const CODE_SIGNING = '1.3.6.1.5.5.7.3.3'
export const TIME_STAMPING = '1.3.6.1.5.5.7.3.8'
export const DIGITAL_SIGNATURE = 0
export const KEY_CERT_SIGN = 5
export const CRL_SIGN = 6

/** What everything here is valid in. */
export const VALID: readonly [Date, Date] = [
  new Date('2025-01-01T00:00:00Z'),
  new Date('2027-01-01T00:00:00Z'),
]

export const NOTARY_NAME = (cn: string): Attributes => [
  ['2.5.4.6', 'US'],
  ['2.5.4.8', 'WA'],
  ['2.5.4.10', 'Example'],
  ['2.5.4.3', cn],
]

/** A certificate; by default a self-signed one that may sign artifacts. */
export function mint(options: CertificateOptions = {}): Minted {
  const { spec = 'P-256', keyName = '', issuer, validity = VALID, hash = 'sha256' } = options
  const keys = keysOf(spec, keyName)
  const subject = nameOf(options.subject ?? NOTARY_NAME('signer'))
  const signingKey = issuer?.keys.privateKey ?? keys.privateKey
  const signing = { hash, pss: options.pss ?? false }
  const id = options.writeAlgorithm ?? signDer(signingKey, new Uint8Array(), signing).algorithm
  const members = [
    der.context(0, der.integer(Uint8Array.of(2))),
    der.integer(options.serial ?? serialOf(spec, keyName)),
    id,
    issuer?.subject ?? subject,
    der.sequence(...validity.map(der.time)),
    subject,
    new Uint8Array(keys.publicKey.export({ type: 'spki', format: 'der' })),
    der.context(3, der.sequence(...extensionsOf(options))),
  ]
  const tbs = der.sequence(...(options.change?.(members) ?? members))
  const { signature } = signDer(signingKey, tbs, signing)
  const bytes = der.sequence(tbs, id, der.bits(signature))
  return { der: new Uint8Array(bytes), subject, keys, spec }
}

function serialOf(spec: KeySpec, keyName: string): Uint8Array {
  return Uint8Array.of(1, ...Buffer.from(spec + keyName).subarray(0, 12))
}

/** A self-signed authority. */
export function mintRoot(options: CertificateOptions = {}): Minted {
  return mint({
    subject: NOTARY_NAME('root'),
    keyName: 'root',
    usages: [KEY_CERT_SIGN],
    purposes: null,
    ca: {},
    ...options,
  })
}

/** An authority under another. */
export function mintIntermediate(issuer: Minted, options: CertificateOptions = {}): Minted {
  return mintRoot({
    subject: NOTARY_NAME('intermediate'),
    keyName: 'intermediate',
    issuer,
    ...options,
  })
}

export function extension(id: string, value: Uint8Array, critical = false): Uint8Array {
  return der.sequence(der.oid(id), ...(critical ? [der.boolean(true)] : []), der.octets(value))
}

/** The extensions that say whom to ask about a certificate: AuthorityInfoAccess and CRLDistributionPoints. */
export function askAt({ ocsp = [], crl }: { ocsp?: readonly string[]; crl?: readonly string[] }) {
  const url = (text: string) => der.contextPrimitive(6, Buffer.from(text))
  const responders = ocsp.map((text) => der.sequence(der.oid('1.3.6.1.5.5.7.48.1'), url(text)))
  const points = crl?.map((text) => der.sequence(der.context(0, der.context(0, url(text)))))
  return [
    ...(responders.length > 0 ? [extension('1.3.6.1.5.5.7.1.1', der.sequence(...responders))] : []),
    ...(points ? [extension('2.5.29.31', der.sequence(...points))] : []),
  ]
}

export function nameOf(attributes: Attributes): Uint8Array {
  return der.sequence(
    ...attributes.map(([oid, value]) => der.set(der.sequence(der.oid(oid), der.utf8String(value)))),
  )
}

function extensionsOf(options: CertificateOptions): Uint8Array[] {
  const { usages = [DIGITAL_SIGNATURE], purposes = [CODE_SIGNING], ca = null, extra = [] } = options
  const out = [...extra]
  if (ca !== null) {
    const length = ca.pathLength === undefined ? [] : [der.integer(Uint8Array.of(ca.pathLength))]
    out.push(
      extension('2.5.29.19', der.sequence(der.boolean(true), ...length), ca.critical ?? true),
    )
  }
  if (usages !== null) {
    out.push(extension('2.5.29.15', usageBits(usages), options.usageCritical ?? true))
  }
  if (purposes !== null) {
    const value = der.sequence(...purposes.map(der.oid))
    out.push(extension('2.5.29.37', value, options.purposesCritical ?? false))
  }
  return out
}

function usageBits(usages: readonly number[]): Uint8Array {
  const last = Math.max(...usages)
  const bytes = new Uint8Array((last >> 3) + 1)
  for (const bit of usages) bytes[bit >> 3]! |= 0x80 >> (bit & 7)
  return der.bits(bytes, 7 - (last & 7))
}

export function pemOf({ der: bytes }: Pick<Minted, 'der'>): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
