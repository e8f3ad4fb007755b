import { type AddressPolicy, isPublicHostName } from './address.ts'

/** Token services that are known to be elsewhere than the registry they serve. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  'registry-1.docker.io': ['auth.docker.io'],
}

/**
 * True when the credential of a registry may be sent to this realm. The realm comes from a header, so it has to be on the
 * registry's own origin, on its host or a parent domain of it at the HTTPS port (as `registry.gitlab.com` has it at
 * `gitlab.com`), or be named for this registry.
 */
export function mayLogInAt(
  realm: URL,
  host: string,
  addresses: AddressPolicy,
  tokenHosts: Readonly<Record<string, readonly string[]>>,
): boolean {
  const registry = addresses.baseUrl(host)
  if (realm.origin === registry.origin) return true
  const named = [KNOWN, tokenHosts].some((hosts) => {
    return Object.hasOwn(hosts, host) && hosts[host]?.includes(realm.host)
  })
  if (named) return true
  const parent =
    isPublicHostName(realm.hostname) && registry.hostname.endsWith(`.${realm.hostname}`)
  const onHttpsPort = realm.protocol === 'https:' && realm.port === ''
  return onHttpsPort && (parent || realm.hostname === registry.hostname)
}
