import type { ConfigDocument } from '#functions/config-schema.ts'
import type { Fault } from '#shared/errors.ts'
import type { KnownRegistries } from '#shared/policy/credentials.ts'
import { isHostOf, type LoginProvider } from './hosts.ts'

/** Where registry logins come from. */
export type CredentialSource =
  | { kind: 'basic'; host: string; usernameEnv: string; passwordEnv: string; tokenHost?: string }
  | { kind: 'docker-config'; dockerConfigEnv: string }
  | ({ kind: 'amazon' } & OwnHosts)
  | ({ kind: 'google'; serviceAccountKeyEnv: string } & OwnHosts)
  | ({ kind: 'azure'; tenantEnv: string; clientIdEnv: string; clientSecretEnv: string } & OwnHosts)
  | ({ kind: 'github'; tokenEnv: string } & OwnHosts)

/** The registries a provider is asked for; all of its own when absent. */
interface OwnHosts {
  hosts?: readonly string[]
}

/** A pull secret that policies may name. */
export interface SecretSource {
  /** `namespace/name` or `name`. */
  name: string
  dockerConfigEnv: string
}

type Entry = ConfigDocument['registries']['credentials'][number]

/** What an entry of `registries.credentials` without a fault says. */
export function toSource(entry: Entry): CredentialSource {
  const { provider, ...fields } = entry
  const { host = '', usernameEnv = '', passwordEnv = '', tokenHost, dockerConfigEnv } = fields
  // `providerFaults` has seen to it that each provider has its fields and no other.
  if (provider !== undefined) return { kind: provider, ...fields } as CredentialSource
  if (dockerConfigEnv !== undefined) return { kind: 'docker-config', dockerConfigEnv }
  const basic = { kind: 'basic', host, usernameEnv, passwordEnv } as const
  return tokenHost === undefined ? basic : { ...basic, tokenHost }
}

/** What an entry of each provider has beside `provider` and `hosts`. */
const FIELDS: Readonly<Record<LoginProvider, readonly string[]>> = {
  amazon: [],
  google: ['serviceAccountKeyEnv'],
  azure: ['tenantEnv', 'clientIdEnv', 'clientSecretEnv'],
  github: ['tokenEnv'],
}

/** Of `registries.credentials`, whatever it is: fields that a provider lacks or does not know, and hosts that are none of its registries. */
export function providerFaults(entries: unknown): Fault[] {
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: unknown, index) => {
    const fields: Record<string, unknown> = { ...Object(entry) }
    const { provider, hosts } = fields
    if (typeof provider !== 'string' || !isProvider(provider)) return []
    const at = `registries.credentials[${index}]`
    const known = ['provider', 'hosts', ...FIELDS[provider]]
    const fault = (where: string, message: string): Fault => ({ path: `${at}${where}`, message })
    const lacking = FIELDS[provider].filter((name) => !Object.hasOwn(fields, name))
    const foreign = Object.keys(fields).filter((name) => !known.includes(name))
    return [
      ...lacking.map((name) => fault(`.${name}`, `is required by provider: ${provider}`)),
      ...foreign.map((name) =>
        fault(`.${name}`, `is not for provider: ${provider}, which has ${known.join(', ')}`),
      ),
      ...(Array.isArray(hosts) ? hosts : []).flatMap((host: unknown, which) =>
        typeof host === 'string' && !isHostOf(provider, host)
          ? [fault(`.hosts[${which}]`, `is no registry of provider: ${provider}`)]
          : [],
      ),
    ]
  })
}

function isProvider(name: string): name is LoginProvider {
  return Object.hasOwn(FIELDS, name)
}

/** What policies may name of these registries. */
export function knownRegistries(registries: {
  credentials: readonly CredentialSource[]
  secrets?: readonly SecretSource[]
  plainHttp: readonly string[]
}): KnownRegistries {
  const { credentials, secrets = [], plainHttp } = registries
  return {
    secrets: secrets.map(({ name }) => name),
    providers: credentials.map(({ kind }) =>
      kind === 'basic' || kind === 'docker-config' ? 'default' : kind,
    ),
    plainHttp,
  }
}
