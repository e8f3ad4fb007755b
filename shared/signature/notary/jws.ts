import { type Bytes, fromBase64, fromBase64Url, utf8 } from '../../bytes.ts'
import { getOwn, isJsonObject, type JsonValue } from '../../json.ts'
import { MAX_CERTIFICATES, MAX_SIGNATURE_BYTES, MAX_TIMESTAMP_BYTES } from '../../limits.ts'
import { parseCertificate } from '../x509/certificate.ts'
import { malformed } from '../x509/reader.ts'
import { readAttributes, TIMESTAMP_SIGNATURE } from './attributes.ts'
import { type JsonObject, parseObject } from './json.ts'
import type { NotaryAlgorithm, NotaryEnvelope } from './types.ts'

const ALGORITHMS: readonly NotaryAlgorithm[] = [
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
]

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

/**
 * The parts of a JWS in the flattened JSON form with exactly the four members the Notary Project writes. Throws `SIGNATURE_MALFORMED`
 * for anything else: loose base64, a key twice, a header that is both protected and not.
 */
export function openJws(bytes: Bytes): NotaryEnvelope {
  const envelope = parseObject(bytes, 'JWS')
  for (const key of Object.keys(envelope)) {
    if (!['payload', 'protected', 'header', 'signature'].includes(key)) {
      throw malformed('JWS has a member that is not of the flattened form')
    }
  }
  const [payloadText, protectedText] = [text(envelope, 'payload'), text(envelope, 'protected')]
  const signed = parseObject(base64Url(protectedText, 'protected'), 'protected header')
  const header = getOwn(envelope, 'header')
  if (!isJsonObject(header)) throw malformed('JWS has no header')
  for (const key of Object.keys(header)) {
    if (Object.hasOwn(signed, key) || ['alg', 'crit', 'cty'].includes(key)) {
      throw malformed('JWS has an unprotected header that must be protected')
    }
  }
  const signature = base64Url(text(envelope, 'signature'), 'signature')
  if (signature.length > MAX_SIGNATURE_BYTES) throw malformed('JWS signature is too long')
  const algorithm = ALGORITHMS.find((name) => name === getOwn(signed, 'alg'))
  if (algorithm === undefined) throw malformed('JWS algorithm is not supported')
  const token = getOwn(header, TIMESTAMP_SIGNATURE)
  return {
    format: 'JWS',
    algorithm,
    payload: base64Url(payloadText, 'payload'),
    message: utf8(`${protectedText}.${payloadText}`),
    signature,
    ...readAttributes(attributesOf(signed)),
    certificates: certificatesOf(getOwn(header, 'x5c')),
    ...(token === undefined ? {} : { timestampToken: base64(token, MAX_TIMESTAMP_BYTES) }),
  }
}

function attributesOf(signed: JsonObject) {
  const critical = getOwn(signed, 'crit')
  if (!Array.isArray(critical) || critical.length === 0) throw malformed('JWS has no crit')
  return {
    contentType: getOwn(signed, 'cty'),
    critical,
    get: (name: string) => getOwn(signed, name),
    time: (name: string) => {
      const value = getOwn(signed, name)
      const ms = typeof value === 'string' && RFC3339.test(value) ? Date.parse(value) : Number.NaN
      if (Number.isNaN(ms)) throw malformed(`attribute ${name} is not an RFC 3339 time`)
      return ms
    },
  }
}

function certificatesOf(chain: JsonValue | undefined) {
  if (!Array.isArray(chain) || chain.length === 0 || chain.length > MAX_CERTIFICATES) {
    throw malformed(`x5c is not a list of 1 to ${MAX_CERTIFICATES} certificates`)
  }
  return chain.map((each) => parseCertificate(base64(each)))
}

function text(object: JsonObject, key: string): string {
  const value = getOwn(object, key)
  if (typeof value !== 'string') throw malformed(`JWS has no ${key}`)
  return value
}

function base64Url(value: string, what: string): Bytes {
  const bytes = fromBase64Url(value)
  if (bytes === undefined) throw malformed(`JWS ${what} is not strict base64url`)
  return bytes
}

function base64(value: JsonValue, maxBytes = Number.POSITIVE_INFINITY): Bytes {
  const bytes = typeof value === 'string' ? fromBase64(value) : undefined
  if (bytes === undefined) throw malformed('JWS header is not strict base64')
  if (bytes.length > maxBytes) throw malformed('JWS header is too long')
  return bytes
}
