import { fromBase64, fromUtf8 } from '../bytes.ts'
import { AdmissionError, type Fault } from '../errors.ts'
import type { CredentialsPort, RegistryCredential } from '../ports.ts'
import {
  compareSpecificity,
  type HostPattern,
  matchesHost,
  parseHostPattern,
} from './host-pattern.ts'

/** A credential and where it applies. */
export interface CredentialEntry {
  pattern: HostPattern
  credential: RegistryCredential
}

type Fields = Record<string, unknown>

/**
 * The credentials of a docker config: `config.json` and `.dockerconfigjson` with their `auths`, or the older `.dockercfg`
 * without. Throws `CONFIG_INVALID` with every fault. Credential helpers are refused: they are programs on somebody's
 * machine, and a login silently missing looks like an unsigned image.
 *
 * @example parseDockerConfig('{"auths":{"registry.example":{"auth":"dTpw"}}}', 'regcred')
 */
export function parseDockerConfig(text: string, source: string): readonly CredentialEntry[] {
  const faults: Fault[] = []
  const config = parseObject(text)
  if (config === undefined) faults.push({ path: source, message: 'not a JSON object' })
  const entries = config === undefined ? [] : readConfig(config, source, faults)
  if (faults.length === 0) return entries
  const list = faults.map(({ path, message }) => `${path}: ${message}`).join('; ')
  throw new AdmissionError('CONFIG_INVALID', list, { faults })
}

/**
 * Looks a credential up among the entries. The most specific pattern that covers host and repository wins: the longest
 * path, then the one with fewest `*`, then the one given first.
 */
export function credentialsFrom(entries: readonly CredentialEntry[]): CredentialsPort {
  const sorted = entries.toSorted((a, b) => compareSpecificity(a.pattern, b.pattern))
  return async (host, repository) =>
    sorted.find(({ pattern }) => matchesHost(pattern, host, repository))?.credential
}

function readConfig(config: Fields, source: string, faults: Fault[]): CredentialEntry[] {
  for (const helper of ['credHelpers', 'credsStore']) {
    if (own(config, helper) !== undefined) {
      const message = 'credential helpers are not run here; write the credential into auths'
      faults.push({ path: `${source}.${helper}`, message })
    }
  }
  const auths = own(config, 'auths')
  if (auths === undefined && faults.length > 0) return []
  const map = auths === undefined ? config : auths
  const prefix = auths === undefined ? source : `${source}.auths`
  if (!isObject(map)) {
    faults.push({ path: prefix, message: 'not an object' })
    return []
  }
  return Object.keys(map).flatMap((key) => {
    return readEntry(key, map[key], `${prefix}[${nameOf(key)}]`, faults)
  })
}

function readEntry(key: string, value: unknown, path: string, faults: Fault[]): CredentialEntry[] {
  const pattern = parseHostPattern(key)
  if (pattern === undefined) {
    faults.push({
      path,
      message: 'not host[:port][/path], with * only inside the labels of the host',
    })
    return []
  }
  const credential = isObject(value) ? readCredential(value) : 'not an object'
  if (typeof credential !== 'string') return [{ pattern, credential }]
  faults.push({ path, message: credential })
  return []
}

/** The credential, or what is wrong. Docker's own order: a registry token, an identity token, `auth`, the two fields. */
function readCredential(entry: Fields): RegistryCredential | string {
  const [registryToken, identityToken, auth, username, password] = [
    'registrytoken',
    'identitytoken',
    'auth',
    'username',
    'password',
  ].map((name) => own(entry, name) ?? '')
  if (isFilled(registryToken)) return { kind: 'token', token: registryToken }
  if (isFilled(identityToken)) return { kind: 'identity', token: identityToken }
  if (isFilled(auth)) return readAuth(auth)
  if (isFilled(username) && isFilled(password)) return loginOf(username, password)
  return 'none of auth, username with password, identitytoken, registrytoken'
}

function readAuth(auth: string): RegistryCredential | string {
  // Kubernetes takes it without padding, too.
  const bytes = fromBase64(auth.padEnd(Math.ceil(auth.length / 4) * 4, '='))
  if (bytes === undefined) return 'auth is not base64'
  try {
    const text = fromUtf8(bytes)
    const colon = text.indexOf(':')
    if (colon < 1) return 'auth is not the base64 of username:password'
    // Docker pads some passwords with NUL.
    const password = text.slice(colon + 1).replace(/\0+$/, '')
    return loginOf(text.slice(0, colon), password)
  } catch {
    // The decoder's own message could quote the secret.
    return 'auth is not the base64 of UTF-8 text'
  }
}

/** A login by Basic; credential helpers hand out identity tokens under the user `<token>`. */
function loginOf(username: string, password: string): RegistryCredential {
  return username === '<token>' && password !== ''
    ? { kind: 'identity', token: password }
    : { kind: 'basic', username, password }
}

/** The key for a message, without a login somebody wrote into it. */
function nameOf(key: string): string {
  return JSON.stringify(key.slice(key.lastIndexOf('@') + 1))
}

function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    // JSON.parse quotes the text around the error, which may be a secret.
    return undefined
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function own(object: Fields, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}
