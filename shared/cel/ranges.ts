import type { Node } from './ast.ts'
import { spellField } from './lexer.ts'
import { childrenOf } from './tree.ts'

/** One selection of a chain. */
export interface ChainStep {
  /** The field, a constant index, or undefined when the index is computed. */
  key: string | undefined
  /** Written `.?key` or `[?key]`. */
  optional: boolean
  /** Written in brackets. */
  index: boolean
  /** UTF-16 offsets `[start, end)` of the chain up to here. */
  pos: [number, number]
}

/** A variable and what is selected from it, as in `object.spec.containers[0].image`. */
export interface Chain {
  root: string
  /** UTF-16 offsets `[start, end)` of the whole chain in the source. */
  pos: [number, number]
  rootPos: [number, number]
  steps: readonly ChainStep[]
  /** The chain is what `has()` asks about. */
  test: boolean
}

/**
 * The chains rooted at a variable, as long as each one is, in source order. Loop variables of that name are not the
 * variable. A chain a macro has copied is there once.
 */
export function chainsOf(ast: Node, root: string): Chain[] {
  const found = new Map<string, Chain>()
  collect(ast, root, found)
  return [...found.values()].sort((a, b) => a.pos[0] - b.pos[0] || b.pos[1] - a.pos[1])
}

function collect(node: Node, root: string, found: Map<string, Chain>): void {
  const chain = chainOf(node)
  if (chain !== undefined) {
    if (chain.root === root) found.set(chain.pos.join(' '), chain)
    for (const index of indicesOf(node)) collect(index, root, found)
    return
  }
  if (node.k !== 'fold') {
    for (const child of childrenOf(node)) collect(child, root, found)
    return
  }
  collect(node.range, root, found)
  collect(node.accuInit, root, found)
  if (node.accuVar === root) return
  if (node.iterVar !== root && node.iterVar2 !== root) {
    collect(node.condition, root, found)
    collect(node.step, root, found)
  }
  collect(node.result, root, found)
}

/** The node as a chain; undefined when something else than a variable is at its start. */
function chainOf(node: Node): Chain | undefined {
  const steps: ChainStep[] = []
  let at = node
  for (let link = linkOf(at); link !== undefined; link = linkOf(at)) {
    steps.unshift({ ...link.step, pos: at.pos })
    at = link.operand
  }
  if (at.k !== 'ident') return undefined
  const test = node.k === 'select' && node.test === true
  return { root: at.name, pos: node.pos, rootPos: at.pos, steps, test }
}

function linkOf(node: Node): { operand: Node; step: Omit<ChainStep, 'pos'> } | undefined {
  if (node.k === 'select') {
    return { operand: node.operand, step: { key: node.field, optional: false, index: false } }
  }
  if (node.k !== 'call' || node.target !== undefined) return undefined
  const [operand, key] = node.args
  if (operand === undefined || key === undefined) return undefined
  const optional = node.fn !== '_[_]'
  const index = node.fn !== '_?._'
  if (node.fn !== '_[_]' && node.fn !== '_[?_]' && node.fn !== '_?._') return undefined
  return { operand, step: { key: keyOf(key), optional, index } }
}

function keyOf(node: Node): string | undefined {
  if (node.k !== 'const') return undefined
  if ('string' in node.value) return node.value.string
  return 'int' in node.value ? node.value.int : undefined
}

/** The computed parts of a chain, where other chains may be. */
function indicesOf(node: Node): Node[] {
  const indices: Node[] = []
  let at = node
  for (let link = linkOf(at); link !== undefined; link = linkOf(at)) {
    const key = at.k === 'call' ? at.args[1] : undefined
    if (key !== undefined && key.k !== 'const') indices.push(key)
    at = link.operand
  }
  return indices
}

/**
 * The source with every chain that starts with `from` (a variable and its fields) starting with `to` instead. Added fields
 * are selected as the last replaced one is: after `.?` everything is optional. What is not such a chain is left as it is,
 * comments and white space included; so is a chain whose next field `keep` says so of.
 */
export function rewritePrefix(
  source: string,
  ast: Node,
  from: readonly [string, ...string[]],
  to: readonly [string, ...string[]],
  keep: (next: string | undefined) => boolean = () => false,
): string {
  const [root, ...fields] = from
  let text = source
  for (const chain of chainsOf(ast, root).reverse()) {
    const prefix = chain.steps.slice(0, fields.length)
    if (prefix.length < fields.length || prefix.some((step, i) => step.key !== fields[i])) continue
    if (keep(chain.steps[fields.length]?.key)) continue
    const [start, end] = prefix.at(-1)?.pos ?? chain.rootPos
    text = text.slice(0, start) + selection(to, prefix) + text.slice(end)
  }
  return text
}

function selection(
  [root, ...fields]: readonly [string, ...string[]],
  like: readonly ChainStep[],
): string {
  const optionalFrom = like.findIndex((step) => step.optional)
  const optional = (i: number) => optionalFrom >= 0 && i >= optionalFrom
  return root + fields.map((field, i) => step(field, optional(i))).join('')
}

function step(field: string, optional: boolean): string {
  const name = spellField(field)
  if (name !== undefined) return optional ? `.?${name}` : `.${name}`
  const key = JSON.stringify(field)
  return optional ? `[?${key}]` : `[${key}]`
}
