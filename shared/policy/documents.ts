import { type Document, LineCounter } from 'yaml'
import { utf8 } from '../bytes.ts'
import { JsonDouble, type JsonValue } from '../json.ts'
import { MAX_LISTED_FAULTS, MAX_POLICY_BYTES, MAX_POLICY_VALUES } from '../limits.ts'
import { parseNodes, readNodes } from '../yaml/reader.ts'
import { locate, NO_PLACE, type Place, Source } from './places.ts'
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

/** The documents of a YAML or JSON file, read as kubectl reads them. Never throws: what cannot be read is a fault with its place. */
export function readDocuments(text: string): FileContents {
  if (text.length > MAX_POLICY_BYTES || utf8(text).length > MAX_POLICY_BYTES) {
    return refusedFile(`the file is larger than ${MAX_POLICY_BYTES} bytes`)
  }
  const lines = new LineCounter()
  let parsed: readonly Document.Parsed[]
  try {
    parsed = parseNodes(text, lines)
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
  const problems = [...document.errors, ...document.warnings].filter(
    ({ code, pos }) => code !== 'TAG_RESOLVE_FAILED' || !source.startsWith('!!', pos[0]),
  )
  for (const problem of problems.slice(0, MAX_LISTED_FAULTS)) {
    into.faults.push({ message: problem.message, place: source.place(problem.pos[0]) })
  }
  if (problems.length > 0 || document.contents === null) return
  const { value, faults } = readNodes(document, MAX_POLICY_VALUES)
  for (const { message, node } of faults) {
    into.faults.push({ message, place: source.place(node.range?.[0] ?? 0) })
  }
  if (faults.length > 0 || value === null) return
  into.documents.push({
    value: plain(value),
    place: (path, at) => source.place(locate(document, path, at).offset),
    placeInText: (path, offset) => source.placeInText(locate(document, path).node, offset),
  })
}

/** The value with numbers alone: no field of a policy needs more than 53 bits, or to know a double from an int. */
function plain(value: JsonValue): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof JsonDouble) return value.value
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const map: Record<string, unknown> = Object.create(null)
  for (const [key, item] of Object.entries(value)) map[key] = plain(item)
  return map
}

/** One object of a file: a document of its own, or an item of a `List`. */
export interface SourceObject {
  value: Record<string, unknown>
  document: SourceDocument
  /** Path of the object in its document: empty, or `items[2]`. */
  path: Path
}

const LIST_KINDS: ReadonlySet<unknown> = new Set([
  'List',
  'ImageValidatingPolicyList',
  'NamespacedImageValidatingPolicyList',
  'PolicyExceptionList',
])

/** The objects of a document, lists and lists in them expanded; what is not an object is added to `faults`. */
export function objectsOf(document: SourceDocument, faults: Faults): SourceObject[] {
  if (isRecord(document.value)) return expanded(document.value, document, [], faults)
  faults.add([], 'a document must be an object with apiVersion and kind')
  return []
}

function expanded(
  value: Record<string, unknown>,
  document: SourceDocument,
  path: Path,
  faults: Faults,
): SourceObject[] {
  if (!LIST_KINDS.has(own(value, 'kind'))) return [{ value, document, path }]
  const items = own(value, 'items')
  if (!Array.isArray(items)) {
    faults.add([...path, 'items'], 'Required value: a List has items')
    return []
  }
  return items.flatMap((item, index): SourceObject[] => {
    const at = [...path, 'items', index]
    if (isRecord(item)) return expanded(item, document, at, faults)
    faults.add(at, 'an item must be an object with apiVersion and kind')
    return []
  })
}

/** A fault's place in its document. */
export function placeOf(document: SourceDocument, fault: DocumentFault): Place {
  return fault.offset === undefined
    ? document.place(fault.path, fault.at)
    : document.placeInText(fault.path, fault.offset)
}
