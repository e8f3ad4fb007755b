import type { Bytes } from '#shared/bytes.ts'

/** An IP range: the network's address bytes (4 or 16) and how many leading bits count. */
export interface AddressRange {
  network: Bytes
  bits: number
}

/**
 * The bytes of an IPv4 (4) or IPv6 (16) address, or undefined. An IPv4 address mapped into IPv6 (`::ffff:192.0.2.1`)
 * gives its four bytes, so that a dual-stack listener and an IPv4 range agree. Zones (`%eth0`) are refused.
 */
export function parseAddress(text: string): Bytes | undefined {
  if (!text.includes(':')) return parseV4(text)
  const bytes = parseV6(text)
  const mapped = bytes?.every((byte, index) => index >= 12 || byte === (index < 10 ? 0 : 0xff))
  return mapped ? bytes?.slice(12) : bytes
}

/** The range of a CIDR, or undefined when it is none or has host bits set. */
export function parseRange(text: string): AddressRange | undefined {
  const [address = '', length = '', ...more] = text.split('/')
  const network = parseAddress(address)
  if (network === undefined || more.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(length))
    return undefined
  const given = Number(length)
  // A mapped network counts its bits from the 96th on.
  const bits = address.includes(':') && network.length === 4 ? given - 96 : given
  if (bits < 0 || bits > network.length * 8) return undefined
  const range = { network, bits }
  return network.every((byte, index) => (byte & ~mask(bits, index)) === 0) ? range : undefined
}

/** True when the address lies in the range. Addresses of the other family never do. */
export function inRange(address: Bytes, range: AddressRange): boolean {
  return (
    address.length === range.network.length &&
    address.every((byte, index) => (byte & mask(range.bits, index)) === range.network[index])
  )
}

/** The part of byte `index` that belongs to the first `bits` bits. */
function mask(bits: number, index: number): number {
  const own = Math.min(8, Math.max(0, bits - index * 8))
  return (0xff << (8 - own)) & 0xff
}

function parseV4(text: string): Bytes | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part)))
    return undefined
  const numbers = parts.map(Number)
  return numbers.some((number) => number > 255) ? undefined : new Uint8Array(numbers)
}

function parseV6(text: string): Bytes | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = [
    parseGroups(halves[0] ?? '', halves.length === 1),
    parseGroups(halves[1] ?? '', true),
  ]
  if (head === undefined || tail === undefined) return undefined
  const missing = 16 - head.length - tail.length
  // `::` stands for at least one group; without it nothing may be missing.
  if (halves.length === 2 ? missing < 2 : missing !== 0) return undefined
  const bytes = new Uint8Array(16)
  bytes.set(head)
  bytes.set(tail, 16 - tail.length)
  return bytes
}

/** Bytes of `a:b:c`, the last group possibly a dotted IPv4 address; none for the empty text. */
function parseGroups(text: string, mayEndInV4: boolean): number[] | undefined {
  if (text === '') return []
  const groups = text.split(':')
  const bytes: number[] = []
  for (const [index, group] of groups.entries()) {
    if (mayEndInV4 && index === groups.length - 1 && group.includes('.')) {
      const v4 = parseV4(group)
      if (v4 === undefined) return undefined
      bytes.push(...v4)
    } else if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 0xff)
    } else return undefined
  }
  return bytes.length <= 16 ? bytes : undefined
}
