import { sign } from 'node:crypto'
import { type Bytes, concat, toBase64, toBase64Url, utf8 } from '#shared/bytes.ts'
import type { Descriptor } from '#shared/registry/types.ts'
import { type KeySpec, type Minted, signPss } from '#test/fakes/pki.ts'

/** Notary Project envelopes made in the process, with every part open to be made wrong. */

export const PAYLOAD_TYPE = 'application/vnd.cncf.notary.payload.v1+json'

export const ARTIFACT: Descriptor = {
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  digest: `sha256:${'ab'.repeat(32)}`,
  size: 1234,
}

/** A value of a header before it is written as JSON or CBOR; times are told apart because COSE tags them. */
export type HeaderValue = string | number | Uint8Array | Time | readonly HeaderValue[]
export interface Time {
  time: string
}

export type Headers = Record<string, HeaderValue | undefined>

export interface EnvelopeOptions {
  format: 'JWS' | 'COSE'
  chain: readonly Minted[]
  payload?: unknown
  /** Replaces or, with undefined, removes protected members; `alg`, `crit` and `cty` are spelled so in both formats. */
  signed?: Headers
  /** The same for unprotected members; `x5c` in both formats. */
  header?: Headers
  /** Makes the timestamp token over the signature. */
  token?: (signature: Bytes) => Uint8Array
  touchSignature?: boolean
}

const ALGORITHMS: Partial<
  Record<KeySpec, readonly [name: string, cose: number, hash: 'sha256' | 'sha384' | 'sha512']>
> = {
  'RSA 1024': ['PS256', -37, 'sha256'],
  'RSA 2048': ['PS256', -37, 'sha256'],
  'RSA 3072': ['PS384', -38, 'sha384'],
  'RSA 4096': ['PS512', -39, 'sha512'],
  'P-256': ['ES256', -7, 'sha256'],
  'P-384': ['ES384', -35, 'sha384'],
  'P-521': ['ES512', -36, 'sha512'],
}

const COSE_ALGORITHM = new Map(Object.values(ALGORITHMS).map(([name, cose]) => [name, cose]))

/** A signed envelope and the media type of its layer. */
export function mintEnvelope(options: EnvelopeOptions): { envelope: Bytes; mediaType: string } {
  const [leaf] = options.chain
  const [alg] = ALGORITHMS[leaf!.spec] ?? ['EdDSA']
  const signed = compact({
    alg,
    crit: ['io.cncf.notary.signingScheme'],
    cty: PAYLOAD_TYPE,
    'io.cncf.notary.signingScheme': 'notary.x509',
    'io.cncf.notary.signingTime': { time: '2026-01-01T00:00:00Z' },
    ...options.signed,
  })
  const header = { x5c: options.chain.map(({ der }) => der), ...options.header }
  const payload = utf8(
    typeof options.payload === 'string'
      ? options.payload
      : JSON.stringify(options.payload ?? { targetArtifact: ARTIFACT }),
  )
  const make = options.format === 'JWS' ? mintJws : mintCose
  return make(options, signed, header, payload)
}

function signRaw({ chain: [leaf], touchSignature }: EnvelopeOptions, message: Uint8Array): Bytes {
  const { keys, spec } = leaf!
  const hash = ALGORITHMS[spec]?.[2] ?? 'sha256'
  const raw = spec.startsWith('RSA')
    ? signPss(keys.privateKey, message, hash)
    : sign(hash, message, { key: keys.privateKey, dsaEncoding: 'ieee-p1363' })
  const signature = new Uint8Array(raw)
  if (touchSignature) signature[signature.length - 1]! ^= 1
  return signature
}

function mintJws(options: EnvelopeOptions, signed: Headers, header: Headers, payload: Bytes) {
  const protectedText = toBase64Url(utf8(JSON.stringify(signed, jsonValue)))
  const payloadText = toBase64Url(payload)
  const signature = signRaw(options, utf8(`${protectedText}.${payloadText}`))
  const token = options.token?.(signature)
  const envelope = {
    payload: payloadText,
    protected: protectedText,
    header: compact({
      ...header,
      ...(token ? { 'io.cncf.notary.timestampSignature': token } : {}),
    }),
    signature: toBase64Url(signature),
  }
  return {
    envelope: utf8(JSON.stringify(envelope, jsonValue)),
    mediaType: 'application/jose+json',
  }
}

function jsonValue(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value)
  return typeof value === 'object' && value !== null && 'time' in value ? value.time : value
}

function mintCose(options: EnvelopeOptions, signed: Headers, header: Headers, payload: Bytes) {
  const protectedBytes = cborMap(signed)
  const message = concat(
    Uint8Array.of(0x84),
    cbor('Signature1'),
    cbor(protectedBytes),
    cbor(new Uint8Array()),
    cbor(payload),
  )
  const signature = signRaw(options, message)
  const token = options.token?.(signature)
  const unsigned = compact({
    ...header,
    ...(token ? { 'io.cncf.notary.timestampSignature': token } : {}),
  })
  const envelope = concat(
    Uint8Array.of(0xd2, 0x84),
    cbor(protectedBytes),
    cborMap(unsigned),
    cbor(payload),
    cbor(signature),
  )
  return { envelope, mediaType: 'application/cose' }
}

const LABELS: Readonly<Record<string, number>> = { alg: 1, crit: 2, cty: 3, x5c: 33 }

function cborMap(headers: Headers): Bytes {
  const entries = Object.entries(headers)
  return concat(
    head(5, entries.length),
    ...entries.flatMap(([key, value]) => [
      cbor(LABELS[key] ?? key),
      cbor(key === 'alg' ? (COSE_ALGORITHM.get(value as string) ?? value!) : value!),
    ]),
  )
}

/** A value as CBOR; text to be put in as it is comes as a Uint8Array inside `raw`. */
export function cbor(value: HeaderValue): Bytes {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return concat(head(3, utf8(value).length), utf8(value))
  if (value instanceof Uint8Array) return concat(head(2, value.length), value)
  if ('time' in value) return concat(Uint8Array.of(0xc1), cbor(Date.parse(value.time) / 1000))
  return concat(head(4, value.length), ...value.map(cbor))
}

function head(major: number, argument: number): Bytes {
  if (argument < 24) return Uint8Array.of((major << 5) | argument)
  const width = argument < 256 ? 1 : argument < 65536 ? 2 : 4
  const digits = Array.from({ length: width }, (_, i) =>
    Number((BigInt(argument) >> BigInt(8 * (width - 1 - i))) & 0xffn),
  )
  return Uint8Array.of((major << 5) | (23 + Math.log2(width) + 1), ...digits)
}

function compact(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
}
