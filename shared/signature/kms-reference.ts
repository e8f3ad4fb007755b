import { AdmissionError } from '../errors.ts'
import { MAX_KMS_REFERENCE_CHARS } from '../limits.ts'
import type { KmsKey } from '../ports.ts'

/** An `awskms://[ENDPOINT]/[ID|ALIAS|ARN]` reference taken apart (specs/signatures.md 4.2). */
export interface KmsReference {
  /** `host[:port]`, lower case, without the default port 443. */
  endpoint?: string
  /** Key id, `alias/…`, key ARN or alias ARN. */
  keyId: string
  /** Only an ARN says it. */
  region?: string
}

/** What the operator decides about KMS: the region of references without one, and the endpoints they may name. */
export interface KmsSettings {
  /** Region of ids and aliases. */
  region?: string
  /** Origins such as `https://kms.internal:4566`; plain http only on the loopback interface. */
  endpoints?: readonly string[]
}

const KEY_ID = '(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|mrk-[0-9a-fA-F]{32})'
const ALIAS = 'alias/[A-Za-z0-9/_-]{1,250}'
const REGION = '[a-z]{2,}(?:-[a-z]+)+-[0-9]{1,2}'
const RESOURCE = new RegExp(`^(?:${KEY_ID}|${ALIAS})$`)
const ARN = new RegExp(`^arn:aws(?:-[a-z]+)*:kms:(${REGION}):[0-9]{12}:(?:key/${KEY_ID}|${ALIAS})$`)
const REGION_ONLY = new RegExp(`^${REGION}$`)

const OTHER_SCHEMES: ReadonlySet<string> = new Set([
  'gcpkms',
  'azurekms',
  'hashivault',
  'openbao',
  'k8s',
  'gitlab',
  'pkcs11',
  'http',
  'https',
  'file',
  'env',
])

/**
 * The parts of an `awskms://` reference. Throws `KMS_REFERENCE_INVALID` when it is malformed and `POLICY_UNSUPPORTED`
 * when it belongs to another key service.
 */
export function parseKmsReference(text: string): KmsReference {
  if (text.length > MAX_KMS_REFERENCE_CHARS) {
    throw invalid(text, `longer than ${MAX_KMS_REFERENCE_CHARS} characters`)
  }
  const [, scheme = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/s.exec(text) ?? []
  if (OTHER_SCHEMES.has(scheme.toLowerCase())) {
    throw new AdmissionError(
      'POLICY_UNSUPPORTED',
      `KMS reference: ${scheme}:// keys are not supported, only awskms://`,
    )
  }
  if (scheme !== 'awskms') throw invalid(text, 'does not start with awskms://')
  const slash = rest.indexOf('/')
  if (slash < 0) throw invalid(text, 'no / after the endpoint; without one write awskms:///')
  const host = rest.slice(0, slash)
  const keyId = rest.slice(slash + 1)
  if (host === 'alias' || host.startsWith('arn:')) {
    throw invalid(text, 'write awskms:/// with three slashes')
  }
  const region = ARN.exec(keyId)?.[1]
  if (region === undefined && !RESOURCE.test(keyId)) {
    const expected = 'a key id, mrk- id, alias/name, key ARN or alias ARN'
    throw invalid(text, `${quote(keyId)} is not ${expected}`)
  }
  return {
    ...(host === '' ? {} : { endpoint: parseEndpoint(text, host) }),
    keyId,
    ...(region === undefined ? {} : { region }),
  }
}

/** The text `parseKmsReference` reads back into the same parts. */
export function formatKmsReference(reference: KmsReference): string {
  return `awskms://${reference.endpoint ?? ''}/${reference.keyId}`
}

/**
 * The key to ask for: the reference with the operator's settings filled in. Throws `KMS_REFERENCE_INVALID` when no
 * region is known or the endpoint is not on the operator's list: a signed request to a host the policy author chose
 * would hand that host our credentials' signature.
 */
export function resolveKmsKey(text: string, settings: KmsSettings): KmsKey {
  const reference = parseKmsReference(text)
  const region = reference.region ?? settings.region
  if (region === undefined) {
    throw invalid(text, 'no region: use a key ARN, or set the KMS region in the config')
  }
  if (!REGION_ONLY.test(region)) {
    throw new AdmissionError('CONFIG_INVALID', `KMS region ${quote(region)} is not a region name`)
  }
  if (reference.endpoint === undefined) return { keyId: reference.keyId, region }
  const endpoint = settings.endpoints
    ?.map(parseAllowed)
    .find((allowed) => allowed.host === reference.endpoint)
  if (endpoint === undefined) {
    throw invalid(text, `endpoint ${reference.endpoint} is not on the operator's list of endpoints`)
  }
  return { keyId: reference.keyId, region, endpoint: endpoint.origin }
}

/** Throws `CONFIG_INVALID` unless the settings themselves are right, so that a typo shows at start. */
export function checkKmsSettings(settings: KmsSettings): void {
  if (settings.region !== undefined && !REGION_ONLY.test(settings.region)) {
    throw new AdmissionError(
      'CONFIG_INVALID',
      `KMS region ${quote(settings.region)} is not a region name`,
    )
  }
  for (const endpoint of settings.endpoints ?? []) parseAllowed(endpoint)
}

/** The host as the URL parser normalises it, so that another spelling cannot pass for an allowed one. */
function parseEndpoint(text: string, host: string): string {
  const plain = /^(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?$/.test(host)
  const url = plain ? toUrl(`https://${host}/`) : undefined
  if (url === undefined) throw invalid(text, `endpoint ${quote(host)} is not host[:port]`)
  return url.host
}

function parseAllowed(endpoint: string): { host: string; origin: string } {
  const url = toUrl(endpoint)
  const loopback =
    url !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  const allowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopback)
  if (url === undefined || !allowed || `${url.origin}/` !== url.href) {
    throw new AdmissionError(
      'CONFIG_INVALID',
      `KMS endpoint ${quote(endpoint)} is not https://host[:port] (or http:// on the loopback interface)`,
    )
  }
  return { host: url.host, origin: url.origin }
}

function toUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}

function invalid(text: string, reason: string): AdmissionError {
  return new AdmissionError('KMS_REFERENCE_INVALID', `KMS reference ${quote(text)}: ${reason}`)
}

function quote(text: string): string {
  return JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text)
}
