import { type Bytes, fromBase64 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { isJsonObject, type JsonValue } from '../../json.ts'
import { MAX_TRUSTED_ROOT_BYTES } from '../../limits.ts'
import { dig, readJson } from '../content.ts'
import { importVerifyingKey, type VerifyingKey } from '../key.ts'
import { readCertificate, TIME_STAMPING } from './certificate.ts'
import type { Authorities } from './library.ts'
import type { Thresholds } from './types.ts'

/** A transparency log whose entries count. */
export interface TransparencyLog {
  id: Bytes
  /** What its checkpoints are signed as: its address without the scheme. */
  name: string
  key: VerifyingKey
  /** Milliseconds; both ends belong to it. */
  from: number
  until: number
}

/** Whom Sigstore signatures are verified against: public-good, GitHub's or one's own. */
export interface TrustedRoot {
  logs: readonly TransparencyLog[]
  authorities: Authorities
  thresholds: Thresholds
}

/**
 * The trusted root in the JSON (`application/vnd.dev.sigstore.trustedroot+json`). Unless `thresholds` say otherwise one log entry, one
 * time and one certificate log are needed of each kind the root names; GitHub's root for private repositories names no logs, so that a
 * timestamp is what counts there. Throws `CONFIG_INVALID` when it cannot be read, or something in it has no
 * beginning of its validity.
 */
export async function loadTrustedRoot(
  bytes: Uint8Array,
  thresholds: Partial<Thresholds> = {},
): Promise<TrustedRoot> {
  const json = parse(bytes)
  const logs = listOf(json, 'tlogs')
  const certificateLogs = listOf(json, 'ctlogs')
  const stamps = listOf(json, 'timestampAuthorities')
  for (const log of [...logs, ...certificateLogs]) validityOf(dig(log, 'publicKey', 'validFor'))
  for (const authority of [...listOf(json, 'certificateAuthorities'), ...stamps]) {
    validityOf(dig(authority, 'validFor'))
  }
  const usable = { ...json, timestampAuthorities: stamps.filter(isStampAuthority) }
  const read = await Promise.all(logs.map(readLog))
  const { createAuthorities } = await import('./library.ts')
  return {
    logs: read.filter((log) => log !== undefined),
    authorities: createAuthorities(usable),
    thresholds: {
      logs: thresholds.logs ?? Math.min(1, logs.length),
      times: thresholds.times ?? Math.min(1, logs.length + stamps.length),
      certificateLogs: thresholds.certificateLogs ?? Math.min(1, certificateLogs.length),
    },
  }
}

function parse(bytes: Uint8Array): { [key: string]: JsonValue } {
  if (bytes.length > MAX_TRUSTED_ROOT_BYTES) {
    throw invalid(`larger than ${MAX_TRUSTED_ROOT_BYTES} bytes`)
  }
  let json: JsonValue
  try {
    json = readJson(bytes)
  } catch (cause) {
    throw new AdmissionError('CONFIG_INVALID', 'trusted root: not JSON', { cause })
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

/** The log, or undefined when its key is of a kind that is not verified here: its entries then do not count. */
async function readLog(log: JsonValue): Promise<TransparencyLog | undefined> {
  const key = fromBase64(textOf(dig(log, 'publicKey', 'rawBytes')))
  const keyId = dig(log, 'checkpointKeyId', 'keyId') ?? dig(log, 'logId', 'keyId')
  const id = fromBase64(textOf(keyId))
  if (key === undefined || id === undefined) throw invalid('a log without key or id')
  const name = textOf(dig(log, 'baseUrl')).replace(/^https?:\/\//, '')
  try {
    return {
      id,
      name: name.replace(/\/$/, ''),
      key: await importVerifyingKey(key),
      ...validityOf(dig(log, 'publicKey', 'validFor')),
    }
  } catch (thrown) {
    if (thrown instanceof AdmissionError && thrown.code === 'KEY_INVALID') return undefined
    throw thrown
  }
}

/** A missing end is open; a missing beginning would make a key older than anybody said. */
function validityOf(value: JsonValue | undefined): { from: number; until: number } {
  const start = dig(value, 'start')
  const end = dig(value, 'end')
  const from = Date.parse(textOf(start))
  const until = end === undefined ? Number.POSITIVE_INFINITY : Date.parse(textOf(end))
  if (Number.isNaN(from) || Number.isNaN(until)) {
    throw invalid(
      'a log or authority is without the beginning of its validity, or has one that is no time',
    )
  }
  return { from, until }
}

/** An authority counts only when its certificate is for timestamps, critically and for nothing else (RFC 3161 section 2.3). */
function isStampAuthority(authority: JsonValue): boolean {
  const certificates = dig(authority, 'certChain', 'certificates')
  const leaf = Array.isArray(certificates) ? dig(certificates[0], 'rawBytes') : undefined
  const der = fromBase64(textOf(leaf))
  if (der === undefined) throw invalid('a timestamp authority without a certificate')
  try {
    const { usages, isUsageCritical } = readCertificate(der)
    return isUsageCritical && usages.length === 1 && usages[0] === TIME_STAMPING
  } catch (cause) {
    throw new AdmissionError('CONFIG_INVALID', 'trusted root: a timestamp authority', { cause })
  }
}

function listOf(json: JsonValue, key: string): readonly JsonValue[] {
  const value = dig(json, key) ?? []
  if (!Array.isArray(value)) throw invalid(`${key} is no list`)
  return value
}

const textOf = (value: JsonValue | undefined) => (typeof value === 'string' ? value : '')

function invalid(found: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', `trusted root: ${found}`)
}
