import { CREDENTIAL_PROVIDERS, type CredentialNames } from '../registry/types.ts'
import { defaulted, type Faults, flag, listOf, object, oneOf, type Path, words } from './shape.ts'

/** What the operator's config has that policies may name. */
export interface KnownRegistries extends CredentialNames {
  /** Registries without TLS. */
  plainHttp: readonly string[]
}

const insecure = 'allowInsecureRegistry'

/** `spec.credentials` (specs/image-validating-policy.md 1.2, 4.9). */
export const credentials = object({
  [insecure]: defaulted(flag, () => false),
  providers: defaulted(listOf(oneOf(...CREDENTIAL_PROVIDERS)), () => []),
  secrets: defaulted(listOf(words), () => []),
})

/** What is read of `spec.credentials`. */
export type CredentialFields = NonNullable<ReturnType<typeof credentials>>

/** The names of `spec.credentials`, each once. Naming none at all means `default`, as it does in Kyverno. */
export function credentialNames({ providers, secrets }: CredentialFields): CredentialNames {
  const isEmpty = providers.length + secrets.length === 0
  return {
    secrets: [...new Set(secrets)],
    providers: isEmpty ? ['default'] : [...new Set(providers)],
  }
}

/**
 * Adds a fault for each name that the config does not have: Kyverno leaves a Secret out that does not exist, so that the image looks
 * unsigned to whoever cannot log in.
 */
export function checkCredentials(
  fields: CredentialFields,
  path: Path,
  known: KnownRegistries,
  faults: Faults,
): void {
  checkSecrets(fields.secrets, [...path, 'secrets'], known, faults)
  for (const [index, provider] of fields.providers.entries()) {
    if (known.providers.includes(provider)) continue
    const entry =
      provider === 'default'
        ? 'an entry with a docker config or a host'
        : `an entry with provider: ${provider}`
    const message = `Not found: "${provider}": registries.credentials of the config needs ${entry}`
    faults.add([...path, 'providers', index], message)
  }
  if (fields[insecure] && known.plainHttp.length === 0) {
    const message =
      'Forbidden: registries without TLS are allowed by name only, in registries.plainHttp of the config'
    faults.add([...path, insecure], message)
  }
}

/** Adds a fault for each Secret that the config does not have. */
export function checkSecrets(
  names: readonly string[],
  path: Path,
  known: Pick<KnownRegistries, 'secrets'>,
  faults: Faults,
): void {
  for (const [index, name] of names.entries()) {
    if (known.secrets.includes(name)) continue
    const message = `Not found: ${JSON.stringify(name)}: Secrets are not read from a cluster; registries.secrets of the config needs an entry of this name`
    faults.add([...path, index], message)
  }
}
