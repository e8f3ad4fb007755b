import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import {
  type AddressOptions,
  createAddressPolicy,
  isPublicHostName,
} from '#shared/registry/address.ts'

/** The base URL of a host, or the code it is refused with. */
function baseOf(host: string, options: AddressOptions = {}): string {
  return outcome(() => createAddressPolicy(options).baseUrl(host).href)
}

/** `ok`, or the code a URL is refused with. */
function check(url: string, options: AddressOptions = {}): string {
  return outcome(() => {
    createAddressPolicy(options).check(new URL(url))
    return 'ok'
  })
}

function outcome(run: () => string): string {
  try {
    return run()
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return thrown.code
    throw thrown
  }
}

const FORBIDDEN = 'REGISTRY_FORBIDDEN_ADDRESS'

describe('a host', () => {
  test.each([
    ['registry.example', 'https://registry.example/'],
    ['registry.example:443', 'https://registry.example/'],
    ['registry.example:5000', 'https://registry.example:5000/'],
    ['Registry.EXAMPLE', 'https://registry.example/'],
    ['registry.test', 'https://registry.test/'],
    ['xn--bcher-kva.example', 'https://xn--bcher-kva.example/'],
    ['my_registry.example', 'https://my_registry.example/'],
    ['123.dkr.ecr.eu-west-1.amazonaws.com', 'https://123.dkr.ecr.eu-west-1.amazonaws.com/'],
  ])('%s is public and spoken to over HTTPS', (host, url) => {
    expect(baseOf(host)).toBe(url)
  })

  test.each([
    // addresses, however they are spelled
    '127.0.0.1',
    '10.1.2.3',
    '192.168.0.1',
    '169.254.169.254',
    '100.100.100.200',
    '0.0.0.0',
    '8.8.8.8',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0x0.0x0.0x1',
    '017700000001',
    '0177.0.0.1',
    '1',
    '0',
    '４',
    '１２７.0.0.1',
    '127。0。0。1',
    '127.0.0.1.',
    '1.2.3.4.5',
    '256.1.1.1',
    'example.1',
    'example.0x7f',
    '[::1]',
    '[::]',
    '[fe80::1]',
    '[fd00:ec2::254]',
    '[2001:db8::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '::1',
    '[::1',
    '[fe80::1%25eth0]',
    // names that are not public
    'localhost',
    'LOCALHOST',
    'localhost.',
    'a.localhost',
    'registry',
    'com',
    'registry.local',
    'registry.svc',
    'a.b.svc',
    'a.svc.cluster.local',
    'metadata.google.internal',
    'ip-10-0-0-1.ec2.internal',
    'host.docker.internal',
    'registry.localdomain',
    'nas.lan',
    'router.home.arpa',
    'registry.corp',
    'registry.intranet',
    // what is more than a host
    '',
    '.',
    '..',
    'a..example',
    '.example',
    'registry.example.',
    '-a.example',
    'a-.example',
    'user@registry.example',
    'user:password@registry.example',
    'registry.example/',
    'registry.example/a',
    'registry.example?a',
    'registry.example#a',
    'registry.example\\a',
    'registry.example:',
    'registry.example:0x1',
    'registry.example:70000',
    'registry.example:5000:1',
    ' registry.example',
    'registry.example ',
    'registry\t.example',
    'registry.exa\nmple',
    'registry%2eexample',
    'registry。example',
    'régistry.example',
    'http://registry.example',
    '//registry.example',
    'registry.example:05000',
    `${'a'.repeat(64)}.example`,
  ])('%j is refused', (host) => {
    expect(baseOf(host)).toBe(FORBIDDEN)
  })

  test.each([
    ['127.0.0.1:5000', 'https://127.0.0.1:5000/'],
    ['[::1]:5000', 'https://[::1]:5000/'],
    ['registry', 'https://registry/'],
    ['registry:443', 'https://registry/'],
    ['registry.svc:5000', 'https://registry.svc:5000/'],
  ])('%s is spoken to over HTTPS when it is allowed by name', (host, url) => {
    expect(baseOf(host, { allowedHosts: [host] })).toBe(url)
  })

  test.each([
    ['127.0.0.1:5000', 'http://127.0.0.1:5000/'],
    ['registry.example', 'http://registry.example/'],
    ['registry.example:80', 'http://registry.example/'],
    ['localhost:5000', 'http://localhost:5000/'],
  ])('%s is spoken to over plain HTTP when it is named for that', (host, url) => {
    expect(baseOf(host, { plainHttpHosts: [host] })).toBe(url)
  })

  test.each([
    { name: 'another port', host: '127.0.0.1:5001' },
    { name: 'the default port', host: '127.0.0.1' },
    { name: 'another address', host: '127.0.0.2:5000' },
    { name: 'another spelling', host: '0x7f.1:5000' },
    { name: 'a host that ends alike', host: 'a127.0.0.1:5000' },
    { name: 'a host that begins alike', host: '127.0.0.1:50000' },
  ])('$name is not allowed by an entry for 127.0.0.1:5000', ({ host }) => {
    expect(baseOf(host, { allowedHosts: ['127.0.0.1:5000'] })).toBe(FORBIDDEN)
    expect(baseOf(host, { plainHttpHosts: ['127.0.0.1:5000'] })).toBe(FORBIDDEN)
  })

  test.each([{ option: 'allowedHosts' }, { option: 'plainHttpHosts' }] as const)(
    'an entry of $option that is no host names itself',
    ({ option }) => {
      const hosts = [
        'registry.example',
        'http://registry.example',
        '0x7f.1',
        '*.example',
        '10.0.0.0/8',
      ]
      try {
        createAddressPolicy({ [option]: hosts })
        expect.unreachable()
      } catch (thrown) {
        expect(thrown).toMatchObject({
          code: 'CONFIG_INVALID',
          faults: [1, 2, 4].map((at) => ({ path: `${option}[${at}]` })),
        })
      }
    },
  )
})

describe('a URL', () => {
  test.each([
    { url: 'https://registry.example/v2/?a=b', expected: 'ok' },
    { url: 'http://registry.example/', expected: FORBIDDEN },
    { url: 'http://registry.example:443/', expected: FORBIDDEN },
    { url: 'https://user@registry.example/', expected: FORBIDDEN },
    { url: 'https://:password@registry.example/', expected: FORBIDDEN },
    { url: 'wss://registry.example/', expected: FORBIDDEN },
    { url: 'ftp://registry.example/', expected: FORBIDDEN },
    { url: 'blob:https://registry.example/1', expected: FORBIDDEN },
    { url: 'http://plain.svc:5000/', expected: 'ok' },
    { url: 'http://plain.svc:5001/', expected: FORBIDDEN },
    { url: 'https://plain.svc:5000/', expected: FORBIDDEN },
    { url: 'https://user@allowed.svc/', expected: FORBIDDEN },
    { url: 'https://allowed.svc/', expected: 'ok' },
    { url: 'http://allowed.svc/', expected: FORBIDDEN },
    { url: 'http://allowed.svc:443/', expected: FORBIDDEN },
  ])('$url: $expected', ({ url, expected }) => {
    const options = { plainHttpHosts: ['plain.svc:5000'], allowedHosts: ['allowed.svc'] }
    expect(check(url, options)).toBe(expected)
  })
})

describe('properties', () => {
  const ipv4 = fc.ipV4Extended()
  const ipv6 = fc.ipV6().map((address) => `[${address}]`)
  const port = fc.option(fc.integer({ min: 0, max: 65_535 }), { nil: undefined })

  test('no spelling of an address is public', () => {
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6), port, (address, number) => {
        const host = number === undefined ? address : `${address}:${number}`
        expect(baseOf(host)).toBe(FORBIDDEN)
        if (URL.canParse(`https://${host}`)) expect(check(`https://${host}`)).toBe(FORBIDDEN)
      }),
    )
  })

  test('no name under a private suffix is public', () => {
    const suffix = fc.constantFrom('localhost', 'local', 'internal', 'svc', 'svc.cluster.local')
    fc.assert(
      fc.property(fc.domain(), suffix, (domain, ending) => {
        expect(baseOf(`${domain}.${ending}`)).toBe(FORBIDDEN)
      }),
    )
  })

  test('whatever the text, it is refused or is the very host that will be asked', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 6 }),
      fc.constantFrom(
        'registry.example',
        '.',
        ':',
        '/',
        '@',
        '[',
        ']',
        '%',
        '\\',
        '127.0.0.1',
        '\n',
      ),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const host = pieces.join('')
        const base = baseOf(host)
        if (base === FORBIDDEN) return
        expect([
          `https://${host.toLowerCase()}/`,
          `https://${host.toLowerCase().replace(/:443$/, '')}/`,
        ]).toContain(base)
        expect(isPublicHostName(new URL(base).hostname)).toBe(true)
      }),
    )
  })
})
