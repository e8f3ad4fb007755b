import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { isJsonObject, type JsonValue, setOwn } from '../json.ts'
import { MAX_JSON_DEPTH, MAX_YAML_ALIASES } from '../limits.ts'
import { jsonOf, resolve, Unreadable } from './scalars.ts'

/** One thing that keeps a document from being JSON, and where. */
export interface YamlFault {
  node: Node
  message: string
}

/** The documents of a text, scalars left as they are written: what they are is for Go's rules to say, not for the library's. */
export function parseNodes(text: string, lineCounter: LineCounter): readonly Document.Parsed[] {
  const found = parseAllDocuments(text, {
    lineCounter,
    prettyErrors: false,
    // The library would compare every pair of keys; the reader below asks a map.
    uniqueKeys: false,
    schema: 'failsafe',
  })
  return Array.isArray(found) ? found : []
}

/**
 * A document as the API server gets it from kubectl, counting what aliases multiply, and every fault of it. Whoever reads the value
 * looks at the faults first. `maxValues` bounds the values, aliases expanded.
 */
export function readNodes(
  document: Document,
  maxValues: number,
): { value: JsonValue; faults: readonly YamlFault[] } {
  const reader = new Reader(document, maxValues)
  return { value: reader.run(), faults: reader.faults }
}

/** Ends a document that has become too large. */
class TooMuch extends Unreadable {}

class Reader {
  readonly faults: YamlFault[] = []
  readonly #document: Document
  readonly #maxValues: number
  #values = 0
  #aliases = 0

  constructor(document: Document, maxValues: number) {
    this.#document = document
    this.#maxValues = maxValues
  }

  run(): JsonValue {
    try {
      return this.#read(this.#document.contents as Node | null, 1)
    } catch (thrown) {
      return this.#note(thrown)
    }
  }

  /** A fault for what was thrown; null stands for what could not be read. */
  #note(thrown: unknown): null {
    if (!(thrown instanceof Unreadable)) throw thrown
    this.faults.push({ node: thrown.node, message: thrown.message })
    return null
  }

  #read(node: Node | null, depth: number): JsonValue {
    if (node === null) return null
    if (++this.#values > this.#maxValues) {
      throw new TooMuch(node, `more than ${this.#maxValues} values in one document`)
    }
    if (depth > MAX_JSON_DEPTH) throw new TooMuch(node, `nested deeper than ${MAX_JSON_DEPTH}`)
    if (isAlias(node)) return this.#alias(node, depth)
    // The items of a sequence are nodes: nobody has put anything else there.
    if (isSeq(node)) return node.items.map((item) => this.#read(item as Node | null, depth + 1))
    if (isMap(node)) return this.#map(node, depth)
    return isScalar(node) ? this.#scalar(node) : null
  }

  #scalar(node: Scalar): JsonValue {
    try {
      return jsonOf(node, resolve(node))
    } catch (thrown) {
      return this.#note(thrown)
    }
  }

  #alias(alias: Alias, depth: number): JsonValue {
    if (++this.#aliases > MAX_YAML_ALIASES) {
      throw new TooMuch(alias, `more than ${MAX_YAML_ALIASES} aliases expanded in one document`)
    }
    const target = alias.resolve(this.#document)
    if (target !== undefined) return this.#read(target, depth + 1)
    return this.#note(new Unreadable(alias, `alias *${alias.source} has no anchor before it`))
  }

  /** The keys of the map itself win over those merged into it. */
  #map(map: YAMLMap, depth: number): JsonValue {
    const own: { [key: string]: JsonValue } = {}
    const merged: JsonValue[] = []
    for (const { key, value } of map.items as Pair<Node | null, Node | null>[]) {
      const before = this.faults.length
      const read = this.#read(value, depth + 1)
      if (!isMergeKey(key)) this.#set(own, key ?? map, read)
      else if (this.faults.length === before) merged.push(...this.#merge(key, read))
    }
    for (const each of merged) {
      for (const [key, value] of Object.entries(each as { [key: string]: JsonValue })) {
        if (!Object.hasOwn(own, key)) setOwn(own, key, value)
      }
    }
    return own
  }

  #set(map: { [key: string]: JsonValue }, node: Node, value: JsonValue): void {
    const key = keyText(node)
    if (key === undefined) {
      this.#note(new Unreadable(node, 'a key must be a string, a number or a boolean'))
    } else if (Object.hasOwn(map, key)) {
      this.#note(new Unreadable(node, `key ${JSON.stringify(key)} occurs twice`))
    } else setOwn(map, key, value)
  }

  /** The maps that a merge key names: one, or several of which the first wins. */
  #merge(key: Node, value: JsonValue): JsonValue[] {
    const maps = Array.isArray(value) ? value : [value]
    if (maps.every(isJsonObject)) return maps
    this.#note(new Unreadable(key, 'map merge requires map or sequence of maps as the value'))
    return []
  }
}

/** True for a plain `<<`, which brings the entries of other maps. */
export function isMergeKey(key: unknown): key is Scalar {
  return isScalar(key) && key.type === 'PLAIN' && key.value === '<<' && key.tag === undefined
}

/** A key as text. Numbers and booleans are written out; Go has nothing for null and for collections. */
export function keyText(node: unknown): string | undefined {
  if (!isScalar(node)) return undefined
  try {
    const value = resolve(node)
    return value === null ? undefined : String(value)
  } catch (thrown) {
    if (!(thrown instanceof Unreadable)) throw thrown
    return undefined
  }
}
