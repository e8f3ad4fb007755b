import { type Guard, instance, type Library, overload, string } from '../implementation.ts'
import { CelError, type CelResult, Opaque } from '../values.ts'

/** An IPv4 or IPv6 address: its bits as one number. */
export class Ip extends Opaque {
  readonly type = 'net.IP'
  readonly bits: bigint
  readonly width: 32 | 128
  constructor(bits: bigint, width: 32 | 128) {
    super()
    this.bits = bits
    this.width = width
  }

  get key(): string {
    return formatIp(this)
  }

  override get size(): number {
    return this.width / 8
  }
}

/** An address in its canonical text: dotted decimals, or IPv6 groups with the longest run of zeros left out. */
export function formatIp(ip: Ip): string {
  if (ip.width === 32) {
    return [24n, 16n, 8n, 0n].map((shift) => (ip.bits >> shift) & 0xffn).join('.')
  }
  const groups = groupsOf(ip.bits)
  const run = longestZeroRun(groups)
  const text = (part: number[]) => part.map((group) => group.toString(16)).join(':')
  if (run === undefined) return text(groups)
  return `${text(groups.slice(0, run.start))}::${text(groups.slice(run.end))}`
}

function groupsOf(bits: bigint): number[] {
  return Array.from({ length: 8 }, (_, i) => Number((bits >> BigInt(16 * (7 - i))) & 0xffffn))
}

/** The first longest run of two or more zero groups. */
function longestZeroRun(groups: readonly number[]): { start: number; end: number } | undefined {
  let best: { start: number; end: number } | undefined
  for (let start = 0; start < groups.length; start++) {
    let end = start
    while (groups[end] === 0) end++
    if (end - start >= 2 && end - start > (best === undefined ? 1 : best.end - best.start)) {
      best = { start, end }
    }
    if (end > start) start = end
  }
  return best
}

/** The address, or why the text is none. IPv4-mapped IPv6 addresses and zones are refused as the API server refuses them. */
export function parseIp(text: string): Ip | CelError {
  const bits = text.includes(':') ? parseIpv6(text.replace(/%.+$/s, '')) : parseIpv4(text)
  if (typeof bits === 'string') {
    return new CelError(
      `IP Address ${JSON.stringify(text)} parse error during conversion from string: ParseAddr(${JSON.stringify(text)}): ${bits}`,
    )
  }
  if (text.includes('%')) {
    return new CelError(`IP address ${JSON.stringify(text)} with zone value is not allowed`)
  }
  const ip = new Ip(bits, text.includes(':') ? 128 : 32)
  if (isMapped(ip)) {
    return new CelError(`IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`)
  }
  return ip
}

/** True for `::ffff:a.b.c.d`. */
function isMapped(ip: Ip): boolean {
  return ip.width === 128 && ip.bits >> 32n === 0xffffn
}

/** The bits of a dotted address, or what is wrong with it. */
function parseIpv4(text: string): bigint | string {
  if (!/^[\d.]*$/.test(text) || !text.includes('.')) return 'unable to parse IP'
  const octets = text.split('.')
  if (octets.some((octet) => octet === '')) return 'IPv4 field must have at least one digit'
  if (octets.some((octet) => /^0\d/.test(octet))) return 'IPv4 field has octet with leading zero'
  if (octets.some((octet) => Number(octet) > 255)) return 'IPv4 field has value >255'
  if (octets.length !== 4) {
    return octets.length < 4 ? 'IPv4 address too short' : 'IPv4 address too long'
  }
  return octets.reduce((bits, octet) => (bits << 8n) | BigInt(octet), 0n)
}

/** The bits of an IPv6 address without its zone, or what is wrong with it. */
function parseIpv6(text: string): bigint | string {
  const halves = text.split('::')
  if (halves.length > 2) return 'multiple :: in address'
  const parts: number[][] = []
  for (const [index, half] of halves.entries()) {
    const groups = half === '' ? [] : parseGroups(half, index === halves.length - 1)
    if (typeof groups === 'string') return groups
    parts.push(groups)
  }
  const [head = [], tail = []] = parts
  const missing = 8 - head.length - tail.length
  if (halves.length === 1 ? missing !== 0 : missing < 1) {
    return missing > 0 ? 'address string too short' : 'trailing garbage after address'
  }
  const groups = [...head, ...Array<number>(missing).fill(0), ...tail]
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(group), 0n)
}

/** Groups between colons; the last may be an IPv4 address and then counts as two. */
function parseGroups(text: string, last: boolean): number[] | string {
  const out: number[] = []
  const fields = text.split(':')
  for (const [index, field] of fields.entries()) {
    if (last && index === fields.length - 1 && field.includes('.')) {
      const bits = parseIpv4(field)
      if (typeof bits === 'string') return bits
      out.push(Number(bits >> 16n), Number(bits & 0xffffn))
    } else if (!/^[0-9a-f]{1,4}$/i.test(field)) {
      return field.length > 4
        ? 'each group must have 4 or less digits'
        : 'each colon-separated field must have at least one digit'
    } else out.push(Number.parseInt(field, 16))
  }
  return out
}

/** The leading `count` bits of an address. */
export function prefixOf(ip: Ip, count: number): bigint {
  return ip.bits >> BigInt(ip.width - count)
}

function leads(ip: Ip, width: 32 | 128, bits: bigint, count: number): boolean {
  return ip.width === width && prefixOf(ip, count) === bits
}

function isLoopback(ip: Ip): boolean {
  return leads(ip, 32, 127n, 8) || (ip.width === 128 && ip.bits === 1n)
}

function isLinkLocalUnicast(ip: Ip): boolean {
  return leads(ip, 32, 0xa9fen, 16) || leads(ip, 128, 0x3fan, 10)
}

/** 224.0.0.0/24, or ff02::/16 whatever the flag bits. */
function isLinkLocalMulticast(ip: Ip): boolean {
  if (ip.width === 32) return prefixOf(ip, 24) === 0xe00000n
  return (prefixOf(ip, 16) & 0xff0fn) === 0xff02n
}

function isMulticast(ip: Ip): boolean {
  return leads(ip, 32, 0xen, 4) || leads(ip, 128, 0xffn, 8)
}

/** Unicast beyond the link: private and unique-local addresses count. */
function isGlobalUnicast(ip: Ip): boolean {
  const broadcast = ip.width === 32 && ip.bits === 0xffff_ffffn
  const special = isLoopback(ip) || isMulticast(ip) || isLinkLocalUnicast(ip)
  return ip.bits !== 0n && !broadcast && !special
}

function isCanonical(text: string): CelResult {
  const ip = parseIp(text)
  return ip instanceof CelError ? ip : ip.key === text
}

const ip: Guard<Ip> = instance(Ip)

/** IP addresses. */
export const ips: Library = {
  string_to_ip: overload('ip', [string], parseIp),
  is_ip: overload('isIP', [string], (text) => parseIp(text) instanceof Ip),
  ip_is_canonical: overload('ip.isCanonical', [string], isCanonical),
  ip_family: overload('family', [ip], (value) => (value.width === 32 ? 4 : 6)),
  ip_is_unspecified: overload('isUnspecified', [ip], (value) => value.bits === 0n),
  ip_is_loopback: overload('isLoopback', [ip], isLoopback),
  ip_is_link_local_multicast: overload('isLinkLocalMulticast', [ip], isLinkLocalMulticast),
  ip_is_link_local_unicast: overload('isLinkLocalUnicast', [ip], isLinkLocalUnicast),
  ip_is_global_unicast: overload('isGlobalUnicast', [ip], isGlobalUnicast),
  ip_to_string: overload('string', [ip], (value) => value.key),
}
