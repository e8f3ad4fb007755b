import type { Config } from '#functions/config.ts'
import type { AwsCredentials } from '#functions/kms.ts'
import { awsCredentials, fetchFrom, type Platform, secretFrom } from '#functions/ports.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { CredentialsPort, RegistryCredential } from '#shared/ports.ts'
import {
  type CredentialEntry,
  credentialsFrom,
  parseDockerConfig,
} from '#shared/registry/credentials.ts'
import { parseHostPattern } from '#shared/registry/host-pattern.ts'
import type { CredentialNames, CredentialProvider } from '#shared/registry/types.ts'
import { createCloudCall } from './cloud.ts'
import { ecrEndpoint, isHostOf } from './hosts.ts'
import { KeptLogins, type Login } from './kept-logins.ts'
import type { CredentialSource } from './sources.ts'

/** Logins to registries as the config has them. */
export interface RegistryLogins {
  /** Those of the registries: hosts and docker configs first, then providers. */
  credentials: CredentialsPort
  /** Those that a policy names, Secrets first. A host that none of them is for is asked without a login. */
  credentialsFor(names: CredentialNames): CredentialsPort
  /** Registry host → other hosts its token service may be at. */
  tokenHosts: Readonly<Record<string, readonly string[]>>
}

type StaticSource = Extract<CredentialSource, { kind: 'basic' | 'docker-config' }>
type ProviderSource = Exclude<CredentialSource, StaticSource>

/** One provider of the config, and how it logs in to a registry of its own. */
interface Provider {
  source: ProviderSource
  login(host: string, signal: AbortSignal): Promise<RegistryCredential>
}

/**
 * The logins of one isolate. What the config has without a provider is read at once, and throws `CONFIG_INVALID` when it is missing or
 * wrong; Secrets and providers are read when a registry needs them, and are then a fault of its calls alone.
 */
export function registryLogins(
  { credentials, secrets = [] }: Config['registries'],
  platform: Platform,
): RegistryLogins {
  const { env } = platform
  const fixed = credentials.filter(isStatic)
  const keychain = credentialsFrom(fixed.flatMap((source) => entriesOf(source, env)))
  const providers = providersOf(credentials.filter(isProvider), platform)
  const secretNamed = (name: string): readonly CredentialEntry[] => {
    const found = secrets.find((secret) => secret.name === name)
    if (found === undefined) throw missing(`registries.secrets has no ${JSON.stringify(name)}`)
    return docker(found.dockerConfigEnv, env)
  }
  const providerNamed = (name: CredentialProvider): CredentialsPort => {
    if (name === 'default') return keychain
    const own = providers.filter(({ source }) => source.kind === name)
    if (own.length === 0) throw missing(`registries.credentials has no provider ${name}`)
    return portOf(own)
  }
  return {
    credentials: firstOf(() => [keychain, portOf(providers)]),
    credentialsFor: (names) =>
      firstOf(() => [
        credentialsFrom(names.secrets.flatMap(secretNamed)),
        ...names.providers.map(providerNamed),
      ]),
    tokenHosts: Object.fromEntries(fixed.flatMap(tokenHostOf)),
  }
}

/** What the first of the ports has that has something. They are made with the first call, so that what is missing fails calls only. */
function firstOf(make: () => readonly CredentialsPort[]): CredentialsPort {
  let ports: readonly CredentialsPort[] | undefined
  return async (host, repository, signal) => {
    ports ??= make()
    for (const port of ports) {
      const found = await port(host, repository, signal)
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** The login of the provider that runs the registry; of several, one that names it. A provider that fails is never passed over. */
function portOf(providers: readonly Provider[]): CredentialsPort {
  return async (host, _repository, signal) => {
    const name = host.toLowerCase()
    const own = providers.filter(({ source }) => isHostOf(source.kind, name))
    const provider =
      own.find(({ source }) => source.hosts?.includes(name)) ??
      own.find(({ source }) => source.hosts === undefined)
    return provider?.login(name, signal)
  }
}

/** Each provider's code is a module that a deployment without it never loads. */
function providersOf(sources: readonly ProviderSource[], platform: Platform): Provider[] {
  const { env, hash, now = Date.now } = platform
  const kept = new KeptLogins(now)
  const call = createCloudCall({ fetch: fetchFrom(platform), now })
  return sources.map((source, index) => ({
    source,
    async login(host, signal) {
      const keep = (key: string, obtain: () => Promise<Login>) =>
        kept.get(`${index} ${key}`, signal, obtain)
      switch (source.kind) {
        case 'github':
          return basic('countersign', secretFrom(env, source.tokenEnv))
        case 'amazon': {
          const { amazonLogin } = await import('./amazon.ts')
          const keys = () => awsCredentialsOf(platform)
          // One login is good for every account.
          const endpoint = ecrEndpoint(host)?.host ?? host
          return keep(endpoint, () => amazonLogin(host, { call, hash, now, keys }, signal))
        }
        case 'google': {
          const { googleLogin } = await import('./google.ts')
          const variable = source.serviceAccountKeyEnv
          const key = secretFrom(env, variable)
          return keep('', () => googleLogin({ call, now, key, variable }, signal))
        }
        case 'azure': {
          const { azureLogin, directoryLogin } = await import('./azure.ts')
          const options = {
            call,
            now,
            tenant: secretFrom(env, source.tenantEnv),
            clientId: secretFrom(env, source.clientIdEnv),
            clientSecret: secretFrom(env, source.clientSecretEnv),
          }
          const directory = () => keep('', () => directoryLogin(options, signal))
          return keep(host, () => azureLogin(host, options, directory, signal))
        }
      }
    },
  }))
}

/** The role of the function. Without one in the environment that of the platform; throws `CONFIG_INVALID` when there is none. */
async function awsCredentialsOf(platform: Platform): Promise<AwsCredentials> {
  const found = awsCredentials(platform.env) ?? (await platform.awsCredentials?.())
  if (found !== undefined) return found
  throw missing('no AWS credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set')
}

function entriesOf(source: StaticSource, env: Platform['env']): readonly CredentialEntry[] {
  if (source.kind === 'docker-config') return docker(source.dockerConfigEnv, env)
  const pattern = parseHostPattern(source.host)
  if (pattern === undefined) throw missing(`registries.credentials: no host: ${source.host}`)
  const username = secretFrom(env, source.usernameEnv)
  const password = secretFrom(env, source.passwordEnv)
  return [{ pattern, credential: basic(username, password) }]
}

function docker(variable: string, env: Platform['env']): readonly CredentialEntry[] {
  return parseDockerConfig(secretFrom(env, variable), variable)
}

function tokenHostOf(source: StaticSource): [string, string[]][] {
  return source.kind === 'basic' && source.tokenHost !== undefined
    ? [[source.host, [source.tokenHost]]]
    : []
}

function basic(username: string, password: string): RegistryCredential {
  return { kind: 'basic', username, password }
}

function isStatic(source: CredentialSource): source is StaticSource {
  return source.kind === 'basic' || source.kind === 'docker-config'
}

function isProvider(source: CredentialSource): source is ProviderSource {
  return !isStatic(source)
}

function missing(what: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', what)
}
