import { fromBase64 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { isJsonObject, type JsonValue } from '../../json.ts'
import { MAX_CHAIN_CERTIFICATES, MAX_TRUSTED_ROOT_BYTES } from '../../limits.ts'
import { dig, readJson } from '../content.ts'
import { importVerifyingKey } from '../key.ts'
import { type Certificate, parseCertificate } from '../x509/certificate.ts'
import { type Issuer, issuersOf, unlessUnfitKey, type Window } from './authority.ts'
import { type StampAuthority, stampAuthority } from './stamp.ts'
import type { TransparencyLog, Trust } from './trust.ts'
import type { Thresholds } from './types.ts'

/**
 * Whom the trusted root in the JSON names (`application/vnd.dev.sigstore.trustedroot+json`): public-good, GitHub's or one's own. Unless
 * `thresholds` say otherwise one log entry, one time and one certificate log are needed of each kind the root names; GitHub's root for
 * private repositories names no logs, so that a timestamp is what counts there. Keys and chains that cannot be verified with here do not
 * count. Throws `CONFIG_INVALID` when it cannot be read, or something in it has no beginning of its validity.
 */
export async function loadTrustedRoot(
  bytes: Uint8Array,
  thresholds: Partial<Thresholds> = {},
): Promise<Trust> {
  const json = parse(bytes)
  const [logs, certificateLogs] = [listOf(json, 'tlogs'), listOf(json, 'ctlogs')]
  const stamps = listOf(json, 'timestampAuthorities')
  const authorities = listOf(json, 'certificateAuthorities')
  return {
    logs: (await Promise.all(logs.map(readLog))).flat(),
    issuers: (await Promise.all(authorities.map(readIssuers))).flat(),
    certificateLogs: (await Promise.all(certificateLogs.map(readLog))).flat(),
    stampAuthorities: (await Promise.all(stamps.map(readStampAuthority))).flat(),
    thresholds: {
      logs: thresholds.logs ?? Math.min(1, logs.length),
      times: thresholds.times ?? Math.min(1, logs.length + stamps.length),
      certificateLogs: thresholds.certificateLogs ?? Math.min(1, certificateLogs.length),
    },
  }
}

function parse(bytes: Uint8Array): JsonValue {
  if (bytes.length > MAX_TRUSTED_ROOT_BYTES) {
    throw invalid(`larger than ${MAX_TRUSTED_ROOT_BYTES} bytes`)
  }
  let json: JsonValue
  try {
    json = readJson(bytes)
  } catch (cause) {
    throw invalid('not JSON', cause)
  }
  const mediaType = dig(json, 'mediaType')
  const isKnown =
    typeof mediaType === 'string' &&
    /^application\/vnd\.dev\.sigstore\.trustedroot(\+json;version=0\.[12]|\.v0\.[12]\+json)$/.test(
      mediaType,
    )
  if (!isJsonObject(json) || !isKnown) throw invalid('no trusted root of version 0.1 or 0.2')
  return json
}

/** The log, or none when its key is of a kind that is not verified here: what it says then does not count. */
async function readLog(log: JsonValue): Promise<readonly TransparencyLog[]> {
  const window = windowOf(dig(log, 'publicKey', 'validFor'))
  const spki = fromBase64(textOf(dig(log, 'publicKey', 'rawBytes')))
  const logId = dig(log, 'logId', 'keyId') ?? undefined
  const noteId = dig(log, 'checkpointKeyId', 'keyId') ?? logId
  const [id, hint] = [fromBase64(textOf(logId ?? noteId)), fromBase64(textOf(noteId))]
  if (!spki?.length || !id?.length || !hint?.length) throw invalid('a log without key or id')
  const name = textOf(dig(log, 'baseUrl'))
    .replace(/^https?:\/\//, '')
    .replace(/\/$/, '')
  const key = await unlessUnfitKey(importVerifyingKey(spki))
  return key === undefined ? [] : [{ id, hint: hint.subarray(0, 4), name, key, spki, ...window }]
}

async function readIssuers(authority: JsonValue): Promise<readonly Issuer[]> {
  return issuersOf(chainOf(authority), windowOf(dig(authority, 'validFor')))
}

async function readStampAuthority(authority: JsonValue): Promise<readonly StampAuthority[]> {
  const certificates = chainOf(authority)
  const window = windowOf(dig(authority, 'validFor'))
  const [first] = certificates
  const leaf = first?.basicConstraints?.ca === true ? undefined : first
  const anchors = certificates.slice(-1)
  const intermediates = certificates.filter((each) => each !== leaf && !anchors.includes(each))
  const read = await unlessUnfitKey(stampAuthority({ leaf, intermediates, anchors, ...window }))
  return read === undefined ? [] : [read]
}

function chainOf(authority: JsonValue): readonly Certificate[] {
  const certificates = dig(authority, 'certChain', 'certificates')
  const count = Array.isArray(certificates) ? certificates.length : 0
  if (!Array.isArray(certificates) || count === 0 || count > MAX_CHAIN_CERTIFICATES) {
    throw invalid(`an authority of ${count} certificates, expected 1 to ${MAX_CHAIN_CERTIFICATES}`)
  }
  return certificates.map((each) => {
    try {
      return parseCertificate(fromBase64(textOf(dig(each, 'rawBytes'))) ?? new Uint8Array())
    } catch (cause) {
      throw invalid('an authority whose certificate cannot be read', cause)
    }
  })
}

/** A missing end is open; a missing beginning would make a key older than anybody said. */
function windowOf(value: JsonValue | undefined): Window {
  const end = dig(value, 'end') ?? undefined
  const from = Date.parse(textOf(dig(value, 'start')))
  const until = end === undefined ? Number.POSITIVE_INFINITY : Date.parse(textOf(end))
  if (Number.isNaN(from) || Number.isNaN(until)) {
    throw invalid(
      'a log or authority is without the beginning of its validity, or has one that is no time',
    )
  }
  return { from, until }
}

function listOf(json: JsonValue, key: string): readonly JsonValue[] {
  const value = dig(json, key) ?? []
  if (!Array.isArray(value)) throw invalid(`${key} is no list`)
  return value
}

const textOf = (value: JsonValue | undefined) => (typeof value === 'string' ? value : '')

function invalid(found: string, cause?: unknown): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', `trusted root: ${found}`, { cause })
}
