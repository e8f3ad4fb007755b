import { type Bytes, concat, equal, fromBase64Url, toBase64Url, utf8 } from '../bytes.ts'
import { AdmissionError, toAdmissionError } from '../errors.ts'
import { MAX_SEAL_BYTES, MAX_SEAL_CHARS, MAX_SEAL_TTL_MS, SEAL_SKEW_MS } from '../limits.ts'
import { decodeBody, encodeBody, type SealBody } from './body.ts'
import { KID } from './keyring.ts'
import type { KeyRing, MacKey, Opened, Outcomes, SealContext } from './types.ts'

const VERSION = 'v1'
/** Keeps this MAC apart from anything else that might ever be made with the same key. */
const DOMAIN = 'countersign.dev/seal/v1'
const MAC_BYTES = 32

/**
 * Outcomes sealed for exactly this context: `v1.<kid>.<base64url body>.<base64url HMAC-SHA-256>` (specs/signatures.md 4.7). `now` is epoch
 * milliseconds; it lives `ttlMs`, never longer than `MAX_SEAL_TTL_MS`. Throws `SEAL_TOO_LARGE`.
 */
export function sealOutcomes(
  outcomes: Outcomes,
  context: SealContext,
  signing: { kid: string; key: MacKey },
  now: number,
  ttlMs: number,
): string {
  const { kid, key } = signing
  if (!KID.test(kid)) throw new TypeError('a key id has 1 to 32 characters of a-z 0-9 -')
  if (!(ttlMs > 0)) throw new TypeError('the lifetime of a seal is positive')
  const issuedAt = Math.floor(now)
  const expiresAt = issuedAt + Math.floor(Math.min(ttlMs, MAX_SEAL_TTL_MS))
  const body = toBase64Url(encodeBody({ outcomes, issuedAt, expiresAt }))
  const mac = key.mac(macInput(kid, context, body))
  return [VERSION, kid, body, toBase64Url(mac)].join('.')
}

/**
 * What a seal annotation proves about a request with this context, or why it proves nothing. It never throws: the annotation can be
 * written by anyone. `refused` and `absent` are final; `unavailable` means that the key service did not answer. None of them
 * is ever a pass: what is not open is verified again. `now` is epoch milliseconds.
 */
export async function openSeal(
  annotation: string | undefined,
  context: SealContext,
  ring: KeyRing,
  now: number,
  signal: AbortSignal,
): Promise<Opened> {
  if (annotation === undefined) return { status: 'absent' }
  try {
    const token = splitToken(annotation)
    const key = await ring.find(token.kid, now, signal)
    if (key === undefined) throw refusal('its key is not one of ours, or no longer')
    // The MAC is over the bytes as they came: nothing of the body is decoded before it is known to be ours.
    if (!equal(key.mac(macInput(token.kid, context, token.body)), token.mac)) {
      throw refusal('it was not made by us for this object')
    }
    const body = decodeToken(token.body)
    checkTimes(body, now)
    return { status: 'open', ...body }
  } catch (thrown) {
    const error = toAdmissionError(thrown, 'opening the seal')
    const refused = error.code === 'SIGNATURE_MALFORMED' || error.code === 'JSON_INVALID'
    return { status: refused ? 'refused' : 'unavailable', reason: error.message }
  }
}

interface Token {
  kid: string
  body: string
  mac: Bytes
}

function splitToken(annotation: string): Token {
  if (annotation.length > MAX_SEAL_CHARS) {
    throw refusal(`it has ${annotation.length} characters, at most ${MAX_SEAL_CHARS} may be`)
  }
  const [version, kid, body, mac, ...more] = annotation.split('.')
  if (kid === undefined || body === undefined || mac === undefined || more.length > 0) {
    throw refusal('it does not have four parts')
  }
  if (version !== VERSION) throw refusal('its version is not v1')
  if (!KID.test(kid)) throw refusal('its key id has other characters than a-z 0-9 -')
  const bytes = fromBase64Url(mac)
  if (bytes?.length !== MAC_BYTES) throw refusal('its MAC is not 32 bytes of base64url')
  return { kid, body, mac: bytes }
}

function decodeToken(text: string): SealBody {
  if (text.length > Math.ceil((MAX_SEAL_BYTES * 4) / 3)) throw refusal('its body is too large')
  const bytes = fromBase64Url(text)
  if (bytes === undefined) throw refusal('its body is not base64url')
  return decodeBody(bytes)
}

function checkTimes({ issuedAt, expiresAt }: SealBody, now: number): void {
  if (expiresAt <= issuedAt || expiresAt - issuedAt > MAX_SEAL_TTL_MS) {
    throw refusal('its lifetime is not one we give')
  }
  if (issuedAt > now + SEAL_SKEW_MS) throw refusal('it was issued in the future')
  if (expiresAt <= now) throw refusal('it has expired')
}

/** Every part behind its own length: two different contexts never make the same bytes. */
function macInput(kid: string, context: SealContext, body: string): Bytes {
  const { cluster, resource, namespace, operation, name } = context
  return concat(
    ...[DOMAIN, kid, cluster, resource, namespace, operation, ...name, body].flatMap(framed),
  )
}

function framed(part: string): [Bytes, Bytes] {
  const bytes = utf8(part)
  const length = new Uint8Array(4)
  new DataView(length.buffer).setUint32(0, bytes.length)
  return [length, bytes]
}

function refusal(problem: string): AdmissionError {
  return new AdmissionError('SIGNATURE_MALFORMED', problem)
}
