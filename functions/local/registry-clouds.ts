import { type KeyObject, randomBytes, verify } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { bodyOf, closeServer, listenLocally } from './loopback.ts'
import type { RecordedRequest } from './registry.ts'
import { answer, type RegistryReply } from './registry-answer.ts'
import { RegistryFaults } from './registry-faults.ts'
import { checkSignature, type SigningCaller } from './sigv4-check.ts'

/** Who may log in at the providers. */
export interface CloudAccounts {
  aws: SigningCaller
  google: { email: string; keyId: string; publicKey: KeyObject }
  azure: { tenant: string; clientId: string; clientSecret: string }
}

/** What the providers hand out; the registries behind them have to take it. */
export interface CloudLogins {
  /** Password of the user `AWS`. */
  ecr: string
  /** Password of the user `oauth2accesstoken`. */
  google: string
  /** Token of the Azure directory. */
  azure: string
  /** Refresh token of every Azure registry. */
  acr: string
}

/** The endpoints where cloud providers give out logins to registries, on loopback: each checks what it is sent as the real one does. */
export interface CloudEmulator {
  /** `http://127.0.0.1:<port>`. Callers name the endpoint they mean as `x-forwarded-host`. */
  readonly url: string
  readonly logins: CloudLogins
  /** Tested against `POST oauth2.googleapis.com/token`. */
  readonly faults: RegistryFaults
  readonly requests: RecordedRequest[]
  close(): Promise<void>
}

interface Call {
  host: string
  pathname: string
  headers: IncomingMessage['headers']
  body: string
}

interface Answer {
  status: number
  body: object
}

interface Setup {
  accounts: CloudAccounts
  logins: CloudLogins
  /** Epoch milliseconds. */
  now: () => number
}

/** Starts all endpoints on one free port. */
export async function startClouds(
  accounts: CloudAccounts,
  now: () => number,
): Promise<CloudEmulator> {
  const secret = (name: string) => `${name}-${randomBytes(12).toString('hex')}`
  const logins = {
    ecr: secret('ecr'),
    google: secret('google'),
    azure: secret('azure'),
    acr: secret('acr'),
  }
  const faults = new RegistryFaults()
  const requests: RecordedRequest[] = []
  const server = createServer(async (request, response) => {
    const body = (await bodyOf(request)).toString('utf8')
    const { method = '', url = '/', headers } = request
    const host = String(headers['x-forwarded-host'])
    requests.push({ method, url: `${host}${url}`, headers, body })
    const { pathname } = new URL(url, 'http://cloud')
    const fault = faults.strike(`${method} ${host}${pathname}`)
    const call = { host, pathname, headers, body }
    const reply = () => toReply(method, handle(call, { accounts, logins, now }))
    answer(response, method, url, reply, fault)
  })
  return {
    url: `http://127.0.0.1:${await listenLocally(server)}`,
    logins,
    faults,
    requests,
    close: () => closeServer(server),
  }
}

function handle(call: Call, setup: Setup): Answer {
  const { host, pathname } = call
  if (/^(api\.ecr(-public)?|ecr-fips)\./.test(host) && pathname === '/') return ecr(call, setup)
  if (host === 'oauth2.googleapis.com' && pathname === '/token') return google(call, setup)
  if (host === 'login.microsoftonline.com') return directory(call, setup)
  if (host.endsWith('.azurecr.io') && pathname === '/oauth2/exchange') return exchange(call, setup)
  return { status: 404, body: {} }
}

/** `GetAuthorizationToken` of ECR and ECR Public. */
function ecr(call: Call, { accounts, logins, now }: Setup): Answer {
  const isPublic = call.host.startsWith('api.ecr-public.')
  const wanted = isPublic
    ? 'SpencerFrontendService.GetAuthorizationToken'
    : 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken'
  const refuse = (type: string) => ({ status: 400, body: { __type: `com.amazon#${type}` } })
  if (call.headers['x-amz-target'] !== wanted) return refuse('UnknownOperationException')
  const service = isPublic ? 'ecr-public' : 'ecr'
  const request = { ...call, method: 'POST', path: '/' }
  const signed = checkSignature(request, accounts.aws, { service, now: now() })
  if ('fault' in signed) return refuse(signed.fault)
  if (!call.host.includes(`.${signed.region}.`)) return refuse('InvalidSignatureException')
  const authorizationToken = Buffer.from(`AWS:${logins.ecr}`).toString('base64')
  const data = { authorizationToken, expiresAt: now() / 1000 + 43_200 }
  return { status: 200, body: { authorizationData: isPublic ? data : [data] } }
}

/** The JWT bearer grant of Google's OAuth 2 endpoint. */
function google({ body }: Call, { accounts, logins, now }: Setup): Answer {
  const refuse = { status: 400, body: { error: 'invalid_grant', error_description: body } }
  const form = new URLSearchParams(body)
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return refuse
  const [head = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.')
  const { keyId, publicKey, email } = accounts.google
  const [{ alg, kid }, { iss, aud, iat, exp, scope }] = [head, claims].map(decoded) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ]
  const isRight =
    alg === 'RS256' &&
    kid === keyId &&
    iss === email &&
    aud === 'https://oauth2.googleapis.com/token' &&
    typeof scope === 'string' &&
    Math.abs(Number(iat) * 1000 - now()) < 1000 &&
    Number(exp) > Number(iat) &&
    Number(exp) <= Number(iat) + 3600 &&
    verify(
      'sha256',
      Buffer.from(`${head}.${claims}`),
      publicKey,
      Buffer.from(signature, 'base64url'),
    )
  if (!isRight) return refuse
  return { status: 200, body: { access_token: logins.google, expires_in: 3599 } }
}

/** The client credentials grant of the Microsoft identity platform. */
function directory({ pathname, body }: Call, { accounts, logins }: Setup): Answer {
  const { tenant, clientId, clientSecret } = accounts.azure
  const form = new URLSearchParams(body)
  if (pathname !== `/${tenant}/oauth2/v2.0/token`) {
    return { status: 400, body: { error: 'invalid_request' } }
  }
  const isRight =
    form.get('grant_type') === 'client_credentials' &&
    form.get('client_id') === clientId &&
    form.get('client_secret') === clientSecret &&
    form.get('scope') === 'https://containerregistry.azure.net/.default'
  return isRight
    ? { status: 200, body: { token_type: 'Bearer', access_token: logins.azure, expires_in: 3599 } }
    : { status: 401, body: { error: 'invalid_client', error_description: body } }
}

/** `POST /oauth2/exchange` of an Azure registry. */
function exchange({ host, body }: Call, { accounts, logins }: Setup): Answer {
  const form = new URLSearchParams(body)
  const isRight =
    form.get('grant_type') === 'access_token' &&
    form.get('service') === host &&
    form.get('tenant') === accounts.azure.tenant &&
    form.get('access_token') === logins.azure
  return isRight
    ? { status: 200, body: { refresh_token: logins.acr } }
    : { status: 401, body: { errors: [{ code: 'UNAUTHORIZED', message: body }] } }
}

function toReply(method: string, { status, body }: Answer): RegistryReply {
  const reply = method === 'POST' ? { status, body } : { status: 405, body: {} }
  const headers = { 'content-type': 'application/json' }
  return { status: reply.status, headers, body: Buffer.from(JSON.stringify(reply.body)) }
}

/** The JSON of a part of a JWT, or an empty object. */
function decoded(part: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(Buffer.from(part, 'base64url').toString()))
  } catch {
    return {}
  }
}
