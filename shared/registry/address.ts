import { AdmissionError } from '../errors.ts'

/** Which hosts the registry client may talk to, and how. */
export interface AddressPolicy {
  /** `https://host/`, or `http://host/` for a plain-HTTP host. Throws `REGISTRY_FORBIDDEN_ADDRESS`. */
  baseUrl(host: string): URL
  /** Throws `REGISTRY_FORBIDDEN_ADDRESS` unless this URL may be fetched. Called for every hop and every realm. */
  check(url: URL): void
}

/** Hosts an operator names, each exactly `host` or `host:port`. */
export interface AddressOptions {
  /** Spoken to over plain HTTP. Naming a host here also allows it, wherever it is. */
  plainHttpHosts?: readonly string[]
  /** Spoken to over HTTPS although they are no public names: IP literals, cluster services, single labels. */
  allowedHosts?: readonly string[]
}

const DEFAULT_PORT = { 'http:': '80', 'https:': '443' } as const
type Scheme = keyof typeof DEFAULT_PORT

/**
 * Top-level names that never stand for a public host. Image references and token realms are attacker input, and these
 * names lead to the machine itself, its network or the metadata service of its cloud.
 */
const PRIVATE_SUFFIXES: ReadonlySet<string> = new Set([
  'arpa',
  'corp',
  'home',
  'internal',
  'intranet',
  'lan',
  'local',
  'localdomain',
  'localhost',
  'private',
  'svc',
])

/** The policy for these hosts; throws `CONFIG_INVALID` naming each entry that is not `host` or `host:port`. */
export function createAddressPolicy(options: AddressOptions = {}): AddressPolicy {
  const plain = endpointsOf(options.plainHttpHosts ?? [], 'http:', 'plainHttpHosts')
  const allowed = endpointsOf(options.allowedHosts ?? [], 'https:', 'allowedHosts')

  function check(url: URL): void {
    const endpoint = endpointOf(url)
    if (url.username !== '' || url.password !== '') refuse(url.host, 'has a login in its URL')
    if (url.protocol === 'http:' && plain.has(endpoint)) return
    if (url.protocol !== 'https:') refuse(url.host, 'would not be spoken to over HTTPS')
    if (!allowed.has(endpoint) && !isPublicHostName(url.hostname)) {
      refuse(url.host, 'is not a public host name, and not among the hosts allowed by name')
    }
  }

  return {
    check,
    baseUrl: (host) => {
      const http = parseHost(host, 'http:')
      const url =
        http !== undefined && plain.has(endpointOf(http)) ? http : parseHost(host, 'https:')
      if (url === undefined)
        return refuse(host.slice(0, 300), 'is not written as host or host:port')
      check(url)
      return url
    },
  }
}

/**
 * True for a name that can be in the public DNS: two labels or more, a top-level name of letters that is not kept for
 * private networks. Never for an IP address, however it is spelled: `hostname` is what the URL parser made of it, so
 * `0x7f.1` and `2130706433` arrive here as `127.0.0.1`.
 */
export function isPublicHostName(hostname: string): boolean {
  const labels = hostname.split('.')
  const top = labels.at(-1) ?? ''
  return (
    labels.length > 1 &&
    labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label)) &&
    /^(?:[a-z]{2,63}|xn--[a-z0-9-]+)$/.test(top) &&
    !PRIVATE_SUFFIXES.has(top)
  )
}

/** `host:port` of a URL, the port always written. */
function endpointOf(url: URL): string {
  // Any other scheme has no entry here and is refused before its port matters.
  return `${url.hostname}:${url.port || (DEFAULT_PORT[url.protocol as Scheme] ?? '')}`
}

/** The root URL of `host[:port]`, or undefined when the URL parser reads anything else into it, even another spelling. */
function parseHost(host: string, scheme: Scheme): URL | undefined {
  const text = `${scheme}//${host.toLowerCase()}`
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const same = text === url.origin || text === `${url.origin}:${DEFAULT_PORT[scheme]}`
  return same ? url : undefined
}

function endpointsOf(hosts: readonly string[], scheme: Scheme, option: string): Set<string> {
  const parsed = hosts.map((host) => parseHost(host, scheme))
  const faults = hosts.flatMap((host, at) =>
    parsed[at] === undefined
      ? [{ path: `${option}[${at}]`, message: `${JSON.stringify(host)} is not host or host:port` }]
      : [],
  )
  if (faults.length > 0) {
    throw new AdmissionError('CONFIG_INVALID', `${option} has ${faults.length} bad hosts`, {
      faults,
    })
  }
  return new Set(parsed.flatMap((url) => (url === undefined ? [] : [endpointOf(url)])))
}

function refuse(host: string, why: string): never {
  throw new AdmissionError('REGISTRY_FORBIDDEN_ADDRESS', `${JSON.stringify(host)} ${why}`)
}
