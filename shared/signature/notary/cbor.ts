import { type Bytes, concat, fromUtf8, utf8 } from '../../bytes.ts'
import { MAX_CBOR_DEPTH, MAX_CBOR_ITEMS } from '../../limits.ts'
import { malformed } from '../x509/reader.ts'

/** A CBOR value as COSE headers need it. Map keys are integers or texts, as COSE labels are. */
export type CborValue =
  | number
  | string
  | boolean
  | null
  | Bytes
  | readonly CborValue[]
  | ReadonlyMap<number | string, CborValue>
  | CborTag

/** A value with a tag number in front. */
export class CborTag {
  readonly tag: number
  readonly value: CborValue
  constructor(tag: number, value: CborValue) {
    this.tag = tag
    this.value = value
  }
}

/**
 * The one value the bytes are (RFC 8949). Throws `SIGNATURE_MALFORMED` for everything that allows two readings: indefinite lengths,
 * numbers that are not in their shortest form, keys that occur twice, bytes that follow, and for floats, integers beyond 2^53,
 * nesting beyond `MAX_CBOR_DEPTH` and more than `MAX_CBOR_ITEMS` items.
 */
export function decodeCbor(bytes: Bytes): CborValue {
  const reader = new CborReader(bytes)
  const value = reader.value(1)
  if (!reader.done) throw malformed('CBOR is followed by other bytes')
  return value
}

/** A byte string, or a text, as CBOR. */
export function encodeString(content: Uint8Array | string): Bytes {
  return typeof content === 'string'
    ? concat(encodeHead(3, utf8(content).length), utf8(content))
    : concat(encodeHead(2, content.length), content)
}

/** The first bytes of a value: its major type and its length or number, in the shortest form. */
export function encodeHead(major: number, argument: number): Bytes {
  const top = major << 5
  if (argument < 24) return Uint8Array.of(top | argument)
  const width = argument < 0x100 ? 1 : argument < 0x10000 ? 2 : 4
  const out = new Uint8Array(1 + width)
  out[0] = top | (width === 1 ? 24 : width === 2 ? 25 : 26)
  for (let i = width, rest = argument; i > 0; i--, rest = Math.floor(rest / 256))
    out[i] = rest & 0xff
  return out
}

class CborReader {
  readonly #bytes: Bytes
  #at = 0
  #items = 0

  constructor(bytes: Bytes) {
    this.#bytes = bytes
  }

  get done(): boolean {
    return this.#at === this.#bytes.length
  }

  value(depth: number): CborValue {
    if (depth > MAX_CBOR_DEPTH) throw malformed('CBOR is nested too deeply')
    if (++this.#items > MAX_CBOR_ITEMS) throw malformed('CBOR has too many items')
    const initial = this.#byte()
    const major = initial >> 5
    if (major === 7) return simple(initial)
    const argument = this.#argument(initial & 0x1f)
    switch (major) {
      case 0:
        return argument
      case 1:
        return -1 - argument
      case 2:
        return this.#take(argument)
      case 3:
        return this.#text(argument)
      case 4:
        return this.#array(argument, depth)
      case 5:
        return this.#map(argument, depth)
      default:
        return new CborTag(argument, this.value(depth + 1))
    }
  }

  #array(length: number, depth: number): CborValue[] {
    // Grows item by item: the length is only a claim.
    const out: CborValue[] = []
    for (let i = 0; i < length; i++) out.push(this.value(depth + 1))
    return out
  }

  #map(length: number, depth: number): Map<number | string, CborValue> {
    const out = new Map<number | string, CborValue>()
    for (let i = 0; i < length; i++) {
      const key = this.value(depth + 1)
      if (typeof key !== 'number' && typeof key !== 'string') {
        throw malformed('a CBOR map has a key that is no label')
      }
      if (out.has(key)) throw malformed('a CBOR map has a label twice')
      out.set(key, this.value(depth + 1))
    }
    return out
  }

  #text(length: number): string {
    try {
      return fromUtf8(this.#take(length))
    } catch (cause) {
      throw malformed('a CBOR text is cut off or not UTF-8', cause)
    }
  }

  #argument(info: number): number {
    if (info < 24) return info
    if (info > 27) throw malformed('CBOR has an indefinite length')
    const width = 1 << (info - 24)
    let value = 0
    for (const byte of this.#take(width)) value = value * 256 + byte
    if (!Number.isSafeInteger(value)) throw malformed('CBOR has a number beyond 2^53')
    const least = width === 1 ? 24 : 256 ** (width / 2)
    if (value < least) throw malformed('CBOR has a number that is not in its shortest form')
    return value
  }

  #take(length: number): Bytes {
    const end = this.#at + length
    if (end > this.#bytes.length) throw malformed('CBOR is cut off')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  #byte(): number {
    const [byte = 0] = this.#take(1)
    return byte
  }
}

function simple(initial: number): CborValue {
  switch (initial) {
    case 0xf4:
      return false
    case 0xf5:
      return true
    case 0xf6:
      return null
    default:
      throw malformed('CBOR has a float or an unknown simple value')
  }
}
