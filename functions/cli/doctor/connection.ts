import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { MAX_WEBHOOK_URL_CHARS } from '#shared/limits.ts'
import { urlFaults } from '#shared/webhook/client-config.ts'
import { type Door, routeUrl } from './doors.ts'
import { type Check, fail, ok, type Patient, warn } from './types.ts'

const DAY_MS = 86_400_000
/** Certificates that renew themselves do so earlier than this. */
const ENDS_SOON_DAYS = 14
const CONNECT_TIMEOUT_MS = 10_000

/** Whether an API server takes the URLs at all. */
export function checkUrl(patient: Patient, door: Door): Check {
  const urls = door.routes.map((route) => routeUrl(patient, door, route))
  const unusable = urls.every((url) => URL.canParse(url)) ? [] : ['no URL that can be called']
  const faults = [...new Set([...urls.flatMap(urlFaults), ...unusable])]
  if (faults.length > 0) {
    const fix = 'set endpoint in the config to https://host[:port][/path]'
    return fail('url', faults.join('; ').replaceAll(patient.token, '<token>'), fix)
  }
  const longest = Math.max(...urls.map(({ length }) => length))
  if (longest > MAX_WEBHOOK_URL_CHARS) {
    const found = `${longest} characters are more than the ${MAX_WEBHOOK_URL_CHARS} that doors take`
    return fail('url', found, 'shorten the path of endpoint')
  }
  const isForWebhooks = door.routes.some((route) => route !== 'image-review')
  const below = isForWebhooks ? 'ivpol/…' : 'image-review'
  return ok('url', `${door.url}/v1/${patient.cluster.name}/<token>/${below}`)
}

/** Whether the host has an address, and one that others can reach. */
export async function checkDns({ url }: Door): Promise<Check> {
  const host = hostOf(url)
  try {
    const addresses = (await lookup(host, { all: true })).map(({ address }) => address)
    const found = `${host} is ${addresses.join(', ')}`
    if (addresses.some(isLoopback)) {
      const fix = 'only processes on the same machine reach it: give endpoint a public name'
      return warn('dns', found, fix)
    }
    return addresses.every(isPrivate)
      ? warn('dns', found, 'a private address: make sure that the control plane has a route to it')
      : ok('dns', found)
  } catch (thrown) {
    const { code = 'unknown' } = thrown as { code?: string }
    return fail(
      'dns',
      `${host} has no address (${code})`,
      'create the DNS record of endpoint, or correct the name; API servers use the resolver of their node, not that of the cluster; see egress, too',
    )
  }
}

/** What the handshake of an API server would see: HTTP/1.1 alone, the host by name, public authorities or the caBundle. */
export async function checkTls(patient: Patient, { url }: Door): Promise<Check[]> {
  const socket = await handshake(patient, url)
  if (socket instanceof Error) return [refusedHandshake(socket)]
  try {
    const certificate = socket.getPeerCertificate()
    const protocol = socket.getProtocol() ?? 'unknown'
    // Set on sockets that were let through without being authorized.
    const reason: unknown = socket.authorized ? undefined : socket.authorizationError
    return [
      reason === undefined
        ? trusted(certificate, protocol, patient.now())
        : distrusted(reason, certificate, { url, ca: patient.ca }),
      socket.alpnProtocol === 'http/1.1' || socket.alpnProtocol === false
        ? ok('http', 'HTTP/1.1')
        : fail('http', `speaks ${socket.alpnProtocol}`, 'API servers speak HTTP/1.1 to webhooks'),
    ]
  } finally {
    socket.destroy()
  }
}

function handshake({ ca, client, signal }: Patient, url: string): Promise<TLSSocket | Error> {
  const host = hostOf(url)
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(new URL(url).port || 443),
      ...(isIP(host) === 0 && { servername: host }),
      // Whoever it is gets nothing but this handshake before it is known that they are the right ones.
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      ...(ca !== undefined && { ca }),
      ...client,
    })
    const end = (result: TLSSocket | Error) => {
      signal.removeEventListener('abort', stop)
      resolve(result)
    }
    const stop = () => socket.destroy(new Error('stopped'))
    signal.addEventListener('abort', stop, { once: true })
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('no answer')))
    socket.once('secureConnect', () => end(socket))
    socket.once('error', end)
  })
}

function refusedHandshake(error: Error & { code?: string }): Check {
  const what = error.code ?? error.message
  const fixes: Record<string, string> = {
    ECONNREFUSED: 'nothing listens there: deploy the functions, or correct the port of endpoint',
    ECONNRESET:
      'whatever listens there speaks no TLS, or wants a client certificate: --client-cert',
    ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'API servers speak HTTP/1.1 to webhooks: allow it',
  }
  const fix =
    fixes[what] ??
    'make sure that a firewall lets the control plane through, and that TLS 1.2 is on; see egress, too'
  return fail('tls', `no connection (${what})`, fix)
}

function trusted(certificate: PeerCertificate, protocol: string, now: number): Check {
  const until = Date.parse(certificate.valid_to)
  const days = Math.floor((until - now) / DAY_MS)
  const found = `${protocol}, trusted, ends ${new Date(until).toISOString()} (${days} days)`
  return days < ENDS_SOON_DAYS
    ? warn('tls', found, 'renew the certificate now, or find out why it does not renew itself')
    : ok('tls', found)
}

function distrusted(
  reason: unknown,
  certificate: PeerCertificate,
  { url, ca }: { url: string; ca: string | undefined },
): Check {
  const code = reason instanceof Error ? (reason as { code?: string }).code : String(reason)
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return fail(
        'tls',
        `the certificate ended on ${certificate.valid_to}`,
        'renew it: API servers refuse every call',
      )
    case 'CERT_NOT_YET_VALID':
      return fail(
        'tls',
        `the certificate begins on ${certificate.valid_from}`,
        'wait, or correct the clock of this machine or of whoever issued it',
      )
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return fail(
        'tls',
        `the certificate is not for ${hostOf(url)} but for ${certificate.subjectaltname ?? 'no name at all'}`,
        'issue one with the host of endpoint among its subject alternative names; a common name does not count',
      )
    default:
      return fail(
        'tls',
        `the chain is not trusted (${code})`,
        ca === undefined
          ? 'serve the whole chain of a public authority, or give its own with --ca-bundle here and in the webhooks'
          : 'the caBundle is of another authority: take the one that issued the certificate',
      )
  }
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '')
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}

function isPrivate(address: string): boolean {
  return /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|f[cd][0-9a-f]{2}:|fe80:)/i.test(
    address,
  )
}
