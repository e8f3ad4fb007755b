import type { Random } from '#test/generator/random.ts'

/** Texts that mean something to a function, some of them wrong; by the name of the function. */
const TEXTS: Readonly<Record<string, readonly string[]>> = {
  timestamp: [
    '2024-02-29T23:59:59.999999999Z',
    '1970-01-01T00:00:00+14:00',
    '0001-01-01T00:00:00Z',
  ],
  duration: ['1h1m1s', '-0.5ns', '2540400h', '0'],
  zone: ['UTC', 'Europe/Berlin', '-02:00', '+05:45', 'Nowhere/At_all'],
  matches: ['a+b', '^$', '(?i)[a-z]{2,3}', 'ä|😀', '.*'],
  find: ['[0-9]+', 'a', 'x*', '\\b'],
  ip: ['10.0.0.1', '::1', '::ffff:1.2.3.4', '256.0.0.1', 'fe80::1%eth0'],
  cidr: ['10.0.0.0/8', '2001:db8::/32', '10.0.0.1/8', '10.0.0.0'],
  url: ['https://a.example:8443/p%20q?x=1&x=2&y', '/only/path', 'http://[::1]:80', '::', ''],
  quantity: ['1500m', '2Gi', '-0.5', '1e3', '12Ki3', ''],
  semver: ['1.2.3', 'v1.0', '1.2.3-rc.1+b', '01.2.3'],
  number: ['0', '-9223372036854775808', '18446744073709551616', '1e400', 'NaN', ' 1'],
  format: ['%s', '%d and %.2f', '%x%%', '%b', '%'],
}

/** The kind of text a function's string arguments usually are. */
const KIND_OF: Readonly<Record<string, string>> = {
  findAll: 'find',
  isIP: 'ip',
  'ip.isCanonical': 'ip',
  isCIDR: 'cidr',
  containsIP: 'ip',
  containsCIDR: 'cidr',
  isURL: 'url',
  isQuantity: 'quantity',
  isSemver: 'semver',
  int: 'number',
  uint: 'number',
  double: 'number',
  bool: 'number',
}

const WORDS = ['', 'a', 'abc', 'aXbXc', 'ä', '😀b', 'A-Z', 'nginx:1.27', 'name', '%s', '\\', '\n']

function quoted(text: string): string {
  return JSON.stringify(text)
}

/** A string in quotes: for an argument of `fn`, mostly one that suits it. */
export function stringLiteral(random: Random, fn = ''): string {
  const kind = /^get[A-Z]/.test(fn) ? 'zone' : (KIND_OF[fn] ?? fn)
  const texts = Object.hasOwn(TEXTS, kind) ? TEXTS[kind] : undefined
  if (texts !== undefined && random.chance(0.8)) return quoted(random.pick(texts))
  return quoted(random.pick(WORDS))
}

const INTS = [
  '0',
  '1',
  '2',
  '3',
  '-1',
  '7',
  '100',
  '0x10',
  '9223372036854775807',
  '-9223372036854775808',
]
const UINTS = ['0u', '1u', '2u', '0xffu', '18446744073709551615u']
const DOUBLES = ['0.0', '-0.0', '1.5', '1e3', '-2.25', '9007199254740993.0', '1e308', '5e-324']
const BYTES = ["b''", "b'abc'", String.raw`b'\xff\x00'`, "b'ä'"]

/** Literals and constructors of one type; undefined for a type that has none. */
export function literal(random: Random, type: string, fn?: string): string | undefined {
  switch (type) {
    case 'bool':
      return random.pick(['true', 'false'])
    case 'int':
      return random.pick(random.chance(0.8) ? INTS.slice(0, 6) : INTS)
    case 'uint':
      return random.pick(UINTS)
    case 'double':
      return random.pick(DOUBLES)
    case 'string':
      return stringLiteral(random, fn)
    case 'bytes':
      return random.pick(BYTES)
    case 'null':
      return 'null'
    case 'timestamp':
    case 'duration':
      return `${type}(${stringLiteral(random, type)})`
    default:
      return undefined
  }
}

/** Names of types, as values. */
export const TYPE_NAMES: readonly string[] = [
  'bool',
  'int',
  'uint',
  'double',
  'string',
  'bytes',
  'list',
  'map',
  'type',
  'null_type',
]
