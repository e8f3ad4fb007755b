import type { AwsCredentials } from '#functions/kms.ts'
import { fromBase64, fromUtf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { HashPort } from '#shared/ports.ts'
import { field, isObject, type JsonObject } from '#shared/registry/json-object.ts'
import type { CloudCall } from './cloud.ts'
import { type EcrEndpoint, ecrEndpoint } from './hosts.ts'
import type { Login } from './kept-logins.ts'
import { signed } from './sigv4.ts'

/** What logins to ECR are made with. */
export interface AmazonOptions {
  call: CloudCall
  hash: HashPort
  /** Epoch milliseconds. */
  now: () => number
  /** The role of the function. */
  keys: () => Promise<AwsCredentials>
}

/** `GetAuthorizationToken` of the two services. */
const TARGETS: Readonly<Record<EcrEndpoint['service'], string>> = {
  ecr: 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken',
  'ecr-public': 'SpencerFrontendService.GetAuthorizationToken',
}

/**
 * The login for an ECR registry, good for twelve hours: needs `ecr:GetAuthorizationToken`, or for public.ecr.aws
 * `ecr-public:GetAuthorizationToken` and `sts:GetServiceBearerToken`. Throws as a CloudCall does.
 */
export async function amazonLogin(
  registry: string,
  { call, hash, now, keys }: AmazonOptions,
  signal: AbortSignal,
): Promise<Login> {
  const endpoint = ecrEndpoint(registry)
  if (endpoint === undefined) throw new TypeError(`${registry} is not an ECR registry`)
  const { host, service } = endpoint
  const headers = {
    'content-type': 'application/x-amz-json-1.1',
    'x-amz-target': TARGETS[service],
  }
  const request = { ...endpoint, headers, body: '{}' }
  const post = { headers: signed(request, await keys(), hash, now()), body: request.body }
  return loginIn(await call(`https://${host}/`, post, signal), host)
}

/** Private registries answer with a list of one, public ones without the list. */
function loginIn(answer: JsonObject, host: string): Login {
  const data = field(answer, 'authorizationData')
  const found = Array.isArray(data) ? data[0] : data
  const [token, expiresAt] = ['authorizationToken', 'expiresAt'].map((name) =>
    isObject(found) ? field(found, name) : undefined,
  )
  const [, username, password] = /^([^:]+):(.+)$/s.exec(decoded(token)) ?? []
  if (username === undefined || password === undefined || typeof expiresAt !== 'number') {
    throw new AdmissionError('REGISTRY_UNREACHABLE', `${host}: answered without a login`)
  }
  return { credential: { kind: 'basic', username, password }, expiresAt: expiresAt * 1000 }
}

function decoded(token: unknown): string {
  const bytes = typeof token === 'string' ? fromBase64(token) : undefined
  try {
    return bytes === undefined ? '' : fromUtf8(bytes)
  } catch {
    // The decoder's own message could quote the token.
    return ''
  }
}
