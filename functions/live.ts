import type { Live } from '#shared/engine/inquiry.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { CredentialsPort, KmsPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import {
  type CredentialEntry,
  credentialsFrom,
  parseDockerConfig,
} from '#shared/registry/credentials.ts'
import { parseHostPattern } from '#shared/registry/host-pattern.ts'
import { createVerifier } from '#shared/signature/verify.ts'
import type { Config, CredentialSource } from './config.ts'
import { kmsKeysFrom } from './kms-keys.ts'
import { type Environment, fetchFrom, type Platform, secretFrom } from './ports.ts'

/**
 * Registry client and verifier of one isolate. A module of its own because validate loads it only when a seal does not
 * cover an object. Throws `CONFIG_INVALID` when a variable that the config names is missing or wrong.
 */
export function createLive(config: Config, platform: Platform, kms: KmsPort): Live {
  const { now = Date.now } = platform
  return {
    registry: createRegistryClient({
      fetch: fetchFrom(platform),
      now,
      credentials: registryCredentials(config.registries.credentials, platform.env),
      plainHttpHosts: config.registries.plainHttp,
      allowedHosts: config.registries.allow ?? [],
      tokenHosts: tokenHosts(config.registries.credentials),
    }),
    verifier: createVerifier({ now, kms: kmsKeysFrom(config, platform, kms) }),
  }
}

function registryCredentials(
  sources: readonly CredentialSource[],
  env: Environment,
): CredentialsPort {
  return credentialsFrom(sources.flatMap((source) => entriesOf(source, env)))
}

function tokenHosts(sources: readonly CredentialSource[]): Record<string, readonly string[]> {
  return Object.fromEntries(
    sources.flatMap((source) =>
      source.kind === 'basic' && source.tokenHost !== undefined
        ? [[source.host, [source.tokenHost]] as const]
        : [],
    ),
  )
}

function entriesOf(source: CredentialSource, env: Environment): readonly CredentialEntry[] {
  if (source.kind === 'docker-config') {
    const name = source.dockerConfigEnv
    return parseDockerConfig(secretFrom(env, name), name)
  }
  const pattern = parseHostPattern(source.host)
  if (pattern === undefined) {
    throw new AdmissionError('CONFIG_INVALID', `registries.credentials: no host: ${source.host}`)
  }
  const username = secretFrom(env, source.usernameEnv)
  const password = secretFrom(env, source.passwordEnv)
  return [{ pattern, credential: { kind: 'basic', username, password } }]
}
