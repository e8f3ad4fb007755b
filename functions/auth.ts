import { type Bytes, equal, fromHex, utf8 } from '#shared/bytes.ts'
import type { HashPort } from '#shared/ports.ts'
import { type AddressRange, inRange, parseAddress, parseRange } from './address.ts'
import type { ClusterConfig } from './config.ts'

/** What a caller shows of itself. */
export interface Credentials {
  cluster: string
  token: string
  /** The `Authorization` header. */
  authorization?: string | undefined
  /** Source address as the adapter saw it; never from a header that callers can write. */
  address?: string | undefined
  /** Reads the client certificate, if the front door has checked one. */
  certificate?: (() => ClientCertificate | undefined) | undefined
}

/** A client certificate that the front door has checked against the authorities it trusts, and that is not revoked as far as it knows. */
export interface ClientCertificate {
  /** SHA-256 of the DER, lower-case hex without colons. */
  fingerprint: string
  /** As RFC 2253 writes it. */
  subject: string
}

/** Why somebody was not let in, for the log only: the caller always gets the same empty 404. */
export type Refusal = 'cluster' | 'token' | 'bearer' | 'address' | 'certificate' | 'expired'

export type Access =
  | { status: 'granted'; cluster: ClusterConfig }
  | { status: 'refused'; refusal: Refusal; cluster?: string }

/** Lets callers in or not. */
export type Authenticator = (credentials: Credentials) => Promise<Access>

/** Every list of hashes is compared at this length, so that time tells nothing about what is configured. */
const SLOTS = 2
/** No text is known to have this hash. */
const NOBODY = new Uint8Array(32)

interface Tenant {
  config: ClusterConfig
  tokens: readonly Bytes[]
  bearer: readonly Bytes[]
  ranges: readonly AddressRange[] | undefined
  notAfter: number
}

/**
 * An Authenticator for these clusters. All requirements are checked for every caller, and tokens are compared by their
 * hashes in constant time, for an unknown cluster against dummies: time does not tell one refusal from another.
 */
export function createAuthenticator(
  clusters: readonly ClusterConfig[],
  now: () => number,
  hash: HashPort,
): Authenticator {
  const tenants = new Map(clusters.map((config) => [config.name, toTenant(config)]))
  return async ({ cluster, token, authorization, address, certificate }) => {
    const tenant = tenants.get(cluster)
    const bearer = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? ''
    const hasToken = isAmong(hash.sha256(utf8(token)), tenant?.tokens ?? [])
    // Most callers send none, and hashing nothing would tell nobody anything.
    const hasBearer = bearer !== '' && isAmong(hash.sha256(utf8(bearer)), tenant?.bearer ?? [])
    if (tenant === undefined) return { status: 'refused', refusal: 'cluster' }
    // Reading a certificate takes time, which only those who know a token may see.
    const isCertified = !hasToken || isKnown(tenant.config.mtls, certificate)
    const refusal = firstRefusal([
      ['token', hasToken],
      ['bearer', tenant.config.bearer === undefined || hasBearer],
      ['certificate', isCertified],
      ['address', isWithin(address, tenant.ranges)],
      ['expired', now() < tenant.notAfter],
    ])
    return refusal === undefined
      ? { status: 'granted', cluster: tenant.config }
      : { status: 'refused', refusal, cluster }
  }
}

function toTenant(config: ClusterConfig): Tenant {
  return {
    config,
    tokens: toBytes(config.tokens),
    bearer: toBytes(config.bearer ?? []),
    ranges: config.cidrs?.flatMap((text) => parseRange(text) ?? []),
    notAfter:
      config.notAfter === undefined ? Number.POSITIVE_INFINITY : Date.parse(config.notAfter),
  }
}

function toBytes(hashes: readonly string[]): Bytes[] {
  return hashes.flatMap((hash) => fromHex(hash) ?? [])
}

function isAmong(hash: Bytes, known: readonly Bytes[]): boolean {
  let found = false
  for (let slot = 0; slot < Math.max(SLOTS, known.length); slot++) {
    const same = equal(hash, known[slot] ?? NOBODY)
    found = (same && slot < known.length) || found
  }
  return found
}

/** True when no ranges are required, or the address is known and within one. */
function isWithin(text: string | undefined, ranges: readonly AddressRange[] | undefined): boolean {
  if (ranges === undefined) return true
  const address = text === undefined ? undefined : parseAddress(text)
  return address !== undefined && ranges.some((range) => inRange(address, range))
}

/** True when no certificate is required, or there is one that is in every list. */
function isKnown(
  mtls: ClusterConfig['mtls'],
  read: (() => ClientCertificate | undefined) | undefined,
): boolean {
  if (mtls === undefined) return true
  const shown = read?.()
  if (shown === undefined) return false
  const { fingerprints, subjects } = mtls
  return (
    (fingerprints !== undefined || subjects !== undefined) &&
    (fingerprints?.includes(shown.fingerprint) ?? true) &&
    (subjects?.includes(shown.subject) ?? true)
  )
}

function firstRefusal(requirements: readonly (readonly [Refusal, boolean])[]): Refusal | undefined {
  return requirements.find(([, met]) => !met)?.[0]
}
