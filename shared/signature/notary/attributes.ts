import { malformed } from '../x509/reader.ts'
import type { SigningScheme } from './types.ts'

/** Media type of what a Notary Project signature is over. */
export const PAYLOAD_TYPE = 'application/vnd.cncf.notary.payload.v1+json'

const SIGNING_SCHEME = 'io.cncf.notary.signingScheme'
const SIGNING_TIME = 'io.cncf.notary.signingTime'
const AUTHENTIC_SIGNING_TIME = 'io.cncf.notary.authenticSigningTime'
const EXPIRY = 'io.cncf.notary.expiry'
const PLUGIN = 'io.cncf.notary.verificationPlugin'
const PLUGIN_MIN_VERSION = 'io.cncf.notary.verificationPluginMinVersion'

/** Names of unsigned attributes, the same in both envelopes. */
export const TIMESTAMP_SIGNATURE = 'io.cncf.notary.timestampSignature'

/** Critical attributes that are acted on. */
const UNDERSTOOD = new Set([SIGNING_SCHEME, AUTHENTIC_SIGNING_TIME, EXPIRY])

/** The signed attributes of an envelope, whatever its format. */
export interface SignedAttributes {
  contentType: unknown
  critical: readonly unknown[]
  /** The value of an attribute, or undefined when it is not there. */
  get(name: string): unknown
  /** Milliseconds since the epoch of an attribute that is a time in this format; throws for other values. */
  time(name: string): number
}

/**
 * What the signed attributes say. Throws `SIGNATURE_MALFORMED` unless every critical one is understood and there, everything that must
 * be critical is, the payload type is the Notary Project's, and the times are those of the signing scheme. A verification plugin is
 * refused: its rules are code that is not here (specs/signatures.md 1.5).
 */
export function readAttributes(attributes: SignedAttributes): {
  scheme: SigningScheme
  signingTime: number
  expiry?: number
} {
  const { contentType, get } = attributes
  if (contentType !== PAYLOAD_TYPE) throw malformed(`the payload type is not ${PAYLOAD_TYPE}`)
  for (const plugin of [PLUGIN, PLUGIN_MIN_VERSION]) {
    if (get(plugin) !== undefined)
      throw malformed('it demands a verification plugin, not supported')
  }
  const critical = readCritical(attributes)
  const demandCritical = (name: string) => {
    if (!critical.has(name)) throw malformed(`attribute ${name} is not marked critical`)
  }
  demandCritical(SIGNING_SCHEME)
  const scheme = get(SIGNING_SCHEME)
  if (scheme !== 'notary.x509' && scheme !== 'notary.x509.signingAuthority') {
    throw malformed('the signing scheme is not supported')
  }
  const [own, other] =
    scheme === 'notary.x509'
      ? [SIGNING_TIME, AUTHENTIC_SIGNING_TIME]
      : [AUTHENTIC_SIGNING_TIME, SIGNING_TIME]
  if (get(other) !== undefined) throw malformed(`attribute ${other} is not for scheme ${scheme}`)
  if (own === AUTHENTIC_SIGNING_TIME) demandCritical(own)
  const signingTime = attributes.time(own)
  if (get(EXPIRY) === undefined) return { scheme, signingTime }
  demandCritical(EXPIRY)
  const expiry = attributes.time(EXPIRY)
  if (expiry <= signingTime) throw malformed('it expires before it was signed')
  return { scheme, signingTime, expiry }
}

function readCritical({ critical, get }: SignedAttributes): ReadonlySet<string> {
  const names = new Set<string>()
  for (const name of critical) {
    if (typeof name !== 'string' || !UNDERSTOOD.has(name)) {
      throw malformed(`critical attribute ${show(name)} is not supported`)
    }
    if (names.has(name)) throw malformed(`attribute ${name} is marked critical twice`)
    if (get(name) === undefined) throw malformed(`critical attribute ${name} is missing`)
    names.add(name)
  }
  return names
}

function show(name: unknown): string {
  return typeof name === 'string' || typeof name === 'number'
    ? JSON.stringify(name).slice(0, 80)
    : 'of another type'
}
