import { fromBase64, toBase64Url, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { GOOGLE_ASSERTION_TTL_MS } from '#shared/limits.ts'
import { type CloudCall, lifetimeOf, tokenIn } from './cloud.ts'
import type { Login } from './kept-logins.ts'

/** What logins to Google's registries are made with. */
export interface GoogleOptions {
  call: CloudCall
  /** Epoch milliseconds. */
  now: () => number
  /** JSON of a service account's key. */
  key: string
  /** The variable it is from. */
  variable: string
}

/** Whatever a key file names: the assertion is for Google and nobody else. */
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
/** Reading only, by the names that Artifact Registry and Container Registry know. */
const SCOPES =
  'https://www.googleapis.com/auth/cloud-platform.read-only https://www.googleapis.com/auth/devstorage.read_only'

/**
 * The login of a service account for Google's registries, good for an hour (RFC 7523 with RS256). Throws `CONFIG_INVALID` when the
 * variable holds no such key, else as a CloudCall does.
 */
export async function googleLogin(
  { call, now, key, variable }: GoogleOptions,
  signal: AbortSignal,
): Promise<Login> {
  const account = readKey(key, variable)
  const askedAt = now()
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: await assertionOf(account, askedAt, variable),
  })
  const answer = await call(TOKEN_URL, form, signal)
  const password = tokenIn(answer, 'access_token', TOKEN_URL)
  const credential = { kind: 'basic', username: 'oauth2accesstoken', password } as const
  return { credential, expiresAt: askedAt + lifetimeOf(answer) }
}

interface Account {
  email: string
  keyId: string
  /** PKCS#8, PEM. */
  privateKey: string
}

/** What other files that Google hands out would need. */
const OTHER_TYPES: Readonly<Record<string, string>> = {
  external_account:
    'workload identity federation, which asks a metadata server or reads a file; neither is there in a function',
  authorized_user: "a person's own login; use a service account",
}

function readKey(text: string, variable: string): Account {
  const json = parsed(text)
  const [type, email, keyId, privateKey, universe] = [
    'type',
    'client_email',
    'private_key_id',
    'private_key',
    'universe_domain',
  ].map((name) => (Object.hasOwn(json, name) ? json[name] : undefined))
  if (typeof type === 'string' && Object.hasOwn(OTHER_TYPES, type)) {
    throw invalid(variable, `is for ${OTHER_TYPES[type]}`)
  }
  if (universe !== undefined && universe !== 'googleapis.com') {
    throw invalid(variable, 'is for another universe than googleapis.com')
  }
  const isKey = type === 'service_account' && typeof email === 'string'
  if (!isKey || typeof keyId !== 'string' || typeof privateKey !== 'string') {
    throw invalid(variable, "is not the JSON of a service account's key")
  }
  return { email, keyId, privateKey }
}

async function assertionOf(
  { email, keyId, privateKey }: Account,
  now: number,
  variable: string,
): Promise<string> {
  const iat = Math.floor(now / 1000)
  const claims = {
    iss: email,
    scope: SCOPES,
    aud: TOKEN_URL,
    iat,
    exp: iat + GOOGLE_ASSERTION_TTL_MS / 1000,
  }
  const input = [{ alg: 'RS256', typ: 'JWT', kid: keyId }, claims]
    .map((part) => toBase64Url(utf8(JSON.stringify(part))))
    .join('.')
  const key = await importKey(privateKey, variable)
  const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', key, utf8(input))
  return `${input}.${toBase64Url(new Uint8Array(signature))}`
}

async function importKey(pem: string, variable: string): Promise<CryptoKey> {
  const [, body = ''] =
    /^\s*-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----\s*$/.exec(pem) ??
    []
  const der = fromBase64(body.replace(/\s/g, ''))
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  try {
    if (der === undefined || der.length === 0) throw new TypeError('no PEM')
    return await crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign'])
  } catch {
    // Nothing of the cause is passed on: it is about a private key.
    throw invalid(variable, 'has no RSA key in PKCS#8 (PEM) as private_key')
  }
}

function parsed(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    // JSON.parse quotes the text around the error, which is a secret.
    return {}
  }
}

function invalid(variable: string, problem: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', `variable ${variable} ${problem}`)
}
