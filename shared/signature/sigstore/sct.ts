import { sha256 } from '@noble/hashes/sha2.js'
import { type Bytes, concat, equal, toHex } from '../../bytes.ts'
import { MAX_CERTIFICATE_TIMESTAMPS } from '../../limits.ts'
import { encodeDer, TAG } from '../der.ts'
import type { VerifyingKey } from '../key.ts'
import type { Certificate } from '../x509/certificate.ts'
import { DerReader, dottedOid, malformed } from '../x509/reader.ts'
import { isWithin, type Window } from './authority.ts'

/** A certificate transparency log. */
export interface CertificateLog extends Window {
  id: Bytes
  key: VerifyingKey
}

/** The extension with the signed certificate timestamps (RFC 6962 section 3.3). */
const TIMESTAMPS = '1.3.6.1.4.1.11129.2.4.2'
const EXTENSIONS = 0xa3

/** A signed certificate timestamp of version 1. */
interface CertificateTimestamp {
  logId: Bytes
  /** Eight bytes: milliseconds. */
  time: Bytes
  extensions: Bytes
  signature: Bytes
}

/**
 * Why fewer than `wanted` of the logs have seen the certificate, or undefined when enough have. Timestamps of unknown logs say nothing,
 * several of one log count once. Throws `SIGNATURE_MALFORMED`.
 */
export async function certificateLogFault(
  certificate: Certificate,
  issuer: Certificate,
  logs: readonly CertificateLog[],
  wanted: number,
): Promise<string | undefined> {
  if (wanted === 0) return undefined
  const seen = new Set<string>()
  let fault = ''
  const list = certificate.values.get(TIMESTAMPS)
  const entry = list && precertificateEntry(certificate, issuer)
  for (const each of list === undefined ? [] : readTimestamps(list)) {
    for (const log of logs.filter(({ id }) => equal(id, each.logId))) {
      if (entry === undefined || !isWithin(log, milliseconds(each.time))) {
        fault = ': a log key was not valid when it saw the certificate'
      } else if (
        (await log.key.verify(signedBytes(each, entry), each.signature, 'sha256')) === undefined
      ) {
        fault = ': a signed certificate timestamp does not verify'
      } else seen.add(toHex(log.id))
    }
  }
  return seen.size >= wanted
    ? undefined
    : `seen by ${seen.size} known certificate logs, expected ${wanted}${fault}`
}

/** What every log has signed of the certificate: the hash of its issuer's key, and its signed part without the timestamps. */
function precertificateEntry(certificate: Certificate, issuer: Certificate): Bytes {
  const fields = DerReader.only(certificate.tbs, 'certificate').rest()
  const parts = fields.map(({ tag, content, whole }) => {
    if (tag !== EXTENSIONS) return whole
    const kept = DerReader.only(content, 'extensions').rest().filter(isNotTimestamps)
    return encodeDer(EXTENSIONS, encodeDer(TAG.sequence, ...kept.map((each) => each.whole)))
  })
  const precertificate = encodeDer(TAG.sequence, ...parts)
  return concat(sha256(issuer.spki), uint24(precertificate.length), precertificate)
}

function isNotTimestamps({ content }: { content: Bytes }): boolean {
  return dottedOid(new DerReader(content, 'extension').next(TAG.oid).content) !== TIMESTAMPS
}

/** Version 1, a certificate timestamp, its time, a precertificate entry, its extensions (RFC 6962 section 3.2). */
function signedBytes({ time, extensions }: CertificateTimestamp, entry: Bytes): Bytes {
  const size = Uint8Array.of(extensions.length >> 8, extensions.length & 0xff)
  return concat(Uint8Array.of(0, 0), time, Uint8Array.of(0, 1), entry, size, extensions)
}

const uint24 = (value: number) => Uint8Array.of(value >> 16, (value >> 8) & 0xff, value & 0xff)

/** Beyond 2^53 it is no time of anybody's, which the inexact number still says. */
const milliseconds = (time: Bytes) => time.reduce((value, byte) => value * 256 + byte, 0)

/** The timestamps of version 1 in the list. Throws `SIGNATURE_MALFORMED` unless every length fits. */
function readTimestamps(value: Bytes): readonly CertificateTimestamp[] {
  const octets = new DerReader(value, 'certificate timestamps')
  const outer = new Vector(octets.next(TAG.octetString).content)
  octets.end()
  const list = new Vector(outer.sized())
  outer.end()
  const found: CertificateTimestamp[] = []
  for (let count = 0; !list.done; count++) {
    if (count === MAX_CERTIFICATE_TIMESTAMPS) throw malformed('too many certificate timestamps')
    const timestamp = readTimestamp(new Vector(list.sized()))
    if (timestamp !== undefined) found.push(timestamp)
  }
  return found
}

/** SHA-256 with RSA or ECDSA, what log keys sign with; undefined for other versions and algorithms. */
function readTimestamp(vector: Vector): CertificateTimestamp | undefined {
  const [version] = vector.take(1)
  if (version !== 0) return undefined
  const logId = vector.take(32)
  const time = vector.take(8)
  const extensions = vector.sized()
  const [hash, algorithm] = vector.take(2)
  const signature = vector.sized()
  vector.end()
  const isKnown = hash === 4 && (algorithm === 1 || algorithm === 3)
  return isKnown ? { logId, time, extensions, signature } : undefined
}

/** Reads the structures of TLS: fixed lengths, and lengths of two bytes. */
class Vector {
  readonly #bytes: Bytes
  #at = 0

  constructor(bytes: Bytes) {
    this.#bytes = bytes
  }

  take(length: number): Bytes {
    const taken = this.#bytes.subarray(this.#at, this.#at + length)
    if (taken.length !== length) throw malformed('a certificate timestamp is cut off')
    this.#at += length
    return taken
  }

  sized(): Bytes {
    const [high = 0, low = 0] = this.take(2)
    return this.take(high * 256 + low)
  }

  get done(): boolean {
    return this.#at === this.#bytes.length
  }

  end(): void {
    if (!this.done) throw malformed('a certificate timestamp has bytes behind it')
  }
}
