import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import {
  MAX_CRL_BYTES,
  MAX_OCSP_BYTES,
  MAX_REVOCATION_TTL_MS,
  REJECTION_TTL_MS,
} from '#shared/limits.ts'
import type { FetchPort } from '#shared/ports.ts'
import type { CallContext } from '#shared/registry/fetch.ts'
import { revocationLoader } from '#shared/signature/revocation/load.ts'
import { createRevocation } from '#shared/signature/revocation/lookup.ts'
import type { RevocationStatus } from '#shared/signature/revocation/types.ts'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import {
  askAt,
  CRL_SIGN,
  extension,
  KEY_CERT_SIGN,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
} from '#test/fakes/pki.ts'
import { CURRENT, mintCrl, mintOcsp, mintResponder } from '#test/fakes/revocation.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const OCSP = 'http://ocsp.example.com'
const CRL = 'http://crl.example.com/a.crl'

const usages = [KEY_CERT_SIGN, CRL_SIGN]
const root = mintRoot({ usages })
const leafAt = (where: Parameters<typeof askAt>[0], keyName = 'leaf', issuer = root) =>
  mint({ issuer, keyName, extra: askAt(where) })
const both = leafAt({ ocsp: [OCSP], crl: [CRL] })

const read = ({ der }: Minted) => parseCertificate(der)
const certificate = both
const ocsp = (status?: Parameters<typeof mintOcsp>[0]['status'], of = certificate) =>
  mintOcsp({ certificate: of, issuer: root, ...(status && { status }) })
const crl = (revoked: Parameters<typeof mintCrl>[0]['revoked'] = []) =>
  mintCrl({ issuer: root, revoked })

/** What hosts answer with: bytes, a status, or nothing at all. */
type Answers = Record<string, Uint8Array | number | Response | 'nothing' | undefined>

/** An outside world that answers, and who was asked. */
function world(answers: Answers) {
  const asked: string[] = []
  const fetch: FetchPort = async (url, init) => {
    asked.push(url)
    expect(init).toMatchObject({ redirect: 'manual' })
    expect(init.method ?? 'GET').toBe('GET')
    const answer = answers[new URL(url).host]
    if (answer === 'nothing') {
      return new Promise((_, reject) =>
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )
    }
    if (answer === undefined) throw new TypeError('no such host')
    if (answer instanceof Response) return answer.clone()
    return typeof answer === 'number'
      ? new Response('no', { status: answer })
      : new Response(new Uint8Array(answer))
  }
  return { asked, fetch, hosts: () => asked.map((url) => new URL(url).host) }
}

function review(signal = new AbortController().signal): CallContext {
  return { signal, limit: (run) => run(), onRequest: () => {}, onBytes: () => {} }
}

const sourceOf = (fetch: FetchPort, options = {}) =>
  createRevocation({ fetch, now: () => NOW, random: () => 0, ...options })

async function ask(answers: Answers, chain: readonly Minted[] = [certificate, root], options = {}) {
  const outside = world(answers)
  const source = sourceOf(outside.fetch, options)(review())
  return { ...outside, status: await source.status(chain.map(read)) }
}

const NAME = 'C=US, ST=WA, O=Example, CN=signer'
const unknown = (detail: string): RevocationStatus => ({
  status: 'unknown',
  detail: `${NAME}: ${detail}`,
})
const revoked = (reason: string): RevocationStatus => ({
  status: 'revoked',
  detail: `${NAME} is revoked (${reason})`,
})
const GOOD: RevocationStatus = { status: 'good', detail: 'nothing is revoked' }

describe('a certificate with both', () => {
  test.each<{ name: string; answers: Answers; status: RevocationStatus; asked: number }>([
    { name: 'is good by OCSP alone', answers: { o: ocsp() }, status: GOOD, asked: 1 },
    {
      name: 'is revoked by OCSP alone',
      answers: { o: ocsp({ reason: 1 }), c: crl() },
      status: revoked('keyCompromise'),
      asked: 1,
    },
    {
      name: 'is good by its CRL when the responder does not know it',
      answers: { o: ocsp('unknown'), c: crl() },
      status: GOOD,
      asked: 2,
    },
    {
      name: 'is revoked by its CRL when the responder answers 404',
      answers: { o: 404, c: crl([{ certificate, reason: 5 }]) },
      status: revoked('cessationOfOperation'),
      asked: 2,
    },
    {
      name: 'is good by its CRL when the responder is down',
      answers: { o: 503, c: crl() },
      status: GOOD,
      asked: 3,
    },
    {
      name: 'is good by its CRL when the responder answers about another',
      answers: { o: ocsp('good', leafAt({}, 'other')), c: crl() },
      status: GOOD,
      asked: 2,
    },
    {
      name: 'is good by its CRL when the responder answers a page',
      answers: { o: new TextEncoder().encode('<html>'), c: crl() },
      status: GOOD,
      asked: 2,
    },
    {
      name: 'is unknown when nobody can tell',
      answers: { o: ocsp('unknown'), c: 410 },
      status: unknown('the responder does not know the certificate; crl.example.com: answered 410'),
      asked: 2,
    },
    {
      name: 'is unknown when nobody is there',
      answers: {},
      status: unknown('ocsp.example.com: connection failed; crl.example.com: connection failed'),
      asked: 4,
    },
    {
      name: 'is unknown when what comes is too long',
      answers: { o: new Uint8Array(MAX_OCSP_BYTES + 1), c: new Uint8Array(MAX_CRL_BYTES + 1) },
      status: unknown(
        'ocsp.example.com: more than 65536 bytes; crl.example.com: more than 4194304 bytes',
      ),
      asked: 2,
    },
  ])('$name', async ({ answers: { o, c }, status, asked }) => {
    const found = await ask({ 'ocsp.example.com': o, 'crl.example.com': c })
    expect(found.status).toEqual(status)
    expect(found.asked).toHaveLength(asked)
  })

  test('is asked about by GET, with the request in the path', async () => {
    const { asked } = await ask({ 'ocsp.example.com': ocsp() })
    expect(asked[0]).toMatch(/^http:\/\/ocsp\.example\.com\/M[A-Za-z0-9%]+$/)
    const request = Buffer.from(decodeURIComponent(asked[0]!.split('/')[3]!), 'base64')
    expect(request[0]).toBe(0x30)
    const below = leafAt({ ocsp: ['http://ocsp.example.com/ca/'] })
    const answers = { 'ocsp.example.com': ocsp('good', below) }
    const nested = await ask(answers, [below, root])
    expect(nested.status).toEqual(GOOD)
    expect(nested.asked[0]).toMatch(/^http:\/\/ocsp\.example\.com\/ca\/M/)
  })
})

describe('whom a certificate names', () => {
  test.each<{ name: string; leaf: Minted; status: RevocationStatus; hosts: string[] }>([
    {
      name: 'nobody: it counts as good, as the Notary Project specifies',
      leaf: mint({ issuer: root }),
      status: { status: 'good', detail: 'no certificate says whom to ask' },
      hosts: [],
    },
    {
      name: 'a directory only',
      leaf: leafAt({ crl: ['ldap://directory.example.com/cn=a'] }),
      status: unknown('it names no address that can be asked'),
      hosts: [],
    },
    {
      name: 'a place without an address',
      leaf: leafAt({ crl: [] }),
      status: unknown('it names no address that can be asked'),
      hosts: [],
    },
    {
      name: 'an address that is none',
      leaf: leafAt({ ocsp: ['http://'] }),
      status: unknown('it names no address that can be asked'),
      hosts: [],
    },
    {
      name: 'more than two, of which two are asked',
      leaf: leafAt({ crl: ['a', 'b', 'c'].map((host) => `http://${host}.example.com/`) }),
      status: unknown('a.example.com: answered 404; b.example.com: answered 404'),
      hosts: ['a.example.com', 'b.example.com'],
    },
  ])('$name', async ({ leaf, status, hosts }) => {
    const answers = { 'a.example.com': 404, 'b.example.com': 404, 'c.example.com': crl() }
    const found = await ask(answers, [leaf, root])
    expect(found.status).toEqual(status)
    expect(found.hosts()).toEqual(hosts)
  })

  test('two, of which the second can tell', async () => {
    const leaf = leafAt({ crl: [CRL, 'http://b.example.com/'] })
    const answers = { 'crl.example.com': 404, 'b.example.com': crl([{ certificate: leaf }]) }
    expect((await ask(answers, [leaf, root])).status).toEqual(revoked('unspecified'))
  })

  const REFUSED = 'is not a public host name, and not among the hosts allowed by name'
  test.each([
    { url: 'http://127.0.0.1/', detail: `"127.0.0.1:80" ${REFUSED}` },
    { url: 'http://0x7f.1/', detail: `"127.0.0.1:80" ${REFUSED}` },
    { url: 'http://169.254.169.254/latest', detail: `"169.254.169.254:80" ${REFUSED}` },
    { url: 'http://[::1]/', detail: `"[::1]:80" ${REFUSED}` },
    { url: 'http://localhost/', detail: `"localhost:80" ${REFUSED}` },
    { url: 'http://ca.internal/', detail: `"ca.internal:80" ${REFUSED}` },
    { url: 'https://ca.internal/', detail: `"ca.internal" ${REFUSED}` },
    {
      url: 'http://user:word@ca.example.com/',
      detail: '"ca.example.com:80" has a login in its URL',
    },
  ])('$url is not asked', async ({ url, detail }) => {
    const leaf = leafAt({ crl: [url] })
    const found = await ask({}, [leaf, root])
    expect(found.asked).toEqual([])
    expect(found.status).toEqual(unknown(detail))
  })

  test.each([
    { url: 'http://ca.internal:8080/a.crl', allowed: 'ca.internal:8080', is: 'good' },
    { url: 'https://ca.internal:8080/a.crl', allowed: 'ca.internal:8080', is: 'good' },
    { url: 'http://ca.internal/a.crl', allowed: 'ca.internal', is: 'good' },
    { url: 'https://ca.internal/a.crl', allowed: 'ca.internal', is: 'good' },
    { url: 'http://ca.internal/a.crl', allowed: 'ca.internal:80', is: 'good' },
    { url: 'http://ca.internal/a.crl', allowed: 'ca.internal:8080', is: 'unknown' },
    { url: 'http://xca.internal/a.crl', allowed: 'ca.internal', is: 'unknown' },
  ])('$url, where the operator names $allowed, is $is', async ({ url, allowed, is }) => {
    const leaf = leafAt({ crl: [url] })
    const answers = { 'ca.internal:8080': crl(), 'ca.internal': crl(), 'xca.internal': crl() }
    const found = await ask(answers, [leaf, root], { allowedHosts: [allowed] })
    expect(found.status.status).toBe(is)
    expect(found.asked).toHaveLength(is === 'good' ? 1 : 0)
  })

  test('a redirect is followed to public hosts only', async () => {
    const to = (location: string) => new Response(null, { status: 302, headers: { location } })
    const leaf = leafAt({ crl: [CRL] })
    const answers = { 'crl.example.com': to('https://cdn.example.net/a'), 'cdn.example.net': crl() }
    expect((await ask(answers, [leaf, root])).status).toEqual(GOOD)
    const inward = await ask({ 'crl.example.com': to('http://10.0.0.1/') }, [leaf, root])
    expect(inward.status).toEqual(unknown(`"10.0.0.1:80" ${REFUSED}`))
    expect(inward.hosts()).toEqual(['crl.example.com'])
  })

  test('a host of the operator’s that is no host is refused at once', () => {
    expect(() => sourceOf(world({}).fetch, { allowedHosts: ['http://x'] })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    )
  })
})

describe('a chain', () => {
  const middle = mintIntermediate(root, { usages, extra: askAt({ crl: [CRL] }) })
  const leaf = leafAt({ crl: ['http://b.example.com/'] }, 'below', middle)
  const chain = [leaf, middle, root]
  const below = (list: Parameters<typeof mintCrl>[0]['revoked'] = []) =>
    mintCrl({ issuer: middle, revoked: list })

  test.each<{ name: string; answers: Answers; status: RevocationStatus }>([
    {
      name: 'is good when all of it is',
      answers: { 'crl.example.com': crl(), 'b.example.com': below() },
      status: GOOD,
    },
    {
      name: 'is revoked with its leaf',
      answers: { 'crl.example.com': crl(), 'b.example.com': below([{ certificate: leaf }]) },
      status: revoked('unspecified'),
    },
    {
      name: 'is revoked with an authority, whatever is known of the leaf',
      answers: { 'crl.example.com': crl([{ certificate: middle, reason: 2 }]) },
      status: {
        status: 'revoked',
        detail: 'C=US, ST=WA, O=Example, CN=intermediate is revoked (cACompromise)',
      },
    },
    {
      name: 'is unknown with an authority',
      answers: { 'crl.example.com': 404, 'b.example.com': below() },
      status: {
        status: 'unknown',
        detail: 'C=US, ST=WA, O=Example, CN=intermediate: crl.example.com: answered 404',
      },
    },
    {
      name: 'is unknown with a list of the wrong authority',
      answers: { 'crl.example.com': crl(), 'b.example.com': crl() },
      status: unknown('the CRL is not signed by the issuer'),
    },
  ])('$name', async ({ answers, status }) => {
    expect((await ask(answers, chain)).status).toEqual(status)
  })

  test('of one certificate asks nobody: roots are revoked by hand', async () => {
    const self = mint({ extra: askAt({ crl: [CRL] }) })
    const found = await ask({}, [self])
    expect(found.status).toEqual({ status: 'good', detail: 'no certificate says whom to ask' })
  })
})

describe('a list with a delta CRL', () => {
  const leaf = leafAt({ crl: [CRL] })
  const freshest = (...urls: string[]) => {
    const points = urls.map((url) =>
      der.sequence(der.context(0, der.context(0, der.contextPrimitive(6, utf8(url))))),
    )
    return extension('2.5.29.46', der.sequence(...points))
  }
  const base = (...urls: string[]) => mintCrl({ issuer: root, extensions: [freshest(...urls)] })
  const indicator = extension('2.5.29.27', der.integer(Uint8Array.of(1)), true)
  const delta = mintCrl({
    issuer: root,
    number: 2,
    extensions: [indicator],
    revoked: [{ certificate: leaf, reason: 1 }],
  })
  test.each<{ name: string; urls: string[]; there?: Uint8Array; status: RevocationStatus }>([
    {
      name: 'is asked for as well',
      urls: ['ldap://d.example.com/', 'http://d.example.com/'],
      there: delta,
      status: revoked('keyCompromise'),
    },
    {
      name: 'that is gone leaves it open',
      urls: ['http://d.example.com/'],
      status: unknown('d.example.com: connection failed'),
    },
    {
      name: 'that is in a directory leaves it open',
      urls: ['ldap://d.example.com/'],
      status: unknown('its delta CRL is at no address that can be asked'),
    },
  ])('$name', async ({ urls, there, status }) => {
    const answers = { 'crl.example.com': base(...urls), 'd.example.com': there }
    expect((await ask(answers, [leaf, root])).status).toEqual(status)
  })
})

describe('a certificate that became invalid at a time', () => {
  const at = Date.parse('2026-03-01T00:00:00Z')
  const since = ocsp({ reason: 1, invalidFrom: new Date(at) })
  test.each([
    { name: 'a signature stamped before', signedAt: at - 1, status: GOOD },
    { name: 'a signature stamped in that instant', signedAt: at, status: revoked('keyCompromise') },
    { name: 'a signature stamped later', signedAt: at + 1, status: revoked('keyCompromise') },
    {
      name: 'a signature that is not stamped',
      signedAt: undefined,
      status: revoked('keyCompromise'),
    },
  ])('is judged for $name', async ({ signedAt, status }) => {
    const source = sourceOf(world({ 'ocsp.example.com': since }).fetch)(review())
    expect(await source.status([certificate, root].map(read), signedAt)).toEqual(status)
  })

  test('counts as revoked before, when nobody says since when', async () => {
    const source = sourceOf(world({ 'ocsp.example.com': ocsp({}) }).fetch)(review())
    expect(await source.status([certificate, root].map(read), 0)).toEqual(revoked('unspecified'))
  })
})

describe('a responder that has to be asked about itself', () => {
  const signer = mintResponder(root, { extra: askAt({ crl: [CRL] }) })
  const response = mintOcsp({ certificate, issuer: root, signer })
  test.each<{ name: string; list: Answers[string]; status: RevocationStatus }>([
    { name: 'counts when its CRL is clean', list: crl(), status: GOOD },
    {
      name: 'does not count when it is revoked',
      list: crl([{ certificate: signer }]),
      // The list is the certificate's as well, and says that this is good.
      status: GOOD,
    },
    {
      name: 'does not count when nobody can tell',
      list: 404,
      status: unknown('the responder may be revoked itself; crl.example.com: answered 404'),
    },
  ])('$name', async ({ list, status }) => {
    const answers = { 'ocsp.example.com': response, 'crl.example.com': list }
    const found = await ask(answers)
    expect(found.status).toEqual(status)
    expect(found.asked).toHaveLength(2)
  })

  test('does not count when it names nobody', async () => {
    const lone = mintResponder(root, { extra: [] })
    const leaf = leafAt({ ocsp: [OCSP] })
    const answer = mintOcsp({ certificate: leaf, issuer: root, signer: lone })
    const found = await ask({ 'ocsp.example.com': answer }, [leaf, root])
    expect(found.status).toEqual(unknown('the responder may be revoked itself'))
  })
})

describe('how often somebody is asked', () => {
  test('once about a certificate in a review, whatever the answer', async () => {
    for (const answer of [ocsp(), ocsp({}), 404]) {
      const outside = world({ 'ocsp.example.com': answer, 'crl.example.com': 404 })
      const sourceFor = sourceOf(outside.fetch)
      const context = review()
      const chain = [certificate, root].map(read)
      const all = Array.from({ length: 5 }, () => sourceFor(context).status(chain))
      expect(new Set((await Promise.all(all)).map(({ status }) => status)).size).toBe(1)
      expect(outside.asked).toHaveLength(answer === 404 ? 2 : 1)
    }
  })

  test('once for a list that two certificates name', async () => {
    const leaves = ['one', 'two', 'three'].map((name) => leafAt({ crl: [CRL] }, name))
    const outside = world({ 'crl.example.com': crl([{ certificate: leaves[1]! }]) })
    const source = sourceOf(outside.fetch)(review())
    const found = await Promise.all(leaves.map((leaf) => source.status([leaf, root].map(read))))
    expect(found.map(({ status }) => status)).toEqual(['good', 'revoked', 'good'])
    expect(outside.asked).toHaveLength(1)
  })

  const week = CURRENT[1].getTime() - NOW
  const soon: [Date, Date] = [CURRENT[0], new Date(NOW + 60_000)]
  test.each([
    { name: 'good, for an hour at most', answer: ocsp(), lasts: MAX_REVOCATION_TTL_MS },
    { name: 'revoked, the same', answer: ocsp({ reason: 1 }), lasts: MAX_REVOCATION_TTL_MS },
    {
      name: 'good, until it ends',
      answer: mintOcsp({ certificate, issuer: root, update: soon }),
      lasts: 60_000,
    },
    { name: 'a hold, for a moment', answer: ocsp({ reason: 6 }), lasts: REJECTION_TTL_MS },
    { name: 'nothing at all when nobody could tell', answer: ocsp('unknown'), lasts: 0 },
  ])('other reviews keep $name', async ({ answer, lasts }) => {
    expect(lasts).toBeLessThan(week)
    const outside = world({ 'ocsp.example.com': answer, 'crl.example.com': 404 })
    const clock = { now: NOW }
    const sourceFor = sourceOf(outside.fetch, { now: () => clock.now })
    const askAnew = async () => {
      const before = outside.asked.length
      await sourceFor(review()).status([certificate, root].map(read))
      return outside.asked.length > before
    }
    expect(await askAnew()).toBe(true)
    clock.now = NOW + Math.max(0, lasts - 1)
    expect(await askAnew()).toBe(lasts === 0)
    clock.now = NOW + lasts
    expect(await askAnew()).toBe(true)
  })

  test('a certificate of the same bytes under another key is another one', async () => {
    const twin = mintRoot({ usages, keyName: 'twin' })
    const outside = world({ 'ocsp.example.com': ocsp(), 'crl.example.com': 404 })
    const sourceFor = sourceOf(outside.fetch)
    expect(await sourceFor(review()).status([certificate, root].map(read))).toEqual(GOOD)
    const found = await sourceFor(review()).status([certificate, twin].map(read))
    expect(found.status).toBe('unknown')
  })

  test('within the connections, calls and bytes of the review', async () => {
    const leaves = Array.from({ length: 8 }, (_, i) =>
      leafAt({ ocsp: [`http://o${i}.example.com`] }, `leaf ${i}`),
    )
    const answers = Object.fromEntries(
      leaves.map((leaf, i) => [`o${i}.example.com`, ocsp('good', leaf)]),
    )
    const outside = world(answers)
    const told = { calls: 0, bytes: 0, limited: 0 }
    const context: CallContext = {
      ...review(),
      limit: (run) => {
        told.limited++
        return run()
      },
      onRequest: () => void told.calls++,
      onBytes: (count) => {
        told.bytes += count
      },
    }
    const source = sourceOf(outside.fetch)(context)
    await Promise.all(leaves.map((leaf) => source.status([leaf, root].map(read))))
    expect(told).toMatchObject({ calls: 8, limited: 8 })
    expect(told.bytes).toBe(Object.values(answers).reduce((sum, { length }) => sum + length, 0))
  })

  test('a review that has had its bytes cannot tell', async () => {
    const context = {
      ...review(),
      onBytes: () => {
        throw new AdmissionError('REGISTRY_BUDGET_SPENT', 'too much for one review')
      },
    }
    const source = sourceOf(world({ 'ocsp.example.com': ocsp() }).fetch)(context)
    const { status } = await source.status([leafAt({ ocsp: [OCSP] }), root].map(read))
    expect(status).toBe('unknown')
  })

  test('a review that ends cannot tell, at once', async () => {
    const ending = new AbortController()
    const outside = world({ 'ocsp.example.com': 'nothing' })
    const found = sourceOf(outside.fetch)(review(ending.signal)).status(
      [certificate, root].map(read),
    )
    ending.abort()
    expect((await found).status).toBe('unknown')
  })
})

test('over a real connection, and loaded when it is first asked for', async () => {
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(request.url ?? '').slice(1)
    response.end(name.startsWith('M') ? Buffer.from(ocsp({ reason: 1 }, local)) : 'no')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const local = leafAt({ ocsp: [`http://${host}/`] })
  const load = revocationLoader({ fetch, now: () => NOW, allowedHosts: [host] })
  const context = review()
  const source = await load(context)
  expect(await source.status([local, root].map(read))).toEqual(revoked('keyCompromise'))
  expect(await load(context)).toBe(source)
  await new Promise((resolve) => server.close(resolve))
})
