import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterEach } from 'vitest'
import { parseConfig } from '#functions/config.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { createLive } from '#functions/live.ts'
import { pushImage } from '#functions/local/image.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import type { RegistryAuth } from '#functions/local/registry-auth.ts'
import { type CloudEmulator, startClouds } from '#functions/local/registry-clouds.ts'
import type { Platform } from '#functions/ports.ts'
import type { FetchPort } from '#shared/ports.ts'
import type { CredentialNames, RegistryClient } from '#shared/registry/types.ts'
import { NO_KMS } from '../../fakes/world.ts'

export const START = Date.parse('2026-11-30T12:00:00Z')

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })

export const AWS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'aws-s3cr3t',
  sessionToken: 'aws-session-t0ken',
}
export const AZURE = { tenant: 'contoso.example', clientId: 'app-1', clientSecret: 'azure-s3cr3t' }
export const GITHUB_TOKEN = 'ghp_s3cr3t'
const GOOGLE = { email: 'puller@shop.iam.gserviceaccount.com', keyId: 'k1' }

export function pkcs8(key: KeyObject = keys.privateKey): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** A service account's key file, changed by `fields`. */
export function googleKey(fields: object = {}): string {
  return JSON.stringify({
    type: 'service_account',
    project_id: 'shop',
    private_key_id: GOOGLE.keyId,
    private_key: pkcs8(),
    client_email: GOOGLE.email,
    // Where a key file says to go is not where it is sent.
    token_uri: 'https://oauth2.googleapis.com.evil.example/token',
    universe_domain: 'googleapis.com',
    ...fields,
  })
}

/** Every variable that the configs of these tests name. */
export const ENV = {
  SEAL: Buffer.alloc(32, 7).toString('base64'),
  AWS_ACCESS_KEY_ID: AWS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: AWS.secretAccessKey,
  AWS_SESSION_TOKEN: AWS.sessionToken,
  GOOGLE_KEY: googleKey(),
  AZURE_TENANT: AZURE.tenant,
  AZURE_CLIENT: AZURE.clientId,
  AZURE_SECRET: AZURE.clientSecret,
  GITHUB_TOKEN,
}

export const AMAZON = { provider: 'amazon' }
export const GOOGLE_ENTRY = { provider: 'google', serviceAccountKeyEnv: 'GOOGLE_KEY' }
export const AZURE_ENTRY = {
  provider: 'azure',
  tenantEnv: 'AZURE_TENANT',
  clientIdEnv: 'AZURE_CLIENT',
  clientSecretEnv: 'AZURE_SECRET',
}
export const GITHUB = { provider: 'github', tokenEnv: 'GITHUB_TOKEN' }
export const ALL = [AMAZON, GOOGLE_ENTRY, AZURE_ENTRY, GITHUB]

/** A small internet on loopback: providers, registries under public names, and what was sent to each name. */
export interface Internet {
  clouds: CloudEmulator
  clock: { now: number }
  /** Every request so far as `host/path`, with what it carried. */
  readonly sent: { to: string; carried: string }[]
  /** A registry under a public name, with one image `app:v1`. */
  registry(host: string, auth?: RegistryAuth): Promise<LocalRegistry>
  /** A registry client of a deployment with these logins. */
  client(
    registries: object,
    options?: { env?: Platform['env']; platform?: Partial<Platform> },
  ): RegistryClient
}

const closing: { close(): Promise<void> }[] = []

afterEach(async () => {
  await Promise.all(closing.splice(0).map((each) => each.close()))
})

export async function startInternet(): Promise<Internet> {
  const clock = { now: START }
  const accounts = { aws: AWS, azure: AZURE, google: { ...GOOGLE, publicKey: keys.publicKey } }
  const clouds = await startClouds(accounts, () => clock.now)
  closing.push(clouds)
  const registries = new Map<string, LocalRegistry>()
  const sent: Internet['sent'][number][] = []
  const fetchPort: FetchPort = async (text, init) => {
    const url = new URL(text)
    const isExchange = url.pathname === '/oauth2/exchange'
    const registry = isExchange ? undefined : registries.get(url.host)
    const base = registry?.url ?? (isCloud(url) ? clouds.url : undefined)
    const headers = new Headers(init.headers)
    const carried = [url.search, ...headers.values(), String(init.body ?? '')].join('\n')
    sent.push({ to: `${url.host}${url.pathname}`, carried })
    if (url.protocol !== 'https:' || base === undefined) {
      throw Object.assign(new TypeError('fetch failed'), { code: 'ENOTFOUND' })
    }
    headers.set('x-forwarded-host', url.host)
    return fetch(`${base}${url.pathname}${url.search}`, { ...init, headers })
  }
  return {
    clouds,
    clock,
    sent,
    async registry(host, auth) {
      const open = await startRegistry()
      const realm = `https://${host}/token`
      const own = auth?.kind === 'bearer' ? { realm, ...auth } : auth
      const locked = await startRegistry(own === undefined ? {} : { auth: own })
      closing.push(open, locked)
      await pushImage({ url: open.url, repository: 'app' }, { text: 'one', tag: 'v1' })
      for (const [name, repository] of open.repositories) locked.repositories.set(name, repository)
      registries.set(host, locked)
      return locked
    },
    client(more, { env = ENV, platform = {} } = {}) {
      const config = parseConfig({
        policies: 'policies',
        endpoint: 'https://admission.example.com',
        outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
        clusters: [{ name: 'prod', tokens: ['a'.repeat(64)] }],
        registries: more,
      })
      const own: Platform = {
        env,
        log: () => undefined,
        hash: nodeHash,
        maxBodyBytes: 1e6,
        now: () => clock.now,
        fetch: fetchPort,
      }
      return createLive(config, { ...own, ...platform }, NO_KMS).registry
    },
  }
}

/** The names under which the emulated providers answer. */
function isCloud({ host, pathname }: URL): boolean {
  return (
    /^(?:api\.ecr|ecr-fips|api\.ecr-public)\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?$/.test(host) ||
    ['oauth2.googleapis.com', 'login.microsoftonline.com'].includes(host) ||
    (host.endsWith('.azurecr.io') && pathname === '/oauth2/exchange')
  )
}

/** What comes of one pull of `app:v1`: `ok`, or the code and message of the fault. */
export async function pull(
  registry: RegistryClient,
  host: string,
  {
    names,
    signal = new AbortController().signal,
  }: { names?: CredentialNames; signal?: AbortSignal } = {},
): Promise<string> {
  const session = registry.session(signal)
  const named = names === undefined ? session : session.withCredentials(names)
  return named.manifest({ host, repository: 'app' }, 'v1').then(
    (manifest) => (manifest === undefined ? 'no image' : 'ok'),
    (error: { code?: string; message: string }) => `${error.code}: ${error.message}`,
  )
}
