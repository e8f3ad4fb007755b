import type { FoldNode, Node } from './ast.ts'

type Call = Extract<Node, { k: 'call' }>

/** What a standard macro does, recognised from its fold: the parts that are the user's, and the calls the macro made. */
export type MacroShape =
  | { kind: 'all'; predicate: Node }
  | { kind: 'exists'; predicate: Node }
  | { kind: 'collect'; predicate: Node | undefined; element: Node; add: Call }
  | { kind: 'insert'; predicate: Node | undefined; entry: readonly Node[]; add: Call }

/**
 * The macro a fold came from, when its loop can be run without the accumulator's own steps. Only folds whose accumulator no
 * expression can name are taken: then nothing but the macro's own steps reads it.
 */
export function macroShape(node: FoldNode): MacroShape | undefined {
  if (!node.accuVar.startsWith('@') || !isAccu(node.result, node)) return undefined
  return quantifierShape(node) ?? (isBool(node.condition, true) ? gatherShape(node) : undefined)
}

function quantifierShape(node: FoldNode): MacroShape | undefined {
  const { accuInit, condition, step } = node
  if (!isCall(condition, '@not_strictly_false')) return undefined
  const [tested] = condition.args
  if (isBool(accuInit, true) && isAccu(tested, node)) {
    const predicate = operands(step, '_&&_', node)?.[0]
    return predicate && { kind: 'all', predicate }
  }
  const negated = isCall(tested, '!_') && isAccu(tested.args[0], node)
  const predicate = negated && isBool(accuInit, false) && operands(step, '_||_', node)?.[0]
  return predicate ? { kind: 'exists', predicate } : undefined
}

/** `map`, `filter`, `transformList`, `transformMap` and their filtered forms. */
function gatherShape(node: FoldNode): MacroShape | undefined {
  const { step } = node
  if (!isCall(step, '_?_:_')) return addition(step, node, undefined)
  const [predicate, then, otherwise] = step.args
  return isAccu(otherwise, node) ? addition(then, node, predicate) : undefined
}

function addition(
  step: Node | undefined,
  node: FoldNode,
  predicate: Node | undefined,
): MacroShape | undefined {
  if (node.accuInit.k === 'map' && isCall(step, 'cel.@mapInsert')) {
    const entry = operands(step, step.fn, node)
    const empty = node.accuInit.entries.length === 0
    return empty && entry !== undefined
      ? { kind: 'insert', predicate, entry, add: step }
      : undefined
  }
  if (node.accuInit.k !== 'list' || node.accuInit.elements.length > 0) return undefined
  const list = operands(step, '_+_', node)?.[0]
  if (list?.k !== 'list' || list.optional !== undefined || !isCall(step, '_+_')) return undefined
  const [element, more] = list.elements
  if (element === undefined || more !== undefined) return undefined
  return { kind: 'collect', predicate, element, add: step }
}

/** The arguments of a call after the first, which must be the accumulator. */
function operands(step: Node | undefined, fn: string, node: FoldNode): Node[] | undefined {
  if (!isCall(step, fn) || !isAccu(step.args[0], node)) return undefined
  return step.args.slice(1)
}

function isCall(node: Node | undefined, fn: string): node is Call {
  return node?.k === 'call' && node.fn === fn && node.target === undefined
}

function isAccu(node: Node | undefined, fold: FoldNode): boolean {
  return node?.k === 'ident' && node.name === fold.accuVar
}

function isBool(node: Node, value: boolean): boolean {
  return node.k === 'const' && 'bool' in node.value && node.value.bool === value
}
