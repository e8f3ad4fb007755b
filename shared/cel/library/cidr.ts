import { type Guard, instance, type Library, overload, string } from '../implementation.ts'
import { CelError, type CelResult, Opaque } from '../values.ts'
import { Ip, parseIp, prefixOf } from './ip.ts'

/** An IP network: an address, host bits and all, and the length of its prefix in bits. */
export class Cidr extends Opaque {
  readonly type = 'net.CIDR'
  readonly ip: Ip
  readonly length: number
  constructor(ip: Ip, length: number) {
    super()
    this.ip = ip
    this.length = length
  }

  get key(): string {
    return `${this.ip.key}/${this.length}`
  }

  /** Bytes the prefix covers: none for a /0. */
  override get size(): number {
    return Math.ceil(this.length / 8)
  }

  /** The network with its host bits cleared. */
  get masked(): Cidr {
    const host = BigInt(this.ip.width - this.length)
    return new Cidr(new Ip((this.ip.bits >> host) << host, this.ip.width), this.length)
  }

  /** True when the address is in this network. */
  contains(ip: Ip): boolean {
    return (
      ip.width === this.ip.width && prefixOf(ip, this.length) === prefixOf(this.ip, this.length)
    )
  }
}

function failed(why: string): CelError {
  const what = 'network address parse error during conversion from string: '
  return new CelError(what + what + why)
}

/** The network, or why the text is none. */
export function parseCidr(text: string): Cidr | CelError {
  const slash = text.lastIndexOf('/')
  const quoted = `netip.ParsePrefix(${JSON.stringify(text)})`
  if (slash < 0) return failed(`${quoted}: no '/'`)
  const address = text.slice(0, slash)
  const bits = text.slice(slash + 1)
  const ip = parseIp(address)
  if (ip instanceof CelError) return failed(ip.message)
  if (!/^(0|[1-9]\d{0,2})$/.test(bits)) {
    return failed(`${quoted}: bad bits after slash: ${JSON.stringify(bits)}`)
  }
  if (Number(bits) > ip.width) return failed(`${quoted}: prefix length out of range`)
  return new Cidr(ip, Number(bits))
}

function containsIpText(network: Cidr, text: string): CelResult {
  const ip = parseIp(text)
  return ip instanceof CelError ? new CelError('no such overload') : network.contains(ip)
}

function containsCidr(network: Cidr, other: Cidr): boolean {
  return other.length >= network.length && network.contains(other.ip)
}

function containsCidrText(network: Cidr, text: string): CelResult {
  const other = parseCidr(text)
  return other instanceof CelError ? other : containsCidr(network, other)
}

const cidr: Guard<Cidr> = instance(Cidr)
const ip: Guard<Ip> = instance(Ip)

/** IP networks. */
export const cidrs: Library = {
  string_to_cidr: overload('cidr', [string], parseCidr),
  is_cidr: overload('isCIDR', [string], (text) => parseCidr(text) instanceof Cidr),
  cidr_contains_ip_string: overload('containsIP', [cidr, string], containsIpText),
  cidr_contains_ip_ip: overload('containsIP', [cidr, ip], (network, address) =>
    network.contains(address),
  ),
  cidr_contains_cidr_string: overload('containsCIDR', [cidr, string], containsCidrText),
  cidr_contains_cidr: overload('containsCIDR', [cidr, cidr], containsCidr),
  cidr_ip: overload('ip', [cidr], (network) => network.ip),
  cidr_prefix_length: overload('prefixLength', [cidr], (network) => network.length),
  cidr_masked: overload('masked', [cidr], (network) => network.masked),
  cidr_is_mask: overload('isMask', [cidr], (network) => network.masked.key === network.key),
  cidr_to_string: overload('string', [cidr], (network) => network.key),
}
