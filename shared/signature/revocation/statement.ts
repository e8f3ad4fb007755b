import type { Bytes } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { REVOCATION_SKEW_MS } from '../../limits.ts'
import { TAG } from '../der.ts'
import { signatureAlgorithmOf } from '../x509/algorithm.ts'
import { verifyUnder } from '../x509/chain.ts'
import type { Extension } from '../x509/extensions.ts'
import { DerReader, malformed, smallInteger, timeOf } from '../x509/reader.ts'
import type { Finding } from './types.ts'

/** Names of the extensions that both kinds of statements use. */
export const REASON_CODE = '2.5.29.21'
export const INVALIDITY_DATE = '2.5.29.24'

/** CRLReason (RFC 5280 section 5.3.1), by its number. */
const REASONS = [
  'unspecified',
  'keyCompromise',
  'cACompromise',
  'affiliationChanged',
  'superseded',
  'cessationOfOperation',
  'certificateHold',
  'reserved',
  'removeFromCRL',
  'privilegeWithdrawn',
  'aACompromise',
] as const

export const ENUMERATED = 0x0a

/** An unknown status and why. */
export function unknown(detail: string): Finding {
  return { status: 'unknown', detail }
}

/** Who cannot be asked, or answers with something else, has said nothing. Faults of our own stay faults. */
export function asUnknown(thrown: unknown): Finding {
  if (!(thrown instanceof AdmissionError)) throw thrown
  // The path would be the request.
  return unknown(thrown.message.replace(/^GET ([^\s/]+)\/\S*?:(?= )/, '$1:'))
}

/** True for a certificate that is only on hold: it may count again. */
export function isHeld(finding: Finding): boolean {
  return finding.status === 'revoked' && finding.reason === 'certificateHold'
}

/** The name of the reason in an ENUMERATED. Throws `SIGNATURE_MALFORMED` for one that does not exist. */
export function reasonOf(reader: DerReader): (typeof REASONS)[number] {
  const reason = REASONS[smallInteger(reader.next(ENUMERATED).content, 'revocation reason')]
  reader.end()
  if (reason === undefined || reason === 'reserved') throw malformed('a reason does not exist')
  return reason
}

/** What extensions say of when a certificate became invalid: `invalidFrom`, or nothing. */
export function invalidityOf(extensions: readonly Extension[]): { invalidFrom?: number } {
  const date = extensions.find(({ oid }) => oid === INVALIDITY_DATE)
  if (date === undefined) return {}
  const [element, ...more] = new DerReader(date.value, 'invalidityDate').rest()
  if (element === undefined || more.length > 0) throw malformed('invalidityDate is no time')
  return { invalidFrom: timeOf(element, 'invalidityDate') }
}

/** The first critical extension that nobody acts on, whose presence forbids to use what it is in, or undefined. */
export function unsupported(
  extensions: readonly Extension[],
  understood: readonly string[],
): string | undefined {
  return extensions.find(({ oid, critical }) => critical && !understood.includes(oid))?.oid
}

/**
 * Why a statement does not count now, or undefined when it does. Both ends belong to its time; clocks may differ a little at the beginning,
 * since some responders answer with what they made this moment.
 */
export function whyNotCurrent(thisUpdate: number, nextUpdate: number, now: number) {
  if (nextUpdate < thisUpdate) throw malformed('it ends before it begins')
  if (thisUpdate > now + REVOCATION_SKEW_MS) return 'is not valid yet'
  return now > nextUpdate ? 'has expired' : undefined
}

/** The end of a signed structure: its AlgorithmIdentifier's content and the signature. */
export function signatureOf(reader: DerReader): { algorithm: Bytes; signature: Bytes } {
  const algorithm = reader.next(TAG.sequence).content
  const bits = reader.next(TAG.bitString).content
  if (bits[0] !== 0) throw malformed('a signature is not whole bytes')
  return { algorithm, signature: bits.subarray(1) }
}

/** True when the key signed the message. False too for algorithms that are not verified here, SHA-1 among them. */
export async function isSignedBy(
  spki: Bytes,
  message: Bytes,
  { algorithm, signature }: { algorithm: Bytes; signature: Bytes },
): Promise<boolean> {
  const named = signatureAlgorithmOf(algorithm, 'signature algorithm')
  return named !== undefined && verifyUnder(spki, named, message, signature)
}
