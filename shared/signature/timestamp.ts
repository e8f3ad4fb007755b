import { type Bytes, equal } from '../bytes.ts'
import { checkSignedData, parseSignedData, type SignedData, type SignedDataCheck } from './cms.ts'
import { TAG } from './der.ts'
import { digestOf } from './key.ts'
import type { HashAlgorithm } from './types.ts'
import { hashOf } from './x509/algorithm.ts'
import type { Certificate } from './x509/certificate.ts'
import { areValidAt, buildChain } from './x509/chain.ts'
import { TIME_STAMPING, whyNotTimestamper } from './x509/leaf.ts'
import { type Name, parseName, sameName } from './x509/name.ts'
import {
  ascii,
  booleanValue,
  calendarTime,
  DerReader,
  dottedOid,
  malformed,
  smallInteger,
} from './x509/reader.ts'

const TST_INFO = '1.2.840.113549.1.9.16.1.4'

/** The baseline policy of RFC 3628 and the accuracy that is part of it, for tokens that say none (section 5.2). */
const BASELINE_POLICY = '0.4.0.2023.1.1'
const BASELINE_ACCURACY_MS = 1000

/** When something existed, as a trusted timestamp authority says, or why it does not say so. */
export type TimestampCheck =
  | {
      valid: true
      /** The time the authority gives, less and more its accuracy, milliseconds since the epoch. */
      earliest: number
      latest: number
      /** The authority's certificates up to the trusted one. */
      chain: readonly Certificate[]
    }
  | { valid: false; reason: string }

/**
 * Whether the RFC 3161 TimeStampToken (the CMS, not the TimeStampResp around it) is about `message` and by an authority that chains to
 * one of the anchors with all certificates valid at its time. Throws `SIGNATURE_MALFORMED` for a token that cannot be read and
 * `KEY_INVALID` for a key outside the algorithm table.
 */
export async function checkTimestamp(
  token: Bytes,
  message: Bytes,
  anchors: readonly Certificate[],
): Promise<TimestampCheck> {
  const no = (reason: string): TimestampCheck => ({ valid: false, reason })
  const opened = openTimestamp(token)
  const { earliest, latest, data } = opened
  const signed = await checkSigner(opened, message)
  if (!signed.valid) return signed
  const { certificates: intermediates } = data
  const chain = await buildChain(signed.signer, { intermediates, anchors, purpose: TIME_STAMPING })
  if (chain === undefined) return no('its authority does not chain to a trusted certificate')
  if (!areValidAt(chain, earliest) || !areValidAt(chain, latest)) {
    return no('a certificate of its authority was not valid at its time')
  }
  return { valid: true, earliest, latest, chain }
}

/** A TimeStampToken. Nothing about it is verified. */
export interface Timestamp {
  data: SignedData
  hash: HashAlgorithm | undefined
  imprint: Bytes
  /** The time the authority gives, and that less and more its accuracy, milliseconds since the epoch. */
  time: number
  earliest: number
  latest: number
  authority?: Name
}

/** The token in the DER. Throws `SIGNATURE_MALFORMED`. */
export function openTimestamp(token: Bytes): Timestamp {
  return parseInfo(parseSignedData(token))
}

/**
 * Whether a certificate for timestamps signed the token and it is about `message`: the pinned certificate, else the one in the token, of
 * which the caller has to ask whether it is trusted. Throws `KEY_INVALID` for a key outside the algorithm table.
 */
export async function checkSigner(
  { data, hash, imprint, authority }: Timestamp,
  message: Bytes,
  pinned?: Certificate,
): Promise<SignedDataCheck> {
  const no = (reason: string): SignedDataCheck => ({ valid: false, reason })
  if (hash === undefined) return no('its imprint is not SHA-256, SHA-384 or SHA-512')
  if (!equal(imprint, await digestOf(hash, message))) return no('it is about other bytes')
  const signed = await checkSignedData(data, pinned)
  if (!signed.valid) return signed
  const fault = whyNotTimestamper(signed.signer)
  if (fault !== undefined) return no(fault)
  if (authority && !sameName(authority, signed.signer.subject)) {
    return no('it names another authority than its signer')
  }
  return signed
}

/** TSTInfo (RFC 3161 section 2.4.2). */
function parseInfo(data: SignedData): Timestamp {
  const { contentType, content } = data
  if (contentType !== TST_INFO) throw malformed('CMS is not a timestamp token')
  const reader = DerReader.only(content, 'TSTInfo')
  if (smallInteger(reader.next(TAG.integer).content, 'TSTInfo version') !== 1) {
    throw malformed('TSTInfo has an unknown version')
  }
  const policy = dottedOid(reader.next(TAG.oid).content)
  const imprint = reader.enter()
  const hash = hashOf(imprint.next(TAG.sequence).content, 'message imprint')
  const digest = imprint.next(TAG.octetString).content
  imprint.end()
  reader.next(TAG.integer)
  const time = genTime(reader.next(TAG.generalizedTime).content)
  const accuracy = reader.optional(TAG.sequence)
  const unsaid = policy === BASELINE_POLICY ? BASELINE_ACCURACY_MS : 0
  const margin = accuracy === undefined ? unsaid : accuracyMs(accuracy.content)
  const ordering = reader.optional(TAG.boolean)
  if (ordering !== undefined) booleanValue(ordering.content, 'TSTInfo ordering')
  reader.optional(TAG.integer)
  const authority = reader.optional(0xa0)
  if (reader.optional(0xa1) !== undefined) throw malformed('TSTInfo has extensions, not supported')
  reader.end()
  return {
    data,
    hash,
    imprint: digest,
    time,
    // Outwards, so that less than a millisecond never moves a time into a validity.
    earliest: Math.floor(time - margin),
    latest: Math.ceil(time + margin),
    ...(authority === undefined ? {} : { authority: authorityName(authority.content) }),
  }
}

function authorityName(content: Bytes): Name {
  const directory = new DerReader(content, 'TSTInfo authority').next(0xa4)
  return parseName(new DerReader(directory.content, 'TSTInfo authority').next(TAG.sequence), 'tsa')
}

/** RFC 3161 allows a fraction of any length without trailing zeros; milliseconds and less as a fraction of one. */
function genTime(content: Bytes): number {
  const text = ascii(content)
  const fraction = /^\d{14}(?:\.(\d{0,8}[1-9]))?Z$/.exec(text)
  if (fraction === null) throw malformed('genTime is not a time in UTC')
  return calendarTime(text, 'genTime') + Number(`0.${fraction[1] ?? '0'}`) * 1000
}

/** Accuracy: seconds, `[0]` milliseconds and `[1]` microseconds, each optional, in milliseconds. */
function accuracyMs(content: Bytes): number {
  const reader = new DerReader(content, 'accuracy')
  const seconds = reader.optional(TAG.integer)
  const millis = reader.optional(0x80)
  const micros = reader.optional(0x81)
  reader.end()
  const value = (element: { content: Bytes } | undefined) =>
    element === undefined ? 0 : smallInteger(element.content, 'accuracy')
  return value(seconds) * 1000 + value(millis) + value(micros) / 1000
}
