import { type Bytes, fromBase64 } from '#shared/bytes.ts'
import { AdmissionError, toAdmissionError } from '#shared/errors.ts'
import { kmsKeyRing, type RingSecret, secretKeyRing } from '#shared/outcome/keyring.ts'
import type { KeyRing } from '#shared/outcome/types.ts'
import type {
  FetchPort,
  HashPort,
  KmsPort,
  LogPort,
  TrustingFetch,
  VaultPort,
} from '#shared/ports.ts'
import type { Config } from './config.ts'
import type { AwsCredentials } from './kms.ts'

/** Environment variables of a process, or bindings of a Worker: where secrets are looked up by name. */
export type Environment = Readonly<Record<string, unknown>>

/** What a runtime brings along. */
export interface Platform {
  env: Environment
  log: LogPort
  hash: HashPort
  /** Largest body that can be read here, bytes. */
  maxBodyBytes: number
  /** Epoch milliseconds; the system clock when absent. */
  now?: () => number
  /** True where a reader of the log takes embedded metrics out of it. */
  metrics?: boolean
  fetch?: FetchPort
  /** Absent where only public authorities can be trusted. */
  trustingFetch?: TrustingFetch
  /** AWS KMS when absent. */
  kms?: KmsPort
  /** Where AWS credentials are when the environment has none. */
  awsCredentials?: () => Promise<AwsCredentials | undefined>
}

/** A secret by its name. Throws `CONFIG_INVALID` when the variable is not set. */
export function secretFrom(env: Environment, name: string): string {
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (typeof value === 'string' && value.trim() !== '') return value.trim()
  throw new AdmissionError('CONFIG_INVALID', `variable ${name} is not set, but the config names it`)
}

/** Every variable the config names that is not set. */
export function missingVariables(config: Config, env: Environment): string[] {
  const { key } = config.outcomes
  const { vault } = config.kms
  const names = [
    ...(vault === undefined ? [] : [vault.tokenEnv]),
    ...config.clusters.flatMap(({ api }) => (api === undefined ? [] : [api.tokenEnv])),
    ...(key.kind === 'secrets' ? key.secrets.map((secret) => secret.env) : []),
    ...[...config.registries.credentials, ...(config.registries.secrets ?? [])].flatMap(
      variablesOf,
    ),
    ...(config.events?.sinks ?? []).flatMap((sink) =>
      sink.kind === 'http' ? sink.headers.flatMap(variablesOf) : [],
    ),
  ]
  return names.filter((name) => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    return typeof value !== 'string' || value.trim() === ''
  })
}

/** The variables that an entry of the config names: each key that ends in `Env` holds one. */
function variablesOf(entry: object): string[] {
  const fields: [string, unknown][] = Object.entries(entry)
  return fields.flatMap(([key, value]) =>
    key.endsWith('Env') && typeof value === 'string' ? [value] : [],
  )
}

/**
 * AWS KMS with the credentials of the environment; without any there, those of the SDK's default chain. Loaded when it
 * is first called: most deployments without KMS keys never do.
 */
export function kmsFrom({ env, kms }: Pick<Platform, 'env' | 'kms'>): KmsPort {
  if (kms !== undefined) return kms
  let loaded: KmsPort | undefined
  const load = async () => {
    const { createAwsKms } = await import('./kms.ts')
    const credentials = awsCredentials(env)
    loaded ??= createAwsKms(credentials === undefined ? {} : { credentials })
    return loaded
  }
  return {
    getPublicKey: async (...call) => (await load()).getPublicKey(...call),
    verify: async (...call) => (await load()).verify(...call),
    generateMac: async (...call) => (await load()).generateMac(...call),
  }
}

/** Vault with the token of this variable. Loaded when it is first called, as most deployments without such keys never do. */
export function vaultFrom(platform: Pick<Platform, 'env' | 'fetch'>, tokenEnv: string): VaultPort {
  let loaded: VaultPort | undefined
  const load = async () => {
    const { createVault } = await import('./kms-vault.ts')
    const token = () => secretFrom(platform.env, tokenEnv)
    loaded ??= createVault({ fetch: fetchFrom(platform), token })
    return loaded
  }
  return {
    getPublicKey: async (...call) => (await load()).getPublicKey(...call),
    verify: async (...call) => (await load()).verify(...call),
  }
}

/** The AWS credentials of the environment, as Lambda sets them, or undefined. */
export function awsCredentials(env: Environment): AwsCredentials | undefined {
  const [accessKeyId, secretAccessKey, sessionToken] = [
    env.AWS_ACCESS_KEY_ID,
    env.AWS_SECRET_ACCESS_KEY,
    env.AWS_SESSION_TOKEN,
  ]
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') return undefined
  return {
    accessKeyId,
    secretAccessKey,
    ...(typeof sessionToken === 'string' && sessionToken !== '' && { sessionToken }),
  }
}

/** FetchPort of the platform. */
export function fetchFrom(platform: Pick<Platform, 'fetch'>): FetchPort {
  // Called through the global each time: Workers refuse a fetch that is called as a method.
  return platform.fetch ?? ((url, init) => fetch(url, init))
}

/**
 * The key ring of the seal. Where its secrets are missing or wrong the ring says so whenever it is used, so that the
 * function still answers: nothing is sealed, and validate verifies live or denies.
 */
export function keyRingFrom(config: Config, platform: Platform, kms: KmsPort): KeyRing {
  const { key } = config.outcomes
  try {
    return key.kind === 'kms'
      ? kmsKeyRing({ kms, key: key.key, hash: platform.hash })
      : secretKeyRing(
          key.secrets.map(({ id, env }) => toSecret(id, env, platform.env)),
          platform.hash,
        )
  } catch (thrown) {
    const cause = toAdmissionError(thrown, 'reading the sealing key')
    const fail = async () => {
      throw new AdmissionError('SEAL_KEY_UNAVAILABLE', cause.message, { cause })
    }
    return { current: fail, find: fail }
  }
}

function toSecret(kid: string, name: string, env: Environment): RingSecret {
  const secret: Bytes | undefined = fromBase64(secretFrom(env, name))
  if (secret === undefined) {
    throw new AdmissionError('CONFIG_INVALID', `variable ${name} holds no standard base64`)
  }
  return { kid, secret }
}
