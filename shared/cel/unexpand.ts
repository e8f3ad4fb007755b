import type { CallNode, FoldNode, Node } from './ast.ts'
import { ACCUMULATOR, SORT_INPUT, UNUSED } from './macros.ts'

/** A macro call as it is written. */
export interface MacroCall {
  target: Node | string
  name: string
  /** Nodes, and names of variables. */
  args: readonly (Node | string)[]
}

/** The macro call a fold was expanded from; undefined when no macro makes such a fold. */
export function macroOf(fold: FoldNode): MacroCall | undefined {
  if (fold.iterVar === UNUSED) return sortCall(fold) ?? bindCall(fold)
  if (fold.accuVar !== ACCUMULATOR) return undefined
  const vars = fold.iterVar2 === undefined ? [fold.iterVar] : [fold.iterVar, fold.iterVar2]
  const call = quantifier(fold) ?? collector(fold, vars)
  if (call === undefined) return undefined
  return { target: fold.range, name: call.name, args: [...vars, ...call.args] }
}

/** The `optMap` or `optFlatMap` call a conditional was expanded from. */
export function optionalMacroOf(node: CallNode): MacroCall | undefined {
  const [condition, mapped, none] = node.args
  if (!isCall(condition, 'hasValue') || condition.target === undefined) return undefined
  if (!isCall(none, 'optional.none') || mapped === undefined) return undefined
  const inner = isCall(mapped, 'optional.of') ? mapped.args[0] : mapped
  if (inner?.k !== 'fold' || inner.iterVar !== UNUSED) return undefined
  const value = inner.accuInit
  if (!isCall(value, 'value') || !sameTree(value.target, condition.target)) return undefined
  const name = inner === mapped ? 'optFlatMap' : 'optMap'
  return { target: condition.target, name, args: [inner.accuVar, inner.result] }
}

type Recognised = { name: string; args: readonly Node[] } | undefined

function quantifier({ accuInit, step, result }: FoldNode): Recognised {
  if (isBool(accuInit, true) && isCall(step, '_&&_')) return named('all', step.args[1])
  if (isBool(accuInit, false) && isCall(step, '_||_')) return named('exists', step.args[1])
  if (isCall(result, '_==_') && isCall(step, '_?_:_')) return named('exists_one', step.args[0])
  return undefined
}

function collector({ step }: FoldNode, vars: readonly string[]): Recognised {
  const filtered = isCall(step, '_?_:_')
  const added = filtered ? step.args[1] : step
  const filter = filtered && step.args[0] !== undefined ? [step.args[0]] : []
  if (isCall(added, '_+_')) return listCollector(added, filter, vars)
  if (!isCall(added, 'cel.@mapInsert')) return undefined
  const [, first, second] = added.args
  return second === undefined
    ? named('transformMapEntry', ...filter, first)
    : named('transformMap', ...filter, second)
}

function listCollector(added: CallNode, filter: Node[], vars: readonly string[]): Recognised {
  const list = added.args[1]
  const element = list?.k === 'list' ? list.elements[0] : undefined
  if (element === undefined) return undefined
  if (vars.length === 2) return named('transformList', ...filter, element)
  const same = element.k === 'ident' && element.name === vars[0]
  return filter.length === 1 && same ? named('filter', ...filter) : named('map', ...filter, element)
}

function named(name: string, ...args: readonly (Node | undefined)[]): Recognised {
  const present = args.filter((arg) => arg !== undefined)
  return present.length === args.length ? { name, args: present } : undefined
}

function bindCall(fold: FoldNode): MacroCall {
  return { target: 'cel', name: 'bind', args: [fold.accuVar, fold.accuInit, fold.result] }
}

function sortCall({ accuVar, accuInit, result }: FoldNode): MacroCall | undefined {
  if (accuVar !== SORT_INPUT || !isCall(result, '@sortByAssociatedKeys')) return undefined
  const keys = result.args[0]
  const map = keys?.k === 'fold' ? macroOf(keys) : undefined
  return map === undefined ? undefined : { target: accuInit, name: 'sortBy', args: map.args }
}

function isCall<F extends string>(node: Node | undefined, fn: F): node is CallNode & { fn: F } {
  return node?.k === 'call' && node.fn === fn
}

function isBool(node: Node, value: boolean): boolean {
  return node.k === 'const' && 'bool' in node.value && node.value.bool === value
}

/** True when two trees differ in ids and ranges only. */
export function sameTree(a: Node | undefined, b: Node | undefined): boolean {
  return shapeOf(a) === shapeOf(b)
}

/** A tree as text without ids, ranges and overloads. */
export function shapeOf(node: Node | undefined): string {
  return JSON.stringify(node, (key, value) =>
    key === 'id' || key === 'pos' || key === 'overloads' ? undefined : value,
  )
}
