import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { fromBase64, fromUtf8 } from './bytes.ts'
import { AdmissionError } from './errors.ts'
import { isJsonObject, JsonDouble, type JsonValue, parseJson, setOwn } from './json.ts'
import { MAX_JSON_DEPTH, MAX_LISTED_FAULTS, MAX_YAML_ALIASES, MAX_YAML_VALUES } from './limits.ts'

/**
 * The documents of a YAML text as the API server gets them from kubectl: YAML 1.1 with Go's rules for plain scalars (`yes` is
 * true, `017` is 15, `1e3` is an int), keys as text, merge keys applied, then JSON. Empty documents are left out.
 * Throws `YAML_INVALID` with `line:column` of every fault; a key that occurs twice is one.
 */
export function parseYaml(text: string): JsonValue[] {
  const lines = new LineCounter()
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${line}:${col}`
  }
  const documents = syntaxOf(text, lines)
  const faults = documents
    .flatMap(({ errors }) => errors)
    .map(({ pos, message }) => ({ path: at(pos[0]), message }))
  if (faults.length > 0) throw invalid(faults)
  try {
    return documents
      .map((document) => new Reader(document).read(document.contents))
      .filter((value) => value !== null)
  } catch (thrown) {
    if (!(thrown instanceof Unreadable)) throw thrown
    throw invalid([{ path: at(thrown.node.range?.[0] ?? 0), message: thrown.message }])
  }
}

/**
 * The documents of a text that is JSON or YAML, told apart as kubectl does it: what begins with a brace and is JSON is JSON,
 * `1.0` in it a double. Throws `YAML_INVALID`.
 */
export function parseJsonOrYaml(text: string): JsonValue[] {
  if (!/^\s*\{/.test(text)) return parseYaml(text)
  try {
    return [parseJson(text)]
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    // A YAML mapping in braces, or several documents; if it is neither, YAML says where.
    return parseYaml(text)
  }
}

function syntaxOf(text: string, lineCounter: LineCounter): readonly Document.Parsed[] {
  try {
    // Scalars are left as they are written: whether they are numbers is for Go's rules to say, not the library's.
    const found = parseAllDocuments(text, {
      lineCounter,
      prettyErrors: false,
      uniqueKeys: false,
      schema: 'failsafe',
    })
    return Array.isArray(found) ? found : []
  } catch (cause) {
    // Nesting that exhausts the parser's stack lands here.
    const message = `the text cannot be parsed: ${cause instanceof Error ? cause.name : 'error'}`
    throw new AdmissionError('YAML_INVALID', message, { cause })
  }
}

function invalid(faults: readonly { path: string; message: string }[]): AdmissionError {
  const listed = faults.slice(0, MAX_LISTED_FAULTS)
  const [first] = listed
  const more = faults.length > 1 ? `, and ${faults.length - 1} more` : ''
  const message = `YAML is not valid at ${first?.path}: ${first?.message}${more}`
  return new AdmissionError('YAML_INVALID', message, { faults: listed })
}

/** What keeps a node from being JSON. Never leaves this file. */
class Unreadable extends Error {
  readonly node: Node
  constructor(node: Node, message: string) {
    super(message)
    this.node = node
  }
}

/** The nodes of one document as JSON, counting what aliases multiply. */
class Reader {
  readonly #document: Document.Parsed
  #values = 0
  #aliases = 0

  constructor(document: Document.Parsed) {
    this.#document = document
  }

  read(node: Node | null, depth = 1): JsonValue {
    if (node === null) return null
    if (++this.#values > MAX_YAML_VALUES) {
      throw new Unreadable(node, `more than ${MAX_YAML_VALUES} values in one document`)
    }
    if (depth > MAX_JSON_DEPTH) throw new Unreadable(node, `nested deeper than ${MAX_JSON_DEPTH}`)
    if (isAlias(node)) return this.read(this.#target(node), depth + 1)
    // The items of a sequence are nodes: nobody has put anything else there.
    if (isSeq(node)) return node.items.map((item) => this.read(item as Node | null, depth + 1))
    if (isMap(node)) return this.#map(node, depth)
    return isScalar(node) ? jsonOf(node, resolve(node)) : null
  }

  #target(alias: Alias): Node {
    if (++this.#aliases > MAX_YAML_ALIASES) {
      throw new Unreadable(alias, `more than ${MAX_YAML_ALIASES} aliases in one document`)
    }
    const target = alias.resolve(this.#document)
    if (target === undefined) {
      throw new Unreadable(alias, `alias *${alias.source} has no anchor before it`)
    }
    return target
  }

  /** The keys of the map itself win over those merged into it. */
  #map(map: YAMLMap, depth: number): JsonValue {
    const own: { [key: string]: JsonValue } = {}
    const merged: JsonValue[] = []
    for (const { key, value } of map.items as Pair<Node | null, Node | null>[]) {
      const read = this.read(value, depth + 1)
      if (isMergeKey(key)) merged.push(...mergedMaps(key, read))
      else this.#set(own, key ?? map, keyOf(key ?? map), read)
    }
    for (const each of merged) {
      for (const [key, value] of Object.entries(each as { [key: string]: JsonValue })) {
        if (!Object.hasOwn(own, key)) setOwn(own, key, value)
      }
    }
    return own
  }

  #set(map: { [key: string]: JsonValue }, node: Node, key: string, value: JsonValue): void {
    if (Object.hasOwn(map, key)) {
      throw new Unreadable(node, `key ${JSON.stringify(key)} occurs twice`)
    }
    setOwn(map, key, value)
  }
}

function isMergeKey(key: Node | null): key is Scalar {
  return isScalar(key) && key.type === 'PLAIN' && key.value === '<<' && key.tag === undefined
}

/** The maps that a merge key names: one, or several of which the first wins. */
function mergedMaps(key: Node, value: JsonValue): JsonValue[] {
  const maps = Array.isArray(value) ? value : [value]
  if (!maps.every(isJsonObject)) {
    throw new Unreadable(key, 'map merge requires map or sequence of maps as the value')
  }
  return maps
}

/** A key as text. Numbers and booleans are written out; Go has nothing for null and for collections. */
function keyOf(node: Node): string {
  const value = isScalar(node) ? resolve(node) : undefined
  switch (typeof value) {
    case 'string':
      return value
    case 'bigint':
    case 'boolean':
    case 'number':
      return String(value)
    default:
      throw new Unreadable(node, 'a key must be a string, a number or a boolean')
  }
}

// --- scalars, as Go's YAML library resolves them

/** A scalar in Go's terms: bigint is an integer of any size, number a float64. */
type Resolved = string | bigint | number | boolean | null

const TAG = 'tag:yaml.org,2002:'

function resolve(node: Scalar): Resolved {
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
function jsonOf(node: Scalar, value: Resolved): JsonValue {
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
