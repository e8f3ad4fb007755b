import type { CallNode, FoldNode, ListNode, Node } from '../cel/ast.ts'
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
import { isBool, isEmpty, isLeast, isNothing, isSmall } from './literals.ts'
import { type Access, type ReadingOptions, ReadValues, selector } from './read-values.ts'
import type { Trace } from './trace.ts'

/** Names of comprehension variables in scope. */
type Scope = ReadonlyMap<string, Value>

/**
 * Looks through a checked expression without evaluating it: what it reads that no ImageReview carries, and how its value depends on which
 * lists images are in. In doubt a part of the request counts as read as a whole, and a value as one that may change in any way.
 */
export class Reading {
  readonly #options: ReadingOptions
  readonly #values: ReadValues

  constructor(options: ReadingOptions) {
    this.#options = options
    this.#values = new ReadValues(options)
  }

  /** What was gone through so far. */
  get trace(): Trace {
    return this.#values.trace
  }

  value(node: Node, scope: Scope = new Map()): Value {
    switch (node.k) {
      case 'const':
        return FIXED
      case 'ident':
        return this.#values.named(scope.get(node.name) ?? this.#root(node.name.replace(/^\./, '')))
      case 'select':
        return this.#selected(node.operand, node.field, scope, node.test ? 'test' : 'get')
      case 'call':
        return this.#call(node, scope)
      case 'list':
        return this.#listed(node, scope)
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
    if (name === 'oldObject') return this.#values.missing(name)
    if (name === 'exceptions') return { sense: this.#options.exceptions }
    if (name !== 'variables') return CARRIED.get(name) ?? FIXED
    return this.#values.used(this.#options.variables())
  }

  /** A list of the elements; whether one written with `?` is there says how long the list is. */
  #listed({ elements, optional = [] }: ListNode, scope: Scope): Value {
    let list = FIXED
    for (const [index, element] of elements.entries()) {
      const value = this.value(element, scope)
      const isOptional = optional.includes(index)
      if (isOptional && value.part !== undefined)
        this.#values.missing(`to know whether ${value.part.name} is there`)
      const sense = isOptional ? value.sense : 'none'
      list = this.#values.joined(list, { sense: both(sense, errorOf(value)), element: value })
    }
    return list
  }

  #opaque(nodes: readonly Node[], scope: Scope): Value {
    return this.#values.used(nodes.map((node) => this.value(node, scope)))
  }

  /** The sense of a value that is no list and no part. */
  #sense(node: Node | undefined, scope: Scope): Sense {
    if (node === undefined) return 'any'
    const value = this.value(node, scope)
    this.#values.escapes(value)
    return wholeSense(value)
  }

  #selected(operand: Node, field: string, scope: Scope, how: Access): Value {
    const isVariable = operand.k === 'ident' && operand.name === 'variables'
    if (isVariable && !scope.has('variables')) {
      const variable = this.#options.variable(field)
      if (variable !== undefined) return how === 'test' ? FIXED : this.#values.named(variable)
    }
    return this.#values.field(this.value(operand, scope), field, how)
  }

  #call(node: CallNode, scope: Scope): Value {
    const { fn, target } = node
    const args = target === undefined ? node.args : [target, ...node.args]
    const [first, second, third] = args
    const sense = (arg: Node | undefined) => this.#sense(arg, scope)
    switch (fn) {
      case '_&&_':
      case '_||_':
        return this.#connected(fn === '_&&_', first, second, scope)
      case '@not_strictly_false':
        return { sense: sense(first) }
      case '!_':
        return { sense: opposite(sense(first)) }
      case '_>_':
      case '_>=_':
        return this.#values.compared(both(sense(first), opposite(sense(second))))
      case '_<_':
      case '_<=_':
        return this.#values.compared(both(opposite(sense(first)), sense(second)))
      case '_+_':
      case '_-_':
        return this.#added(fn === '_-_', args, scope)
      case '_==_':
        return { sense: opposite(this.#differs(args, scope)) }
      case '_!=_':
        return { sense: this.#differs(args, scope) }
      case '_?_:_':
        return this.#conditional(first, second, third, scope)
      case '_[_]':
      case '_[?_]':
      case '_?._':
        return this.#indexed(first, second, scope, fn === '_[_]' ? 'get' : 'optional')
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
    if (second !== undefined && (fn === 'orValue' || fn === 'or')) {
      return this.#otherwise(first, second, scope)
    }
    if (isAlone && SAME.has(fn)) return this.value(first, scope)
    if (isAlone && (fn === 'size' || fn === 'hasValue')) {
      const { part, sense } = this.value(first, scope)
      if (part !== undefined) return this.#values.missing(`${part.name} as a whole`)
      return { sense, number: 'count' }
    }
    if (isAlone && fn === 'flatten') {
      const list = this.value(first, scope)
      return depending(elementOf(list), list.sense)
    }
    return this.#opaque(args, scope)
  }

  /** Where the first is false, or true, nobody minds an error of the second, and the other way round. */
  #connected(
    isAnd: boolean,
    first: Node | undefined,
    second: Node | undefined,
    scope: Scope,
  ): Value {
    if (first === undefined || second === undefined) return ANY
    const key = this.#asksForKey(isAnd, first, second, scope)
    if (key !== undefined) return key
    const [left, a] = this.#values.apart(() => this.#sense(first, scope))
    const [right, b] = this.#values.apart(() => this.#sense(second, scope))
    a.forgive(this.#guards(second, isAnd, scope))
    b.forgive(this.#guards(first, isAnd, scope))
    this.#values.trace.add(a)
    this.#values.trace.add(b)
    const sense = both(left, right)
    const isSplit = sense === (isAnd ? 'down' : 'up')
    if (left !== 'none' && right !== 'none' && !isSplit)
      this.#values.trace.isJoint ||= a.isAcross(b)
    return { sense }
  }

  /**
   * `has(annotations) && 'key' in annotations`, or that neither is so: whether there are any others is no matter then. Undefined for anything else.
   */
  #asksForKey(isAnd: boolean, first: Node, second: Node, scope: Scope): Value | undefined {
    const [test, key] = isAnd ? [first, second] : [negated(first), negated(second)]
    if (test?.k !== 'select' || test.test !== true) return undefined
    if (key?.k !== 'call' || key.fn !== '@in') return undefined
    const [{ part }] = this.#values.apart(() => this.value(test.operand, scope))
    const tested = part?.field(test.field)?.value
    if (tested?.from === undefined) return undefined
    const [asked, trace] = this.#values.apart(() => this.#sense(key, scope))
    if (!trace.absent.delete(tested.from)) return undefined
    this.#values.trace.add(trace)
    return { sense: isAnd ? asked : opposite(asked) }
  }

  /** Names of fields that are there if the node is true, or if it is false: `when`. */
  #guards(node: Node | undefined, when: boolean, scope: Scope): string[] {
    if (node?.k === 'select' && node.test && when) {
      const [{ part }] = this.#values.apart(() => this.value(node.operand, scope))
      const isOptional = part?.field(node.field)?.isOptional === true
      return part !== undefined && isOptional ? [part.name + selector(node.field)] : []
    }
    if (node?.k !== 'call') return []
    if (node.fn === '!_') return this.#guards(node.args[0], !when, scope)
    if (node.fn !== (when ? '_&&_' : '_||_')) return []
    return node.args.flatMap((arg) => this.#guards(arg, when, scope))
  }

  /** Lists one behind the other, or numbers: of these only small ones, since more of others could be an error, or none any more. */
  #added(isMinus: boolean, [first, second]: readonly Node[], scope: Scope): Value {
    if (first === undefined || second === undefined) return ANY
    const [a, b] = [this.value(first, scope), this.value(second, scope)]
    const [isFirst, isSecond] = [a.number !== undefined, b.number !== undefined]
    if (isFirst || isSecond) {
      if (!(isFirst || isSmall(first)) || !(isSecond || isSmall(second)))
        return this.#values.used([a, b])
      return { sense: both(a.sense, isMinus ? opposite(b.sense) : b.sense), number: 'small' }
    }
    return isMinus ? this.#values.used([a, b]) : this.#values.joined(a, b)
  }

  /** The first, or the second where that is not there: what then stands for it must not be more than nothing. */
  #otherwise(first: Node, second: Node, scope: Scope): Value {
    const [a, b] = [this.value(first, scope), this.value(second, scope)]
    if (isEmpty(second)) return this.#values.joined(a, b)
    const isSure = wholeSense(a) === 'none' && a.part === undefined
    return isSure ? this.#values.joined(a, b) : this.#values.used([a, b])
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
      return value.part === undefined ? value.sense : this.#values.used([value]).sense
    if (nothing.k === 'const' && 'null' in nothing.value) {
      return value.part?.name === 'object' ? 'none' : this.#values.used([value]).sense
    }
    return value.number === 'count' ? value.sense : this.#values.used([value]).sense
  }

  #conditional(
    condition: Node | undefined,
    then: Node | undefined,
    otherwise: Node | undefined,
    scope: Scope,
  ): Value {
    if (condition === undefined || then === undefined || otherwise === undefined) return ANY
    const [deciding, asked] = this.#values.apart(() => this.#sense(condition, scope))
    const [yes, ifSo] = this.#values.apart(() => this.value(then, scope))
    const [no, ifNot] = this.#values.apart(() => this.value(otherwise, scope))
    ifSo.forgive(this.#guards(condition, true, scope))
    ifNot.forgive(this.#guards(condition, false, scope))
    for (const each of [ifSo, ifNot]) {
      if (deciding !== 'none') this.#values.trace.isJoint ||= asked.isAcross(each)
      this.#values.trace.add(each)
    }
    this.#values.trace.add(asked)
    const joined = this.#values.joined(yes, no)
    if (deciding === 'none') return joined
    // `c ? a : false` is `c && a`, `c ? a : true` is `!c || a`, and the other way round.
    if (isLeast(otherwise) || isBool(then, true)) return depending(joined, deciding)
    if (isLeast(then) || isBool(otherwise, true)) return depending(joined, opposite(deciding))
    return depending(joined, 'any')
  }

  #indexed(operand: Node | undefined, key: Node | undefined, scope: Scope, how: Access): Value {
    if (operand === undefined || key === undefined) return ANY
    if (key.k === 'const' && 'string' in key.value) {
      return this.#selected(operand, key.value.string, scope, how)
    }
    const value = this.value(operand, scope)
    if (value.part !== undefined) return this.#values.used([value])
    if (value.isImages) this.#values.trace.read('either')
    const chosen = this.#sense(key, scope)
    const isFixed = chosen === 'none' && value.sense === 'none'
    return isFixed ? elementOf(value) : depending(elementOf(value), 'any')
  }

  #contained(item: Node | undefined, list: Node | undefined, scope: Scope): Value {
    if (item === undefined || list === undefined) return ANY
    const value = this.value(list, scope)
    if (value.part !== undefined) {
      return item.k === 'const' && 'string' in item.value
        ? this.#values.field(value, item.value.string, 'test')
        : this.#values.used([value])
    }
    const isFixed = this.#sense(item, scope) === 'none'
    if (value.isMap) return { sense: isFixed ? value.sense : 'any' }
    this.#values.escapes(value)
    return { sense: isFixed && wholeSense(elementOf(value)) === 'none' ? value.sense : 'any' }
  }

  #fold(node: FoldNode, scope: Scope): Value {
    const { range, accuVar, accuInit, result } = node
    // Over nothing, as in `cel.bind`, the accumulator is just a name.
    if (range.k === 'list' && range.elements.length === 0) {
      const [bound, trace] = this.#values.apart(() => this.value(accuInit, scope))
      return this.value(result, new Map(scope).set(accuVar, { ...bound, trace }))
    }
    const [list, ranged] = this.#values.apart(() => this.value(range, scope))
    if (list.part !== undefined) this.#values.escapes(list)
    if (list.isImages && node.iterVar2 !== undefined) ranged.read('either')
    const [value, turned] = this.#values.apart(() =>
      this.#loop(node, list, this.#loopScope(node, list, scope)),
    )
    this.#values.trace.isJoint ||= ranged.isAcross(turned)
    this.#values.trace.add(ranged)
    this.#values.trace.add(turned)
    // Of all turns together, unless each of them is asked on its own.
    if (value.element !== undefined && this.#values.trace.groups.has('either'))
      this.#values.trace.readAll()
    return value
  }

  #loop(node: FoldNode, list: Value, inner: Scope): Value {
    const { accuInit, result } = node
    const shape = macroShape(node)
    switch (shape?.kind) {
      case 'all':
        return { sense: both(opposite(list.sense), this.#sense(shape.predicate, inner)) }
      case 'exists':
        return { sense: both(list.sense, this.#sense(shape.predicate, inner)) }
      case 'collect': {
        const { predicate } = shape
        const kept = predicate === undefined ? 'none' : this.#sense(predicate, inner)
        const element = this.value(shape.element, inner)
        return { sense: both(both(list.sense, kept), errorOf(element)), element }
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

/**
 * What an item does to the list it is put into: one that is an error makes an error of the list, also where nobody looks at the item, and of what
 * changes with images nobody knows for which it is one. Lists of images and lengths are none.
 */
function errorOf({ sense, element, number }: Value): Sense {
  const isSound = element !== undefined ? sense !== 'any' : sense === 'none' || number !== undefined
  return isSound ? 'none' : 'any'
}

function negated(node: Node): Node | undefined {
  return node.k === 'call' && node.fn === '!_' ? node.args[0] : undefined
}

/** Calls that give a list with the same items, or what is in an optional. */
const SAME: ReadonlySet<string> = new Set([
  'distinct',
  'sort',
  'reverse',
  'value',
  'optional.of',
  'dyn',
])
