import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** IP addresses, networks and URLs, parsed as Go parses them. */

describe('network: addresses', () => {
  test.each([
    { expression: "string(ip('192.0.2.1'))", gives: '"192.0.2.1"', cost: 2 },
    { expression: "string(ip('2001:DB8:0:0:0:0:0:1'))", gives: '"2001:db8::1"', cost: 3 },
    { expression: "string(ip('::'))", gives: '"::"', cost: 2 },
    { expression: "string(ip('1:0:0:1:0:0:0:1'))", gives: '"1:0:0:1::1"', cost: 3 },
    { expression: "string(ip('::192.0.2.1'))", gives: '"::c000:201"', cost: 3 },
    { expression: "ip('192.0.2.01')", gives: 'error', cost: 1 },
    { expression: "ip('192.0.2')", gives: 'error', cost: 1 },
    { expression: "ip('192.0.2.256')", gives: 'error', cost: 2 },
    { expression: "ip('1::2::3')", gives: 'error', cost: 1 },
    { expression: "ip('12345::1')", gives: 'error', cost: 1 },
    { expression: "ip('fe80::1%eth0')", gives: 'error', cost: 2 },
    { expression: "ip('::ffff:192.0.2.1')", gives: 'error', cost: 2 },
    { expression: "ip('')", gives: 'error', cost: 0 },
    { expression: "isIP('::1')", gives: 'true', cost: 1 },
    { expression: "isIP('localhost')", gives: 'false', cost: 1 },
    { expression: "isIP('::ffff:192.0.2.1')", gives: 'false', cost: 2 },
    { expression: "ip.isCanonical('2001:db8::1')", gives: 'true', cost: 3 },
    { expression: "ip.isCanonical('2001:DB8::1')", gives: 'false', cost: 3 },
    { expression: "ip.isCanonical('no')", gives: 'error', cost: 1 },
    { expression: "ip('::1').family()", gives: '6', cost: 2 },
    { expression: "ip('127.0.0.1').family()", gives: '4', cost: 2 },
    { expression: "ip('127.9.9.9').isLoopback()", gives: 'true', cost: 2 },
    { expression: "ip('0.0.0.0').isUnspecified()", gives: 'true', cost: 2 },
    { expression: "ip('169.254.1.1').isLinkLocalUnicast()", gives: 'true', cost: 3 },
    { expression: "ip('fe80::1').isLinkLocalUnicast()", gives: 'true', cost: 2 },
    { expression: "ip('224.0.0.251').isLinkLocalMulticast()", gives: 'true', cost: 3 },
    { expression: "ip('ff02::fb').isLinkLocalMulticast()", gives: 'true', cost: 2 },
    { expression: "ip('10.0.0.1').isGlobalUnicast()", gives: 'true', cost: 2 },
    { expression: "ip('255.255.255.255').isGlobalUnicast()", gives: 'false', cost: 3 },
    { expression: "ip('fc00::1').isGlobalUnicast()", gives: 'true', cost: 2 },
    { expression: "ip('::1') == ip('0:0:0:0:0:0:0:1')", gives: 'true', cost: 4 },
    { expression: "ip('10.0.0.1') == ip('10.0.0.2')", gives: 'false', cost: 3 },
    { expression: "ip('10.0.0.1') != ip('10.0.0.2')", gives: 'true', cost: 3 },
    { expression: "ip('10.0.0.1') == dyn('10.0.0.1')", gives: 'error', cost: 2 },
    { expression: "dyn('10.0.0.1') == ip('10.0.0.1')", gives: 'false', cost: 2 },
    { expression: "type(ip('::1')) == net.IP", gives: 'true', cost: 3 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('network: networks', () => {
  test.each([
    { expression: "string(cidr('192.0.2.7/24'))", gives: '"192.0.2.7/24"', cost: 3 },
    { expression: "cidr('192.0.2.7/24').masked()", gives: '192.0.2.0/24', cost: 3 },
    { expression: "cidr('192.0.2.7/24').ip()", gives: '192.0.2.7', cost: 3 },
    { expression: "cidr('192.0.2.7/24').prefixLength()", gives: '24', cost: 3 },
    { expression: "cidr('192.0.2.0/33')", gives: 'error', cost: 2 },
    { expression: "cidr('192.0.2.0/024')", gives: 'error', cost: 2 },
    { expression: "cidr('192.0.2.0')", gives: 'error', cost: 1 },
    { expression: "cidr('::ffff:192.0.2.0/120')", gives: 'error', cost: 2 },
    { expression: "isCIDR('10.0.0.0/8')", gives: 'true', cost: 1 },
    { expression: "isCIDR('10.0.0.0')", gives: 'false', cost: 1 },
    { expression: "cidr('10.0.0.0/8').containsIP('10.255.0.1')", gives: 'true', cost: 3 },
    { expression: "cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))", gives: 'false', cost: 3 },
    { expression: "cidr('10.0.0.0/8').containsIP('::1')", gives: 'false', cost: 3 },
    { expression: "cidr('10.0.0.0/8').containsIP('no address')", gives: 'error', cost: 3 },
    { expression: "cidr('0.0.0.0/0').containsIP('1.2.3.4')", gives: 'true', cost: 2 },
    { expression: "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", gives: 'true', cost: 6 },
    { expression: "cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')", gives: 'false', cost: 6 },
    { expression: "cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8'))", gives: 'true', cost: 5 },
    { expression: "cidr('10.0.0.0/8').containsCIDR('no network')", gives: 'error', cost: 5 },
    { expression: "cidr('2001:db8::/32').containsIP('2001:db8:ffff::1')", gives: 'true', cost: 5 },
    { expression: "cidr('10.0.0.1/8') == cidr('10.0.0.0/8')", gives: 'false', cost: 3 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('network: URLs', () => {
  test.each([
    {
      expression: "url('https://user:pw@example.com:8443/a%2Fb/c?q=1&q=2&r=%20#top').getScheme()",
      gives: '"https"',
      cost: 7,
    },
    {
      expression: "url('https://user:pw@example.com:8443/a').getHost()",
      gives: '"example.com:8443"',
      cost: 5,
    },
    {
      expression: "url('https://user:pw@example.com:8443/a').getHostname()",
      gives: '"example.com"',
      cost: 5,
    },
    {
      expression: "url('https://[2001:db8::1]:8443/a').getHostname()",
      gives: '"2001:db8::1"',
      cost: 4,
    },
    { expression: "url('https://[2001:db8::1]:8443/a').getPort()", gives: '"8443"', cost: 4 },
    { expression: "url('https://example.com/').getPort()", gives: '""', cost: 3 },
    {
      expression: "url('https://example.com/a%2Fb/ü').getEscapedPath()",
      gives: '"/a/b/%C3%BC"',
      cost: 4,
    },
    { expression: "url('https://example.com/a b').getEscapedPath()", gives: '"/a%20b"', cost: 4 },
    {
      expression: "url('https://example.com/?q=1&q=2&r=%20').getQuery()",
      gives: '{"q": ["1", "2"], "r": [" "]}',
      cost: 5,
    },
    { expression: "url('https://example.com/?a=%zz&b=1;c').getQuery()", gives: '{}', cost: 5 },
    { expression: "url('/only/a/path').getEscapedPath()", gives: '"/only/a/path"', cost: 3 },
    { expression: "url('HTTPS://EXAMPLE.com').getScheme()", gives: '"https"', cost: 3 },
    { expression: "url('mailto:someone@example.com').getHost()", gives: '""', cost: 4 },
    { expression: "url('relative/path')", gives: 'error', cost: 2 },
    { expression: "url('')", gives: 'error', cost: 0 },
    { expression: "url('https://exa mple.com')", gives: 'error', cost: 2 },
    { expression: "url('https://example.com:port')", gives: 'error', cost: 3 },
    { expression: "url('://x')", gives: 'error', cost: 1 },
    { expression: "url('https://example.com/%zz')", gives: 'error', cost: 3 },
    { expression: "isURL('https://example.com')", gives: 'true', cost: 1 },
    { expression: "isURL('../up')", gives: 'false', cost: 1 },
    { expression: "url('https://a/b') == url('https://a/b')", gives: 'true', cost: 5 },
    { expression: "url('https://a/b') == url('https://a/b#c')", gives: 'false', cost: 5 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
