import type { CallNode, FoldNode, Node } from '../cel/ast.ts'
import { macroShape } from '../cel/macro-shape.ts'
import {
  both,
  CARRIED,
  depending,
  elementOf,
  FIXED,
  opposite,
  type Sense,
  type Value,
  wholeSense,
} from './carried.ts'
import { isBool, isLeast, isNothing } from './literals.ts'

/** Names of comprehension variables in scope. */
type Scope = ReadonlyMap<string, Value>

/** What an expression of a policy reads beside the request. */
export interface ReadingOptions {
  /** What a variable of the policy is, or undefined when it has none of that name. */
  variable: (name: string) => Value | undefined
  /** All of them. */
  variables: () => Value[]
  /** Told of everything that is read and no ImageReview carries. */
  missing: (what: string) => void
}

/**
 * Looks through a checked expression without evaluating it: what it reads that no ImageReview carries, and how its value depends on which
 * lists images are in. In doubt a part of the request counts as read as a whole, and a value as one that may change in any way.
 */
export class Reading {
  readonly #options: ReadingOptions

  constructor(options: ReadingOptions) {
    this.#options = options
  }

  value(node: Node, scope: Scope = new Map()): Value {
    switch (node.k) {
      case 'const':
        return FIXED
      case 'ident':
        return scope.get(node.name) ?? this.#root(node.name.replace(/^\./, ''))
      case 'select':
        return this.#selected(node.operand, node.field, scope, node.test === true)
      case 'call':
        return this.#call(node, scope)
      case 'list':
        return node.elements
          .map((element) => this.value(element, scope))
          .reduce((list, each) => this.#joined(list, { sense: 'none', element: each }), FIXED)
      case 'map':
        return this.#opaque(
          node.entries.flatMap(({ key, value }) => [key, value]),
          scope,
        )
      case 'struct':
        return this.#opaque(
          node.fields.map(({ value }) => value),
          scope,
        )
      case 'fold':
        return this.#fold(node, scope)
    }
  }

  #root(name: string): Value {
    if (name === 'oldObject') return this.#missing(name)
    if (name !== 'variables') return CARRIED.get(name) ?? FIXED
    return this.#used(this.#options.variables())
  }

  #missing(what: string): Value {
    this.#options.missing(what)
    return FIXED
  }

  /** A value that goes on as a whole, into nobody knows what. */
  #escapes({ part, element }: Value): void {
    if (part !== undefined) this.#missing(`${part.name} as a whole`)
    if (element !== undefined) this.#escapes(element)
  }

  #used(values: readonly Value[]): Value {
    for (const value of values) this.#escapes(value)
    return { sense: values.every((value) => wholeSense(value) === 'none') ? 'none' : 'any' }
  }

  #opaque(nodes: readonly Node[], scope: Scope): Value {
    return this.#used(nodes.map((node) => this.value(node, scope)))
  }

  /** The sense of a value that is no list and no part. */
  #sense(node: Node | undefined, scope: Scope): Sense {
    if (node === undefined) return 'any'
    const value = this.value(node, scope)
    this.#escapes(value)
    return wholeSense(value)
  }

  /** One value or the other. */
  #joined(first: Value, second: Value): Value {
    const sense = both(first.sense, second.sense)
    const [a, b] = [first.part, second.part]
    if (a !== undefined && b !== undefined && a !== b) return this.#used([first, second])
    const part = a ?? b
    const [one, other] = [first.element, second.element]
    const element = one && other ? this.#joined(one, other) : (one ?? other)
    return { sense, ...(part && { part }), ...(element && { element }) }
  }

  #selected(operand: Node, field: string, scope: Scope, isTest = false): Value {
    const isVariable = operand.k === 'ident' && operand.name === 'variables'
    if (isVariable && !scope.has('variables')) {
      const variable = this.#options.variable(field)
      if (variable !== undefined) return isTest ? FIXED : variable
    }
    const value = this.value(operand, scope)
    return this.#field(value, field, isTest)
  }

  #field(of: Value, field: string, isTest: boolean): Value {
    if (of.part === undefined) {
      return isTest ? { sense: of.sense } : depending(elementOf(of), of.sense)
    }
    const known = of.part.field(field)
    if (known !== undefined && !(isTest && isOpen(known.value))) {
      return depending(isTest ? { sense: known.presence } : known.value, of.sense)
    }
    return this.#missing(of.part.name + selector(field))
  }

  #call(node: CallNode, scope: Scope): Value {
    const { fn, target } = node
    const args = target === undefined ? node.args : [target, ...node.args]
    const [first, second, third] = args
    const sense = (arg: Node | undefined) => this.#sense(arg, scope)
    switch (fn) {
      case '_&&_':
      case '_||_':
        return { sense: both(sense(first), sense(second)) }
      case '@not_strictly_false':
        return { sense: sense(first) }
      case '!_':
        return { sense: opposite(sense(first)) }
      case '_>_':
      case '_>=_':
      case '_-_':
        return { sense: both(sense(first), opposite(sense(second))) }
      case '_<_':
      case '_<=_':
        return { sense: both(opposite(sense(first)), sense(second)) }
      case '_==_':
        return { sense: opposite(this.#differs(args, scope)) }
      case '_!=_':
        return { sense: this.#differs(args, scope) }
      case '_?_:_':
        return this.#conditional(first, second, third, scope)
      case '_[_]':
      case '_[?_]':
      case '_?._':
        return this.#indexed(first, second, scope)
      case '@in':
        return this.#contained(first, second, scope)
      default:
        return this.#listCall(fn, args, scope)
    }
  }

  /** Calls that leave lists what they are; of any other nothing is known. */
  #listCall(fn: string, args: readonly Node[], scope: Scope): Value {
    const [first, second] = args
    if (first === undefined) return FIXED
    const isAlone = second === undefined
    if (fn === '_+_' || fn === 'orValue' || fn === 'or') {
      return second === undefined
        ? this.#opaque(args, scope)
        : this.#joined(this.value(first, scope), this.value(second, scope))
    }
    if (isAlone && SAME.has(fn)) return this.value(first, scope)
    if (isAlone && (fn === 'size' || fn === 'hasValue')) {
      const { part, sense } = this.value(first, scope)
      if (part !== undefined) return this.#missing(`${part.name} as a whole`)
      return { sense, isCount: true }
    }
    if (isAlone && fn === 'flatten') {
      const list = this.value(first, scope)
      return depending(elementOf(list), list.sense)
    }
    return this.#opaque(args, scope)
  }

  /** Of `first != second`. */
  #differs([first, second]: readonly Node[], scope: Scope): Sense {
    if (first === undefined || second === undefined) return 'any'
    if (isNothing(first)) return this.#isThere(second, first, scope)
    if (isNothing(second)) return this.#isThere(first, second, scope)
    return this.#opaque([first, second], scope).sense
  }

  /** Of `node != nothing`: null for what is always there, no items, or a length of zero. */
  #isThere(node: Node, nothing: Node, scope: Scope): Sense {
    const value = this.value(node, scope)
    if (nothing.k === 'list')
      return value.part === undefined ? value.sense : this.#used([value]).sense
    if (nothing.k === 'const' && 'null' in nothing.value) {
      return value.part?.name === 'object' ? 'none' : this.#used([value]).sense
    }
    return value.isCount ? value.sense : this.#used([value]).sense
  }

  #conditional(
    condition: Node | undefined,
    then: Node | undefined,
    otherwise: Node | undefined,
    scope: Scope,
  ): Value {
    if (condition === undefined || then === undefined || otherwise === undefined) return ANY
    const deciding = this.#sense(condition, scope)
    const [yes, no] = [this.value(then, scope), this.value(otherwise, scope)]
    const joined = this.#joined(yes, no)
    if (deciding === 'none') return joined
    // `c ? a : false` is `c && a`, `c ? a : true` is `!c || a`, and the other way round.
    if (isLeast(otherwise) || isBool(then, true)) return depending(joined, deciding)
    if (isLeast(then) || isBool(otherwise, true)) return depending(joined, opposite(deciding))
    return depending(joined, 'any')
  }

  #indexed(operand: Node | undefined, key: Node | undefined, scope: Scope): Value {
    if (operand === undefined || key === undefined) return ANY
    if (key.k === 'const' && 'string' in key.value) {
      return this.#selected(operand, key.value.string, scope)
    }
    const value = this.value(operand, scope)
    if (value.part !== undefined) return this.#used([value])
    const chosen = this.#sense(key, scope)
    const isFixed = chosen === 'none' && value.sense === 'none'
    return isFixed ? elementOf(value) : depending(elementOf(value), 'any')
  }

  #contained(item: Node | undefined, list: Node | undefined, scope: Scope): Value {
    if (item === undefined || list === undefined) return ANY
    const value = this.value(list, scope)
    if (value.part !== undefined) {
      return item.k === 'const' && 'string' in item.value
        ? this.#field(value, item.value.string, true)
        : this.#used([value])
    }
    const isFixed = this.#sense(item, scope) === 'none'
    if (value.isMap) return { sense: isFixed ? value.sense : 'any' }
    this.#escapes(value)
    return { sense: isFixed && wholeSense(elementOf(value)) === 'none' ? value.sense : 'any' }
  }

  #fold(node: FoldNode, scope: Scope): Value {
    const { range, accuVar, accuInit, result } = node
    // Over nothing, as in `cel.bind`, the accumulator is just a name.
    if (range.k === 'list' && range.elements.length === 0) {
      return this.value(result, new Map(scope).set(accuVar, this.value(accuInit, scope)))
    }
    const list = this.value(range, scope)
    if (list.part !== undefined) this.#escapes(list)
    const inner = this.#loopScope(node, list, scope)
    const shape = macroShape(node)
    switch (shape?.kind) {
      case 'all':
        return { sense: both(opposite(list.sense), this.#sense(shape.predicate, inner)) }
      case 'exists':
        return { sense: both(list.sense, this.#sense(shape.predicate, inner)) }
      case 'collect': {
        const { predicate } = shape
        const kept = predicate === undefined ? 'none' : this.#sense(predicate, inner)
        return { sense: both(list.sense, kept), element: this.value(shape.element, inner) }
      }
      default: {
        const { condition, step } = node
        const { sense } = this.#opaque([accuInit, condition, step, result], inner)
        return { sense: both(sense, list.sense) === 'none' ? 'none' : 'any' }
      }
    }
  }

  /** Of a map, or with two variables, the first is a key or an index, which says nothing of what is there. */
  #loopScope({ iterVar, iterVar2, accuVar }: FoldNode, list: Value, scope: Scope): Scope {
    const inner = new Map(scope).set(accuVar, FIXED)
    const element = elementOf(list)
    if (iterVar2 !== undefined) {
      const index: Value = { sense: list.isMap || list.sense === 'none' ? 'none' : 'any' }
      return inner.set(iterVar, index).set(iterVar2, element)
    }
    return inner.set(iterVar, list.isMap ? FIXED : element)
  }
}

const ANY: Value = { sense: 'any' }

/** Calls that give a list with the same items, or what is in an optional. */
const SAME: ReadonlySet<string> = new Set([
  'distinct',
  'sort',
  'reverse',
  'value',
  'optional.of',
  'dyn',
])

/** Whether it is there says whether anything is that no review carries. */
function isOpen({ part }: Value): boolean {
  return part?.name === 'object.metadata.annotations'
}

function selector(field: string): string {
  return /^[A-Za-z_]\w*$/.test(field) ? `.${field}` : `[${JSON.stringify(field)}]`
}
