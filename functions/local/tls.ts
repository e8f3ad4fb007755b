import { isIPv4, isIPv6 } from 'node:net'
import { type Bytes, concat, utf8 } from '#shared/bytes.ts'
import * as der from './der.ts'
import { toPem } from './pem.ts'

/** A certificate authority and one server certificate under it, all PEM. */
export interface DevCertificates {
  /** The self-signed CA: what a client trusts, and a webhook's `caBundle` once it is base64. */
  ca: string
  /** The server certificate; the CA signed it directly, so it is the whole chain. */
  cert: string
  /** The server's private key, PKCS #8. The CA's key is thrown away: nothing else can be issued under it. */
  key: string
}

const DAY_MS = 86_400_000
/** Certificates are valid from this long ago, so that a client whose clock is behind accepts them. */
const BACKDATE_MS = DAY_MS
/** Some verifiers refuse server certificates valid for longer than 398 days. */
const VALID_MS = 365 * DAY_MS

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const ECDSA_WITH_SHA256 = der.sequence(der.oid('1.2.840.10045.4.3.2'))
const CA_NAME = 'Countersign development CA'

/**
 * A fresh CA and a server certificate for these DNS names and IP addresses (ECDSA P-256). For development and the demo:
 * nothing is stored here, and every call makes new keys. Throws `TypeError` when `hosts` is empty.
 *
 * @example await createDevCertificates({ hosts: ['localhost', '127.0.0.1'] })
 */
export async function createDevCertificates(options: {
  hosts: readonly string[]
  now?: Date
}): Promise<DevCertificates> {
  const [first] = options.hosts
  if (first === undefined) throw new TypeError('createDevCertificates: hosts is empty')
  const now = (options.now ?? new Date()).getTime()
  const validity = [new Date(now - BACKDATE_MS), new Date(now + VALID_MS)] as const
  const [authority, server] = await Promise.all([newKeys(), newKeys()])
  const issue = (subject: string, spki: Bytes, extensions: readonly Uint8Array[]) =>
    certificate({ issuerKey: authority.privateKey, subject, spki, extensions, validity })
  const [caKey, serverKey] = await Promise.all([identify(authority), identify(server)])
  const ca = await issue(CA_NAME, caKey.spki, caExtensions(caKey.id))
  const cert = await issue(
    first,
    serverKey.spki,
    serverExtensions(options.hosts, serverKey.id, caKey.id),
  )
  const key = new Uint8Array(await crypto.subtle.exportKey('pkcs8', server.privateKey))
  return {
    ca: toPem('CERTIFICATE', ca),
    cert: toPem('CERTIFICATE', cert),
    key: toPem('PRIVATE KEY', key),
  }
}

function newKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
}

/** The public key as SPKI, and its key identifier: SHA-1 of the key's bits (RFC 5280 section 4.2.1.2). */
async function identify(keys: CryptoKeyPair): Promise<{ spki: Bytes; id: Uint8Array }> {
  const spki = new Uint8Array(await crypto.subtle.exportKey('spki', keys.publicKey))
  const raw = await crypto.subtle.exportKey('raw', keys.publicKey)
  return { spki, id: new Uint8Array(await crypto.subtle.digest('SHA-1', raw)) }
}

/** A certificate that the CA signs (RFC 5280 section 4.1), DER. */
async function certificate(options: {
  issuerKey: CryptoKey
  subject: string
  spki: Bytes
  validity: readonly [Date, Date]
  extensions: readonly Uint8Array[]
}): Promise<Uint8Array> {
  const serial = crypto.getRandomValues(new Uint8Array(16))
  const version3 = der.context(0, der.integer(Uint8Array.of(2)))
  const tbs = der.sequence(
    version3,
    der.integer(serial),
    ECDSA_WITH_SHA256,
    commonName(CA_NAME),
    der.sequence(...options.validity.map(der.time)),
    commonName(options.subject),
    options.spki,
    der.context(3, der.sequence(...options.extensions)),
  )
  // `concat` copies into an ArrayBuffer, which is what WebCrypto takes.
  const raw = new Uint8Array(await crypto.subtle.sign(ALGORITHM, options.issuerKey, concat(tbs)))
  const signature = der.sequence(der.integer(raw.subarray(0, 32)), der.integer(raw.subarray(32)))
  return der.sequence(tbs, ECDSA_WITH_SHA256, der.bits(signature))
}

function commonName(text: string): Uint8Array {
  return der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.utf8String(text))))
}

function caExtensions(id: Uint8Array): Uint8Array[] {
  return [
    // Path length 0: this CA issues servers, never another CA.
    extension('2.5.29.19', der.sequence(der.boolean(true), der.integer(Uint8Array.of(0))), true),
    // keyCertSign and cRLSign: bits 5 and 6.
    extension('2.5.29.15', der.bits(Uint8Array.of(0b0000_0110), 1), true),
    extension('2.5.29.14', der.octets(id)),
  ]
}

function serverExtensions(
  hosts: readonly string[],
  id: Uint8Array,
  issuer: Uint8Array,
): Uint8Array[] {
  return [
    extension('2.5.29.19', der.sequence(), true),
    // digitalSignature: bit 0.
    extension('2.5.29.15', der.bits(Uint8Array.of(0b1000_0000), 7), true),
    // serverAuth.
    extension('2.5.29.37', der.sequence(der.oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', der.sequence(...hosts.map(generalName))),
    extension('2.5.29.14', der.octets(id)),
    extension('2.5.29.35', der.sequence(der.contextPrimitive(0, issuer))),
  ]
}

function extension(id: string, value: Uint8Array, critical = false): Uint8Array {
  return der.sequence(der.oid(id), ...(critical ? [der.boolean(true)] : []), der.octets(value))
}

/** iPAddress `[7]` for an address, dNSName `[2]` for everything else. */
function generalName(host: string): Uint8Array {
  if (isIPv4(host)) return der.contextPrimitive(7, Uint8Array.from(host.split('.').map(Number)))
  if (isIPv6(host)) return der.contextPrimitive(7, ipv6Bytes(host))
  return der.contextPrimitive(2, utf8(host))
}

function ipv6Bytes(address: string): Uint8Array {
  // The URL parser writes any spelling as hexadecimal groups with at most one `::`.
  const groups = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::')
  const [head = [], tail = []] = groups.map((part) => part.split(':').filter(Boolean))
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0')
  return Uint8Array.from(
    [...head, ...zeros, ...tail].flatMap((group) => {
      const value = Number.parseInt(group, 16)
      return [value >> 8, value & 0xff]
    }),
  )
}
