import { type Bytes, concat } from '../../bytes.ts'
import { MAX_CERTIFICATES, MAX_SIGNATURE_BYTES, MAX_TIMESTAMP_BYTES } from '../../limits.ts'
import { parseCertificate } from '../x509/certificate.ts'
import { malformed } from '../x509/reader.ts'
import { readAttributes, TIMESTAMP_SIGNATURE } from './attributes.ts'
import { CborTag, type CborValue, decodeCbor, encodeHead, encodeString } from './cbor.ts'
import type { NotaryAlgorithm, NotaryEnvelope } from './types.ts'

type Labels = ReadonlyMap<number | string, CborValue>

const COSE_SIGN1 = 18
const EPOCH_TIME = 1

/** Header labels (RFC 9052 section 3.1, RFC 9360). */
const LABEL = { algorithm: 1, critical: 2, contentType: 3, certificates: 33 } as const

const ALGORITHMS: ReadonlyMap<CborValue | undefined, NotaryAlgorithm> = new Map([
  [-37, 'PS256'],
  [-38, 'PS384'],
  [-39, 'PS512'],
  [-7, 'ES256'],
  [-35, 'ES384'],
  [-36, 'ES512'],
])

/** The latest second a JavaScript date can name. */
const MAX_EPOCH_SECONDS = 8.64e12

/**
 * The parts of a tagged COSE_Sign1 (RFC 9052 section 4.2) with its payload inside. The signed bytes are built around the protected
 * header as received, never a re-encoded one. Throws `SIGNATURE_MALFORMED`.
 */
export function openCose(bytes: Bytes): NotaryEnvelope {
  const [protectedBytes, header, payload, signature] = partsOf(decodeCbor(bytes))
  const signed = labelsOf(decodeCbor(protectedBytes))
  for (const label of header.keys()) {
    const isSigned = [LABEL.algorithm, LABEL.critical, LABEL.contentType].some((l) => l === label)
    if (signed.has(label) || isSigned) {
      throw malformed('COSE has an unprotected header that must be protected')
    }
  }
  if (signature.length > MAX_SIGNATURE_BYTES) throw malformed('COSE signature is too long')
  const algorithm = ALGORITHMS.get(signed.get(LABEL.algorithm))
  if (algorithm === undefined) throw malformed('COSE algorithm is not supported')
  const token = header.get(TIMESTAMP_SIGNATURE)
  return {
    format: 'COSE',
    algorithm,
    payload,
    message: concat(
      encodeHead(4, 4),
      encodeString('Signature1'),
      encodeString(protectedBytes),
      encodeString(new Uint8Array()),
      encodeString(payload),
    ),
    signature,
    ...readAttributes(attributesOf(signed)),
    certificates: certificatesOf(header.get(LABEL.certificates)),
    ...(token === undefined ? {} : { timestampToken: tokenOf(token) }),
  }
}

function partsOf(value: CborValue): [Bytes, Labels, Bytes, Bytes] {
  if (!(value instanceof CborTag) || value.tag !== COSE_SIGN1 || !Array.isArray(value.value)) {
    throw malformed('COSE is not a tagged COSE_Sign1')
  }
  const parts: readonly CborValue[] = value.value
  const [protectedBytes, header, payload, signature] = parts
  if (parts.length !== 4 || !isBytes(protectedBytes) || !isBytes(payload) || !isBytes(signature)) {
    throw malformed('COSE_Sign1 is not three byte strings and a header')
  }
  return [protectedBytes, labelsOf(header), payload, signature]
}

function attributesOf(signed: Labels) {
  const critical = signed.get(LABEL.critical)
  if (!Array.isArray(critical) || critical.length === 0) throw malformed('COSE has no crit')
  return {
    contentType: signed.get(LABEL.contentType),
    critical: critical as readonly CborValue[],
    get: (name: string) => signed.get(name),
    time: (name: string) => {
      const value = signed.get(name)
      const seconds = value instanceof CborTag && value.tag === EPOCH_TIME ? value.value : undefined
      if (typeof seconds !== 'number' || Math.abs(seconds) > MAX_EPOCH_SECONDS) {
        throw malformed(`attribute ${name} is not an epoch time`)
      }
      return seconds * 1000
    },
  }
}

/** One certificate is a byte string, several are an array of them (RFC 9360 section 2). */
function certificatesOf(value: CborValue | undefined) {
  const chain: readonly (CborValue | undefined)[] = Array.isArray(value) ? value : [value]
  if (chain.length === 0 || chain.length > MAX_CERTIFICATES) {
    throw malformed(`x5chain is not 1 to ${MAX_CERTIFICATES} certificates`)
  }
  return chain.map((each) => {
    if (!isBytes(each)) throw malformed('x5chain is not made of byte strings')
    return parseCertificate(each)
  })
}

function tokenOf(token: CborValue): Bytes {
  if (!isBytes(token)) throw malformed('the timestamp is not a byte string')
  if (token.length > MAX_TIMESTAMP_BYTES) throw malformed('the timestamp is too long')
  return token
}

function labelsOf(value: CborValue | undefined): Labels {
  if (!(value instanceof Map)) throw malformed('a COSE header is not a map')
  return value
}

function isBytes(value: CborValue | undefined): value is Bytes {
  return value instanceof Uint8Array
}
