import { AdmissionError } from '../errors.ts'
import { REGISTRY_CALL_TIMEOUT_MS } from '../limits.ts'
import type { CredentialsPort, FetchPort } from '../ports.ts'
import { type AddressOptions, createAddressPolicy } from './address.ts'
import { createAuth } from './auth.ts'
import { createGuardedFetch } from './fetch.ts'
import { createSession } from './session.ts'
import type { CredentialNames, RegistryClient } from './types.ts'

/** What the registry client is made of. `plainHttpHosts` and `allowedHosts` are exact `host[:port]` of operators. */
export interface RegistryClientOptions extends AddressOptions {
  fetch: FetchPort
  /** Epoch milliseconds. */
  now: () => number
  credentials: CredentialsPort
  /** The logins behind names, in place of `credentials`; without it nobody can be logged in by name. */
  credentialsFor?: (names: CredentialNames) => CredentialsPort
  /** In [0, 1), for the jitter of retries; Math.random unless given. */
  random?: () => number
  /** Registry `host[:port]` → other hosts its credential may be sent to because its token service is there. */
  tokenHosts?: Readonly<Record<string, readonly string[]>>
  /** Default `REGISTRY_CALL_TIMEOUT_MS`. */
  callTimeoutMs?: number
}

/** A client for one isolate. Throws `CONFIG_INVALID` when a host is not `host` or `host:port`. */
export function createRegistryClient(options: RegistryClientOptions): RegistryClient {
  const { now, credentials, credentialsFor = unnamed } = options
  const addresses = createAddressPolicy(options)
  const fetch = createGuardedFetch({
    fetch: options.fetch,
    now,
    random: options.random ?? Math.random,
    addresses,
    callTimeoutMs: options.callTimeoutMs ?? REGISTRY_CALL_TIMEOUT_MS,
  })
  const tokenHosts = options.tokenHosts ?? {}
  const authWith = createAuth({ fetch, addresses, now, tokenHosts })
  return {
    session: (signal) =>
      createSession({
        fetch,
        addresses,
        authFor: (context, names) =>
          authWith(context, names === undefined ? credentials : credentialsFor(names)),
        signal,
      }),
  }
}

function unnamed(): CredentialsPort {
  return async () => {
    throw new AdmissionError('CONFIG_INVALID', 'there are no registry credentials by name here')
  }
}
