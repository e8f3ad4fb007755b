/** Providers that are asked for a login when a registry of theirs is. */
export type LoginProvider = 'amazon' | 'azure' | 'google' | 'github'

/** Where an ECR registry's logins are given out: fixed by the name of the registry, so that no request is signed for anywhere else. */
export interface EcrEndpoint {
  /** `api.ecr.eu-central-1.amazonaws.com`. */
  host: string
  region: string
  service: 'ecr' | 'ecr-public'
}

const ECR =
  /^\d{12}\.dkr\.ecr(-fips)?\.([a-z]{2}(?:-[a-z]{2,12}){1,3}-\d{1,2})\.amazonaws\.com(\.cn)?$/

/**
 * The endpoint behind an ECR registry, or undefined when the host is none. One login is good for every account whose policies let the
 * caller in, so the account of the host is not asked for.
 */
export function ecrEndpoint(host: string): EcrEndpoint | undefined {
  if (host === 'public.ecr.aws') {
    // The only region where it can be asked.
    const region = 'us-east-1'
    return { host: `api.ecr-public.${region}.amazonaws.com`, region, service: 'ecr-public' }
  }
  const [, fips, region, china = ''] = ECR.exec(host) ?? []
  if (region === undefined || region.startsWith('cn-') !== (china !== '')) return undefined
  const name = fips === undefined ? 'api.ecr' : 'ecr-fips'
  return { host: `${name}.${region}.amazonaws.com${china}`, region, service: 'ecr' }
}

const HOSTS: Readonly<Record<LoginProvider, (host: string) => boolean>> = {
  amazon: (host) => ecrEndpoint(host) !== undefined,
  // The public cloud only: a login of one cloud is not sent to another.
  azure: (host) => /^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]\.azurecr\.io$/.test(host),
  google: (host) =>
    /^(?:[a-z0-9][a-z0-9-]{0,50}-docker\.pkg\.dev|(?:[a-z0-9-]{1,63}\.)?gcr\.io)$/.test(host),
  github: (host) => host === 'ghcr.io',
}

/** True for a registry that this provider runs, by its whole name in lower case and without a port. */
export function isHostOf(provider: LoginProvider, host: string): boolean {
  return HOSTS[provider](host)
}
