import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { utf8 } from '../bytes.ts'
import {
  MAX_JSON_DEPTH,
  MAX_LISTED_FAULTS,
  MAX_POLICY_BYTES,
  MAX_POLICY_VALUES,
  MAX_YAML_ALIASES,
} from '../limits.ts'
import { keyOf, locate, NO_PLACE, type Place, Source } from './places.ts'
import { type DocumentFault, type Faults, isRecord, own, type Path } from './shape.ts'

/** One YAML or JSON document as plain data that remembers where everything stands. */
export interface SourceDocument {
  value: unknown
  /** Where the value at a path is; of a missing one, where the object that lacks it is. */
  place(path: Path, at?: 'key'): Place
  /** Where a character of a string stands, when the file has the string as it is; else where the string starts. */
  placeInText(path: Path, offset: number): Place
}

/** A fault of a file that belongs to no value. */
export interface FileFault {
  message: string
  place: Place
}

/** What a file holds. A document with a fault in its syntax is not among the documents. */
export interface FileContents {
  documents: SourceDocument[]
  faults: FileFault[]
}

/** The documents of a YAML or JSON file. Never throws: what cannot be read is a fault with its place. */
export function readDocuments(text: string): FileContents {
  if (text.length > MAX_POLICY_BYTES || utf8(text).length > MAX_POLICY_BYTES) {
    return refusedFile(`the file is larger than ${MAX_POLICY_BYTES} bytes`)
  }
  const lines = new LineCounter()
  let parsed: readonly Document.Parsed[]
  try {
    // Keys are checked for duplicates below: the library compares every pair of them.
    const found = parseAllDocuments(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: false,
      schema: 'core',
    })
    parsed = Array.isArray(found) ? found : []
  } catch (error) {
    // Nesting that exhausts the parser's stack lands here.
    return refusedFile(
      `the file cannot be parsed: ${error instanceof Error ? error.name : 'error'}`,
    )
  }
  const source = new Source(text, lines)
  const contents: FileContents = { documents: [], faults: [] }
  for (const document of parsed) readDocument(document, source, contents)
  return contents
}

function refusedFile(message: string): FileContents {
  return { documents: [], faults: [{ message, place: NO_PLACE }] }
}

function readDocument(document: Document.Parsed, source: Source, into: FileContents): void {
  const problems = [...document.errors, ...document.warnings]
  for (const problem of problems.slice(0, MAX_LISTED_FAULTS)) {
    into.faults.push({ message: problem.message, place: source.place(problem.pos[0]) })
  }
  if (problems.length > 0 || document.contents === null) return
  const conversion = new Conversion(document)
  const value = conversion.run()
  for (const { message, node } of conversion.faults) {
    into.faults.push({ message, place: source.place(node.range?.[0] ?? 0) })
  }
  if (conversion.faults.length > 0 || value === null) return
  into.documents.push({
    value,
    place: (path, at) => source.place(locate(document, path, at).offset),
    placeInText: (path, offset) => source.placeInText(locate(document, path).node, offset),
  })
}

/** Turns the nodes of a document into plain data, counting what aliases multiply. */
class Conversion {
  readonly faults: { message: string; node: Node }[] = []
  readonly #document: Document.Parsed
  #values = 0
  #aliases = 0

  constructor(document: Document.Parsed) {
    this.#document = document
  }

  run(): unknown {
    try {
      return this.#convert(this.#document.contents, 0)
    } catch (error) {
      if (!(error instanceof TooMuch)) throw error
      this.faults.push({ message: error.message, node: error.node })
      return null
    }
  }

  #convert(node: Node | null, depth: number): unknown {
    if (node === null) return null
    if (++this.#values > MAX_POLICY_VALUES) {
      throw new TooMuch(`more than ${MAX_POLICY_VALUES} values in one document`, node)
    }
    if (depth > MAX_JSON_DEPTH) throw new TooMuch(`nested deeper than ${MAX_JSON_DEPTH}`, node)
    if (isAlias(node)) return this.#alias(node, depth)
    if (isMap(node)) return this.#map(node, depth)
    if (isSeq(node)) return node.items.map((item) => this.#convert(item as Node, depth + 1))
    return isScalar(node) ? this.#scalar(node) : null
  }

  #alias(node: Alias, depth: number): unknown {
    if (++this.#aliases > MAX_YAML_ALIASES) {
      throw new TooMuch(`more than ${MAX_YAML_ALIASES} aliases expanded in one document`, node)
    }
    const target = node.resolve(this.#document)
    if (target !== undefined) return this.#convert(target, depth + 1)
    this.faults.push({ message: `alias *${node.source} has no anchor before it`, node })
    return null
  }

  #map(node: YAMLMap, depth: number): unknown {
    const map: Record<string, unknown> = Object.create(null)
    for (const pair of node.items) {
      const key = keyOf(pair)
      if (key === undefined) {
        this.faults.push({ message: 'a key is not a string', node: (pair.key as Node) ?? node })
        continue
      }
      if (Object.hasOwn(map, key)) {
        this.faults.push({
          message: `duplicate key ${JSON.stringify(key)}`,
          node: pair.key as Node,
        })
      }
      map[key] = this.#convert(pair.value as Node | null, depth + 1)
    }
    return map
  }

  #scalar(node: Scalar): unknown {
    const { value } = node
    if (typeof value === 'number' && !Number.isFinite(value)) {
      this.faults.push({ message: `${node.source ?? value} is not a JSON number`, node })
    }
    return value
  }
}

/** Ends a conversion that has become too large. */
class TooMuch extends Error {
  readonly node: Node
  constructor(message: string, node: Node) {
    super(message)
    this.node = node
  }
}

/** One object of a file: a document of its own, or an item of a `List`. */
export interface SourceObject {
  value: Record<string, unknown>
  document: SourceDocument
  /** Path of the object in its document: empty, or `items[2]`. */
  path: Path
}

const LIST_KINDS: ReadonlySet<unknown> = new Set(['List', 'ImageValidatingPolicyList'])

/** The objects of a document, lists expanded; what is not an object is added to `faults`. */
export function objectsOf(document: SourceDocument, faults: Faults): SourceObject[] {
  const { value } = document
  if (!isRecord(value)) {
    faults.add([], 'a document must be an object with apiVersion and kind')
    return []
  }
  if (!LIST_KINDS.has(own(value, 'kind'))) return [{ value, document, path: [] }]
  const items = own(value, 'items')
  if (!Array.isArray(items)) {
    faults.add(['items'], 'Required value: a List has items')
    return []
  }
  return items.flatMap((item, index): SourceObject[] => {
    const path = ['items', index]
    if (isRecord(item)) return [{ value: item, document, path }]
    faults.add(path, 'an item must be an object with apiVersion and kind')
    return []
  })
}

/** A fault's place in its document. */
export function placeOf(document: SourceDocument, fault: DocumentFault): Place {
  return fault.offset === undefined
    ? document.place(fault.path, fault.at)
    : document.placeInText(fault.path, fault.offset)
}
