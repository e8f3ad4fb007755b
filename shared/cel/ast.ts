/**
 * The syntax tree of an expression, in cel-go's shape: operators are calls by their internal names (`_&&_`, `_==_`, `_[_]`,
 * `_?._`, `!_`, `@in`, …), macros are expanded to folds. Plain JSON: the tree that was checked is the tree that is shipped.
 * `pos` is `[start, end)` in UTF-16 offsets of the source; nodes a macro made have the range of the macro call, apart from a
 * presence test: it has the range of the selection it asks about.
 */
export type Node =
  | ConstNode
  | IdentNode
  | SelectNode
  | CallNode
  | ListNode
  | MapNode
  | StructNode
  | FoldNode

interface NodeBase {
  /** Unique within one tree, from 1. */
  id: number
  pos: [number, number]
}

/** A literal. 64-bit numbers travel as decimal text, bytes as base64. */
export interface ConstNode extends NodeBase {
  k: 'const'
  value:
    | { int: string }
    | { uint: string }
    | { double: string }
    | { string: string }
    | { bytes: string }
    | { bool: boolean }
    | { null: true }
}

/**
 * A name. After checking it is the resolved, fully qualified name without a leading dot, unless a comprehension variable of
 * the same name is in scope: then the dot says that the declared one is meant.
 */
export interface IdentNode extends NodeBase {
  k: 'ident'
  name: string
}

/** `operand.field`, or `has(operand.field)` when `test` is set. Optional selection is a call of `_?._`. */
export interface SelectNode extends NodeBase {
  k: 'select'
  operand: Node
  field: string
  test?: true
}

/** A call. After checking `overloads` holds every matching overload id: one means it is resolved statically. */
export interface CallNode extends NodeBase {
  k: 'call'
  fn: string
  target?: Node
  args: Node[]
  overloads?: string[]
}

/** `[a, ?b]`; `optional` holds the indices of the elements written with `?`. */
export interface ListNode extends NodeBase {
  k: 'list'
  elements: Node[]
  optional?: number[]
}

export interface MapNode extends NodeBase {
  k: 'map'
  entries: { key: Node; value: Node; optional?: true }[]
}

/** `Type{field: value}`. */
export interface StructNode extends NodeBase {
  k: 'struct'
  name: string
  fields: { name: string; value: Node; optional?: true }[]
}

/** A comprehension: what every macro becomes. */
export interface FoldNode extends NodeBase {
  k: 'fold'
  range: Node
  iterVar: string
  iterVar2?: string
  accuVar: string
  accuInit: Node
  condition: Node
  step: Node
  result: Node
}
