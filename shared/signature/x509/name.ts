import { type Bytes, fromUtf8, toHex } from '../../bytes.ts'
import { MAX_CERTIFICATE_PARTS } from '../../limits.ts'
import { type DerElement, TAG } from '../der.ts'
import { ascii, DerReader, dottedOid, malformed } from './reader.ts'

/** One attribute of a name: `2.5.4.10` and `Example`. */
export interface NameAttribute {
  type: string
  value: string
}

/** A distinguished name: its relative names in the order of the certificate, and its bytes, which is what chains compare. */
export interface Name {
  der: Bytes
  rdns: readonly (readonly NameAttribute[])[]
}

/** Short names of attribute types, as RFC 4514 and the Notary Project write them. */
export const ATTRIBUTE_NAMES: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.5': 'SERIALNUMBER',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '2.5.4.17': 'POSTALCODE',
  '0.9.2342.19200300.100.1.25': 'DC',
  '0.9.2342.19200300.100.1.1': 'UID',
}

/** The name a DER element holds. Throws `SIGNATURE_MALFORMED`. */
export function parseName(element: DerElement, what: string): Name {
  const sets = new DerReader(element.content, what).rest()
  if (sets.length > MAX_CERTIFICATE_PARTS) throw malformed(`${what} has too many parts`)
  const rdns = sets.map((set) => {
    if (set.tag !== TAG.set) throw malformed(`${what} is not a sequence of sets`)
    const attributes = new DerReader(set.content, what).rest().map(({ tag, content }) => {
      if (tag !== TAG.sequence) throw malformed(`${what} has an attribute that is no sequence`)
      return parseAttribute(new DerReader(content, what), what)
    })
    if (attributes.length === 0) throw malformed(`${what} has an empty part`)
    return attributes
  })
  return { der: element.whole, rdns }
}

/** `CN=…, O=…` with control characters and separators escaped, for people. */
export function printName({ rdns }: Name): string {
  const print = ({ type, value }: NameAttribute) => {
    const shown = value.replace(/[\\,+=]/g, '\\$&').replace(/[^\x20-\x7e\u00a0-\uffff]/g, '?')
    return `${ATTRIBUTE_NAMES[type] ?? type}=${shown}`
  }
  return rdns.map((attributes) => attributes.map(print).join('+')).join(', ')
}

/** True when both hold the same attributes in the same order, whatever string type they are written in. */
export function sameName(a: Name, b: Name): boolean {
  return JSON.stringify(a.rdns) === JSON.stringify(b.rdns)
}

function parseAttribute(reader: DerReader, what: string): NameAttribute {
  const type = dottedOid(reader.next(TAG.oid).content)
  const [value, ...more] = reader.rest()
  if (value === undefined || more.length > 0) throw malformed(`${what} has a broken attribute`)
  return { type, value: textOf(value, what) }
}

/** String types with one spelling per text are decoded; every other value is its bytes in hexadecimal, which no policy text equals. */
function textOf({ tag, content, whole }: DerElement, what: string): string {
  switch (tag) {
    case 0x0c:
      return decodeUtf8(content, what)
    case 0x12:
    case 0x13:
    case 0x16:
      if (content.some((byte) => byte >= 0x80)) throw malformed(`${what} has text beyond ASCII`)
      return ascii(content)
    default:
      return `#${toHex(whole)}`
  }
}

function decodeUtf8(content: Bytes, what: string): string {
  try {
    return fromUtf8(content)
  } catch (cause) {
    throw malformed(`${what} has text that is not UTF-8`, cause)
  }
}
