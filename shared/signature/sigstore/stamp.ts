import { type Bytes, toHex } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { isContentFault } from '../content.ts'
import { TAG } from '../der.ts'
import { checkSigner, openTimestamp, type Timestamp } from '../timestamp.ts'
import type { Certificate } from '../x509/certificate.ts'
import { areValidAt, buildChain } from '../x509/chain.ts'
import { TIME_STAMPING } from '../x509/leaf.ts'
import { DerReader, malformed, smallInteger } from '../x509/reader.ts'
import { isWithin, type Window } from './authority.ts'

/** Whose timestamps count. */
export interface StampAuthority extends Window {
  /** From its own certificate to the anchor, verified but for the time; undefined: timestamps bring the certificate. */
  chain: readonly Certificate[] | undefined
  intermediates: readonly Certificate[]
  anchors: readonly Certificate[]
}

/** When a signature existed and who says so, or why nobody trusted does. */
export type Stamp = { time: number; witness: string } | { refused: string }

/**
 * The authority of these certificates, or undefined when they do not chain up. The leaf is pinned: no other certificate of the authority
 * stamps. Throws `KEY_INVALID` for a key outside the algorithm table.
 */
export async function stampAuthority({
  leaf,
  ...parts
}: Omit<StampAuthority, 'chain'> & { leaf: Certificate | undefined }): Promise<
  StampAuthority | undefined
> {
  if (leaf === undefined) return { ...parts, chain: undefined }
  const chain = await buildChain(leaf, { ...parts, purpose: TIME_STAMPING })
  return chain && { ...parts, chain }
}

/**
 * The time in an RFC 3161 response over these bytes by one of the authorities: that it gives, as in all of Sigstore, whatever its
 * accuracy. Whatever is wrong with the response is a refusal.
 */
export async function readStamp(
  response: Bytes,
  signed: Bytes,
  authorities: readonly StampAuthority[],
): Promise<Stamp> {
  try {
    const timestamp = openTimestamp(tokenOf(response))
    let refused = 'timestamp by no trusted authority'
    for (const authority of authorities) {
      const checked = await checkBy(authority, timestamp, signed)
      if (typeof checked !== 'string') {
        return { time: timestamp.time, witness: toHex(checked.spki) }
      }
      refused = `timestamp: ${checked}`
    }
    return { refused }
  } catch (thrown) {
    const isPublished =
      thrown instanceof AdmissionError && (isContentFault(thrown) || thrown.code === 'KEY_INVALID')
    if (!isPublished) throw thrown
    return { refused: `timestamp: ${thrown.message}` }
  }
}

/** The certificate that stamped, or why it is none of this authority's. */
async function checkBy(
  authority: StampAuthority,
  timestamp: Timestamp,
  signed: Bytes,
): Promise<Certificate | string> {
  const { time } = timestamp
  const [pinned] = authority.chain ?? []
  const checked = await checkSigner(timestamp, signed, pinned)
  if (!checked.valid) return checked.reason
  const { signer } = checked
  const chain = authority.chain ?? (await chainUp(signer, authority, timestamp))
  if (chain === undefined) return 'its authority does not chain to a trusted certificate'
  if (!isWithin(authority, time)) return 'its authority does not count at its time'
  return areValidAt(chain, time)
    ? signer
    : 'a certificate of its authority was not valid at its time'
}

function chainUp(
  signer: Certificate,
  { intermediates, anchors }: StampAuthority,
  { data }: Timestamp,
): Promise<readonly Certificate[] | undefined> {
  const all = [...intermediates, ...data.certificates]
  return buildChain(signer, { intermediates: all, anchors, purpose: TIME_STAMPING })
}

/** The token inside a TimeStampResp whose status says granted (RFC 3161 section 2.4.2). */
function tokenOf(response: Bytes): Bytes {
  const reader = DerReader.only(response, 'timestamp response')
  const status = smallInteger(reader.enter().next(TAG.integer).content, 'timestamp status')
  if (status > 1) throw malformed('timestamp response does not grant one')
  const { whole } = reader.next(TAG.sequence)
  reader.end()
  return whole
}
