import type { Node, Scalar } from 'yaml'
import { fromBase64, fromUtf8 } from '../bytes.ts'
import { JsonDouble, type JsonValue, parseJson } from '../json.ts'

/** Scalars as Go's YAML library resolves them: YAML 1.1, with a few rules of its own. */

/** What keeps a node from being JSON. */
export class Unreadable extends Error {
  readonly node: Node
  constructor(node: Node, message: string) {
    super(message)
    this.node = node
  }
}

/** A scalar in Go's terms: bigint is an integer of any size, number a float64. */
type Resolved = string | bigint | number | boolean | null

const TAG = 'tag:yaml.org,2002:'

/** What Go makes of a scalar. Throws `Unreadable`. */
export function resolve(node: Scalar): Resolved {
  // The text without its quotes; the value is the same but for a few tags the library knows whatever the schema.
  const text = node.source ?? ''
  const tag = node.tag?.startsWith(TAG) ? node.tag.slice(TAG.length) : node.tag
  switch (tag) {
    case undefined:
      return node.type === 'PLAIN' || node.type === undefined ? plain(text) : text
    case 'int':
    case 'bool':
    case 'null':
    case 'float':
      return tagged(node, tag, plain(text))
    case 'binary':
      return binary(node, text)
    default:
      return text
  }
}

function tagged(node: Scalar, tag: string, value: Resolved): Resolved {
  if (tag === 'float' && typeof value === 'bigint') return Number(value)
  if (kindOf(value) !== tag) throw new Unreadable(node, `cannot decode ${kindOf(value)} as ${tag}`)
  return value
}

function kindOf(value: Resolved): string {
  if (value === null) return 'null'
  switch (typeof value) {
    case 'bigint':
      return 'int'
    case 'number':
      return 'float'
    case 'boolean':
      return 'bool'
    default:
      return 'str'
  }
}

function binary(node: Scalar, text: string): string {
  const bytes = fromBase64(text.replaceAll(/\s/g, ''))
  if (bytes === undefined) throw new Unreadable(node, 'not base64')
  try {
    return fromUtf8(bytes)
  } catch {
    // Go would write the bytes as they are, and then it is no JSON text.
    throw new Unreadable(node, 'binary that is not UTF-8 text')
  }
}

/** Every spelling of a word in small letters, with a capital, and in capitals. */
function spelled(words: string, value: Resolved): [string, Resolved][] {
  return words.split(' ').flatMap((word): [string, Resolved][] => {
    const capital = word.charAt(0).toUpperCase() + word.slice(1)
    return [word, capital, word.toUpperCase()].map((each) => [each, value])
  })
}

const WORDS: ReadonlyMap<string, Resolved> = new Map([
  ...spelled('y yes true on', true),
  ...spelled('n no false off', false),
  ...spelled('null', null),
  ['', null],
  ['~', null],
  ...['.inf', '.Inf', '.INF'].flatMap((word): [string, Resolved][] => [
    [word, Number.POSITIVE_INFINITY],
    [`+${word}`, Number.POSITIVE_INFINITY],
    [`-${word}`, Number.NEGATIVE_INFINITY],
  ]),
  ...['.nan', '.NaN', '.NAN'].map((word): [string, Resolved] => [word, Number.NaN]),
])

const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)$/
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/

/** More digits than any finite float has, in any base but the binary one; and too many to be worth reading. */
const MAX_DIGITS = 400

function plain(text: string): Resolved {
  const word = WORDS.get(text)
  if (word !== undefined) return word
  if (!/^[-+.0-9]/.test(text)) return text
  // Only what begins with a digit or a sign may have underscores.
  const digits = text.startsWith('.') ? text : text.replaceAll('_', '')
  const integer = INTEGER.exec(digits)
  if (integer !== null && digits.length > MAX_DIGITS) return Number.POSITIVE_INFINITY
  if (integer !== null) return toInteger(integer[1] ?? '', integer[2] ?? '')
  const float = FLOAT.test(digits) ? Number(digits) : Number.NaN
  return Number.isFinite(float) ? float : text
}

function toInteger(sign: string, digits: string): bigint {
  // `017` is octal here, and BigInt wants to be told so.
  const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits.toLowerCase()
  const value = BigInt(octal)
  return sign === '-' ? -value : value
}

/** What is left of it after Go has written it as JSON and the API server has read that: a float of integral value is an int. */
export function jsonOf(node: Scalar, value: Resolved): JsonValue {
  if (typeof value === 'bigint') return integerOf(node, value)
  if (typeof value !== 'number') return value
  if (!Number.isFinite(value)) throw new Unreadable(node, `${node.source} is not a JSON number`)
  if (!Number.isInteger(value)) return value
  // Go writes floats from 1e21 on with an exponent, and those stay floats.
  return Math.abs(value) < 1e21 ? integerOf(node, BigInt(value)) : new JsonDouble(value)
}

function integerOf(node: Scalar, value: bigint): JsonValue {
  if (!Number.isFinite(Number(value))) {
    throw new Unreadable(node, `${node.source} is not a JSON number`)
  }
  return parseJson(value.toString())
}
