import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  Scalar,
  type YAMLMap,
} from 'yaml'
import { isMergeKey, keyText } from '../yaml/reader.ts'
import type { Path } from './shape.ts'

/** A place in a file, one-based; columns count code points. */
export interface Place {
  line: number
  column: number
}

/** Of what has none, such as a file as a whole. */
export const NO_PLACE: Place = { line: 0, column: 0 }

/** The text of a file and where its lines begin. */
export class Source {
  readonly #text: string
  readonly #lines: LineCounter

  constructor(text: string, lines: LineCounter) {
    this.#text = text
    this.#lines = lines
  }

  startsWith(text: string, offset: number): boolean {
    return this.#text.startsWith(text, offset)
  }

  place(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset)
    if (line === 0) return { line: 1, column: 1 }
    const start = offset - (col - 1)
    return { line, column: [...this.#text.slice(start, offset)].length + 1 }
  }

  placeInText(node: Node | null, offset: number): Place {
    if (!isScalar(node) || node.range === undefined || node.range === null) return NO_PLACE
    const [start, end] = node.range
    if (typeof node.value !== 'string') return this.place(start)
    const written = this.#text.slice(start, end)
    const inset = written.startsWith('"') || written.startsWith("'") ? 1 : 0
    if (written.slice(inset, inset + node.value.length) === node.value) {
      return this.place(start + inset + offset)
    }
    if (node.type === Scalar.BLOCK_LITERAL) return this.#placeInBlock(node.value, start, offset)
    return this.place(start)
  }

  /** In a `|` block every line of the value is a line of the file, further to the right. */
  #placeInBlock(value: string, start: number, offset: number): Place {
    const before = value.slice(0, offset).split('\n')
    const header = this.place(start).line
    const line = header + before.length
    const lineStart = this.#lines.lineStarts[line - 1]
    if (lineStart === undefined) return this.place(start)
    const written = this.#text.slice(lineStart).split('\n', 1)[0] ?? ''
    const text = value.split('\n')[before.length - 1] ?? ''
    const indent = written.indexOf(text)
    const column = [...(before.at(-1) ?? '')].length + Math.max(indent, 0) + 1
    return { line, column }
  }
}

/** The node a path leads to, and the offset a message about it should point at. */
export function locate(
  document: Document,
  path: Path,
  at?: 'key',
): { node: Node | null; offset: number } {
  let node: Node | null = document.contents
  let offset = node?.range?.[0] ?? 0
  for (const [index, step] of path.entries()) {
    const parent = resolved(document, node)
    const found = child(document, parent, step)
    if (found === undefined) return { node: null, offset }
    node = found.node
    const isLast = index === path.length - 1
    const pointAtValue = isScalar(node) && isLast && at !== 'key'
    offset = (pointAtValue ? node?.range?.[0] : (found.key ?? node?.range?.[0])) ?? offset
  }
  return { node: resolved(document, node), offset }
}

/** The child of a map or list, with the offset of its key if it has one. */
function child(
  document: Document,
  parent: Node | null,
  step: string | number,
): { node: Node | null; key?: number } | undefined {
  if (isSeq(parent) && typeof step === 'number') {
    return step < parent.items.length ? { node: parent.items[step] as Node | null } : undefined
  }
  if (!isMap(parent)) return undefined
  const pair = parent.items.find(({ key }) => !isMergeKey(key) && keyText(key) === step)
  if (pair === undefined) return mergedChild(document, parent, step)
  const key = (pair.key as Node | null)?.range?.[0]
  return { node: pair.value as Node | null, ...(key === undefined ? {} : { key }) }
}

/** The child that a map has from the maps merged into it. */
function mergedChild(
  document: Document,
  parent: YAMLMap,
  step: string | number,
): ReturnType<typeof child> {
  for (const { key, value } of parent.items) {
    if (!isMergeKey(key)) continue
    const target = resolved(document, value as Node | null)
    for (const map of isSeq(target) ? target.items : [target]) {
      const found = child(document, resolved(document, map as Node | null), step)
      if (found !== undefined) return found
    }
  }
  return undefined
}

function resolved(document: Document, node: Node | null): Node | null {
  return isAlias(node) ? (node.resolve(document) ?? null) : node
}
