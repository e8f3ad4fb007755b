import { type Bytes, concat, sha256, toBase64, toHex } from '../../bytes.ts'
import { Cache } from '../../cache.ts'
import { AdmissionError } from '../../errors.ts'
import {
  CRL_TIMEOUT_MS,
  MAX_CRL_BYTES,
  MAX_OCSP_BYTES,
  MAX_REVOCATION_TTL_MS,
  MAX_REVOCATION_URLS,
  OCSP_TIMEOUT_MS,
  REJECTION_TTL_MS,
} from '../../limits.ts'
import type { FetchPort } from '../../ports.ts'
import { type AddressPolicy, createAddressPolicy } from '../../registry/address.ts'
import { type CallContext, createGuardedFetch, type GuardedFetch } from '../../registry/fetch.ts'
import type { Certificate } from '../x509/certificate.ts'
import { printName } from '../x509/name.ts'
import { readCrl } from './crl.ts'
import { encodeRequest, readOcsp } from './ocsp.ts'
import { asUnknown, isHeld, unknown } from './statement.ts'
import type { Finding, RevocationSource, RevocationStatus } from './types.ts'

export interface RevocationOptions {
  fetch: FetchPort
  /** Epoch milliseconds. */
  now: () => number
  /** Exact `host[:port]` of the operator: asked although they are no public names, over HTTP or HTTPS as certificates say. */
  allowedHosts?: readonly string[]
  /** In [0, 1), for the jitter of second tries; Math.random unless given. */
  random?: () => number
}

/**
 * What gives each review its RevocationSource; one per isolate. Its answers are kept until they end, for an hour at most; a review asks once
 * about a certificate, with its own share of connections and bytes. Throws `CONFIG_INVALID` when a host is not `host` or `host:port`.
 *
 * Requests go over plain HTTP where certificates say so, because answers are signed; to public host names and those the operator names.
 * Certificates must chain to a trust store before they are asked about: their URLs are followed.
 */
export function createRevocation(
  options: RevocationOptions,
): (review: CallContext) => RevocationSource {
  const known = new Cache<Finding>()
  const addresses = addressesOf(options.allowedHosts ?? [])
  const fetchWithin = (callTimeoutMs: number) =>
    createGuardedFetch({ random: Math.random, ...options, addresses, callTimeoutMs })
  const asking = { ocsp: fetchWithin(OCSP_TIMEOUT_MS), crl: fetchWithin(CRL_TIMEOUT_MS) }
  const reviews = new WeakMap<CallContext, ReviewSource>()
  return (review) => {
    const source = reviews.get(review) ?? new ReviewSource(options.now, known, asking, review)
    reviews.set(review, source)
    return source
  }
}

class ReviewSource implements RevocationSource {
  readonly #now: () => number
  readonly #known: Cache<Finding>
  readonly #fetch: { ocsp: GuardedFetch; crl: GuardedFetch }
  readonly #review: CallContext
  readonly #asked = new Map<string, Promise<Finding>>()
  /** CRLs by their URL: certificates of one issuer share one. */
  readonly #lists = new Map<string, Promise<Bytes>>()

  constructor(
    now: () => number,
    known: Cache<Finding>,
    fetch: { ocsp: GuardedFetch; crl: GuardedFetch },
    review: CallContext,
  ) {
    this.#now = now
    this.#known = known
    this.#fetch = fetch
    this.#review = review
  }

  async status(chain: readonly Certificate[], signedAt?: number): Promise<RevocationStatus> {
    const named = chain.slice(0, -1).flatMap((certificate, index) => {
      const issuer = chain[index + 1]
      return issuer === undefined || !namesAnybody(certificate) ? [] : [{ certificate, issuer }]
    })
    const findings = await Promise.all(
      named.map(async ({ certificate, issuer }) => {
        const finding = await this.#once(certificate, issuer)
        return { finding, name: printName(certificate.subject) }
      }),
    )
    let doubt: string | undefined
    for (const { finding, name } of findings) {
      if (finding.status === 'unknown') doubt ??= `${name}: ${finding.detail}`
      if (finding.status !== 'revoked') continue
      const { invalidFrom, reason } = finding
      if (signedAt !== undefined && invalidFrom !== undefined && signedAt < invalidFrom) continue
      return { status: 'revoked', detail: `${name} is revoked (${reason})` }
    }
    if (doubt !== undefined) return { status: 'unknown', detail: doubt }
    const detail = named.length === 0 ? 'no certificate says whom to ask' : 'nothing is revoked'
    return { status: 'good', detail }
  }

  /** Both parties make the key: the same bytes may be issued under two keys of one name. */
  async #once(certificate: Certificate, issuer: Certificate): Promise<Finding> {
    const id = toHex(await sha256(concat(certificate.der, issuer.spki)))
    const kept = this.#known.get(id, this.#now())
    if (kept !== undefined) return kept
    const asked = this.#asked.get(id) ?? this.#ask(certificate, issuer, id)
    this.#asked.set(id, asked)
    return asked
  }

  /** One after the other, until one of them can tell: OCSP first, then CRLs. */
  async #ask(certificate: Certificate, issuer: Certificate, id: string): Promise<Finding> {
    const { ocspUrls, crlUrls } = certificate
    const attempts = [
      ...askable(ocspUrls).map((url) => () => this.#askOcsp(url, certificate, issuer)),
      ...askable(crlUrls).map((url) => () => this.#askCrl(url, certificate, issuer)),
    ]
    const doubts: string[] = []
    for (const attempt of attempts) {
      const finding = await attempt().catch(asUnknown)
      if (finding.status !== 'unknown') {
        this.#known.set(id, finding, Math.min(finding.until, this.#now() + longestOf(finding)))
        return finding
      }
      doubts.push(finding.detail)
    }
    return unknown(doubts.join('; ') || 'it names no address that can be asked')
  }

  async #askOcsp(url: URL, certificate: Certificate, issuer: Certificate): Promise<Finding> {
    const request = toBase64(await encodeRequest(certificate, issuer))
    const target = new URL(url)
    // A GET (RFC 6960 appendix A.1), which caches on the way can answer.
    target.pathname = `${url.pathname.replace(/\/$/, '')}/${encodeURIComponent(request)}`
    const bytes = await this.#get('ocsp', target, MAX_OCSP_BYTES)
    // Frozen clocks move on with an answer, and some responders answer with what they made this moment.
    const now = this.#now()
    const isGood = async (responder: Certificate) => {
      for (const list of askable(responder.crlUrls)) {
        const finding = await this.#askCrl(list, responder, issuer).catch(asUnknown)
        if (finding.status !== 'unknown') return finding.status === 'good'
      }
      return false
    }
    return readOcsp(bytes, { certificate, issuer, now, isGood })
  }

  async #askCrl(url: URL, certificate: Certificate, issuer: Certificate): Promise<Finding> {
    const bytes = await this.#list(url)
    const fetchDelta = async (urls: readonly string[]) => {
      const [first] = askable(urls)
      if (first === undefined) throw cannotTell('its delta CRL is at no address that can be asked')
      return this.#list(first)
    }
    return readCrl(bytes, { certificate, issuer, now: this.#now(), fetchDelta })
  }

  #list(url: URL): Promise<Bytes> {
    const list = this.#lists.get(url.href) ?? this.#get('crl', url, MAX_CRL_BYTES)
    this.#lists.set(url.href, list)
    return list
  }

  async #get(kind: 'ocsp' | 'crl', url: URL, maxBytes: number): Promise<Bytes> {
    const { status, body } = await this.#fetch[kind]({ url, maxBytes }, this.#review)
    if (status === 200) return body
    throw cannotTell(`${url.host}: answered ${status}`)
  }
}

function cannotTell(message: string): AdmissionError {
  return new AdmissionError('REVOCATION_UNKNOWN', message)
}

/** A hold may be lifted at any time. */
function longestOf(finding: Finding): number {
  return isHeld(finding) ? REJECTION_TTL_MS : MAX_REVOCATION_TTL_MS
}

/** False for a certificate whose issuer offers neither OCSP nor CRLs: it counts as good, as the Notary Project specifies. */
function namesAnybody({ ocspUrls = [], crlUrls }: Certificate): boolean {
  return ocspUrls.length > 0 || crlUrls !== undefined
}

/** The first of these that are asked. LDAP and FTP are not. */
function askable(urls: readonly string[] = []): readonly URL[] {
  return urls
    .flatMap((url) => (/^https?:/i.test(url) && URL.canParse(url) ? [new URL(url)] : []))
    .slice(0, MAX_REVOCATION_URLS)
}

/**
 * The addresses certificates may lead to: what an issuer writes into them is for everybody, so private ones are refused unless the
 * operator names them. A name without a port stands for those of both schemes.
 */
function addressesOf(allowed: readonly string[]): AddressPolicy {
  const withPort = (host: string) => (/:\d+$/.test(host) ? [host] : [host, `${host}:80`])
  const policy = createAddressPolicy({ allowedHosts: allowed.flatMap(withPort) })
  return {
    ...policy,
    check(url) {
      const same = new URL(url)
      if (url.protocol === 'http:') {
        same.protocol = 'https:'
        same.port = url.port || '80'
      }
      policy.check(same)
    },
  }
}
