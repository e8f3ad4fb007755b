import { AdmissionError } from '../errors.ts'
import { MAX_KMS_REFERENCE_CHARS } from '../limits.ts'
import type { KmsKey, VaultKey } from '../ports.ts'
import { pathRefusal, schemeRefusal } from './kms-schemes.ts'

/** An `awskms://[ENDPOINT]/[ID|ALIAS|ARN]` reference taken apart (specs/signatures.md 4.2). */
export interface KmsReference {
  /** `host[:port]`, lower case, without the default port 443. */
  endpoint?: string
  /** Key id, `alias/…`, key ARN or alias ARN. */
  keyId: string
  /** Only an ARN says it. */
  region?: string
}

/** A `hashivault://NAME` or `openbao://NAME` reference: where Vault is, only the operator says. */
export interface VaultReference {
  vaultKey: string
}

/** What the operator decides about key services. */
export interface KmsSettings {
  /** Region of ids and aliases. */
  region?: string
  /**
   * Where ARNs of multi-region keys (`key/mrk-…`) are asked for, whatever region they name: every replica has the same key. Only in the
   * same partition, and not for references that name an endpoint.
   */
  preferRegion?: string
  /** Origins such as `https://kms.internal:4566`; plain http only on the loopback interface. */
  endpoints?: readonly string[]
  /** Where keys of `hashivault://` and `openbao://` are. */
  vault?: VaultSettings
}

/** The transit engine that references mean. */
export interface VaultSettings {
  /** Origin such as `https://vault.example.com:8200`; plain http only on the loopback interface. */
  address: string
  /** Path of the transit engine; `transit` when absent. */
  mount?: string
  namespace?: string
}

const KEY_ID = '(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|mrk-[0-9a-fA-F]{32})'
const ALIAS = 'alias/[A-Za-z0-9/_-]{1,250}'
const REGION = '[a-z]{2,}(?:-[a-z]+)+-[0-9]{1,2}'
const RESOURCE = new RegExp(`^(?:${KEY_ID}|${ALIAS})$`)
const ARN = new RegExp(`^arn:aws(?:-[a-z]+)*:kms:(${REGION}):[0-9]{12}:(?:key/${KEY_ID}|${ALIAS})$`)
const REGION_ONLY = new RegExp(`^${REGION}$`)
const MULTI_REGION_ARN = new RegExp(`^(arn:aws(?:-[a-z]+)*:kms:)${REGION}(:[0-9]{12}:key/mrk-.*)$`)
/** What cosign, and Vault itself, take for the name of a transit key. */
const VAULT_NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?$/
const VAULT_SEGMENT = '(?!\\.{1,2}(?:/|$))[A-Za-z0-9_.-]+'
const VAULT_PATH = new RegExp(`^${VAULT_SEGMENT}(?:/${VAULT_SEGMENT})*$`)

/**
 * The parts of an `awskms://`, `hashivault://` or `openbao://` reference. Throws `KMS_REFERENCE_INVALID` when it is malformed and
 * `POLICY_UNSUPPORTED` when it belongs to another key service.
 */
export function parseKmsReference(text: string): KmsReference | VaultReference {
  if (text.length > MAX_KMS_REFERENCE_CHARS) {
    throw invalid(text, `longer than ${MAX_KMS_REFERENCE_CHARS} characters`)
  }
  const [, scheme = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/s.exec(text) ?? []
  const refusal = schemeRefusal(scheme)
  if (refusal !== undefined) {
    throw new AdmissionError('POLICY_UNSUPPORTED', `KMS reference ${scheme}://…: ${refusal}`)
  }
  if (scheme === 'awskms') return parseAwsReference(text, rest)
  if (scheme !== 'hashivault' && scheme !== 'openbao') {
    throw invalid(text, pathRefusal(text) ?? 'does not start with awskms:// or hashivault://')
  }
  if (!VAULT_NAME.test(rest)) {
    const place = 'address and mount of Vault are in the config (kms.vault)'
    throw invalid(text, `expected ${scheme}://<name of a transit key>; ${place}`)
  }
  return { vaultKey: rest }
}

function parseAwsReference(text: string, rest: string): KmsReference {
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
export function formatKmsReference(reference: KmsReference | VaultReference): string {
  if ('vaultKey' in reference) return `hashivault://${reference.vaultKey}`
  return `awskms://${reference.endpoint ?? ''}/${reference.keyId}`
}

/**
 * The key to ask for: the reference with the operator's settings filled in. Throws `KMS_REFERENCE_INVALID` when no
 * region is known, the endpoint is not on the operator's list, or no Vault is configured: a signed request, or a token, to a host the
 * policy author chose would hand that host our credentials.
 */
export function resolveKeyReference(text: string, settings: KmsSettings): KmsKey | VaultKey {
  const reference = parseKmsReference(text)
  return 'vaultKey' in reference
    ? resolveVaultKey(text, reference, settings)
    : resolveAwsKey(text, reference, settings)
}

/** The same for what only AWS KMS can do: a `hashivault://` reference is `KMS_REFERENCE_INVALID` too. */
export function resolveKmsKey(text: string, settings: KmsSettings): KmsKey {
  const reference = parseKmsReference(text)
  if ('vaultKey' in reference) throw invalid(text, 'expected a key in AWS KMS')
  return resolveAwsKey(text, reference, settings)
}

/** Throws `CONFIG_INVALID` unless the settings themselves are right, so that a typo shows at start. */
export function checkKmsSettings({ region, preferRegion, endpoints, vault }: KmsSettings): void {
  for (const name of [region, preferRegion]) {
    if (name !== undefined) checkRegion(name)
  }
  for (const endpoint of endpoints ?? []) parseAllowed(endpoint, 'KMS endpoint')
  if (vault !== undefined) vaultPlace(vault)
}

function resolveAwsKey(text: string, reference: KmsReference, settings: KmsSettings): KmsKey {
  const { endpoint: named, keyId } = reference
  const region = reference.region ?? settings.region
  if (region === undefined) {
    throw invalid(
      text,
      'no region: use a key ARN, set kms.region in the config, or give `verify` --region',
    )
  }
  checkRegion(region)
  if (named === undefined) return localReplica({ keyId, region }, settings.preferRegion)
  const endpoint = settings.endpoints
    ?.map((allowed) => parseAllowed(allowed, 'KMS endpoint'))
    .find((allowed) => allowed.host === named)
  if (endpoint === undefined) {
    throw invalid(text, `endpoint ${named} is not on the operator's list of endpoints`)
  }
  return { keyId, region, endpoint: endpoint.origin }
}

/** The ARN of the replica in the preferred region. Aliases are different keys in every region, so theirs stay as they are. */
function localReplica(key: KmsKey, preferRegion: string | undefined): KmsKey {
  const [, before, after] = MULTI_REGION_ARN.exec(key.keyId) ?? []
  if (before === undefined || after === undefined || preferRegion === undefined) return key
  checkRegion(preferRegion)
  if (partitionOf(preferRegion) !== partitionOf(key.region)) return key
  return { keyId: `${before}${preferRegion}${after}`, region: preferRegion }
}

/** What the names of all regions of a partition begin with; nothing for the public one. */
function partitionOf(region: string): string {
  return /^(?:cn|us-gov|us-iso[a-z]?|eu-iso[a-z]|eusc)-/.exec(region)?.[0] ?? ''
}

function resolveVaultKey(
  text: string,
  { vaultKey: name }: VaultReference,
  { vault }: KmsSettings,
): VaultKey {
  if (vault !== undefined) return { name, ...vaultPlace(vault) }
  const missing = 'kms.vault.address and kms.vault.tokenEnv'
  throw invalid(text, `no Vault is configured: set ${missing} (for verify, --vault-address)`)
}

function vaultPlace({ address, mount = 'transit', namespace }: VaultSettings) {
  const { origin } = parseAllowed(address, 'Vault address')
  for (const path of [mount, namespace]) {
    if (path === undefined || VAULT_PATH.test(path)) continue
    const expected = 'names with / between them and not around them'
    throw new AdmissionError('CONFIG_INVALID', `Vault path ${quote(path)} is not ${expected}`)
  }
  return { address: origin, mount, ...(namespace === undefined ? {} : { namespace }) }
}

function checkRegion(region: string): void {
  if (REGION_ONLY.test(region)) return
  throw new AdmissionError('CONFIG_INVALID', `KMS region ${quote(region)} is not a region name`)
}

/** The host as the URL parser normalises it, so that another spelling cannot pass for an allowed one. */
function parseEndpoint(text: string, host: string): string {
  const plain = /^(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?$/.test(host)
  const url = plain ? toUrl(`https://${host}/`) : undefined
  if (url === undefined) throw invalid(text, `endpoint ${quote(host)} is not host[:port]`)
  return url.host
}

function parseAllowed(endpoint: string, what: string): { host: string; origin: string } {
  const url = toUrl(endpoint)
  const loopback =
    url !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  const allowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopback)
  if (url === undefined || !allowed || `${url.origin}/` !== url.href) {
    throw new AdmissionError(
      'CONFIG_INVALID',
      `${what} ${quote(endpoint)} is not https://host[:port] (or http:// on the loopback interface)`,
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
