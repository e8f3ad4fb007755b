import { AdmissionError } from '#shared/errors.ts'
import { AZURE_REFRESH_TOKEN_TTL_MS } from '#shared/limits.ts'
import type { RegistryCredential } from '#shared/ports.ts'
import { type CloudCall, lifetimeOf, tokenIn } from './cloud.ts'
import type { Login } from './kept-logins.ts'

/** What logins to Azure Container Registry are made with: an application with a secret. */
export interface AzureOptions {
  call: CloudCall
  /** Epoch milliseconds. */
  now: () => number
  /** Directory (tenant) id, or a domain of it. */
  tenant: string
  clientId: string
  clientSecret: string
}

/**
 * The token of an application for the registries its directory lets it in. Throws `CONFIG_INVALID` for a tenant that is none, else as a
 * CloudCall does.
 */
export async function directoryLogin(
  { call, now, tenant, clientId, clientSecret }: AzureOptions,
  signal: AbortSignal,
): Promise<Login> {
  // It becomes a path: nothing in it may lead elsewhere.
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$/.test(tenant)) {
    throw new AdmissionError('CONFIG_INVALID', 'the Azure tenant is neither an id nor a domain')
  }
  const url = `https://login.microsoftonline.com/${tenant}/oauth2/v2.0/token`
  const askedAt = now()
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    scope: 'https://containerregistry.azure.net/.default',
  })
  const answer = await call(url, form, signal)
  const token = tokenIn(answer, 'access_token', url)
  return { credential: { kind: 'token', token }, expiresAt: askedAt + lifetimeOf(answer) }
}

/**
 * The login for one registry: the token of the directory (as `directoryLogin` gives it), exchanged there for a refresh token, with which the registry's token service is
 * asked then. Throws as a CloudCall does.
 */
export async function azureLogin(
  registry: string,
  { call, now, tenant }: AzureOptions,
  directory: () => Promise<RegistryCredential>,
  signal: AbortSignal,
): Promise<Login> {
  const url = `https://${registry}/oauth2/exchange`
  const granted = await directory()
  const form = new URLSearchParams({
    grant_type: 'access_token',
    service: registry,
    tenant,
    access_token: granted.kind === 'token' ? granted.token : '',
  })
  const askedAt = now()
  const token = tokenIn(await call(url, form, signal), 'refresh_token', url)
  const expiresAt = askedAt + AZURE_REFRESH_TOKEN_TTL_MS
  return { credential: { kind: 'identity', token }, expiresAt }
}
