import { type Bytes, concat, utf8 } from '../bytes.ts'
import { Cache } from '../cache.ts'
import { AdmissionError, type Fault, toAdmissionError } from '../errors.ts'
import { MIN_SECRET_BYTES } from '../limits.ts'
import type { HashPort, KmsKey, KmsPort } from '../ports.ts'
import type { KeyRing, MacKey } from './types.ts'

/** A key id: 1 to 32 characters of a–z, 0–9 and `-`. */
export const KID = /^[a-z0-9][a-z0-9-]{0,31}$/

/** What a key is derived for; another purpose would have another label, so that keys never serve two. */
const LABEL = 'countersign.dev/seal/key/v1'
const MAC_BYTES = 32
const HOUR_MS = 3_600_000
/** The hours a ring can be asked about: last, this and next, and one that is about to be forgotten. */
const MAX_EPOCH_KEYS = 4

/**
 * A key ring whose key of each hour is `GenerateMac(label ‖ hour)` of an HMAC key that never leaves KMS: every isolate derives the
 * same one, with one KMS call per hour. The key id is `h<hours since 1970>`; the previous and the next hour are accepted too. Only
 * settled keys are kept, so that no request waits on another's call. Its methods throw `SEAL_KEY_UNAVAILABLE`.
 */
export function kmsKeyRing(options: { kms: KmsPort; key: KmsKey; hash: HashPort }): KeyRing {
  const { kms, key, hash } = options
  const keys = new Cache<MacKey>(MAX_EPOCH_KEYS)

  async function derive(epoch: number, now: number, signal: AbortSignal): Promise<MacKey> {
    const kid = `h${epoch}`
    const known = keys.get(kid, now)
    if (known !== undefined) return known
    const derived = macKey(await generateMac(kms, key, epoch, signal), hash)
    keys.set(kid, derived, (epoch + 2) * HOUR_MS)
    return derived
  }

  return {
    async current(now, signal) {
      const epoch = Math.floor(now / HOUR_MS)
      return { kid: `h${epoch}`, key: await derive(epoch, now, signal) }
    },
    async find(kid, now, signal) {
      const epoch = epochOf(kid)
      const current = Math.floor(now / HOUR_MS)
      // Checked before any call: a forged key id must not cost a KMS request.
      if (epoch === undefined || Math.abs(epoch - current) > 1) return undefined
      return derive(epoch, now, signal)
    },
  }
}

function epochOf(kid: string): number | undefined {
  return /^h(?:0|[1-9][0-9]{0,11})$/.test(kid) ? Number(kid.slice(1)) : undefined
}

async function generateMac(
  kms: KmsPort,
  key: KmsKey,
  epoch: number,
  signal: AbortSignal,
): Promise<Bytes> {
  const hour = new Uint8Array(8)
  new DataView(hour.buffer).setBigUint64(0, BigInt(epoch))
  let mac: Bytes
  try {
    mac = await kms.generateMac(key, concat(utf8(LABEL), hour), signal)
  } catch (thrown) {
    const cause = toAdmissionError(thrown, 'GenerateMac')
    throw unavailable(`the key of the seal cannot be derived: ${cause.message}`, cause)
  }
  if (mac.length !== MAC_BYTES) {
    throw unavailable(`KMS answered a MAC of ${mac.length} bytes, expected ${MAC_BYTES}`)
  }
  return mac
}

/** One secret of a ring: at least `MIN_SECRET_BYTES` random bytes. */
export interface RingSecret {
  kid: string
  secret: Uint8Array
}

/**
 * A key ring from secrets: the first seals, all of them open, so that a secret is replaced by putting the new one in front and
 * removing the old one when the last seal has expired. Keys are derived by HKDF-SHA-256; the secrets are copied. Throws
 * `CONFIG_INVALID` for an empty ring, a bad or repeated key id and a secret that is too short.
 */
export function secretKeyRing(secrets: readonly RingSecret[], hash: HashPort): KeyRing {
  const faults = ringFaults(secrets)
  const [first] = secrets
  if (faults.length > 0 || first === undefined) {
    const listed = faults.map(({ path, message }) => `${path}: ${message}`).join('; ')
    throw new AdmissionError('CONFIG_INVALID', `the secrets of the seal: ${listed}`, { faults })
  }
  const ring = new Map(secrets.map(({ kid, secret }) => [kid, secret.slice() as Bytes]))
  const keys = new Map<string, MacKey>()

  async function find(kid: string): Promise<MacKey | undefined> {
    const known = keys.get(kid)
    const secret = ring.get(kid)
    if (known !== undefined || secret === undefined) return known
    const derived = macKey(await deriveKey(kid, secret), hash)
    keys.set(kid, derived)
    return derived
  }

  return {
    async current() {
      const key = await find(first.kid)
      if (key === undefined) throw unavailable(`the ring has no key ${first.kid}`)
      return { kid: first.kid, key }
    },
    find,
  }
}

function ringFaults(secrets: readonly RingSecret[]): Fault[] {
  const faults: Fault[] = []
  if (secrets.length === 0) faults.push({ path: '[0]', message: 'must be given' })
  const seen = new Set<string>()
  for (const [index, { kid, secret }] of secrets.entries()) {
    const path = `[${index}]`
    if (!KID.test(kid)) {
      faults.push({ path: `${path}.kid`, message: 'must be 1 to 32 characters of a-z 0-9 -' })
    } else if (seen.has(kid)) {
      faults.push({ path: `${path}.kid`, message: `occurs twice: ${kid}` })
    }
    seen.add(kid)
    if (secret.length < MIN_SECRET_BYTES) {
      const message = `has ${secret.length} bytes, at least ${MIN_SECRET_BYTES} must be`
      faults.push({ path: `${path}.secret`, message })
    }
  }
  return faults
}

function macKey(key: Bytes, hash: HashPort): MacKey {
  return { mac: (message) => hash.hmacSha256(key, message) }
}

/** The key id is part of the derivation: a secret listed under two ids gives two keys. */
async function deriveKey(kid: string, secret: Bytes): Promise<Bytes> {
  const material = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits'])
  const parameters = {
    name: 'HKDF',
    hash: 'SHA-256',
    salt: new Uint8Array(),
    info: utf8(`${LABEL}/${kid}`),
  }
  const bits = await crypto.subtle.deriveBits(parameters, material, 8 * MAC_BYTES)
  return new Uint8Array(bits)
}

function unavailable(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError('SEAL_KEY_UNAVAILABLE', message, { cause })
}
