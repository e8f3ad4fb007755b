import { type Bytes, concat } from '../bytes.ts'
import { MAX_DER_ELEMENTS } from '../limits.ts'

/** ASN.1 tags this folder reads. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

/** One DER element: its tag, its content, and the whole of it as it was received. */
export interface DerElement {
  tag: number
  content: Bytes
  whole: Bytes
}

/**
 * The elements that make up the bytes exactly, or undefined when they are not strict DER: indefinite and
 * non-minimal lengths, multi-byte tags, a last element that is cut off and more than `MAX_DER_ELEMENTS` are refused.
 */
export function readDer(bytes: Bytes): readonly DerElement[] | undefined {
  const elements: DerElement[] = []
  let at = 0
  while (at < bytes.length) {
    const found = locateElement(bytes, at)
    if (found === undefined || elements.length === MAX_DER_ELEMENTS) return undefined
    const { tag, start, end } = found
    elements.push({ tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) })
    at = end
  }
  return elements
}

/**
 * Where the content of the element at this place starts and ends, or undefined when it is not strict DER. For lists so long that their
 * elements should not all exist at once.
 */
export function locateElement(
  bytes: Bytes,
  at: number,
): { tag: number; start: number; end: number } | undefined {
  const head = readHead(bytes, at)
  const end = head === undefined ? 0 : head.start + head.length
  if (head === undefined || end > bytes.length) return undefined
  return { tag: head.tag, start: head.start, end }
}

/** The content of the only element when it has this tag, or undefined. Trailing bytes are refused. */
export function readOnly(bytes: Bytes, tag: number): Bytes | undefined {
  const elements = readDer(bytes)
  const [element] = elements ?? []
  return elements?.length === 1 && element?.tag === tag ? element.content : undefined
}

/**
 * The magnitude of a positive DER INTEGER without leading zeros, or undefined for a negative, zero, empty or
 * non-minimal one.
 */
export function positiveInteger(content: Bytes): Bytes | undefined {
  const [first, second] = content
  if (first === undefined || first >= 0x80) return undefined
  if (first !== 0) return content
  return second !== undefined && second >= 0x80 ? content.subarray(1) : undefined
}

/**
 * An ECDSA signature as `r || s` (IEEE P1363, what WebCrypto verifies), each `scalarBytes` long, from its DER form
 * `SEQUENCE { INTEGER r, INTEGER s }`. Undefined unless it is strict DER of two positive integers that fit.
 */
export function ecdsaSignatureToRaw(der: Bytes, scalarBytes: number): Bytes | undefined {
  const sequence = readOnly(der, TAG.sequence)
  const scalars = sequence === undefined ? undefined : readDer(sequence)
  if (scalars?.length !== 2) return undefined
  const raw = new Uint8Array(2 * scalarBytes)
  for (const [index, scalar] of scalars.entries()) {
    const value = scalar.tag === TAG.integer ? positiveInteger(scalar.content) : undefined
    if (value === undefined || value.length > scalarBytes) return undefined
    raw.set(value, (index + 1) * scalarBytes - value.length)
  }
  return raw
}

/**
 * The DER form of an ECDSA signature given as `r || s`, or undefined unless it is exactly two scalars long. The other way round than
 * `ecdsaSignatureToRaw`: JOSE and COSE write the raw form.
 */
export function ecdsaSignatureToDer(raw: Bytes, scalarBytes: number): Bytes | undefined {
  if (raw.length !== 2 * scalarBytes) return undefined
  return encodeDer(
    TAG.sequence,
    encodeInteger(raw.subarray(0, scalarBytes)),
    encodeInteger(raw.subarray(scalarBytes)),
  )
}

/** A DER INTEGER in its shortest form. */
function encodeInteger(scalar: Bytes): Bytes {
  let start = 0
  while (start < scalar.length - 1 && scalar[start] === 0) start++
  const digits = scalar.subarray(start)
  const sign = (digits[0] ?? 0) >= 0x80 ? [0] : []
  return encodeDer(TAG.integer, Uint8Array.from(sign), digits)
}

/** The DER element with this tag around the parts, at most 16 MiB of them. */
export function encodeDer(tag: number, ...parts: readonly Uint8Array[]): Bytes {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const octets = [length >> 16, (length >> 8) & 0xff, length & 0xff]
  while (octets[0] === 0) octets.shift()
  const head = length < 0x80 ? [length] : [0x80 + octets.length, ...octets]
  return concat(Uint8Array.of(tag, ...head), ...parts)
}

function readHead(
  bytes: Bytes,
  at: number,
): { tag: number; start: number; length: number } | undefined {
  const tag = bytes[at]
  const first = bytes[at + 1]
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) return undefined
  if (first < 0x80) return { tag, start: at + 2, length: first }
  const octets = first & 0x7f
  if (octets === 0 || octets > 3) return undefined
  let length = 0
  for (let i = 0; i < octets; i++) {
    const octet = bytes[at + 2 + i]
    if (octet === undefined || (i === 0 && octet === 0)) return undefined
    length = length * 256 + octet
  }
  return length < 0x80 ? undefined : { tag, start: at + 2 + octets, length }
}
