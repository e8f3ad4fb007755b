import type { Bytes } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { type DerElement, readDer, TAG } from '../der.ts'

/** Reads the elements of one DER value in order. Everything unexpected throws `SIGNATURE_MALFORMED` with the name of the value. */
export class DerReader {
  readonly #elements: readonly DerElement[]
  readonly #what: string
  #at = 0

  /** A reader of what `content` is made of; `what` names it in messages. */
  constructor(content: Bytes, what: string) {
    const elements = readDer(content)
    if (elements === undefined) throw malformed(`${what} is not strict DER`)
    this.#elements = elements
    this.#what = what
  }

  /** A reader of the content of the only element, which must have this tag. */
  static only(bytes: Bytes, what: string, tag: number = TAG.sequence): DerReader {
    const outer = new DerReader(bytes, what)
    const inner = outer.enter(tag)
    outer.end()
    return inner
  }

  /** The next element, which must have this tag. */
  next(tag: number): DerElement {
    const element = this.optional(tag)
    if (element !== undefined) return element
    const found = this.#elements[this.#at]
    const has = found === undefined ? 'ends' : `has tag 0x${found.tag.toString(16)}`
    throw malformed(`${this.#what} ${has} where tag 0x${tag.toString(16)} is expected`)
  }

  /** The next element when it has this tag; otherwise undefined, and nothing is consumed. */
  optional(tag: number): DerElement | undefined {
    const element = this.#elements[this.#at]
    if (element?.tag !== tag) return undefined
    this.#at++
    return element
  }

  /** A reader of what the next element holds, which must have this tag. */
  enter(tag: number = TAG.sequence): DerReader {
    return new DerReader(this.next(tag).content, this.#what)
  }

  /** All elements that are left. */
  rest(): readonly DerElement[] {
    const rest = this.#elements.slice(this.#at)
    this.#at = this.#elements.length
    return rest
  }

  /** True when nothing is left. */
  get done(): boolean {
    return this.#at >= this.#elements.length
  }

  /** Throws unless nothing is left. */
  end(): void {
    if (!this.done) throw malformed(`${this.#what} has more elements than expected`)
  }
}

/** The dotted form of an OBJECT IDENTIFIER's content. Throws `SIGNATURE_MALFORMED` for one that is not minimal or has huge arcs. */
export function dottedOid(content: Bytes): string {
  const arcs: number[] = []
  let value = 0
  let fresh = true
  for (const byte of content) {
    if (fresh && byte === 0x80) throw malformed('an object identifier is not minimal')
    value = value * 128 + (byte & 0x7f)
    if (value > Number.MAX_SAFE_INTEGER / 128) throw malformed('an object identifier is too large')
    fresh = byte < 0x80
    if (!fresh) continue
    arcs.push(value)
    value = 0
  }
  const [first] = arcs
  if (first === undefined || !fresh) throw malformed('an object identifier is cut off')
  const top = Math.min(2, Math.floor(first / 40))
  return [top, first - 40 * top, ...arcs.slice(1)].join('.')
}

/** A small non-negative INTEGER, or an error: versions, path lengths, seconds. */
export function smallInteger(content: Bytes, what: string): number {
  const [first, second = 0xff] = content
  const minimal = content.length === 1 || first !== 0 || second >= 0x80
  if (first === undefined || first >= 0x80 || !minimal || content.length > 5) {
    throw malformed(`${what} is not a small integer`)
  }
  return content.reduce((value, byte) => value * 256 + byte, 0)
}

/** The value of a DER BOOLEAN. */
export function booleanValue(content: Bytes, what: string): boolean {
  const [byte] = content
  if (content.length !== 1 || (byte !== 0 && byte !== 0xff)) {
    throw malformed(`${what} is not a DER boolean`)
  }
  return byte === 0xff
}

/** Milliseconds since the epoch of a UTCTime or GeneralizedTime in the one form RFC 5280 allows: seconds, no fraction, `Z`. */
export function timeOf(element: DerElement, what: string): number {
  const text = ascii(element.content)
  if (element.tag === TAG.utcTime && /^\d{12}Z$/.test(text)) {
    return calendarTime(`${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}`, what)
  }
  if (element.tag === TAG.generalizedTime && /^\d{14}Z$/.test(text)) return calendarTime(text, what)
  throw malformed(`${what} is not a time`)
}

/** Milliseconds since the epoch of `YYYYMMDDHHMMSS…`; days and hours that do not exist are refused. */
export function calendarTime(text: string, what: string): number {
  const iso = text.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d).*$/, '$1-$2-$3T$4:$5:$6.000Z')
  const ms = Date.parse(iso)
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== iso) {
    throw malformed(`${what} is a time that does not exist`)
  }
  return ms
}

/** The bytes as characters, one each; what is not ASCII never matches anything a caller looks for. */
export function ascii(bytes: Bytes): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

/** What every reader of signature material throws. */
export function malformed(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError('SIGNATURE_MALFORMED', message, { cause })
}
