import type {
  ConstNode,
  FoldNode,
  IdentNode,
  ListNode,
  MapNode,
  Node,
  SelectNode,
  StructNode,
} from './ast.ts'

/** Where each node of one tree is reported when something is wrong with it: cel-go's place, such as an operator or a bracket. */
export class Places {
  /** By node id. */
  readonly #nodes: number[] = []
  readonly #fields = new Map<StructNode['fields'][number], number>()

  /** A new id, reported at this UTF-16 offset. */
  add(offset: number): number {
    if (this.#nodes.length === 0) this.#nodes.push(0)
    return this.#nodes.push(offset) - 1
  }

  /** Nodes made so far. */
  get count(): number {
    return Math.max(0, this.#nodes.length - 1)
  }

  /** The UTF-16 offset a node is reported at. */
  of(node: Node): number {
    return this.#nodes[node.id] ?? node.pos[0]
  }

  /** Remembers the offset of the colon of a message field. */
  addField(field: StructNode['fields'][number], offset: number): void {
    this.#fields.set(field, offset)
  }

  /** The UTF-16 offset a message field is reported at. */
  ofField(field: StructNode['fields'][number]): number {
    return this.#fields.get(field) ?? field.value.pos[0]
  }
}

/** What macros build with: new nodes that have the range and the place of the macro call. */
export class Builder {
  readonly #places: Places
  readonly #pos: [number, number]
  readonly #place: number

  constructor(places: Places, pos: [number, number], place: number) {
    this.#places = places
    this.#pos = pos
    this.#place = place
  }

  literal(value: ConstNode['value']): ConstNode {
    return { k: 'const', id: this.#id(), pos: this.#pos, value }
  }

  ident(name: string): IdentNode {
    return { k: 'ident', id: this.#id(), pos: this.#pos, name }
  }

  call(fn: string, ...args: Node[]): Node {
    return { k: 'call', id: this.#id(), pos: this.#pos, fn, args }
  }

  member(fn: string, target: Node, ...args: Node[]): Node {
    return { k: 'call', id: this.#id(), pos: this.#pos, fn, target, args }
  }

  /** `has()` of a selection, with the range of the selection. */
  presence({ operand, field, pos }: SelectNode): Node {
    return { k: 'select', id: this.#id(), pos, operand, field, test: true }
  }

  list(...elements: Node[]): ListNode {
    return { k: 'list', id: this.#id(), pos: this.#pos, elements }
  }

  emptyMap(): MapNode {
    return { k: 'map', id: this.#id(), pos: this.#pos, entries: [] }
  }

  fold(parts: Omit<FoldNode, 'k' | 'id' | 'pos'>): FoldNode {
    return { k: 'fold', id: this.#id(), pos: this.#pos, ...parts }
  }

  /** The same expression once more, with ids of its own. */
  copy(node: Node): Node {
    const id = this.#places.add(this.#places.of(node))
    switch (node.k) {
      case 'const':
      case 'ident':
        return { ...node, id }
      case 'select':
        return { ...node, id, operand: this.copy(node.operand) }
      case 'call': {
        const target = node.target === undefined ? {} : { target: this.copy(node.target) }
        return { ...node, id, ...target, args: node.args.map((arg) => this.copy(arg)) }
      }
      case 'list':
        return { ...node, id, elements: node.elements.map((element) => this.copy(element)) }
      case 'map':
        return { ...node, id, entries: node.entries.map((entry) => this.#copyEntry(entry)) }
      case 'struct':
        return { ...node, id, fields: node.fields.map((field) => this.#copyField(field)) }
      case 'fold':
        return {
          ...node,
          id,
          range: this.copy(node.range),
          accuInit: this.copy(node.accuInit),
          condition: this.copy(node.condition),
          step: this.copy(node.step),
          result: this.copy(node.result),
        }
    }
  }

  #copyEntry(entry: MapNode['entries'][number]): MapNode['entries'][number] {
    return { ...entry, key: this.copy(entry.key), value: this.copy(entry.value) }
  }

  #copyField(field: StructNode['fields'][number]): StructNode['fields'][number] {
    const copied = { ...field, value: this.copy(field.value) }
    this.#places.addField(copied, this.#places.ofField(field))
    return copied
  }

  #id(): number {
    return this.#places.add(this.#place)
  }
}

/** The nodes directly under a node, in source order as far as there is one. */
export function childrenOf(node: Node): readonly Node[] {
  switch (node.k) {
    case 'const':
    case 'ident':
      return []
    case 'select':
      return [node.operand]
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args]
    case 'list':
      return node.elements
    case 'map':
      return node.entries.flatMap((entry) => [entry.key, entry.value])
    case 'struct':
      return node.fields.map((field) => field.value)
    case 'fold':
      return [node.range, node.accuInit, node.condition, node.step, node.result]
  }
}

/** Nodes in a tree, counting no further than `limit + 1`. */
export function countNodes(node: Node, limit: number): number {
  let count = 1
  for (const child of childrenOf(node)) {
    if (count > limit) return count
    count += countNodes(child, limit - count)
  }
  return count
}

/** Calls `visit` for every node of the tree, each before what is under it; `ancestors` end with its parent. */
export function walk(
  node: Node,
  visit: (node: Node, ancestors: readonly Node[]) => void,
  ancestors: Node[] = [],
): void {
  visit(node, ancestors)
  if (node.k === 'const' || node.k === 'ident') return
  ancestors.push(node)
  if (node.k === 'select') walk(node.operand, visit, ancestors)
  else if (node.k === 'call') {
    if (node.target !== undefined) walk(node.target, visit, ancestors)
    for (const arg of node.args) walk(arg, visit, ancestors)
  } else for (const child of childrenOf(node)) walk(child, visit, ancestors)
  ancestors.pop()
}
